#include "doctor/facts.h"

#include "base/strings.h"

namespace tokamak::doctor {

double Facts::number(const std::string& name) const {
  const auto value = values_.find(name);
  return value != values_.end() && value->is_number() ? value->get<double>() : 0;
}

std::string Facts::text(const std::string& name) const {
  const auto value = values_.find(name);
  if (value == values_.end()) return "";
  if (value->is_string()) return value->get<std::string>();
  return value->is_number_integer() ? str(value->get<int64_t>()) : str(value->get<double>());
}

std::string Facts::encode() const {
  std::string bytes;
  nlohmann::ordered_json::to_cbor(values_, bytes);
  return bytes;
}

Facts Facts::decode(const std::string& bytes) {
  Facts facts;
  facts.values_ = nlohmann::ordered_json::from_cbor(bytes);
  return facts;
}

}  // namespace tokamak::doctor
