// Cases whose body every rank of a world runs: RANKS_CASE("title") { ... world.comm() ... }. Catch's assertions are
// made for one thread: in a file that includes this (last), a rank evaluates the expression by itself, and the ranks
// report in turn. A failed REQUIRE ends all ranks of the case.
#pragma once

#include <catch2/catch.hpp>
#include <functional>
#include <mutex>
#include <string>

#include "comm/world.h"

namespace tokamak {

using RankBody = std::function<void(World&)>;

// Runs `body` on every rank: in worlds of 1, 2, 3 and 4 threads in turn (thread_ranks.cc), or in the world of processes
// that a launcher has started (launched_ranks.cc).
void on_ranks(const RankBody& body);

// Runs `body` on `ranks` threads as ranks, each of which computes on a single thread.
void on_threads(int ranks, const RankBody& body);

namespace rank_checks {

std::mutex& reporting();

template <class Expression>
void check(Catch::StringRef macro, const Catch::SourceLineInfo& line, Catch::StringRef text,
           Catch::ResultDisposition::Flags disposition, const Expression& expression) {
  const std::lock_guard lock(reporting());
  Catch::AssertionHandler handler(macro, line, text, disposition);
  handler.handleExpr(expression);
  handler.complete();
}

[[noreturn]] void fail_rank(const Catch::SourceLineInfo& line, const std::string& text);

template <class Exception, class Work>
bool throws(const Work& work) {
  try {
    work();
  } catch (const Exception&) {
    return true;
  }
  return false;
}

template <class Work>
std::string message_of(const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "(nothing was thrown)";
}

}  // namespace rank_checks
}  // namespace tokamak

#define TOKAMAK_RANKS_CASE(body, ...)                   \
  static void body(::tokamak::World& world);            \
  TEST_CASE(__VA_ARGS__) { ::tokamak::on_ranks(body); } \
  static void body([[maybe_unused]] ::tokamak::World& world)
#define RANKS_CASE(...) TOKAMAK_RANKS_CASE(INTERNAL_CATCH_UNIQUE_NAME(ranks_case_), __VA_ARGS__)

#define TOKAMAK_RANK_CHECK(macro, disposition, text, expression) \
  ::tokamak::rank_checks::check(macro, CATCH_INTERNAL_LINEINFO, text, Catch::ResultDisposition::disposition, expression)

#undef CHECK
#undef CHECK_FALSE
#undef REQUIRE
#undef CHECK_THAT
#undef CHECK_THROWS
#undef CHECK_THROWS_AS
#undef CHECK_THROWS_WITH
#undef FAIL
#define CHECK(...) TOKAMAK_RANK_CHECK("CHECK", ContinueOnFailure, #__VA_ARGS__, Catch::Decomposer() <= __VA_ARGS__)
#define CHECK_FALSE(...) CHECK(!(__VA_ARGS__))
#define REQUIRE(...) TOKAMAK_RANK_CHECK("REQUIRE", Normal, #__VA_ARGS__, Catch::Decomposer() <= __VA_ARGS__)
#define CHECK_THAT(text, matcher)                                          \
  TOKAMAK_RANK_CHECK("CHECK_THAT", ContinueOnFailure, #text ", " #matcher, \
                     Catch::makeMatchExpr(text, matcher, Catch::StringRef(#matcher)))
#define CHECK_THROWS(work) CHECK_THROWS_AS(work, std::exception)
#define CHECK_THROWS_AS(work, exception) \
  CHECK(::tokamak::rank_checks::throws<exception>([&] { static_cast<void>(work); }))
#define CHECK_THROWS_WITH(work, matcher) \
  CHECK_THAT(::tokamak::rank_checks::message_of([&] { static_cast<void>(work); }), matcher)
#define FAIL(text) ::tokamak::rank_checks::fail_rank(CATCH_INTERNAL_LINEINFO, text)
