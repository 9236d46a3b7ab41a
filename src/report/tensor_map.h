// Statistics of tensors as a map for the page: a row for each weight, a column for each bucket of neighbouring
// records. A cell is the greatest value of its bucket, so a single bad step stays visible.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "monitor/record.h"

namespace tokamak {

// Root mean square of the weights, of the gradients, and of the update divided by that of the weights.
inline constexpr std::array<const char*, 3> kMapKinds = {"weights", "gradients", "ratio"};

struct TensorMap {
  struct Column {
    int64_t first = 0, last = 0;  // steps of its records
  };
  struct NonFinite {
    int64_t row = 0, column = 0;
    int64_t elements = 0;  // the largest number in any record of the column
  };
  struct Cells {
    std::vector<float> values;          // (rows, columns); NaN where nothing finite was recorded
    std::vector<NonFinite> non_finite;  // none for a ratio
  };

  std::vector<std::string> names;  // of the rows, in the order of the records
  std::vector<Column> columns;
  int64_t records = 0;
  std::array<Cells, kMapKinds.size()> cells;
};

class TensorMapBuilder {
 public:
  void see(const MetricRecord& record);  // of all starts, in the order of the files
  // At most `most` columns. All have the same number of records, except the last.
  TensorMap map(int64_t most) const;
  int64_t rows() const { return static_cast<int64_t>(names_.size()); }

 private:
  struct Value {
    int64_t row = 0;
    std::array<float, kMapKinds.size()> values{};
    std::array<int64_t, kMapKinds.size()> non_finite{};
  };
  struct Record {
    int64_t step = 0;
    std::vector<Value> values;
  };
  void forget_from(int64_t step);

  std::vector<std::string> names_;
  std::unordered_map<std::string, int64_t> rows_;
  std::vector<Record> records_;  // steps ascend
};

}  // namespace tokamak
