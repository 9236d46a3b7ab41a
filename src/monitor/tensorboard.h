// RUN/tensorboard: the records of a run for TensorBoard (tfevents.h). Values are scalars under their names. Events
// (events/stop), the config of each start and the samples (samples/1: of the first prompt) are texts. The config's keys
// are also a row of the table HPARAMS. Statistics of tensors are weights/NAME/rms, gradients/NAME/rms, updates/NAME/rms
// and updates/NAME/ratio as scalars, weights/NAME/log2 and so on as histograms of log2 |x| without zeros.
//
// Each start writes a file of its own that names the step it continues from; readers then drop the later steps of
// earlier files. A start that ends before its first step leaves nothing here.
#pragma once

#include <map>
#include <optional>

#include "base/file.h"
#include "monitor/sink.h"
#include "monitor/tfevents.h"

namespace tokamak {

class TensorBoard : public FileSink {
 public:
  TensorBoard(std::string directory, RunFacts run);  // Error(kConfig) if it cannot be created
  void write(const MetricRecord& record) override;
  const std::string& path() const override { return directory_; }

 private:
  void begin(const MetricRecord& ready);
  void append(const std::string& bytes);
  std::string next_name() const;

  std::string directory_;
  const RunFacts run_;
  bool ready_ = false;
  std::vector<MetricRecord> before_;  // events up to "ready", which has their step
  std::string first_;                 // the first records of this start; empty once they are written
  std::optional<OutputFile> file_;
  std::map<std::string, int64_t> newest_;  // the step of a name's newest value
};

}  // namespace tokamak
