// The tensors of an operation's arguments, by name: read or written, and their bytes. THE source for the overlap
// checks, for an operation's bytes, and for traces and records.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>

#include "backend/ops.h"

namespace tokamak {

enum class Access { kRead, kWrite, kReadWrite };

struct Operand {
  const char* name = "";
  Tensor* tensor = nullptr;  // in the arguments; may be empty
  Access access = Access::kRead;
  // For an output: the operands that it may alias.
  std::array<const char*, 2> same_as{};
  int64_t touched = -1;  // bytes accessed; negative: all

  int64_t bytes() const { return (touched < 0 ? tensor->bytes() : touched) * (access == Access::kReadWrite ? 2 : 1); }
  bool may_be(const Operand& other) const;
  bool is_positive() const;  // a factor, square or root, for which a negative value makes no sense
};

class Operands {
 public:
  static constexpr size_t kMost = 8;

  Operands() = default;
  Operands(std::initializer_list<Operand> operands);
  const Operand* begin() const { return operands_.data(); }
  const Operand* end() const { return operands_.data() + size_; }
  double bytes() const;

 private:
  std::array<Operand, kMost> operands_;
  size_t size_ = 0;
};

#define TOKAMAK_OPERANDS(name, Args) Operands operands_of(Args& args);  // NOLINT(bugprone-macro-parentheses): a type
TOKAMAK_OPS(TOKAMAK_OPERANDS)
#undef TOKAMAK_OPERANDS

// For read-only callers.
template <class Args>
Operands operands_of(const Args& args) {
  return operands_of(const_cast<Args&>(args));
}

}  // namespace tokamak
