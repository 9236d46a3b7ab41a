#include "eval/sequence_scores.h"

#include <algorithm>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"
#include "comm/rank_zero.h"

namespace tokamak {

namespace {

// Slots of the cache that sequences may share beginnings in. With rope_scaling dynamic there is none: keys depend on
// the length of the sequence for which they were rotated.
int64_t slots_for(Engine& engine, std::span<const ScoredSequence> sequences) {
  if (engine.model().cached_sequences() == 0 || engine.cache().ends() != CacheEnds::kCutOff) return 0;
  if (engine.model().config().rope_scaling.rope_type == RopeType::kDynamic) return 0;
  const bool fit = std::all_of(sequences.begin(), sequences.end(), [&](const ScoredSequence& sequence) {
    return std::ssize(sequence.tokens) <= engine.cache().capacity() + 1;
  });
  return fit ? engine.cache().slots() : 0;
}

// A call as the model sees it, on the host.
struct CallInputs {
  CallInputs(const ScoringCall& call, std::span<const ScoredSequence> sequences) {
    for (const ScoredRun& run : call.runs) {
      const auto first = static_cast<int32_t>(tokens.size() - static_cast<size_t>(run.begin));  // row of position 0
      for (int64_t at = run.begin; at < run.end; ++at) {
        tokens.push_back(sequences[run.sequence].tokens[static_cast<size_t>(at)]);
        positions.push_back(static_cast<int32_t>(at));
      }
      for (const ScoredRun::Targets& part : run.targets) {
        for (int64_t at = part.from; at < part.to; ++at) {
          rows.push_back(first + static_cast<int32_t>(at));
          targets.push_back(sequences[part.sequence].tokens[static_cast<size_t>(at) + 1]);
          owners.push_back(part.sequence);
        }
      }
      cu_seqlens.push_back(static_cast<int32_t>(tokens.size()));
      slots.push_back(run.slot);
    }
  }

  std::vector<int32_t> tokens, positions, slots, rows, targets;
  std::vector<int32_t> cu_seqlens = {0};
  std::vector<size_t> owners;  // of the targets: their sequences
};

// Computes calls, and adds what their targets score.
class Scorer {
 public:
  Scorer(Engine& engine, std::span<const ScoredSequence> sequences, Beginnings beginnings)
      : engine_(engine), sequences_(sequences), beginnings_(beginnings) {}

  void run(const ScoringCall& call, std::vector<SequenceScore>& scores) {
    const CallInputs in(call, sequences_);
    const TokenScores tokens = compute(call, in);
    losses_.resize(in.targets.size());
    greedy_.resize(in.targets.size());
    engine_.backend().device->copy_to_host(engine_.compute(), tokens.loss, losses_.data());
    engine_.backend().device->copy_to_host(engine_.compute(), tokens.greedy, greedy_.data());
    engine_.compute().synchronize();
    for (size_t i = 0; i < in.owners.size(); ++i) {
      SequenceScore& score = scores[in.owners[i]];
      score.log_likelihood -= double(losses_[i]);
      score.greedy = score.greedy && greedy_[i] != 0;
    }
  }

 private:
  TokenScores compute(const ScoringCall& call, const CallInputs& in) {
    if (beginnings_ == Beginnings::kComputedAlone) {
      const TokenBatch batch{in.tokens, in.targets, in.positions, in.cu_seqlens, in.rows};
      return engine_.model().evaluate(engine_.compute(), batch, engine_.sums());
    }
    for (const ScoredRun& run : call.runs) engine_.cache().cut(run.slot, run.begin);
    return evaluate_cached(engine_.model(), engine_.compute(), {in.tokens, in.cu_seqlens, in.slots, {}},
                           {in.rows, in.targets}, engine_.sums(), engine_.cache());
  }

