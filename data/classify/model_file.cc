#include "data/classify/model_file.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "base/strings.h"

namespace tokamak {

namespace {

constexpr int32_t kMagic = 793712314;
constexpr int64_t kArguments = 12 * 4 + 8;  // bytes: 12 numbers and the sampling threshold
constexpr int64_t kMost = int64_t{1} << 50;

// Steps over a file's parts in the order in which fastText writes them (FastText::saveModel).
class ModelWalk {
 public:
  explicit ModelWalk(const std::string& path) : file_(path, Kind::kData) {}

  void run() {
    if (file_.size() < 8 || number<int32_t>("its head") != kMagic)
      fail(Kind::kData, str(file_.path(), " is no model of fastText"), "name a .bin or .ftz file");
    skip(4 + kArguments, "its arguments");
    const int64_t entries = number<int32_t>("its dictionary");
    skip(4 + 4 + 8, "its dictionary");
    const auto pruned = number<int64_t>("its dictionary");
    for (int64_t i = 0; i < entries; ++i) skip_entry();
    if (pruned > 0) skip(checked(pruned) * 8, "its dictionary");
    const bool is_quantized = number<char>("its matrices") != 0;
    skip_matrix(is_quantized);
    const bool is_output_quantized = number<char>("its matrices") != 0;
    skip_matrix(is_quantized && is_output_quantized);
    if (at_ != file_.size())
      fail(Kind::kData, str(file_.path(), " has ", file_.size(), " bytes; by its head it has ", at_));
  }

 private:
  void skip(int64_t bytes, std::string_view what) {
    if (bytes > file_.size() - at_)
      fail(Kind::kData, str(file_.path(), " is cut: it ends at byte ", file_.size(), ", within ", what));
    at_ += bytes;
  }

  template <class T>
  T number(std::string_view what) {
    const int64_t at = at_;
    skip(sizeof(T), what);
    T value{};
    file_.read_at(at, std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }

  // A count, or the product of two.
  int64_t checked(int64_t count, int64_t times = 1) const {
    int64_t product = 0;
    if (count < 0 || times < 0 || __builtin_mul_overflow(count, times, &product) || product > kMost)
      fail(Kind::kData, str(file_.path(), " is damaged: a size at byte ", at_, " is impossible"));
    return product;
  }

  // A word that ends with a zero byte, its count and its type.
  void skip_entry() {
    for (;;) {
      if (at_ < block_begin_ || at_ >= block_begin_ + std::ssize(block_)) {
        block_begin_ = at_;
        block_.resize(static_cast<size_t>(std::min(file_.size() - at_, int64_t{1} << 16)));
        file_.read_at(at_, std::as_writable_bytes(std::span(block_.data(), block_.size())));
      }
      const size_t from = static_cast<size_t>(at_ - block_begin_), end = block_.find('\0', from);
      if (end != std::string::npos) {
        skip(static_cast<int64_t>(end - from) + 1 + 8 + 1, "its dictionary");
        return;
      }
      skip(std::max<int64_t>(1, static_cast<int64_t>(block_.size() - from)), "its dictionary");
    }
  }

  void skip_matrix(bool is_quantized) {
    const bool has_norms = is_quantized && number<char>("its matrices") != 0;
    const auto rows = number<int64_t>("its matrices"), columns = number<int64_t>("its matrices");
    if (!is_quantized) return skip(checked(checked(rows, columns), 4), "its matrices");
    skip(checked(number<int32_t>("its codes")), "its codes");
    skip_quantizer();
    if (!has_norms) return;
    skip(checked(rows), "its norms");
    skip_quantizer();
  }

  void skip_quantizer() {
    const auto dimensions = number<int32_t>("its quantizer");
    skip(12, "its quantizer");
    skip(checked(dimensions, 256 * 4), "its quantizer");
  }

  const InputFile file_;
  int64_t at_ = 0;
  std::string block_;
  int64_t block_begin_ = 0;
};

}  // namespace

void check_model_file(const std::string& path) { ModelWalk(path).run(); }

}  // namespace tokamak
