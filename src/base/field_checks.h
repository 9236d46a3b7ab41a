// Collects all problems of an options struct, as sentences with key and value. Conditions are written so that NaN fails
// them.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "base/printable.h"
#include "base/strings.h"

namespace tokamak {

class FieldChecks {
 public:
  // Each returns whether the rule holds, so that dependent rules can be skipped. `rule` completes the sentence "key 'K'
  // (value V) ...".
  template <class Value>
  bool require(bool holds, const std::string& key, const Value& value, const std::string& rule,
               const std::string& hint = "") {
    if (!holds) found_.push_back({key, str("key '", key, "' (value ", printable(str(value)), ") ", rule), hint});
    return holds;
  }

  bool given(bool is_given, const std::string& key, const std::string& hint) {
    if (!is_given) found_.push_back({key, str("key '", key, "' is required"), hint});
    return is_given;
  }

  bool within(const std::string& key, int64_t value, int64_t least, int64_t largest) {
    return require(value >= least && value <= largest, key, value, str("must be from ", least, " to ", largest));
  }

  bool at_least(const std::string& key, int64_t value, int64_t least) {
    return require(value >= least, key, value, str("must be at least ", least));
  }

  bool positive(const std::string& key, double value) {
    return require(value > 0 && std::isfinite(value), key, value, "must be a positive number");
  }

  bool not_negative(const std::string& key, double value) {
    return require(value >= 0 && std::isfinite(value), key, value, "must be 0 or a positive number");
  }

  bool fraction(const std::string& key, double value) {
    return require(value >= 0 && value <= 1, key, value, "must be from 0 to 1");
  }

  std::vector<FieldError> take() { return std::move(found_); }

 private:
  std::vector<FieldError> found_;
};

}  // namespace tokamak