  Engine& engine_;
  std::span<const ScoredSequence> sequences_;
  Beginnings beginnings_;
  std::vector<float> losses_, greedy_;
};

// This rank's calls of a plan, in order. Weight gathers are collective. So each rank makes as many calls, and one that
// has none left computes a token of its own.
class RankCalls {
 public:
  RankCalls(std::span<const ScoringPack> packs, const Comm& comm) {
    const std::vector<std::vector<size_t>> split = split_by_cost(packs, comm.size());
    for (size_t rank = 0; rank < split.size(); ++rank) {
      size_t calls = 0;
      for (const size_t pack : split[rank]) {
        calls += packs[pack].calls.size();
        if (static_cast<int>(rank) != comm.rank()) continue;
        for (const ScoringCall& call : packs[pack].calls) own_.push_back(&call);
      }
      count_ = std::max(count_, calls);
    }
    for (const ScoringCall* call : own_) tokens_ += call->tokens;
    filler_.runs.push_back({.sequence = 0, .begin = 0, .end = 1});
    filler_.runs[0].targets.push_back({.sequence = 0, .from = 0, .to = 1});
  }

  size_t count() const { return count_; }
  const ScoringCall* own(size_t i) const { return i < own_.size() ? own_[i] : nullptr; }
  const ScoringCall& filler() const { return filler_; }
  int64_t tokens() const { return tokens_; }  // that this rank computes

 private:
  std::vector<const ScoringCall*> own_;
  ScoringCall filler_;
  size_t count_ = 0;
  int64_t tokens_ = 0;
};

class Progress {
 public:
  explicit Progress(int64_t total) : total_(total) {}

  void reached(int64_t done) {
    if (since_line_.seconds() < kInterval || done == 0) return;
    since_line_.restart();
    const double left = since_start_.seconds() / double(done) * double(total_ - done);
    log::info("scored ", fixed(100 * double(done) / double(total_), 0), " % of the tokens, ", human_duration(left),
              " left");
  }

 private:
  static constexpr double kInterval = 30;  // seconds
  int64_t total_;
  Stopwatch since_start_, since_line_;
};

// Each sequence has its score on one rank, and none on the others.
void share(Comm& comm, std::vector<SequenceScore>& scores) {
  if (comm.size() == 1) return;
  const std::vector<std::string> parts = comm.gather_all(bytes_of_values(std::span<const SequenceScore>(scores)));
  std::fill(scores.begin(), scores.end(), SequenceScore());
  for (const std::string& bytes : parts) {
    const std::vector<SequenceScore> part = values_of_bytes<SequenceScore>(bytes);
    for (size_t i = 0; i < scores.size(); ++i) {
      scores[i].log_likelihood += part[i].log_likelihood;
      scores[i].greedy = scores[i].greedy && part[i].greedy;
    }
  }
}

}  // namespace

double nats_of(std::span<const SequenceScore> scores) {
  double nats = 0;
  for (const SequenceScore& score : scores) nats -= score.log_likelihood;
  return nats;
}

std::vector<SequenceScore> score_sequences(Engine& engine, std::span<const ScoredSequence> sequences,
                                           const std::function<void()>& between) {
  Comm& data = engine.mesh().data();
  const TokenFlops flops = token_flops(engine.model().config());
  const ScorePlan plan = plan_scores(sequences, {.slots = slots_for(engine, sequences),
                                                 .max_tokens = engine.model().max_tokens(),
                                                 .token_cost = [&](double attended) { return flops.done(attended); }});
  const RankCalls calls(plan.packs, data);
  Scorer scorer(engine, sequences, plan.beginnings);
  std::vector<SequenceScore> scores(sequences.size()), ignored(sequences.size());
  Progress progress(calls.tokens());
  int64_t done = 0;
  for (size_t i = 0; i < calls.count(); ++i) {
    between();
    const ScoringCall* own = calls.own(i);
    scorer.run(own != nullptr ? *own : calls.filler(), own != nullptr ? scores : ignored);
    if (own != nullptr) done += own->tokens;
    if (engine.comm().rank() == 0) progress.reached(done);
  }
  share(data, scores);
  return scores;
}

}  // namespace tokamak
