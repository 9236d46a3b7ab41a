#include "fuzz/samples.h"

#include <cstring>
#include <vector>

#include "checkpoint/manifest.h"
#include "comm/hello.h"
#include "data/index_format.h"
#include "data/stores/llmc.h"
#include "formats/safetensors_header.h"
#include "resilience/heartbeat.h"

namespace tokamak::fuzz {

std::string safetensors_sample() {
  std::vector<SafetensorsEntry> tensors(3);
  tensors[0] = {"a", "F32", {2, 3}};
  tensors[1] = {"b", "BF16", {4}};
  tensors[2] = {"c", "F16", {0, 2}};
  const std::string header = render_safetensors_header(tensors, {{"format", "pt"}});
  return header + std::string(static_cast<size_t>(tensors.back().end), 'x');
}

std::string index_sample() {
  return R"({"metadata": {"total_size": 12}, "weight_map": {"a": "model-00001-of-00002.safetensors",
             "b": "model-00002-of-00002.safetensors"}})";
}

std::string hf_config_sample() {
  return R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
             "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
             "vocab_size": 100, "max_position_embeddings": 4096, "rms_norm_eps": 1e-05, "hidden_act": "silu",
             "rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
             "high_freq_factor": 4.0, "original_max_position_embeddings": 1024}, "tie_word_embeddings": false,
             "attention_bias": false, "mlp_bias": false, "bos_token_id": 1, "eos_token_id": [2, 3]})";
}

namespace {

// Protocol buffers, of short fields.
std::string field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}
std::string field(int number, int value) { return {static_cast<char>(number << 3), static_cast<char>(value)}; }
std::string piece(const std::string& text, int type) {
  return field(1, field(1, text) + std::string("\x15\0\0\x80\xbf", 5) + field(3, type));
}

}  // namespace

std::string tokenizer_sample() {
  std::string pieces =
      piece("<unk>", 2) + piece("<s>", 3) + piece("</s>", 3) + piece("a", 1) + piece("b", 1) + piece("ab", 1);
  return pieces + field(2, field(3, 2) + field(4, 6)) +
         field(3, field(1, "identity") + field(3, 0) + field(4, 0) + field(5, 1));
}

std::string tokenizer_json_sample() {
  return R"({"version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [{"id": 8, "content": "<|end|>", "single_word": false, "lstrip": true, "rstrip": true,
      "normalized": false, "special": true}, {"id": 0, "content": "a", "single_word": true, "lstrip": false,
      "rstrip": false, "normalized": true, "special": false}],
    "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Replace", "pattern": {"String": "x"},
      "content": "y"}, {"type": "Strip", "strip_left": true, "strip_right": false}]},
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": true},
      {"type": "Split", "pattern": {"Regex": " ?\\p{L}+|\\s+"}, "behavior": "MergedWithNext", "invert": false},
      {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first", "split": true}]},
    "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "a", "type_id": 0}},
      {"Sequence": {"id": "A", "type_id": 0}}], "pair": [], "special_tokens": {"a": {"id": "a", "ids": [0], "tokens":
      ["a"]}}},
    "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Metaspace", "replacement": "_",
      "prepend_scheme": "always"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 1}]},
    "model": {"type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": null,
      "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": true, "ignore_merges": false,
      "vocab": {"a": 0, "b": 1, "ab": 2, "<unk>": 3, "abab": 4, "_": 5, "<0xC3>": 6, "<0xA9>": 7},
      "merges": ["a b", ["ab", "ab"]]}})";
}

std::string special_ids_sample() {
  return R"({"bos_token": "a", "eos_token": {"content": "<|end|>", "lstrip": false}, "unk_token": null, "pad_token": "no\u0001",
    "pad_token_id": 5, "eos_token_id": [1, 2], "chat_template": [{"name": "tool", "template": "t"},
    {"name": "default", "template": "{{ x }}"}]})";
}

namespace {

std::string base64(const std::string& bytes) {
  constexpr const char* kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto at = [&](size_t i) { return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0u; };
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const uint32_t bits = at(i) << 16 | at(i + 1) << 8 | at(i + 2);
    for (size_t k = 0; k < 4; ++k) out += i + k > bytes.size() ? '=' : kDigits[bits >> (18 - 6 * k) & 63];
  }
  return out;
}

std::vector<std::string> byte_pieces() {
  std::vector<std::string> pieces;
  for (int byte = 0; byte < 256; ++byte) pieces.emplace_back(1, static_cast<char>(byte));
  pieces.insert(pieces.end(), {"ab", "abab", "\xC3\xA9"});
  return pieces;
}

}  // namespace

std::string tiktoken_sample() {
  std::string text;
  int rank = 0;
  for (const std::string& piece : byte_pieces()) text += base64(piece) + " " + std::to_string(rank++) + "\n";
  return text;
}

