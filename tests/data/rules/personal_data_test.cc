// Addresses are masked, and what only looks like one is not.
#include "data/rules/personal_data.h"

#include <catch2/catch.hpp>

using namespace tokamak;

namespace {

std::string masked(const std::string& text, bool phone = false) {
  std::string out;
  mask_personal_data(text, {.phone = phone}, out);
  return out;
}

}  // namespace

TEST_CASE("mail addresses become two examples in turn") {
  CHECK(masked("Write to john.doe+x@mail.example.net, or Jane_Roe@a-b.co.uk.") ==
        "Write to email@example.com, or firstname.lastname@example.org.");
  CHECK(masked("a@b.de b@c.de c@d.de") == "email@example.com firstname.lastname@example.org email@example.com");
  CHECK(masked("mailto:x@y.org") == "mailto:email@example.com");
}

TEST_CASE("what is no mail address stays") {
  for (const std::string text :
       {"@user", "a@b", "a @ b.c", "a@", "@", "x..y@z.de", "two@@signs.de", "a@.de", "meet @ 5.30"})
    CHECK(masked(text) == text);
}

TEST_CASE("public IP addresses become fixed ones in turn, and private ones stay") {
  CHECK(masked("8.8.8.8 and 1.2.3.4") == "22.214.171.124 and 126.96.36.199");
  for (const std::string text : {"10.1.2.3", "127.0.0.1", "192.168.0.1", "172.16.0.1", "169.254.1.1", "100.64.0.1",
                                 "192.0.2.1", "198.51.100.7", "203.0.113.9", "0.0.0.0", "255.255.255.255"})
    CHECK(masked(text) == text);
  for (const std::string text : {"1.2.3", "version 2.10", "1..2.3.4", "a.b.c.d", "...", "1.2.3."})
    CHECK(masked(text) == text);
}

TEST_CASE("phone numbers are masked if asked") {
  CHECK(masked("call (212) 555-1234 or 212.555.1234", true) == "call 555-0100 or 555-0100");
  CHECK(masked("call 212-555-1234") == "call 212-555-1234");
  CHECK(masked("order 12345678901234 of 2024-05-01", true) == "order 12345678901234 of 2024-05-01");
}

TEST_CASE("counts are those of the masks") {
  std::string out;
  const PersonalDataCounts counts = mask_personal_data("a@b.de 8.8.8.8 c@d.de", {}, out);
  CHECK(counts.mails == 2);
  CHECK(counts.ips == 1);
  CHECK(counts.phones == 0);
  CHECK(mask_personal_data("", {}, out).mails == 0);
  CHECK(out.empty());
}
