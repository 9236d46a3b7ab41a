// tokamak serve: answers completions over HTTP with the weights of a checkpoint, a run or a Hugging Face directory.
#include <algorithm>
#include <filesystem>
#include <iostream>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "checkpoint/store.h"
#include "cli/command.h"
#include "cli/model_source.h"
#include "cli/run_context.h"
#include "comm/interfaces.h"
#include "infer/generator.h"
#include "serve/follow.h"
#include "serve/http_server.h"
#include "tokenizer/tokenizer.h"
#include "train/memory_check.h"
#include "train/run_plan.h"
#include "train/stop_signal.h"

namespace tokamak::cli {

namespace {

// A model with its engine, in the order in which they are made; the last ends first.
struct HostedModel {
  std::unique_ptr<ModelSource> source;
  std::unique_ptr<Tokenizer> tokenizer;
  Backend backend;
  EngineSizes sizes;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Batcher> batcher;
  std::unique_ptr<EngineThread> thread;
  std::unique_ptr<RunFollower> follower;
};

class ServeCommand : public Command {
 public:
  explicit ServeCommand(CLI::App* parser) : model_(parser) {
    parser->add_option("--compare", compare_,
                       "a second model, beside the first: a checkpoint, a run or a Hugging Face directory");
    parser->add_option("--name", name_, "the model's name in requests; default: that of its directory");
    parser->add_flag("--follow", follows_,
                     "use the newest checkpoint of the run that --checkpoint names, whenever there is a newer one");
    parser
        ->add_option("--context", context_,
                     "maximum tokens of a prompt and its text together; 0: model.max_position_embeddings")
        ->capture_default_str();
    parser->add_option("--sequences", sequences_, "texts that are made at once; each has a context of cached tokens")
        ->capture_default_str();
    parser->add_option("--max-queue", max_queue_, "texts that wait for these; requests beyond are refused")
        ->capture_default_str();
    parser
        ->add_option("--host", host_, "the address to listen on, 0.0.0.0 or :: for all; others than loopback need keys")
        ->capture_default_str();
    parser->add_option("--port", port_, "0: any free port")->capture_default_str();
    parser->add_option("--max-connections", http_.max_connections, "clients at once, a thread each")
        ->capture_default_str();
    parser->add_option("--timeout", timeout_, "maximum seconds of a request")->capture_default_str();
    parser->add_option("--api-key-file", key_file_,
                       "a file of keys that requests must have, one a line: key or name:key");
    parser
        ->add_option("--allow-host", allowed_hosts_,
                     "another name by which browsers and clients may reach the server; may be given several times")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    parser->footer(
        "  tokamak serve --checkpoint runs/mine/checkpoints --follow\n"
        "  curl -N http://127.0.0.1:8000/v1/completions -d '{\"prompt\": \"It was\", \"stream\": true}'\n\n"
        "The first line of standard output is the URL. SIGTERM or Ctrl-C: texts that run may finish, for 30 seconds.");
  }

  int run() override {
    return run_in_world([this](World& world) {
      if (world.size() > 1) fail(Kind::kConfig, str("serve runs on one rank, not ", world.size()));
      check_options();
      return serve(world);
    });
  }

 private:
  void check_options() {
    const auto require = [](bool good, const char* name, auto value, const char* what) {
      if (!good) fail(Kind::kConfig, str(name, " ", value, ": ", what));
    };
    require(context_ >= 0, "--context", context_, "must not be negative");
    require(sequences_ >= 1 && sequences_ <= 4096, "--sequences", sequences_, "must be from 1 to 4096");
    require(max_queue_ >= 0, "--max-queue", max_queue_, "must not be negative");
    require(port_ >= 0 && port_ <= 65535, "--port", port_, "must be from 0 to 65535");
    require(http_.max_connections >= 1, "--max-connections", http_.max_connections, "must be at least 1");
    require(timeout_ > 0, "--timeout", timeout_, "must be positive");
    if (host_ == "localhost") host_ = "127.0.0.1";
    if (!is_loopback(host_) && key_file_.empty()) {
      fail(Kind::kConfig, str("--host ", host_, ": others can reach this address, and there is no --api-key-file"),
           "a file of keys, or the default address and a tunnel: ssh -L 8000:127.0.0.1:8000 HOST");
    }
    if (follows_ && (model_.checkpoint.empty() || store_at(model_.checkpoint).steps().empty())) {
      fail(Kind::kConfig, "--follow needs --checkpoint with a run, or its directory of checkpoints");
    }
  }

