#include "serve/api.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/secret.h"
#include "base/strings.h"
#include "serve/completion_reply.h"
#include "serve/page.h"

namespace tokamak {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kPoll = 0.2;      // seconds within which a client's end is noticed
constexpr double kHeartbeat = 10;  // seconds of silence in a stream
constexpr std::string_view kModels = "/v1/models";

Json model_json(const ServedModel& model) {
  const EngineThread::Texts texts = model.engine->texts();
  Json json = {{"id", model.name},
               {"object", "model"},
               {"created", model.created},
               {"owned_by", "tokamak"},
               {"max_model_len", model.source.context},
               {"running", texts.running},
               {"waiting", texts.waiting}};
  if (model.step >= 0) json["step"] = model.step.load();
  return json;
}

}  // namespace

ApiReply reply_of(const RequestError& error) {
  ApiReply reply{.status = error.status, .body = error_json(error)};
  if (error.retry_after > 0) reply.headers.emplace_back("Retry-After", str(error.retry_after));
  if (error.status == 401) reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  return reply;
}

// A completion that the engine works on, whose pieces become the reply.
class Api::Running final : public EventStream {
 public:
  Running(Api& api, const CompletionRequest& request, ServedModel& model, std::function<bool()> is_connected)
      : api_(api),
        model_(model),
        engine_(*model.engine),
        is_connected_(std::move(is_connected)),
        seed_(request.seed.value_or(std::stoull(random_word().substr(0, 15), nullptr, 16))),
        completion_(request, model.source, seed_),
        reply_(*model.source.tokenizer,
               {.id = "cmpl-" + random_word(),
                .model = model.name,
                .created = static_cast<int64_t>(unix_seconds()),
                .seed = seed_,
                .has_logprobs = request.logprobs.has_value(),
                .includes_usage = request.include_usage},
               completion_.prompt_tokens()) {
    engine_.submit(completion_);
    ++api_.completions_;
  }
  ~Running() override {
    engine_.withdraw(completion_);
    --api_.completions_;
  }

  std::string whole() {
    while (!completion_.all_taken()) {
      if (std::optional<TextPiece> piece = wait()) reply_.add(std::move(*piece));
    }
    return reply_.whole();
  }

  std::string next(bool& ends) override {
    try {
      const std::optional<TextPiece> piece = wait();
      ends = completion_.all_taken();
      if (!piece && silence_.seconds() < kHeartbeat) return "";
      silence_.restart();
      if (!piece) return ": waiting\n\n";
      const std::string event = reply_.event(*piece);
      return ends ? event + reply_.last_events() : event;
    } catch (const RequestError& error) {
      ends = true;
      return event_of(error_json(error));
    }
  }

 private:
  std::optional<TextPiece> wait() {
    if (age_.seconds() > api_.timeout_)
      throw RequestError{503, str("not finished within ", api_.timeout_, " s"), "", "timeout"};
    std::optional<TextPiece> piece = completion_.next(kPoll);
    if (!is_connected_()) throw RequestError{499, "the client is gone, or the server is ending"};
    if (piece && completion_.step() >= 0) reply_.name_model(str(model_.name, "@", completion_.step()));
    return piece;
  }

  Api& api_;
  ServedModel& model_;
  EngineThread& engine_;
  std::function<bool()> is_connected_;
  Stopwatch age_, silence_;
  uint64_t seed_;
  Completion completion_;
  CompletionReply reply_;
};

std::string Api::methods_of(const std::string& path) {
  if (path == "/v1/completions") return "POST";
  constexpr std::array kGet = {"/", "/favicon.ico", "/health", "/v1/health", "/v1/models"};
  const bool is_model = path.starts_with(kModels) && path.size() > kModels.size() + 1 && path[kModels.size()] == '/';
  return is_model || std::find(kGet.begin(), kGet.end(), path) != kGet.end() ? "GET, HEAD" : "";
}

ApiReply Api::answer(const ApiRequest& request) {
  const std::string& path = request.path;
  if (path == "/v1/completions") return complete(request);
  if (path == "/") return {.type = "text/html; charset=utf-8", .body = page_html(), .headers = page_headers()};
  if (path == "/favicon.ico") return {.status = 204, .body = ""};
  if (path == kModels) return {.body = models_json()};
  if (path.starts_with(kModels)) return {.body = model_json(model_named(path.substr(kModels.size() + 1))).dump()};
  const bool failed =
      std::any_of(models_.begin(), models_.end(), [](ServedModel& m) { return m.engine->has_failed(); });
  if (failed) throw RequestError{503, "a model has failed; see the server's log"};
  if (stopping_) throw RequestError{503, "the server is ending", "", "", 5};
  return {.body = R"({"status":"ok"})"};
}

ApiReply Api::complete(const ApiRequest& request) {
  if (stopping_) throw RequestError{503, "the server is ending", "", "", 5};
  std::unique_lock one_at_a_time(parsing_);
  const CompletionRequest parsed = parse_completion_request(request.body);
  auto running = std::make_unique<Running>(*this, parsed, model_named(parsed.model), request.is_connected);
  one_at_a_time.unlock();
  if (!parsed.stream) return {.body = running->whole()};
  return {.type = "text/event-stream; charset=utf-8",
          .body = "",
          .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}},
          .events = std::move(running)};
}

ServedModel& Api::model_named(const std::string& name) {
  for (ServedModel& model : models_) {
    const int64_t step = model.step;
    if (name.empty() || name == model.name || (step >= 0 && name == str(model.name, "@", step))) return model;
  }
  throw RequestError{404, "there is no such model; GET /v1/models lists them", "model", "model_not_found"};
}

std::string Api::models_json() const {
  Json list = {{"object", "list"}, {"data", Json::array()}};
  for (const ServedModel& model : models_) list["data"].push_back(model_json(model));
  return list.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tokamak
