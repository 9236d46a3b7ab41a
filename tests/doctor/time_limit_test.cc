#include "doctor/time_limit.h"

#include <catch2/catch.hpp>
#include <future>

using namespace tokamak;
using namespace tokamak::doctor;

TEST_CASE("a deadline that passes names the check that it passed in") {
  std::promise<std::string> said;
  TimeLimit deadline(0.2);
  deadline.set_expired([&](const std::string& what) { said.set_value(what); });
  deadline.enter("disk");
  CHECK(said.get_future().get().find("the check 'disk' has not ended on ") != std::string::npos);
}

TEST_CASE("a deadline that is kept says nothing") {
  bool expired = false;
  {
    TimeLimit deadline(3600);
    deadline.set_expired([&](const std::string&) { expired = true; });
    deadline.enter("disk");
  }
  CHECK(!expired);
}
