// Distinguishes the kinds of field that fields.h allows, for the code that visits them: bind.h, print.cc, reference.cc.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>
#include <vector>

namespace tokamak {

template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;

template <class T>
inline constexpr bool kIsArray = false;
template <class T, size_t N>
inline constexpr bool kIsArray<std::array<T, N>> = true;

struct FieldProbe {
  template <class T>
  void operator()(const char*, T&, const char*) {}
};
template <class T>
concept OptionsStruct = requires(T options, FieldProbe probe) {
  options.fields(probe);
};

}  // namespace tokamak
