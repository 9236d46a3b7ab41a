// Finds accesses of two streams to the same memory, one of which writes, without an event between them: by what each
// stream knows to be complete when it begins a call (vector clocks), whatever order the device then chose.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "backend/observer.h"
#include "base/strings.h"

namespace tokamak {

class StreamRaces final : public Observer {
 public:
  void begin(Stream& stream, const Call& call) override {
    for (const Operand& operand : call.operands) check(stream, call, *operand.tensor, operand.access != Access::kRead);
    const int64_t now = ++done_[&stream][&stream];
    for (const Operand& operand : call.operands) {
      if (!*operand.tensor) continue;
      const auto* const first = static_cast<const std::byte*>(operand.tensor->data());
      accesses_[{&stream, first, first + operand.tensor->bytes(), operand.access != Access::kRead}] = {now,
                                                                                                       call.title()};
    }
    ++calls_[stream.name()];
  }
  void end(Stream&, const Call&) override {}
  void recorded(Stream& stream, const Event& event) override { reached_[&event] = done_[&stream]; }
  void waited(Stream& stream, const Event& event) override {
    for (const auto& [other, call] : reached_[&event]) {
      int64_t& known = done_[&stream][other];
      known = std::max(known, call);
    }
  }

  const std::vector<std::string>& races() const { return races_; }
  int64_t calls(const std::string& stream) { return calls_[stream]; }

 private:
  using Clock = std::map<const Stream*, int64_t>;  // how many calls of each stream are complete

  void check(Stream& stream, const Call& call, const Tensor& tensor, bool writes) {
    if (!tensor) return;
    const auto* const first = static_cast<const std::byte*>(tensor.data());
    for (const auto& [where, access] : accesses_) {
      const auto& [other, begin, end, wrote] = where;
      const auto& [number, title] = access;
      if (other == &stream || !(writes || wrote) || end <= first || first + tensor.bytes() <= begin) continue;
      if (done_[&stream][other] >= number) continue;
      races_.push_back(str(call.title(), writes ? " writes" : " reads", " what ", title, wrote ? " writes" : " reads"));
    }
  }

  std::map<const Stream*, Clock> done_;
  std::map<const Event*, Clock> reached_;
  // The last call of a stream with this access.
  std::map<std::tuple<const Stream*, const std::byte*, const std::byte*, bool>, std::pair<int64_t, std::string>>
      accesses_;
  std::map<std::string, int64_t> calls_;
  std::vector<std::string> races_;
};

}  // namespace tokamak
