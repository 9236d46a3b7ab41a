#include "serve/http_server.h"

#include <list>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/service_thread.h"
#include "serve/completion_reply.h"
#include "serve/connection.h"

namespace tokamak {

namespace {

constexpr int64_t kRequestsOfConnection = 10000;

std::string field(const httplib::Request& request, const char* name) { return request.get_header_value(name); }

// Refuses what this server or a proxy before it could read in two ways, and bodies of unknown or too large size.
std::optional<RequestError> refuse_framing(const httplib::Request& request, int64_t most) {
  for (const char* name : {"Host", "Content-Length", "Transfer-Encoding", "Authorization", "Origin"}) {
    if (request.get_header_value_count(name) > 1) return RequestError{400, str("the header has ", name, " twice")};
  }
  const std::string length = field(request, "Content-Length"), encoding = field(request, "Transfer-Encoding");
  const bool has_body = request.method == "POST";
  if (!encoding.empty() && (!length.empty() || encoding != "chunked")) {
    return RequestError{400, "Transfer-Encoding must be chunked, without Content-Length"};
  }
  if (length.find_first_not_of("0123456789") != std::string::npos)
    return RequestError{400, "Content-Length is no number"};
  if (!has_body && (!encoding.empty() || (!length.empty() && length != "0"))) {
    return RequestError{400, str("a ", request.method, " has no body here")};
  }
  if (has_body && encoding.empty() && length.empty()) return RequestError{411, "Content-Length is missing"};
  if (length.size() > 18 || (!length.empty() && std::stoll(length) > most)) {
    return RequestError{413, str("the body is larger than ", human_bytes(most))};
  }
  return std::nullopt;
}

// A form's type is what `curl -d` sends. A browser would send it to another site without asking, but with an Origin.
std::optional<RequestError> refuse_type(const httplib::Request& request) {
  if (!field(request, "Content-Encoding").empty()) return RequestError{415, "the body must not be compressed"};
  const std::string type = field(request, "Content-Type").substr(0, field(request, "Content-Type").find(';'));
  const bool is_form = type == "application/x-www-form-urlencoded" && field(request, "Origin").empty();
  if (type.empty() || type == "application/json" || is_form) return std::nullopt;
  return RequestError{415, "Content-Type must be application/json"};
}

void send(const ApiReply& reply, httplib::Response& response) {
  response.status = reply.status;
  for (const auto& [name, value] : reply.headers) response.set_header(name, value);
  if (reply.status != 204) response.set_content(reply.body, reply.type);
}

// The library asks for the next part of a reply until it is done; it has no other owner for what makes them.
void send_events(std::unique_ptr<EventStream> owned, const std::string& type, httplib::Response& response) {
  EventStream* events = owned.release();
  response.set_chunked_content_provider(
      type,
      [events](size_t, httplib::DataSink& sink) {
        bool ends = false;
        const std::string text = events->next(ends);
        if (!text.empty() && !sink.write(text.data(), text.size())) return false;
        if (ends) sink.done();
        return true;
      },
      [events](bool) { const std::unique_ptr<EventStream> back(events); });
}

}  // namespace

// The library's server without its listener: each connection is a thread of its own that runs process_request().
class HttpServer::Library : private httplib::Server {
 public:
  Library(Api& api, const AccessOptions& access, const HttpServerOptions& options)
      : api_(api), access_(access), options_(options) {
    set_default_headers({{"X-Content-Type-Options", "nosniff"}, {"Referrer-Policy", "no-referrer"}});
    set_keep_alive_timeout(static_cast<time_t>(limits_.idle_seconds));
    set_keep_alive_max_count(kRequestsOfConnection);
    set_expect_100_continue_handler(
        [this](const auto& request, auto& response) { return refuses(request, response) ? response.status : 100; });
    set_pre_routing_handler([this](const auto& request, auto& response) {
      if (refuses(request, response)) return HandlerResponse::Handled;
      if (request.method == "POST") return HandlerResponse::Unhandled;  // its body is read first
      answer(request, "", response);
      return HandlerResponse::Handled;
    });
    Post("/v1/completions",
         [this](const httplib::Request& request, httplib::Response& response, const httplib::ContentReader& reader) {
           const std::optional<std::string> body = read_body(request, reader, response);
           if (body) answer(request, *body, response);
         });
    set_error_handler([](const httplib::Request&, httplib::Response& response) {
      if (response.body.empty()) send(reply_of({response.status, "the request is malformed"}), response);
    });
  }

  void serve(Socket listener, const std::function<bool()>& ends) {
    svr_sock_ = listener.fd();  // a reply that streams checks that it is open
    listener.never_block();
    while (!ends()) {
      if (wait_for_any({&listener}, in_seconds(kSecondsToHeed)) >= 0) accept(listener);
      join_ended();
    }
    listener = Socket();
    api_.stop();
    stopping_ = true;
    const Stopwatch drain;
    while (api_.completions() > 0 && drain.seconds() < options_.drain_seconds) pause();
    cancelled_ = true;
    for (; !sessions_.empty(); join_ended()) pause();
  }

