#include "serve/completion_reply.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/utf8.h"
#include "tokenizer/hf/byte_map.h"

namespace tokamak {

namespace {

using Json = nlohmann::ordered_json;

std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json logprobs_json(const Tokenizer& tokenizer, const std::vector<PieceToken>& tokens) {
  Json json = {{"tokens", Json::array()},
               {"token_logprobs", Json::array()},
               {"top_logprobs", Json::array()},
               {"text_offset", Json::array()},
               {"token_ids", Json::array()}};
  for (const PieceToken& token : tokens) {
    json["tokens"].push_back(token_name(tokenizer, token.id));
    json["text_offset"].push_back(token.offset);
    json["token_ids"].push_back(token.id);
    json["token_logprobs"].push_back(token.logprobs ? Json(token.logprobs->token.logprob) : Json());
    json["top_logprobs"].push_back(nullptr);
    if (!token.logprobs) continue;
    Json& top = json["top_logprobs"].back() = Json::object();
    // In descending order, so that of two tokens with the same name the likelier one is kept.
    std::vector<TokenLogprob> all = token.logprobs->likeliest;
    all.push_back(token.logprobs->token);
    for (const TokenLogprob& one : all) top.emplace(token_name(tokenizer, one.id), one.logprob);
  }
  return json;
}

Json head_json(const ReplyHead& head) {
  return {{"id", head.id}, {"object", "text_completion"}, {"created", head.created}, {"model", head.model}};
}

Json choice_json(const Tokenizer& tokenizer, const ReplyHead& head, const TextPiece& piece) {
  Json json = {{"index", piece.choice}, {"text", piece.text}, {"logprobs", nullptr}, {"finish_reason", nullptr}};
  if (head.has_logprobs) json["logprobs"] = logprobs_json(tokenizer, piece.tokens);
  if (piece.finish) json["finish_reason"] = *piece.finish == Finish::kLength ? "length" : "stop";
  json["seed"] = static_cast<int64_t>(head.seed);
  return json;
}

Json usage_json(int64_t prompt_tokens, int64_t new_tokens) {
  return {{"prompt_tokens", prompt_tokens},
          {"completion_tokens", new_tokens},
          {"total_tokens", prompt_tokens + new_tokens}};
}

std::string bytes_name(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string name = "bytes:";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    name += {'\\', 'x', kDigits[byte / 16], kDigits[byte % 16]};
  }
  return name;
}

const char* type_of(int status) {
  if (status == 401) return "authentication_error";
  if (status == 403) return "permission_error";
  if (status == 429) return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

}  // namespace

CompletionReply::CompletionReply(const Tokenizer& tokenizer, ReplyHead head, int64_t prompt_tokens)
    : tokenizer_(tokenizer), head_(std::move(head)), prompt_tokens_(prompt_tokens) {}

std::string CompletionReply::event(const TextPiece& piece) {
  new_tokens_ += piece.new_tokens;
  Json json = head_json(head_);
  json["choices"] = Json::array({choice_json(tokenizer_, head_, piece)});
  if (head_.includes_usage) json["usage"] = nullptr;
  return event_of(dumped(json));
}

std::string CompletionReply::last_events() const {
  std::string events;
  if (head_.includes_usage) {
    Json json = head_json(head_);
    json["choices"] = Json::array();
    json["usage"] = usage_json(prompt_tokens_, new_tokens_);
    events = event_of(dumped(json));
  }
  return events + event_of("[DONE]");
}

void CompletionReply::add(TextPiece piece) {
  new_tokens_ += piece.new_tokens;
  const auto index = static_cast<size_t>(piece.choice);
  while (choices_.size() <= index)
    choices_.push_back({.choice = std::ssize(choices_), .text = "", .tokens = {}, .finish = {}});
  TextPiece& choice = choices_[index];
  choice.text += piece.text;
  std::move(piece.tokens.begin(), piece.tokens.end(), std::back_inserter(choice.tokens));
  choice.finish = piece.finish;
}

std::string CompletionReply::whole() const {
  Json json = head_json(head_);
  json["choices"] = Json::array();
  for (const TextPiece& choice : choices_) json["choices"].push_back(choice_json(tokenizer_, head_, choice));
  json["usage"] = usage_json(prompt_tokens_, new_tokens_);
  return dumped(json);
}

std::string event_of(const std::string& json) { return "data: " + json + "\n\n"; }

std::string error_json(const RequestError& error) {
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  return dumped({{"error",
                  {{"message", error.message},
                   {"type", type_of(error.status)},
                   {"param", or_null(error.param)},
                   {"code", or_null(error.code)}}}});
}

std::string token_name(const Tokenizer& tokenizer, int32_t id) {
  const std::string piece(tokenizer.piece(id));
  const PieceType kind = tokenizer.kind(id);
  if (kind == PieceType::kByte && piece.size() == 6) {
    const std::string byte(1, static_cast<char>(std::stoi(piece.substr(3, 2), nullptr, 16)));
    return is_valid_utf8(byte) ? byte : bytes_name(byte);
  }
  if (kind == PieceType::kControl || kind == PieceType::kUnused) return piece;
  // At the start of a text some tokenizers drop a space.
  const std::string once = tokenizer.decode(std::vector{id}), twice = tokenizer.decode(std::vector{id, id});
  const std::string text = twice.starts_with(once) ? twice.substr(once.size()) : once;
  if (text.find(kReplacementChar) == std::string::npos) return text;
  const std::optional<std::string> bytes = bytes_of_printable(piece);
  return bytes && !is_valid_utf8(*bytes) ? bytes_name(*bytes) : text;
}

}  // namespace tokamak
