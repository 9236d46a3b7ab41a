// CORE (DCLM, 2406.11794) by the rules of nanochat: 22 tasks of a base model as one number.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/strings.h"
#include "eval/core_bundle.h"
#include "eval/python_text.h"
#include "eval/task_kinds.h"

namespace tokamak {

namespace {

constexpr std::array<std::string_view, 22> kCoreLabels = {"hellaswag_zeroshot",
                                                          "jeopardy",
                                                          "bigbench_qa_wikidata",
                                                          "arc_easy",
                                                          "arc_challenge",
                                                          "copa",
                                                          "commonsense_qa",
                                                          "piqa",
                                                          "openbook_qa",
                                                          "lambada_openai",
                                                          "hellaswag",
                                                          "winograd",
                                                          "winogrande",
                                                          "bigbench_dyck_languages",
                                                          "agi_eval_lsat_ar",
                                                          "bigbench_cs_algorithms",
                                                          "bigbench_operators",
                                                          "bigbench_repeat_copy_logic",
                                                          "squad",
                                                          "coqa",
                                                          "boolq",
                                                          "bigbench_language_identification"};

using Tokens = std::vector<int32_t>;

// The number of tokens that all sequences have in common from their beginnings, or from their ends.
template <class Begin>
int64_t common_length(const std::vector<Tokens>& sequences, const Begin& begin) {
  size_t least = sequences[0].size();
  for (const Tokens& tokens : sequences) least = std::min(least, tokens.size());
  size_t common = 0;
  const auto equal = [&](const Tokens& tokens) { return begin(tokens)[common] == begin(sequences[0])[common]; };
  while (common < least && std::all_of(sequences.begin(), sequences.end(), equal)) ++common;
  return static_cast<int64_t>(common);
}

class CoreEncoder {
 public:
  CoreEncoder(const Tokenizer& tokenizer, int64_t context)
      : encoder_(tokenizer.make_encoder()), bos_(tokenizer.bos_id()), context_(context) {
    if (bos_ < 0) fail(Kind::kConfig, str("CORE puts a BOS token before each prompt; ", tokenizer.path(), " has none"));
  }

  // One sequence of each option. Its scored tokens may be none: a choice that others begin with.
  std::vector<ScoredSequence> sequences(const CorePart& part, const CoreItem& item, const std::string& examples) {
    std::vector<Tokens> prompts;
    for (const auto& [context, continuation] : item.options) {
      prompts.push_back(encode(str(examples, context, part.delimiter, continuation)));
    }
    std::vector<ScoredSequence> out;
    for (const Tokens& tokens : prompts) {
      out.push_back({tokens, std::ssize(tokens) - first_scored(part, item, examples, prompts, tokens)});
    }
    for (ScoredSequence& sequence : out) {
      const int64_t surplus = std::ssize(sequence.tokens) - context_;
      if (surplus > 0) sequence.tokens.erase(sequence.tokens.begin(), sequence.tokens.begin() + surplus);
      if (sequence.scored >= std::ssize(sequence.tokens)) {
        fail(Kind::kData, str(item.where, ": ", sequence.scored, " scored tokens do not fit a context of ", context_));
      }
    }
    return out;
  }

 private:
  int64_t first_scored(const CorePart& part, const CoreItem& item, const std::string& examples,
                       const std::vector<Tokens>& prompts, const Tokens& tokens) {
    switch (part.kind) {
      case CoreKind::kMultipleChoice:
        return common_length(prompts, [](const Tokens& of) { return of.begin(); });
      case CoreKind::kSchema:
        return std::ssize(tokens) - common_length(prompts, [](const Tokens& of) { return of.rbegin(); });
      case CoreKind::kLanguageModeling:
        break;
    }
    const Tokens before = encode(std::string(python_strip(str(examples, item.options[0].first, part.delimiter))));
    if (before.size() >= tokens.size() || !std::equal(before.begin(), before.end(), tokens.begin())) {
      fail(Kind::kData, str(item.where, ": with its continuation the prompt has other tokens than without it"));
    }
    return std::ssize(before);
  }

  Tokens encode(const std::string& text) {
    Tokens tokens = {bos_};
    encoder_->encode(text, tokens);
    return tokens;
  }

  std::unique_ptr<Encoder> encoder_;
  int32_t bos_;
  int64_t context_;
};

// How an item is judged: by the scores of its options, of which those with no scored token have none.
struct Judged {
  size_t part, gold;
  std::vector<int64_t> scored;  // tokens, of each option
};

bool is_right(const Judged& item, CoreKind kind, std::span<const SequenceScore>& scores) {
  std::vector<double> losses;  // mean over the scored tokens
  bool greedy = false;
  for (const int64_t tokens : item.scored) {
    if (tokens == 0) {
      losses.push_back(std::numeric_limits<double>::quiet_NaN());
      continue;
    }
    losses.push_back(-scores[0].log_likelihood / double(tokens));
    greedy = scores[0].greedy;
    scores = scores.subspan(1);
  }
  if (kind == CoreKind::kLanguageModeling) return greedy;
  size_t best = 0;  // as Python's min(): a loss that is NaN stays if it is the first, and is never chosen later
  for (size_t i = 1; i < losses.size(); ++i) best = losses[i] < losses[best] ? i : best;
  return best == item.gold;
}

EvalFigures core_figures(const std::vector<CorePart>& parts, const std::vector<Judged>& items,
                         std::span<const SequenceScore> scores) {
  std::vector<double> right(parts.size()), asked(parts.size());
  for (const Judged& item : items) {
    right[item.part] += is_right(item, parts[item.part].kind, scores) ? 1 : 0;
    asked[item.part] += 1;
  }
  EvalFigures figures;
  double sum = 0;
  size_t found = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const double acc = right[i] / asked[i], centred = (acc - parts[i].baseline) / (1 - parts[i].baseline);
    figures.parts.push_back({parts[i].label, {{"acc", acc}, {"centred", centred}}});
    if (std::count(kCoreLabels.begin(), kCoreLabels.end(), parts[i].label) == 0) continue;
    sum += centred;
    ++found;
  }
  const auto missing = double(kCoreLabels.size() - found);
  figures.values = {missing == 0 ? NamedValue{"core", sum / double(found)} : NamedValue{"missing_tasks", missing}};
  return figures;
}

}  // namespace

EvalTask core_task(const EvalOptions& options, const Tokenizer& tokenizer, int64_t context) {
  const std::vector<CorePart> parts = read_core_parts(options.path);
  CoreEncoder encoder(tokenizer, context);
  EvalTask task;
  std::vector<Judged> judged;
  for (size_t p = 0; p < parts.size(); ++p) {
    const std::vector<CoreItem> items = read_core_items(parts[p], options.limit);
    for (size_t i = 0; i < items.size(); ++i) {
      judged.push_back({p, items[i].gold, {}});
      for (ScoredSequence& sequence : encoder.sequences(parts[p], items[i], core_examples(parts[p], items, i))) {
        judged.back().scored.push_back(sequence.scored);
        if (sequence.scored == 0) continue;
        sequence.item = task.items;
        task.sequences.push_back(std::move(sequence));
      }
      ++task.items;
    }
  }
  task.results = [parts, judged = std::move(judged)](std::span<const SequenceScore> scores) {
    return core_figures(parts, judged, scores);
  };
  return task;
}

}  // namespace tokamak
