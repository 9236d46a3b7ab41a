// What one rank measured in a check, by name: numbers and texts in the order they were set. Ranks exchange them as one
// string, and every rank judges the same facts of all, so that all come to the same result.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "comm/comm.h"

namespace tokamak::doctor {

class Facts {
 public:
  using Value = std::variant<int64_t, double, std::string>;

  void set(const std::string& name, Value value);
  bool has(const std::string& name) const { return find(name) != nullptr; }
  double number(const std::string& name) const;     // 0 where it is missing or a text
  std::string text(const std::string& name) const;  // numbers too, as text; "" where it is missing
  const std::vector<std::pair<std::string, Value>>& all() const { return values_; }

  std::string encode() const;
  static Facts decode(const std::string& bytes);

 private:
  const Value* find(const std::string& name) const;
  std::vector<std::pair<std::string, Value>> values_;
};

// Name of the fact that says why a rank could not measure, and of the kind of that error.
inline constexpr const char* kError = "error";
inline constexpr const char* kErrorKind = "error_kind";

// measure() of every rank, by rank. An exception of measure() is that rank's fact kError. Collective; `measure` itself
// may not communicate: a rank that throws would leave the others waiting.
std::vector<Facts> gather_facts(Comm& comm, const std::function<Facts()>& measure);

}  // namespace tokamak::doctor