  int serve(World& world) {
    const std::vector<std::string> keys = key_file_.empty() ? std::vector<std::string>() : read_keys(key_file_);
    Socket listener = listen();
    StopSignal stop;
    std::deque<ServedModel> models;  // ends after those that use it
    std::deque<HostedModel> hosted;
    plan_model(world, model_, hosted.emplace_back());
    if (!compare_.empty()) {
      ModelOptions other = model_;
      const bool is_hf = exists(compare_ + "/config.json");
      other.checkpoint = is_hf ? "" : compare_;
      other.model = is_hf ? compare_ : "";
      plan_model(world, other, hosted.emplace_back());
    }
    expect_room(hosted);
    for (HostedModel& one : hosted) start(one, models.emplace_back());
    if (models.size() > 1 && models[1].name == models[0].name) models[1].name += "-2";
    if (follows_) follow(world, hosted[0], models[0]);

    Api api(models, timeout_);
    std::vector<std::string> names = allowed_hosts_;
    names.push_back(host_.find(':') == std::string::npos ? host_ : "[" + host_ + "]");
    HttpServer server(api, {.hosts = names, .port = listener.port(), .keys = keys}, http_);
    std::cout << "http://" << names.back() << ":" << listener.port() << "/" << std::endl;
    server.serve(std::move(listener), [&] { return stop.received() != 0; });
    return 0;
  }

  Socket listen() const {
    try {
      return std::move(listen_on({host_}, static_cast<int>(port_)).front());
    } catch (const Error& error) {
      fail(Kind::kConfig, error.what(), "another --port, or 0 for any; --host takes an address");
    }
  }

  void plan_model(World& world, const ModelOptions& options, HostedModel& hosted) {
    hosted.source = open_model_source(world.comm(), options);
    const RunConfig config = options.config_for(*hosted.source);
    hosted.tokenizer = load_tokenizer_for(*hosted.source, options);
    const int64_t context = context_ > 0 ? context_ : config.model.max_position_embeddings;
    hosted.sizes = {.max_tokens = std::max(sequences_, std::min(context, kPrefillStep)),
                    .max_length = context,
                    .training = false,
                    .cached_sequences = sequences_};
    hosted.backend = make_backend(config.runtime, world.local_rank(), 1);
    hosted.engine = std::make_unique<Engine>(engine_options(config, hosted.sizes), world.comm(), hosted.backend);
  }

  void expect_room(const std::deque<HostedModel>& hosted) const {
    const Device& device = *hosted[0].backend.device;
    int64_t needed = 0;
    for (const HostedModel& one : hosted) needed += planned_bytes(one.engine->plan(), device);
    const int64_t available = device.available_bytes() - device.reserve_bytes();
    if (needed <= available) return;
    fail(Kind::kDevice,
         str("serving needs ", human_bytes(needed), " for the weights and ", sequences_, " x ",
             hosted[0].sizes.max_length, " cached tokens; ", human_bytes(available), " are available"),
         "a smaller --sequences or --context");
  }

  void start(HostedModel& hosted, ServedModel& served) const {
    Engine& engine = *hosted.engine;
    engine.commit();
    fill(engine, *hosted.source);
    const bool adds_bos = model_.adds_bos(*hosted.source);
    if (adds_bos && hosted.tokenizer->bos_id() < 0) {
      fail(Kind::kConfig, str("--bos: ", hosted.tokenizer->path(), " has no BOS token"));
    }
    const BatcherOptions options{.vocab_size = hosted.tokenizer->vocab_size(),
                                 .prefill_step = hosted.sizes.max_tokens,
                                 .prefill_budget = hosted.sizes.max_tokens};
    const std::filesystem::path directory(hosted.source->name());
    const std::optional<int64_t> step = parse_step_name(directory.filename());
    served.step = step.value_or(-1);
    hosted.batcher =
        std::make_unique<Batcher>(engine.model(), engine.cache(), *hosted.backend.device, engine.compute(), options);
    hosted.thread = std::make_unique<EngineThread>(
        *hosted.batcher, EngineThreadOptions{.slots = sequences_, .max_queue = max_queue_, .step = &served.step});
    const std::filesystem::path named = step ? directory.parent_path().parent_path() : directory;
    served.name = name_.empty() ? named.filename().string() : name_;
    served.source = {hosted.tokenizer.get(), adds_bos, hosted.sizes.max_length};
    served.engine = hosted.thread.get();
    served.created = static_cast<int64_t>(unix_seconds());
  }

  void follow(World& world, HostedModel& hosted, ServedModel& served) const {
    hosted.follower = std::make_unique<RunFollower>(store_at(model_.checkpoint), served,
                                                    [&world, &hosted, this](CheckpointReader& reader) {
                                                      if (!model_.weights.empty()) reader.use_average(model_.weights);
                                                      HostState state(*hosted.engine);
                                                      load(world.comm(), reader, state.place(), state.slices());
                                                      state.push();
                                                    });
  }

  ModelOptions model_;
  std::string compare_, name_, host_ = "127.0.0.1", key_file_;
  std::vector<std::string> allowed_hosts_;
  HttpServerOptions http_;
  int64_t context_ = 0, sequences_ = 16, max_queue_ = 512, port_ = 8000;
  double timeout_ = 600;
  bool follows_ = false;
};

}  // namespace

void add_serve(CLI::App& root, Commands& commands) {
  add_command<ServeCommand>(root, commands, "serve", "answer completions over HTTP with a model's weights");
}

}  // namespace tokamak::cli
