// A norm after the embedding (model.embedding_norm) depends on the token alone. No other program has it, so an export
// folds it into the embedding: row id becomes norm(E[id]). A tied head then needs E as a matrix of its own.
#pragma once

#include "formats/flat_slice.h"
#include "model/model_config.h"

namespace tokamak {

// The same model with the norm folded into its embedding, untied.
ModelConfig with_folded_norm(const ModelConfig& model);

// The weights of with_folded_norm(model), from `read`, those of `model`.
ReadParam fold_norm(const ModelConfig& model, ReadParam read);

}  // namespace tokamak