 private:
  struct Session {
    explicit Session(Connection of) : connection(std::move(of)) {}
    Connection connection;
    std::atomic<bool> has_ended{false};
    std::thread thread;
  };

  static void pause() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

  void accept(const Socket& listener) {
    Socket socket = accept_from(listener);
    if (!socket) return pause();  // too few descriptors, or the client is gone
    if (std::ssize(sessions_) >= options_.max_connections) {
      const std::string body = error_json({503, "too many connections", "", "too_many_connections"});
      const std::string reply =
          str("HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n",
              "Retry-After: 1\r\nConnection: close\r\nContent-Length: ", body.size(), "\r\n\r\n", body);
      socket.send_some(reply.data(), std::ssize(reply), false);
      return;
    }
    Session& session = sessions_.emplace_back(Connection(std::move(socket), limits_));
    try {
      session.thread = start_service_thread("client", [this, &session] {
        converse(session.connection);
        session.has_ended = true;
      });
    } catch (const Error& error) {
      log::warning("a connection is dropped: ", error.what());
      sessions_.pop_back();
    }
  }

  void join_ended() {
    sessions_.remove_if([](Session& session) {
      if (session.has_ended) session.thread.join();
      return session.has_ended.load();
    });
  }

  void converse(Connection& connection) {
    bool closes = false;
    while (!closes && connection.begin_request(stopping_)) {
      bool has_head = false;
      const bool is_good = process_request(connection, stopping_, closes, [&](httplib::Request& request) {
        request.ranges.clear();  // of all that follows, none is worth a part
        for (const char* name : {"Range", "Accept-Encoding"}) request.headers.erase(name);
        // Only the library's clients use these two members.
        request.progress = [&](uint64_t, uint64_t) { return connection.is_connected() && !cancelled_; };
        request.response_handler = [&](const httplib::Response&) {
          connection.close_after_reply();
          return true;
        };
        connection.begin_body();
        has_head = true;
      });
      closes = closes || !is_good || !has_head || connection.closes();
    }
    connection.linger();
  }

  bool refuses(const httplib::Request& request, httplib::Response& response) const {
    std::optional<RequestError> error = refuse_framing(request, limits_.body_bytes);
    if (!error) error = access_.refuse_host(field(request, "Host"), field(request, "Origin"));
    const std::string methods = Api::methods_of(request.path);
    if (!error && methods.empty()) error = RequestError{404, "there is no such path"};
    if (!error && methods.find(request.method) == std::string::npos)
      error = RequestError{405, "the path has " + methods};
    if (!error && Api::needs_key(request.path)) error = access_.refuse_key(field(request, "Authorization"));
    if (!error && request.method == "POST") error = refuse_type(request);
    if (!error) return false;
    send(reply_of(*error), response);
    if (error->status == 405) response.set_header("Allow", methods);
    request.response_handler(response);  // closes: the body is not read
    return true;
  }

  std::optional<std::string> read_body(const httplib::Request& request, const httplib::ContentReader& reader,
                                       httplib::Response& response) const {
    std::string body;
    const auto most = static_cast<size_t>(limits_.body_bytes);
    const bool is_whole = reader([&](const char* data, size_t size) {
      body.append(data, size);
      return body.size() <= most;
    });
    if (is_whole && body.size() <= most) return body;
    response.status = -1;  // as the reader left it
    send(reply_of(body.size() > most
                      ? RequestError{413, str("the body is larger than ", human_bytes(limits_.body_bytes))}
                      : RequestError{408, "the body is malformed, or did not come in time"}),
         response);
    request.response_handler(response);
    return std::nullopt;
  }

  void answer(const httplib::Request& request, const std::string& body, httplib::Response& response) {
    try {
      ApiReply reply = api_.answer(
          {.method = request.method, .path = request.path, .body = body, .is_connected = [still = request.progress] {
             return still(0, 0);
           }});
      if (!reply.events) return send(reply, response);
      response.status = reply.status;
      for (const auto& [name, value] : reply.headers) response.set_header(name, value);
      send_events(std::move(reply.events), reply.type, response);
    } catch (const RequestError& error) {
      send(reply_of(error), response);
    } catch (const std::exception& error) {
      log::error(request.path, ": ", error.what());
      send(reply_of({500, "an error of the server; see its log"}), response);
    }
  }

  Api& api_;
  AccessRules access_;
  HttpServerOptions options_;
  ConnectionLimits limits_;
  std::atomic<bool> stopping_{false}, cancelled_{false};
  std::list<Session> sessions_;
};

HttpServer::HttpServer(Api& api, const AccessOptions& access, const HttpServerOptions& options)
    : library_(std::make_unique<Library>(api, access, options)) {}
HttpServer::~HttpServer() = default;

void HttpServer::serve(Socket listener, const std::function<bool()>& ends) {
  library_->serve(std::move(listener), ends);
}

}  // namespace tokamak