std::string tekken_sample() {
  std::string text = R"({"config": {"pattern": "[a-z]+", "num_vocab_tokens": 259, "default_vocab_size": 279,
    "default_num_special_tokens": 20, "version": "v3"}, "vocab": [)";
  int rank = 0;
  for (const std::string& piece : byte_pieces()) {
    text += std::string(rank > 0 ? "," : "") + "{\"rank\":" + std::to_string(rank) + ",\"token_bytes\":\"" +
            base64(piece) + "\",\"token_str\":null}";
    ++rank;
  }
  return text + "]}";
}

std::string index_header_sample() {
  const auto bytes = encode_index_header({TokenElement::kUint16, 3, 4});
  std::string text(bytes.size(), '\0');
  std::memcpy(text.data(), bytes.data(), bytes.size());
  return text + std::string(12 * 3 + 8 * 4, '\1');
}

namespace {

template <class T>
std::string packed_values(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(values.begin()), sizeof(T) * values.size()};
}

}  // namespace

// Three documents, the second one empty and the third of two sequences, of a .bin of 16 bytes.
std::string megatron_sample() {
  const auto head = encode_index_header({TokenElement::kUint16, 3, 4});
  std::string text(head.size(), '\0');
  std::memcpy(text.data(), head.data(), head.size());
  return text + packed_values<int32_t>({3, 1, 4}) + packed_values<int64_t>({0, 6, 8}) +
         packed_values<int64_t>({0, 1, 1, 3});
}

// The index of a .ds of 16 bytes.
std::string datatrove_sample() { return packed_values<uint64_t>({3, 3, 4, 8}); }

std::string datatrove_metadata_sample() { return "gpt2|2\n8"; }

std::string llmc_sample() {
  return encode_llmc_header(TokenElement::kUint16, 5) + packed_values<uint16_t>({50256, 1, 2, 3, 4});
}

std::string numpy_sample() {
  const std::string header = "{'descr': '<u2', 'fortran_order': False, 'shape': (4,), }          \n";
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header + "12345678";
}

// Samples of columns str and ndarray:uint16: three tokens, and none.
std::string mds_sample() {
  const std::string first = packed_values<uint32_t>({2, 8}) + "id" + std::string("\x04\x03", 2) + "aabbcc";
  const std::string second = packed_values<uint32_t>({0, 2}) + std::string("\x04\x00", 2);
  const auto begin = static_cast<uint32_t>(4 * sizeof(uint32_t)), middle = static_cast<uint32_t>(begin + first.size());
  return packed_values<uint32_t>({2, begin, middle, static_cast<uint32_t>(middle + second.size())}) + first + second;
}

// Two members of one stored block each, with the name of the file in the first, and padding.
std::string gzip_sample() {
  const std::string begin("\x1f\x8b\x08\x08\0\0\0\0\0\x03x\0", 12), next("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10);
  const std::string block(
      "\x01\x03\0\xfc\xff"
      "abc",
      8),
      end("\xc2\x41\x24\x35\x03\0\0\0", 8);
  return begin + block + end + next + block + end + std::string(2, '\0');
}

std::string zstd_frame(std::string_view bytes) {
  const auto size = static_cast<char>(bytes.size());
  const auto block = static_cast<uint32_t>(bytes.size() << 3 | 1);
  std::string frame = std::string("\x28\xb5\x2f\xfd\x20", 5) + size + packed_values<uint32_t>({block}).substr(0, 3);
  return frame.append(bytes);
}

std::string document_rows_sample() { return "0,5,id,source.json.gz,1\n5,5,id2,source,2\n5,12,,,\n"; }

// Checksums of a .bin of 10 bytes in blocks of 4 and an .idx of 5 in blocks of 8. targets.cc adds the checksum at the
// end.
std::string sums_sample() {
  const uint64_t words[] = {4, 3, 1, 2, 3, 8, 1, 4};
  std::string text("LLMSUM1\0", 8);
  return text.append(reinterpret_cast<const char*>(words), sizeof(words));
}

std::string dataset_sample() {
  return R"({"bos_id": null, "created": "2026-01-31T12:34:56Z", "document_end": "eos", "documents": 7, "eos_id": 2,
    "format": "tokamak-dataset", "shards": [{"bytes": 20, "documents": 3, "index_bytes": 102, "index_xxh3_128": "a",
    "max_token_id": 9, "name": "part-00000", "tokens": 10, "xxh3_128": "b"}, {"bytes": 40, "documents": 4,
    "index_bytes": 120, "index_xxh3_128": "c", "max_token_id": null, "name": "part-00001", "tokens": 20, "xxh3_128": "d"}],
    "token_type": "uint16", "tokenizer": {"file": "tokenizer.model", "name": "t", "xxh3_128": "e"}, "tokens": 30,
    "tool": "tokamak", "version": 1, "vocab_size": 400})";
}

