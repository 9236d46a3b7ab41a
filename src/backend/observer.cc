// The public methods of streams, graphs and devices: notify the observers, then call the backend.
#include "backend/observer.h"

#include <algorithm>

#include "base/strings.h"

namespace tokamak {

namespace {

Call copy_call(const char* name, Access access, Tensor& tensor) {
  return {.kind = CallKind::kCopy, .name = name, .operands = {{"tensor", &tensor, access}}};
}

}  // namespace

std::string Call::title() const { return *label == 0 ? name : str(name, " ", label); }

std::string Call::text() const {
  std::string inputs, outputs;
  for (const Operand& operand : operands) {
    if (!*operand.tensor) continue;
    std::string& side = operand.access == Access::kRead ? inputs : outputs;
    side += str(side.empty() ? " " : ", ", operand.name, operand.access == Access::kReadWrite ? " += " : " ",
                operand.tensor->text());
  }
  return title() + inputs + (outputs.empty() ? "" : " ->") + outputs;
}

const std::vector<Observer*>& Stream::observers() const {
  static const std::vector<Observer*> none;
  return observers_ == nullptr ? none : *observers_;
}

void Stream::record(Event& event) {
  do_record(event);
  for (Observer* observer : observers()) observer->recorded(*this, event);
}

void Stream::wait(const Event& event) {
  const bool blocks = !observers().empty() && blocks_host(event);
  for (Observer* observer : observers()) {
    if (blocks) observer->host_waits(*this);
  }
  do_wait(event);
  for (Observer* observer : observers()) {
    if (blocks) observer->host_waited(*this);
  }
  for (Observer* observer : observers()) observer->waited(*this, event);
}

void Stream::synchronize() {
  do_synchronize();
  for (Observer* observer : observers()) observer->synchronized(*this);
}

void Graph::launch(Stream& stream) {
  observed(
      stream, [] { return Call{.kind = CallKind::kGraph, .name = "graph"}; }, [&] { do_launch(stream); });
}

std::unique_ptr<Stream> Device::make_stream(const StreamOptions& options) {
  std::unique_ptr<Stream> stream = do_make_stream(options.priority);
  stream->name_ = options.name;
  stream->observers_ = &observers_;
  return stream;
}

bool Device::shows_operations() const {
  return std::any_of(observers_.begin(), observers_.end(), [](const Observer* o) { return o->wants_operations(); });
}

void Device::copy_to_device(Stream& stream, const void* host, Tensor tensor) {
  observed(
      stream, [&] { return copy_call("copy to device", Access::kWrite, tensor); },
      [&] { do_copy_to_device(stream, host, tensor); });
}

void Device::copy_to_host(Stream& stream, Tensor tensor, void* host) {
  observed(
      stream, [&] { return copy_call("copy to host", Access::kRead, tensor); },
      [&] { do_copy_to_host(stream, tensor, host); });
}

}  // namespace tokamak
