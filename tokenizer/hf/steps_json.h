// The steps of a tokenizer.json: normalizer, pre-tokenizer, post-processor and decoder. A `Sequence` becomes the list
// of its steps. Errors name the field that we do not reproduce.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json.h"
#include "tokenizer/hf/spec.h"

namespace tokamak {

// Refuses a member of `object` that is not one of `known`, by name.
void expect_only(const JsonValue& object, std::initializer_list<std::string_view> known);

// Each of these may be missing or null, which are no steps.
std::vector<NormalizerStep> read_normalizer(const JsonValue& json);
std::vector<PreTokenizerStep> read_pre_tokenizer(const JsonValue& json);
std::vector<DecoderStep> read_decoder(const JsonValue& json);
// Appends to `prefix` and `suffix` the ids before and after one text.
void read_post_processor(const JsonValue& json, std::vector<int32_t>& prefix, std::vector<int32_t>& suffix);

}  // namespace tokamak
