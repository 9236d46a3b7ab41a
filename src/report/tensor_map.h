// Statistics of tensors as a map for the page: a row for each weight and activation, a column for each bucket of
// neighbouring records. A cell is the greatest value of its bucket, so a single bad step stays visible.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "monitor/record.h"

namespace tokamak {

struct TensorMap {
  struct Column {
    int64_t first = 0, last = 0;  // steps of its records
  };
  struct NonFinite {
    int64_t row = 0, column = 0;
    int64_t elements = 0;  // the largest number in any record of the column
  };
  // "ratio" is the update's root mean square divided by the weights', "activations" the greatest magnitude. All others
  // are the root mean square of a tensor_kinds, or of a part of the optimizer's state.
  struct Kind {
    std::string name;
    std::vector<float> values;          // (rows, columns); NaN where nothing finite was recorded
    std::vector<NonFinite> non_finite;  // none for a ratio
  };

  std::vector<std::string> names;  // of the rows, in the order of the records
  std::vector<Column> columns;
  int64_t records = 0;
  std::vector<Kind> kinds;

  const Kind& kind(const std::string& name) const;  // a bug if there is none
};

class TensorMapBuilder {
 public:
  void see(const MetricRecord& record);  // of all starts, in the order of the files
  // At most `most` columns. All have the same number of records, except the last.
  TensorMap map(int64_t most) const;
  int64_t rows() const { return static_cast<int64_t>(names_.size()); }

 private:
  struct Value {
    int64_t row = 0, kind = 0;
    float value = 0;
    int64_t non_finite = 0;
  };
  struct Record {
    int64_t step = 0;
    std::vector<Value> values;
  };
  void forget_from(int64_t step);
  int64_t kind_of(const std::string& name);

  std::vector<std::string> names_, kinds_;
  std::unordered_map<std::string, int64_t> rows_;
  std::vector<Record> records_;  // steps ascend
};

}  // namespace tokamak
