// What MFU and rooflines are against, over all starts of a run. The rates of a CPU are measured when a start begins, beside
// whatever else runs there, so they may come out too low and MFU too high: of one device the largest counts for all starts.
#pragma once

#include <map>
#include <string>

#include "monitor/record.h"

namespace tokamak {

class RunPeak {
 public:
  struct Rates {
    double flops = 0;   // per second, of one rank; 0: not known
    double memory = 0;  // bytes per second, read and written
  };

  // In the order of the file, and again if wanted. Returns what the MFUs of earlier starts on this device are to be multiplied
  // by, if the run had no other: below 1 where this start has measured more than they.
  double see(const MetricRecord& record);
  // An operation of the run's trace was so fast. Where starts measured several devices, it is not known whose it was.
  void reached(double flops);

  Rates best() const;                              // of the device of the start that was seen last
  MetricRecord scaled(MetricRecord record) const;  // with the MFUs of that start against it

 private:
  double ranks_ = 0;
  std::string device_;  // and what was measured, on how many ranks at the same time
  double own_ = 0;      // FLOP/s that the start has said
  std::map<std::string, Rates> best_;
};

}  // namespace tokamak
