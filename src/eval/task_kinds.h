// The kinds of evaluation tasks, each with its rule.
#pragma once

#include <functional>

#include "eval/encoding.h"
#include "eval/questions.h"

namespace tokamak {

// acc: whether the likeliest choice is right; of a single continuation whether each of its tokens is the likeliest.
// acc_norm: by the log-likelihood over the choice's length in characters. perplexity: exp(-mean log-likelihood).
EvalTask question_task(std::vector<Question> questions, const TaskForm& form, EvalEncoder& encoder);

// Runs programs; 1 for each that passes.
using RunPrograms = std::function<std::vector<char>(std::span<const std::string> programs)>;

// Generated answers: exact_match, strict_match, flexible_extract by text_answers.h. Programs have pass@k instead, for
// k = 1, 2, 4, ... up to options.num_samples.
EvalTask generative_task(std::vector<Question> questions, const EvalOptions& options, const TaskForm& form,
                         EvalEncoder& encoder, const RunPrograms& run);

// CORE by the rules of nanochat, of the bundle at options.path. The figure core is the mean of the 22 tasks'
// accuracies, each (acc - b) / (1 - b) for the accuracy b of a guess. If some are not there, it is missing_tasks
// instead. The parts are the tasks. Error(kConfig) if the tokenizer has no BOS token.
EvalTask core_task(const EvalOptions& options, const Tokenizer& tokenizer, int64_t context);

// Perplexity of whole texts, by the harness's loglikelihood_rolling: each token is predicted once, from at most one
// model context. Metrics: word_perplexity, byte_perplexity, bits_per_byte, token_perplexity.
EvalTask rolling_text_task(std::span<const std::string> texts, EvalEncoder& encoder);

// The loss on the data set at options.path, as in validation: windows of the model's context in stored order, with
// document masking. Metrics: loss, token_perplexity, bits_per_byte; with options.by_position also loss_from_0,
// loss_from_128, loss_from_256, ...: of predictions at positions 256 to 511 of their document, or of its part in the
// window. Error(kData) if another tokenizer made the set.
EvalTask shards_task(const EvalOptions& options, const Tokenizer& tokenizer, int64_t context);

}  // namespace tokamak
