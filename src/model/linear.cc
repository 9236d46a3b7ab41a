#include "model/linear.h"

namespace tokamak {

Matrix Linear::weights(const std::string& prefix, double std) const {
  Matrix matrix{name_, {}};
  for (const Rows& rows : outputs_) {
    matrix.parts.push_back({prefix + rows.name + ".weight", Shape{rows.count, columns_}, 0.0, std, Decay::kYes});
  }
  return matrix;
}

Matrix Linear::biases(const std::string& prefix) const {
  Matrix matrix{prefix + name_ + "_bias", {}};
  for (const Rows& rows : outputs_) {
    matrix.parts.push_back({prefix + rows.name + ".bias", Shape{rows.count}, 0.0, 0.0, Decay::kNo});
  }
  return matrix;
}

double Linear::flops() const {
  int64_t rows = 0;
  for (const Rows& output : outputs_) rows += output.count;
  return 2.0 * static_cast<double>(rows * columns_);
}

}  // namespace tokamak
