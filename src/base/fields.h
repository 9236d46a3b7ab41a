// The list of an options struct's fields. Config loader, printer and reference all iterate over it, so a field cannot
// be missing from one of them. A struct declares
//
//   template <class Visitor> void fields(Visitor& v) {
//     v("lr", lr, "peak learning rate");
//     v("betas", betas, "decay of the first and second moment");
//   }
//
// An enum that was a bool once has enum_of_bool(), which reads old files.
//
// Kinds of field: bool, int64_t (takes human counts: "250B", "64Ki"), double (takes "5%"), std::string, an enum with
// enum_names(), and std::array / std::vector of these types. Also another options struct, a vector of structs, and the
// quantities below.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tokamak {

// A length of training, in the unit that the user wrote: "2000" (steps), "1B tokens", "5%" (of the run), "90min".
struct TrainingLength {
  enum class Unit { kNone, kSteps, kTokens, kFraction, kSeconds };
  Unit unit = Unit::kNone;
  double value = 0;

  static TrainingLength none() { return {}; }
  static TrainingLength steps(double n) { return {Unit::kSteps, n}; }
  static TrainingLength tokens(double n) { return {Unit::kTokens, n}; }
  static TrainingLength fraction(double f) { return {Unit::kFraction, f}; }
  static TrainingLength seconds(double s) { return {Unit::kSeconds, s}; }
  bool operator==(const TrainingLength&) const = default;
};

// A time by the clock: "3h50min", "90s", "none".
struct Duration {
  double seconds = 0;  // 0: none
  bool is_none() const { return seconds == 0; }
  bool operator==(const Duration&) const = default;
};

// A whole number that the program may choose: "auto" or N.
struct AutoInt {
  int64_t value = 0;  // 0: auto
  bool is_auto() const { return value == 0; }
  bool operator==(const AutoInt&) const = default;
};

// A count or limit that the program may choose, or none: "auto", "none" or N.
struct AutoLimit {
  int64_t value = -1;  // -1: auto; 0: none
  static AutoLimit none() { return {0}; }
  bool is_auto() const { return value < 0; }
  bool is_none() const { return value == 0; }
  bool operator==(const AutoLimit&) const = default;
};

// A number that the program may choose: "auto" or a number of at least 0.
struct AutoNumber {
  double value = -1;  // -1: auto
  bool is_auto() const { return value < 0; }
  bool operator==(const AutoNumber&) const = default;
};

// A problem of a field's value. The config module adds file and line; a module that checks its own options returns a
// list of these.
struct FieldError {
  std::string key;   // dotted, from the section on: "model.head_dim"
  std::string what;  // a sentence that names the key, its value and what it must be
  std::string hint;  // what to do about it; may be empty
};

// Each enum of an options struct defines an overload next to it, with the config names of its values 0, 1, ...:
// inline const std::vector<std::string>& enum_names(E) { static const ... }. enum_name is the name of one value.
template <class Enum>
const std::string& enum_name(Enum value) {
  return enum_names(value).at(static_cast<size_t>(value));
}

}  // namespace tokamak
