#include "backend/timeline.h"

#include "base/clock.h"
#include "base/error.h"

namespace tokamak {

void Timeline::begin(Stream& stream, const Call& call) {
  if (origin_ == nullptr) {
    // Aligns the host and device clocks; an idle stream keeps the error small.
    stream.synchronize();
    origin_ = device_.make_timestamp();
    origin_->record(stream);
    start_ = now_seconds();
  }
  streams_.insert(&stream);
  const double now = now_seconds() - start_;
  calls_.push_back(
      {{call.kind, call.title(), call.text(), stream.name(), call.flops, call.bytes(), call.exchanged, 0, 0, now, now},
       device_.make_timestamp(),
       device_.make_timestamp()});
  calls_.back().begin->record(stream);
}

void Timeline::end(Stream& stream, const Call&) {
  calls_.back().end->record(stream);
  calls_.back().entry.host_end = now_seconds() - start_;
}

std::vector<Timeline::Entry> Timeline::entries() const {
  for (Stream* stream : streams_) stream->synchronize();
  std::vector<Entry> entries;
  for (const auto& [entry, begin, end] : calls_) {
    const std::optional<double> from = begin->seconds_since(*origin_), to = end->seconds_since(*origin_);
    TOKAMAK_CHECK(from && to, entry.title, " has not ended");
    entries.push_back(entry);
    entries.back().begin = *from;
    entries.back().end = *to;
  }
  return entries;
}

Profile profile_of(const std::vector<Timeline::Entry>& entries) {
  Profile profile;
  for (const Timeline::Entry& entry : entries) {
    ProfileEntry& sum = profile[entry.title];
    ++sum.calls;
    sum.seconds += entry.end - entry.begin;
    sum.flops += entry.flops;
    sum.bytes += entry.bytes;
  }
  return profile;
}

}  // namespace tokamak
