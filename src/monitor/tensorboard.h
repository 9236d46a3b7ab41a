// RUN/tensorboard: the records of a run as TensorBoard reads them (tfevents.h). Values are scalars under their names,
// events are texts (events/stop), and so are the config of each start and the samples (samples/1: of the first prompt).
// The config's keys are a row of the table HPARAMS, too.
// Of tensors: weights/NAME/rms, gradients/NAME/rms, updates/NAME/rms and updates/NAME/ratio (TensorRecord::update_ratio)
// as scalars, weights/NAME/log2 and so on as histograms of log2 |x|, without zeros.
//
// A start begins a file of its own, and says where it goes on from: of the steps that are trained again, readers keep the
// later ones. A start that ends before its first step leaves nothing here.
#pragma once

#include <map>
#include <optional>

#include "base/file.h"
#include "monitor/sink.h"
#include "monitor/tfevents.h"

namespace tokamak {

class TensorBoard : public FileSink {
 public:
  TensorBoard(std::string directory, RunFacts run);  // Error(kConfig) where there can be no such directory
  void write(const MetricRecord& record) override;
  const std::string& path() const override { return directory_; }

 private:
  void begin(const MetricRecord& ready);
  void append(const std::string& bytes);
  std::string next_name() const;

  std::string directory_;
  const RunFacts run_;
  bool ready_ = false;
  std::vector<MetricRecord> before_;  // events up to "ready": only that one tells their step
  std::string first_;                 // what this start says first; empty once it is written
  std::optional<OutputFile> file_;
  std::map<std::string, int64_t> newest_;  // the step of a name's newest value
};

}  // namespace tokamak
