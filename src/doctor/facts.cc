#include "doctor/facts.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace tokamak::doctor {

namespace {

// Each field as its length in 8 bytes, then its bytes.
void put(std::string& out, const std::string& field) {
  const uint64_t length = field.size();
  out.append(reinterpret_cast<const char*>(&length), sizeof(length));
  out += field;
}

std::string take(const std::string& in, size_t& at) {
  uint64_t length = 0;
  TOKAMAK_CHECK(at + sizeof(length) <= in.size(), "facts of ", in.size(), " bytes end at ", at);
  std::memcpy(&length, in.data() + at, sizeof(length));
  at += sizeof(length);
  TOKAMAK_CHECK(length <= in.size() - at, "facts of ", in.size(), " bytes end at ", at);
  at += length;
  return in.substr(at - length, length);
}

// Bits, as text would round them.
template <class T>
std::string bytes_of(char type, T value) {
  std::string bytes(1, type);
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
  return bytes;
}

template <class T>
T from_bytes(const std::string& bytes) {
  T value;
  TOKAMAK_CHECK(bytes.size() == 1 + sizeof(value), bytes.size());
  std::memcpy(&value, bytes.data() + 1, sizeof(value));
  return value;
}

}  // namespace

void Facts::set(const std::string& name, Value value) {
  const auto known =
      std::find_if(values_.begin(), values_.end(), [&](const auto& entry) { return entry.first == name; });
  if (known == values_.end()) {
    values_.emplace_back(name, std::move(value));
  } else {
    known->second = std::move(value);
  }
}

const Facts::Value* Facts::find(const std::string& name) const {
  const auto known =
      std::find_if(values_.begin(), values_.end(), [&](const auto& entry) { return entry.first == name; });
  return known == values_.end() ? nullptr : &known->second;
}

double Facts::number(const std::string& name) const {
  const Value* const value = find(name);
  if (value == nullptr) return 0;
  if (const auto* const whole = std::get_if<int64_t>(value)) return static_cast<double>(*whole);
  const auto* const real = std::get_if<double>(value);
  return real == nullptr ? 0 : *real;
}

std::string Facts::text(const std::string& name) const {
  const Value* const value = find(name);
  if (value == nullptr) return "";
  return std::visit([](const auto& held) { return str(held); }, *value);
}

std::string Facts::encode() const {
  std::string out;
  for (const auto& [name, value] : values_) {
    put(out, name);
    if (const auto* const whole = std::get_if<int64_t>(&value)) {
      put(out, bytes_of('i', *whole));
    } else if (const auto* const real = std::get_if<double>(&value)) {
      put(out, bytes_of('d', *real));
    } else {
      put(out, "s" + std::get<std::string>(value));
    }
  }
  return out;
}

Facts Facts::decode(const std::string& bytes) {
  Facts facts;
  for (size_t at = 0; at < bytes.size();) {
    const std::string name = take(bytes, at);
    const std::string value = take(bytes, at);
    TOKAMAK_CHECK(!value.empty(), name);
    if (value[0] == 'i') {
      facts.values_.emplace_back(name, from_bytes<int64_t>(value));
    } else if (value[0] == 'd') {
      facts.values_.emplace_back(name, from_bytes<double>(value));
    } else {
      facts.values_.emplace_back(name, value.substr(1));
    }
  }
  return facts;
}

std::vector<Facts> gather_facts(Comm& comm, const std::function<Facts()>& measure) {
  Facts own;
  try {
    own = measure();
  } catch (const Error& error) {
    own.set(kError, error.hint().empty() ? error.what() : str(error.what(), " (", error.hint(), ")"));
    own.set(kErrorKind, int64_t{error.exit_code()});
  } catch (const std::exception& error) {
    own.set(kError, std::string(error.what()));
  }
  std::vector<Facts> all;
  for (const std::string& bytes : comm.gather_all(own.encode())) all.push_back(Facts::decode(bytes));
  return all;
}

}  // namespace tokamak::doctor
