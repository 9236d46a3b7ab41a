// Options -> ConfigNode: for the printer, and for the defaults that a file is merged over.
#pragma once

#include <array>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/strings.h"
#include "config/config_tree.h"
#include "config/units.h"

namespace tokamak {

// The kinds of field that fields.h allows.
template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;

template <class T>
inline constexpr bool kIsArray = false;
template <class T, size_t N>
inline constexpr bool kIsArray<std::array<T, N>> = true;

// One of several options structs, each with its kName: in a list of steps, "- minhash: {bands: 9}" or "- minhash".
template <class T>
inline constexpr bool kIsVariant = false;
template <class... Kinds>
inline constexpr bool kIsVariant<std::variant<Kinds...>> = true;

struct FieldProbe {
  template <class T>
  void operator()(const char*, T&, const char*) {}
};
template <class T>
concept OptionsStruct = requires(T options, FieldProbe probe) {
  options.fields(probe);
};

inline std::string text_of(const std::string& value) { return value; }
inline std::string text_of(bool value) { return print_bool(value); }
inline std::string text_of(int64_t value) { return print_count(value); }
inline std::string text_of(double value) { return print_number(value); }
inline std::string text_of(AutoInt value) { return print_auto_int(value); }
inline std::string text_of(AutoNumber value) { return print_auto_number(value); }
inline std::string text_of(AutoLimit value) { return print_auto_limit(value); }
inline std::string text_of(Duration value) { return print_duration(value); }
inline std::string text_of(const TrainingLength& value) { return print_training_length(value); }
template <class Enum>
requires std::is_enum_v<Enum> std::string text_of(Enum value) { return enum_name(value); }

// Whether a field has no default, by the end of its help.
inline bool is_required(std::string_view help) { return help.ends_with("; required"); }

// Each node's comment is its field's help.
template <class T>
ConfigNode tree_of(const T& value) {
  ConfigNode node;
  if constexpr (OptionsStruct<T>) {
    node.type = ConfigNode::Type::kMap;
    const auto each = [&](const char* name, auto& field, const char* help) {
      node.children.push_back(tree_of(field));
      node.children.back().key = name;
      node.children.back().comment = help;
    };
    T copy = value;  // fields() serves readers and writers, so it is not const
    copy.fields(each);
  } else if constexpr (kIsVariant<T>) {
    node.type = ConfigNode::Type::kMap;
    std::visit(
        [&](const auto& kind) {
          node.children.push_back(tree_of(kind));
          node.children.back().key = kind.kName;
        },
        value);
  } else if constexpr (kIsVector<T> || kIsArray<T>) {
    node.type = ConfigNode::Type::kList;
    for (const auto& item : value) node.children.push_back(tree_of(item));
  } else {
    node.type = ConfigNode::Type::kScalar;
    node.text = text_of(value);
    node.is_text = std::is_same_v<T, std::string>;
  }
  return node;
}

}  // namespace tokamak
