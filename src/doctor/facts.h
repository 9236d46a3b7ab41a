// The named values that one rank measured in a check: whole numbers, reals and texts in the order they were set. All
// ranks judge the same facts of all ranks, so all reach the same result; `tokamak doctor --json` prints them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace tokamak::doctor {

class Facts {
 public:
  template <class Value>
  void set(const std::string& name, const Value& value) {
    values_[name] = value;
  }
  void add(const Facts& more) { values_.update(more.values_); }

  bool has(const std::string& name) const { return values_.contains(name); }
  double number(const std::string& name) const;     // 0 where it is missing or a text
  std::string text(const std::string& name) const;  // numbers too, as text; "" where it is missing
  const nlohmann::ordered_json& all() const { return values_; }

  // Numbers keep their bits, texts may hold any bytes.
  std::string encode() const;
  static Facts decode(const std::string& bytes);

 private:
  nlohmann::ordered_json values_ = nlohmann::ordered_json::object();
};

}  // namespace tokamak::doctor
