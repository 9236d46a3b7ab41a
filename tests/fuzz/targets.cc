#include "fuzz/targets.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/hash.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "checkpoint/manifest.h"
#include "comm/hello.h"
#include "config/print.h"
#include "config/read.h"
#include "config/units.h"
#include "config/validate.h"
#include "data/block_sums.h"
#include "data/index_format.h"
#include "data/manifest.h"
#include "eval/python_text.h"
#include "eval/questions.h"
#include "formats/json.h"
#include "formats/safetensors_header.h"
#include "formats/safetensors_index.h"
#include "fuzz/judge.h"
#include "fuzz/samples.h"
#include "interop/hf_config.h"
#include "monitor/jsonl.h"
#include "monitor/run_status.h"
#include "plan/hardware.h"
#include "report/hang_files.h"
#include "resilience/heartbeat.h"
#include "serve/completion_request.h"
#include "tokenizer/hf/decode_chain.h"
#include "tokenizer/hf/hf_tokenizer.h"
#include "tokenizer/hf/special_ids.h"
#include "tokenizer/hf/tekken_file.h"
#include "tokenizer/hf/tiktoken_file.h"
#include "tokenizer/hf/tokenizer_json.h"
#include "tokenizer/model_proto.h"

namespace tokamak::fuzz {

namespace {

bool is_clean(const std::string& text) { return printable(text, text.size()) == text; }

// A whole safetensors file.
Verdict safetensors(std::string_view bytes) {
  return judge(Kind::kCheckpoint, [&] {
    const auto size = static_cast<int64_t>(bytes.size());
    uint64_t length = 0;
    if (bytes.size() < sizeof(length)) fail(Kind::kCheckpoint, "the file is short");
    std::memcpy(&length, bytes.data(), sizeof(length));
    check_safetensors_length(length, size, "the file", Kind::kCheckpoint);
    const SafetensorsHeader header =
        parse_safetensors_header(bytes.substr(sizeof(length), length), size, "the file", Kind::kCheckpoint);
    int64_t end = 0;
    for (const SafetensorsEntry& tensor : header.tensors) {
      require(tensor.begin == end && tensor.begin <= tensor.end && header.data_begin + tensor.end <= size);
      end = tensor.end;
    }
  });
}

Verdict index(std::string_view bytes) {
  return judge(Kind::kCheckpoint, [&] {
    for (const auto& [tensor, file] : parse_index(bytes, "the file", Kind::kCheckpoint)) {
      require(file.find('/') == std::string::npos && file.ends_with(".safetensors"));
    }
  });
}

// An accepted config computes, and is written and read back as the same model.
Verdict hf_config(std::string_view bytes) {
  return judge(Kind::kCheckpoint, [&] {
    const HfConfig config = parse_hf_config(bytes, "the file");
    require(config.model.problems().empty());
    const std::string once = render_hf_config(config.model, WeightType::kF32, config.ids);
    const HfConfig again = parse_hf_config(once, "the file");
    require(render_hf_config(again.model, WeightType::kF32, again.ids) == once);
  });
}

Verdict tokenizer(std::string_view bytes) {
  return judge(Kind::kData, [&] {
    const ModelProto model = parse_model_proto(bytes, "the file");
    check_supported(model, "the file");
    require(!model.pieces.empty());
  });
}

// An accepted tokenizer encodes and decodes, and ids are of its vocabulary.
void try_tokenizer(TokenizerSpec spec) {
  const HfTokenizer tokenizer(std::move(spec), SpecialsPolicy::kIds);
  std::vector<int32_t> ids;
  tokenizer.make_encoder()->encode("ab  \xC3\xA9 abab<|end|> 12\n", ids);
  for (const int32_t id : ids) require(id >= 0 && id < tokenizer.vocab_size());
  for (int32_t id = 0; id < std::min<int64_t>(tokenizer.vocab_size(), 400); ++id) ids.push_back(id);
  require(is_valid_utf8(tokenizer.decode(ids)));
}

Verdict tokenizer_json(std::string_view bytes) {
  return judge(Kind::kData, [&] { try_tokenizer(parse_tokenizer_json(bytes, "the file")); });
}

// Each of the files beside a tokenizer.json.
Verdict special_ids(std::string_view bytes) {
  TokenizerSpec spec = parse_tokenizer_json(tokenizer_json_sample(), "the file");
  for (const char* name : kFilesBesideTokenizerJson) put(name, bytes);
  return judge(Kind::kData, [&] {
    read_special_ids(directory(), spec);
    for (const int32_t id : {spec.bos_id, spec.eos_id, spec.unk_id, spec.pad_id}) require(id < spec.vocab_size());
    for (const std::string& remark : spec.remarks) require(is_clean(remark));
  });
}

Verdict tiktoken(std::string_view bytes) {
  return judge(Kind::kData, [&] { try_tokenizer(parse_tiktoken(bytes, "the file", "llama3")); });
}

Verdict tekken(std::string_view bytes) {
  return judge(Kind::kData, [&] { try_tokenizer(parse_tekken(bytes, "the file")); });
}

// Bytes in parts, whose lengths the first bytes give, are the same text as all of them at once.
Verdict stream_decoder(std::string_view bytes) {
  Utf8Repair whole, parts;
  std::string expected, text;
  whole.push(bytes, expected);
  whole.finish(expected);
  for (size_t at = 0; at < bytes.size();) {
    const size_t length = std::min<size_t>(static_cast<unsigned char>(bytes[at]) % 5, bytes.size() - at);
    const size_t before = text.size();
    parts.push(bytes.substr(at, length), text);
    require(expected.compare(before, text.size() - before, text, before) == 0);
    at += length;
    if (length == 0) parts.push(bytes.substr(at++, 1), text);
  }
  parts.finish(text);
  require(text == expected && is_valid_utf8(text));
  return text.find("\xEF\xBF\xBD") == std::string::npos ? Verdict::kAccepted : Verdict::kRefused;
}

Verdict index_header(std::string_view bytes) {
  return judge(Kind::kData, [&] {
    const auto size = static_cast<int64_t>(bytes.size());
    const auto head = std::as_bytes(std::span(bytes.substr(0, kIndexHeaderBytes)));
    const IndexHeader header = parse_index_header(head, size, "the file");
    require(header.file_bytes() <= size && header.pointers_at() <= header.documents_at());
  });
}

// With a checksum that fits, or nothing behind it would be reached.
Verdict sums(std::string_view bytes) {
  const uint64_t own = xxh3_64(std::as_bytes(std::span(bytes)));
  const std::string text = std::string(bytes).append(reinterpret_cast<const char*>(&own), sizeof(own));
  return judge(Kind::kData, [&] {
    const ShardSums read = read_sums(InputFile(put("part.sum", text), Kind::kData), 10, 5);
    require(read.bin.blocks() * read.bin.block_bytes >= 10 && read.idx.blocks() * read.idx.block_bytes >= 5);
  });
}

Verdict dataset(std::string_view bytes) {
  return judge(Kind::kData, [&] {
    put(kDatasetManifest, bytes);
    const Manifest manifest = read_manifest(directory());
    require(manifest.tokens() >= 0 && manifest.documents() >= 0 && !manifest.id().empty());
    for (const ShardInfo& shard : manifest.shards) require(shard.name.find('/') == std::string::npos);
  });
}

Verdict checkpoint(std::string_view body) {
  return judge(Kind::kCheckpoint, [&] {
    const std::string sum = xxh3_128_hex(std::as_bytes(std::span(body)));
    const CheckpointManifest manifest =
        parse_manifest(str("{\"xxh3_128\":\"", sum, "\",\"manifest\":", body, "}\n"), "the file");
    require(manifest.total_bytes() >= 0 && manifest.param_elements() >= 0);
    for (const SavedFile& file : manifest.files) require(file.name.find('/') == std::string::npos);
  });
}

// An accepted config is printed and read back as the same.
Verdict config(std::string_view text) {
  return judge(Kind::kConfig, [&] {
    const RunConfig read = read_config(std::string(text), "the file", {}).config;
    const std::string once = print_config(read);
    require(print_config(read_config(once, "the file", {}).config) == once);
    static_cast<void>(find_problems(read));
  });
}

template <class T>
bool is_read(const Parsed<T>& parsed) {
  return parsed.value.has_value();
}

Verdict units(std::string_view text) {
  const bool read = is_read(parse_count(text)) | is_read(parse_number(text)) | is_read(parse_bool(text)) |
                    is_read(parse_auto_int(text)) | is_read(parse_auto_limit(text)) | is_read(parse_duration(text)) |
                    is_read(parse_training_length(text));
  require(python_strip(text).size() <= text.size() && python_len(text) <= std::ssize(text));
  require(python_count_words(text) <= std::ssize(text) + 1);  // as re.split: of nothing, one
  static_cast<void>(python_capitalize(text));
  return read ? Verdict::kAccepted : Verdict::kRefused;
}

// The run may still be writing, so unreadable lines are left out.
Verdict metrics(std::string_view bytes) {
  int64_t lines = 0;
  read_records(
      put("metrics.jsonl", bytes), [&](const MetricRecord&) { ++lines; }, ReadTensors::kYes);
  return lines >= 2 ? Verdict::kAccepted : Verdict::kRefused;
}

Verdict status(std::string_view bytes) {
  put("status.json", bytes);
  return read_run_status(directory()) ? Verdict::kAccepted : Verdict::kRefused;
}

Verdict hang(std::string_view bytes) {
  put("hang-20260131T123456Z.txt", bytes);
  put("suspects.txt", bytes);
  const std::vector<FoundHang> hangs = find_hang_files(directory());
  require(hangs.size() == 1);
  return !hangs[0].headline.empty() && read_suspects(directory()).size() == 4 ? Verdict::kAccepted : Verdict::kRefused;
}

Verdict machine(std::string_view bytes) {
  return judge(Kind::kConfig, [&] { static_cast<void>(read_machine(put("machine.json", bytes))); });
}

template <EvalKind kKind>
Verdict questions(std::string_view bytes) {
  return judge(Kind::kData, [&] {
    EvalOptions options;
    options.task = kKind;
    options.path = put("questions.jsonl", bytes);
    for (const Question& question : read_questions(options, form_of(kKind))) {
      require(question.answer < question.choices.size());
    }
  });
}

// The body of a client's request.
Verdict completion(std::string_view bytes) {
  try {
    const CompletionRequest request = parse_completion_request(bytes);
    require(!request.prompts.empty() && 1 <= request.n && request.max_tokens >= 0);
    require(std::ssize(request.prompts) * request.n <= CompletionRequest::kMostTexts);
    require(request.sampling.temperature >= 0 && request.sampling.top_p > 0 && request.sampling.top_k >= 0);
    require(request.sampling.repetition_penalty > 0 &&
            request.logprobs.value_or(0) <= CompletionRequest::kMostLogprobs);
    for (const std::string& stop : request.stops) require(!stop.empty() && is_valid_utf8(stop));
    return Verdict::kAccepted;
  } catch (const RequestError& error) {
    require(error.status == 400 && !error.message.empty() && is_valid_utf8(error.message));
    return Verdict::kRefused;
  }
}

// Messages of a stranger at a port. A frame is whole or broken, and its words are a hello or not. Read as an answer,
// they give printable text.
Verdict hello(std::string_view bytes) {
  int ends[2];
  require(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  const Socket listens(ends[0]);
  Socket joins(ends[1]);
  joins.send_some(bytes.data(), std::ssize(bytes), false);
  joins = Socket();
  FrameReader reader;
  if (reader.read(listens) != FrameReader::State::kWhole) return Verdict::kRefused;
  const Words words = reader.take();
  require(!words.empty() && words.size() <= FrameLimits().words && is_clean(refusal(words, "a peer")));
  const std::optional<Hello> said = Hello::of(words);
  if (!said) return Verdict::kRefused;
  require(is_clean(said->who()) && Hello::of(said->words()).has_value());
  require(proof_of(Role::kJoins, "secret", *said, "random").size() == 64);
  return Verdict::kAccepted;
}

// A message between watchdogs.
Verdict heartbeat(std::string_view bytes) {
  Heartbeat beat;
  if (!read_heartbeat(std::string(bytes), beat)) return Verdict::kRefused;
  require(is_clean(beat.text()));
  const std::string once = message(beat);
  require(read_heartbeat(once, beat) && message(beat) == once);
  return Verdict::kAccepted;
}

std::string questions_line(std::string (*sample)()) {
  std::string line = sample();
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line + "\n";
}

constexpr Target kTargets[] = {
    {"safetensors", safetensors, safetensors_sample, 20000},
    {"index", index, index_sample, 20000},
    {"hf_config", hf_config, hf_config_sample, 20000},
    {"tokenizer", tokenizer, tokenizer_sample, 20000},
    {"tokenizer_json", tokenizer_json, tokenizer_json_sample, 1000, 0.5},
    {"special_ids", special_ids, special_ids_sample, 1000, 0.6},
    {"tiktoken", tiktoken, tiktoken_sample, 300},
    {"tekken", tekken, tekken_sample, 300},
    {"stream_decoder", stream_decoder, [] { return std::string("a\xC3\xA9 \xF0\x9F\x98\x80, \xE4\xB8\xAD"); }, 20000,
     0.9, true},
    {"index_header", index_header, index_header_sample, 20000},
    {"sums", sums, sums_sample},
    {"dataset", dataset, dataset_sample},
    {"checkpoint", checkpoint, checkpoint_sample},
    {"config", config, config_sample},
    {"units", units, units_sample},
    {"metrics", metrics, metrics_sample},
    {"status", status, status_sample},
    {"hang", hang, hang_sample, 1000, 0.7},
    {"machine", machine, machine_sample},
    {"hello", hello, hello_sample},
    {"completion", completion, completion_sample},
    {"heartbeat", heartbeat, heartbeat_sample},
    {"hellaswag", questions<EvalKind::kHellaSwag>, [] { return questions_line(hellaswag_sample); }},
    {"arc", questions<EvalKind::kArc>, [] { return questions_line(arc_sample); }},
    {"mmlu", questions<EvalKind::kMmlu>, [] { return questions_line(mmlu_sample); }},
    {"piqa", questions<EvalKind::kPiqa>, [] { return questions_line(piqa_sample); }},
    {"winogrande", questions<EvalKind::kWinoGrande>, [] { return questions_line(winogrande_sample); }},
};

}  // namespace

std::span<const Target> targets() {
  static const std::vector<Target> all = [] {
    std::vector<Target> joined(std::begin(kTargets), std::end(kTargets));
    for (const std::span<const Target> more : {data_targets(), scan_targets(), web_targets()})
      joined.insert(joined.end(), more.begin(), more.end());
    return joined;
  }();
  return all;
}

const Target* find_target(std::string_view name) {
  const auto found = std::find_if(targets().begin(), targets().end(), [&](const Target& t) { return t.name == name; });
  return found == targets().end() ? nullptr : &*found;
}

}  // namespace tokamak::fuzz