// The body; its frame and checksum are targets.cc's.
std::string checkpoint_sample() {
  CheckpointManifest manifest;
  manifest.point = {{20, 2'000'000'000'000, 160}, -5, "run:\n  name: \"a\\b\"\n", R"({"epoch":2})"};
  manifest.tool = "0.1.0";
  manifest.created = "2026-01-31T12:34:56Z";
  manifest.incarnation = "node7.1";
  manifest.world_size = 4;
  manifest.kinds = {"master", "exp_avg"};
  manifest.units = {{"embedding", 64, {{"embed.weight", {7, 16}, 0, {"master"}}, {"other", {}, 112, {}}}},
                    {"norms", 64, {}}};
  manifest.files = {{"rank-00000-of-00002.safetensors", 100, std::string(32, 'a')},
                    {"rank-00001-of-00002.safetensors", 101, std::string(32, 'b')}};
  const std::string text = encode_manifest(manifest);
  const size_t begin = text.find(",\"manifest\":") + 12;
  return text.substr(begin, text.size() - begin - 2);
}

std::string config_sample() {
  return "run:\n  name: a${run.seed}\nmodel:\n  hidden_size: 64\n  intermediate_size: 172\n  num_hidden_layers: 2\n"
         "  num_attention_heads: 4\ndata:\n  sequence_length: 128\n  sources:\n    - path: some/data\n"
         "    - {path: other/data, weight: 3}\n  validation: [\"${data.sources[0]}\"]\ntraining:\n  max_steps: 100\n"
         "  global_batch_tokens: 1Ki\noptimizer:\n  betas: [0.9, 0.95]\ncheckpoint:\n  interval: 90min\n";
}

std::string units_sample() { return "1.5M"; }

std::string metrics_sample() {
  return R"({"step":1,"time":"2026-01-31T12:34:56.789Z","loss/last":2.5,"x":null,"event":"start","reason":"a"})"
         "\n"
         R"({"step":2,"time":"2026-01-31T12:34:57Z","tensors":[{"name":"a","kind":"grad","rms":1,"max":2,"nonfinite":0,)"
         R"("histogram":{"low":-3,"counts":[1,2]}}]})"
         "\n";
}

std::string status_sample() {
  return R"({"state":"failed","code":6,"step":7,"total_steps":9,"time":"2026-01-31T12:34:56Z","incarnation":"node7.1"})";
}

std::string hang_sample() {
  return "hang, found at 2026-01-31T12:34:56Z\n\nrank 1 on node7: in forward, for 61 s\nnode7\nnode8\n";
}

std::string machine_sample() {
  return R"({"name": "mine", "bf16_flops": 1e14, "f32_flops": 1e13, "memory_bytes": 85899345920, "memory_rate": 2e12,
    "link_rate": 3e11, "network_rate": 2e11, "gpus_per_node": 8, "watts": 500, "launch_seconds": 4e-6,
    "hop_seconds": 5e-6, "efficiency": {"gemm": 0.6, "attention": 0.5, "native_attention": 0.4, "memory": 0.7, "bus": 0.6,
    "contention": 0.1, "beside": 1}, "cpu": false, "measured": [{"name": "gemm qkv forward", "m": 1, "n": 2, "k": 3,
    "flops": 12, "bytes": 100, "seconds": 1e-5}], "source": "test"})";
}

std::string text_sample() { return R"({"text": "a b \u00e9 \ud83d\ude42", "id": 7, "meta": {"a": [1, [2.5, null]]}})"; }

std::string completion_sample() {
  return R"({"model": "m", "prompt": [[5, 6, 7], "a\u00e9", [1]], "max_tokens": 12, "n": 2, "best_of": 2, "temperature": 0.5,
    "top_p": 0.9, "top_k": 40, "repetition_penalty": 1.1, "stop": ["\n", "end"], "logprobs": 3, "echo": true, "seed": -7,
    "stream": true, "stream_options": {"include_usage": true}, "suffix": null, "logit_bias": {}, "user": [{}]})";
}

std::string hello_sample() {
  const Hello hello = {.version = kProtocolVersion,
                       .kind = kControlKind,
                       .size = 4,
                       .rank = 3,
                       .port = 29500,
                       .host = "n2",
                       .job = "4711",
                       .random = std::string(32, '7')};
  return frame_of(hello.words());
}

std::string heartbeat_sample() {
  Heartbeat beat = {{.phase = Phase::kStep, .step = 12, .idle = 3.1}, 7, 341, 340, 20};
  std::strcpy(beat.inside.data(), "all_gather");
  return message(beat);
}

std::string hellaswag_sample() {
  return R"({"ctx_a": "A man [title] x", "ctx_b": "he sits", "activity_label": "Rest", "endings": ["a", "b", "c [d]"],
    "label": 1})";
}
std::string arc_sample() {
  return R"({"question": "Why?", "choices": {"label": ["A", "B"], "text": ["so", "no"]}, "answerKey": "A"})";
}
std::string mmlu_sample() {
  return R"({"question": "Why?", "subject": "high_school", "choices": ["a", "b", "c", "d"], "answer": 2})";
}
std::string piqa_sample() { return R"({"goal": "To sit", "sol1": "sit", "sol2": "stand", "label": "0"})"; }
std::string winogrande_sample() {
  return R"({"sentence": "The _ sat.", "option1": "cat", "option2": "hat", "answer": "1"})";
}

}  // namespace tokamak::fuzz
