// The server's paths and their replies, without sockets. http_server.h carries them.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "serve/completion.h"
#include "serve/engine_thread.h"

namespace tokamak {

// A model under the name that requests use.
struct ServedModel {
  std::string name;
  PromptEncoding source;
  EngineThread* engine = nullptr;
  int64_t created = 0;            // unix seconds
  std::atomic<int64_t> step{-1};  // of its checkpoint; -1: it has none
};

struct ApiRequest {
  std::string method, path, body;
  std::function<bool()> is_connected;  // whether the client still waits for the reply
};

// A reply that is sent while it is made.
class EventStream {
 public:
  virtual ~EventStream() = default;
  // The next text to send; "": none for now. Sets `ends` with the last one.
  virtual std::string next(bool& ends) = 0;
};

struct ApiReply {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::unique_ptr<EventStream> events = nullptr;  // instead of the body
};

ApiReply reply_of(const RequestError& error);

class Api {
 public:
  // `models` outlive this and are at least one; `timeout` is in seconds, of a whole completion.
  Api(std::deque<ServedModel>& models, double timeout) : models_(models), timeout_(timeout) {}

  // The methods that a path has, as the header Allow lists them; "": there is no such path.
  static std::string methods_of(const std::string& path);
  static bool needs_key(const std::string& path) { return path.starts_with("/v1/") && path != "/v1/health"; }

  // The request's path has its method. Throws RequestError.
  ApiReply answer(const ApiRequest& request);

  void stop() { stopping_ = true; }                     // from now on, completions are refused
  int64_t completions() const { return completions_; }  // under way

 private:
  class Running;

  ApiReply complete(const ApiRequest& request);
  ServedModel& model_named(const std::string& name);
  std::string models_json() const;

  std::deque<ServedModel>& models_;
  double timeout_;
  std::mutex parsing_;  // a large body takes much memory for a short time
  std::atomic<bool> stopping_{false};
  std::atomic<int64_t> completions_{0};
};

}  // namespace tokamak
