// Work and decisions of rank 0 alone, whose result every rank gets. All functions are collective. If `ask` throws an
// Error on rank 0, every rank throws it, as a SharedError. Numbers travel as their bytes, not as text.
#pragma once

#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "comm/comm.h"

namespace tokamak {

void do_on_rank_zero(Comm& comm, const std::function<void()>& act);
std::string text_of_rank_zero(Comm& comm, const std::function<std::string()>& ask);

template <class T>
std::string bytes_of_values(std::span<const T> values) {
  static_assert(std::is_trivially_copyable_v<T>);
  return std::string(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

template <class T>
std::vector<T> values_of_bytes(const std::string& bytes) {
  static_assert(std::is_trivially_copyable_v<T>);
  TOKAMAK_CHECK(bytes.size() % sizeof(T) == 0, bytes.size(), " bytes of values of ", sizeof(T));
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

template <class Ask, class T = std::invoke_result_t<Ask>>
T value_of_rank_zero(Comm& comm, const Ask& ask) {
  const std::string bytes = text_of_rank_zero(comm, [&] {
    const T value = ask();
    return bytes_of_values(std::span<const T>(&value, 1));
  });
  TOKAMAK_CHECK(bytes.size() == sizeof(T), bytes.size(), " bytes of a value of ", sizeof(T));
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

// As value_of_rank_zero, for a vector.
template <class Ask, class Values = std::invoke_result_t<Ask>>
Values values_of_rank_zero(Comm& comm, const Ask& ask) {
  using T = typename Values::value_type;
  return values_of_bytes<T>(text_of_rank_zero(comm, [&] { return bytes_of_values(std::span<const T>(ask())); }));
}

// Each rank's value, in the order of ranks.
template <class T>
std::vector<T> gather_values(Comm& comm, const T& own) {
  std::vector<T> all;
  for (const std::string& bytes : comm.gather_all(bytes_of_values(std::span<const T>(&own, 1)))) {
    all.push_back(values_of_bytes<T>(bytes).at(0));
  }
  return all;
}

}  // namespace tokamak
