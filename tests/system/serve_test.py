"""tokamak serve by the real program: texts, limits, hostile and slow clients, access, its end, and following."""
import concurrent.futures
import json
import os
import select
import signal
import socket
import time

from harness import TOKAMAK, call, generated, main
from server import Server

LONG = 4000  # tokens: they take seconds
ENDLESS = 40000  # tokens of context: they take longer than any test waits
KEY = "0123456789abcdef"


def checkpoints(place):
    if not os.path.exists(place.run("served")):
        place.train("served", 1, "training.max_steps=30", f"model.max_position_embeddings={ENDLESS}")
    return place.run("served") + "/checkpoints"


def raw(server, data, timeout=30, then=b""):
    """The bytes that come back until the server closes."""
    with socket.create_connection((server.host, server.port), timeout) as client:
        reply = b""
        try:
            client.sendall(data)
            if then:
                reply += client.recv(65536)
                client.sendall(then)
            while part := client.recv(65536):
                reply += part
        except ConnectionError:
            pass
        return reply


def request(body=b"", path="/v1/completions", *fields, host="localhost"):
    lines = [f"POST {path} HTTP/1.1", f"Host: {host}", *fields, f"Content-Length: {len(body)}", "Connection: close"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def status(reply):
    return int(reply.split(b" ", 2)[1]) if reply.startswith(b"HTTP/1.1 ") else None


def texts(place):
    """32 requests at once, whole or streamed, have the texts of `tokamak generate`, each with its own options"""
    prompts = [document[:10 + 3 * i] for i, document in enumerate(list(place.documents())[:16])]
    source = ["--checkpoint", checkpoints(place)]
    with Server(*source, "--context", "256") as server:
        def ask(i):
            fields = {"prompt": prompts[i % 16], "max_tokens": 20 + i % 5, "seed": 3 + i % 3, "temperature": [0, 0.9][i % 2],
                      "top_p": 0.9, "repetition_penalty": [1, 1.3][i // 16], **({"stop": ["e", "o m"]} if i % 4 == 0 else {})}
            if i % 3:
                return fields, server.text(**fields)
            return fields, "".join(choice["text"] for event in server.stream(**fields) for choice in event["choices"])

        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            for fields, text in pool.map(ask, range(32)):
                options = [f"--{key.replace('_', '-')}={value}" for key, value in fields.items() if key not in ("stop", "prompt")]
                stops = [word for stop in fields.get("stop", []) for word in ("--stop", stop)]
                (expected,) = generated(*source, *options, *stops, "--prompt", fields["prompt"])
                assert text == expected["text"], (fields, text, expected)

        done = call(["curl", "-sN", server.url + "v1/completions", "-d", json.dumps({"prompt": prompts[0], "max_tokens": 9, "seed": 3, "stream": True})])
        events = [line[6:] for line in done.stdout.split("\n\n") if line.startswith("data: ")]
        assert events.pop() == "[DONE]"
        streamed = "".join(json.loads(event)["choices"][0]["text"] for event in events)
        assert streamed == server.text(prompt=prompts[0], max_tokens=9, seed=3), done.stdout

        both = server.complete(prompt=[prompts[0], prompts[1]], n=2, max_tokens=9, seed=3, stop="zzz")
        assert [choice["index"] for choice in both["choices"]] == [0, 1, 2, 3]
        assert both["choices"][0]["text"] == streamed and both["choices"][1]["text"] != streamed
        assert both["usage"]["completion_tokens"] <= 36
        echoed = server.complete(prompt=prompts[2], max_tokens=0, echo=True, logprobs=1)["choices"][0]
        assert echoed["text"] == prompts[2] and echoed["logprobs"]["token_logprobs"][0] is None and len(echoed["logprobs"]["tokens"]) > 2
        assert all(len(one) <= 2 for one in echoed["logprobs"]["top_logprobs"][1:])
        one_more = server.complete(prompt=echoed["logprobs"]["token_ids"], max_tokens=1, echo=True, logprobs=1)["choices"][0]["logprobs"]
        assert one_more["tokens"][:-1] == echoed["logprobs"]["tokens"] and len(one_more["token_logprobs"]) == len(one_more["tokens"])
        ended = server.complete(prompt=prompts[2], max_tokens=9, seed=1, logprobs=0, stop=" ")["choices"][0]
        assert ended["finish_reason"] == "stop" and " " not in ended["text"]
        assert len(ended["logprobs"]["tokens"]) == sum(offset < len(ended["text"]) for offset in ended["logprobs"]["text_offset"])
        hostile = "<script>alert(1)</script>\x1b[2J\u202e \"\\ \r\n\0é"
        assert server.complete(prompt=hostile, max_tokens=0, echo=True)["choices"][0]["text"] == hostile


def limits(place):
    """malformed HTTP and JSON, large bodies and headers are refused before they are read; the server goes on"""
    with Server("--checkpoint", checkpoints(place), "--context", "64") as server:
        good = json.dumps({"prompt": "a", "max_tokens": 1}).encode()

        def whole(*fields):
            return status(raw(server, request(good, "/v1/completions", *fields)))

        assert whole() == 200
        assert whole("Content-Type: application/json; charset=utf-8") == 200
        assert whole("Content-Type: application/x-www-form-urlencoded") == 200  # what `curl -d` sends
        for code, fields in {415: ["Content-Type: multipart/form-data; boundary=x"], 400: ["Content-Length: 5"], 403: ["Origin: null"]}.items():
            assert whole(*fields) == code, fields
        assert whole("Content-Type: application/x-www-form-urlencoded", "Origin: http://localhost") == 415
        assert whole("Content-Encoding: gzip") == 415
        assert whole("Transfer-Encoding: chunked") == 400  # with a length
        assert whole("Transfer-Encoding: gzip, chunked") == 400
        assert whole("Authorization: Bearer a", "Authorization: Bearer b") == 400
        head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
        assert status(raw(server, head + b"\r\n")) == 411
        assert status(raw(server, b"GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc")) == 400
        for length in ("-1", "1e3", "99999999999999999999", "0x10"):
            assert status(raw(server, head + f"Content-Length: {length}\r\n\r\n".encode())) in (400, 413), length
        for garbage in (b"\r\n", b"\0\xff" * 50, b"GET\r\n\r\n", b"GET / HTTP/9\r\n\r\n", b"GET  /  HTTP/1.1\r\n\r\n", b"\n" * 99, b"{" * 9999,
                        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET /\0 HTTP/1.1\r\nHost: localhost\r\n\r\n"):
            assert status(raw(server, garbage + b"\r\n\r\n", timeout=15)) in (None, 400, 403, 404, 405, 411, 414, 416), garbage

        many_parts = raw(server, b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nRange: bytes=" + b"0-0," * 1900 + b"0-0\r\n\r\n")
        assert status(many_parts) == 200 and many_parts.count(b"\r\nContent-Type: ") == 1  # a range is ignored

        # 1 GB that is announced, and much that is not: answered at once, and never held.
        before = server.resident()
        start = time.monotonic()
        assert status(raw(server, head + b"Content-Length: 1000000000\r\n\r\n" + bytes(1 << 20))) == 413
        assert status(raw(server, head + b"Content-Length: 1000000000\r\nExpect: 100-continue\r\n\r\n")) == 413
        assert time.monotonic() - start < 10
        chunks = b"".join(b"100000\r\n" + b" " * 0x100000 + b"\r\n" for _ in range(20))
        assert status(raw(server, head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks)) == 413
        assert status(raw(server, head + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
                          + f"{len(good):x}\r\n".encode() + good + b"\r\n0\r\n\r\n")) == 200
        many_lines = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + b"X: y\r\n" * 6000 + b"\r\n"
        assert status(raw(server, many_lines)) != 200 and status(raw(server, many_lines[:20000] + b"\r\n\r\n")) == 200
        assert raw(server, head + b"X: " + b"y" * (1 << 20) + b"\r\n\r\n").count(b"200 OK") == 0
        assert status(raw(server, b"GET /" + b"y" * 9000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")) == 414
        assert server.resident() - before < 60 << 20, "bodies that were refused are held"
        continued = raw(server, request(good, "/v1/completions", "Expect: 100-continue").split(b"\r\n\r\n")[0] + b"\r\n\r\n", then=good)
        assert continued.startswith(b"HTTP/1.1 100 Continue") and b"HTTP/1.1 200 OK" in continued, continued

        for body, param in ((b"", None), (b"[]", None), (b"{", None), (b"\xff", None), (b"[" * 100000, None), (b'{"a":' * 40 + b"1" + b"}" * 40, None),
                            (b'{"prompt": 5}', "prompt"), (b'{"prompt": ["a", 5]}', "prompt"), (b'{"prompt": [5, -1]}', "prompt"),
                            (b'{"prompt": [999999]}', "prompt"), (b'{"max_tokens": 1.5}', "max_tokens"), (b'{"max_tokens": 100000}', "max_tokens"),
                            (b'{"temperature": -1}', "temperature"), (b'{"temperature": 1e999}', None), (b'{"top_p": 0}', "top_p"),
                            (b'{"stop": ""}', "stop"), (b'{"stop": [1]}', "stop"), (b'{"n": 1000}', "n"), (b'{"logprobs": 21}', "logprobs"),
                            (b'{"logprobs": true}', "logprobs"), (b'{"suffix": "x"}', "suffix"), (b'{"stream_options": {}}', "stream_options"),
                            (b'{"prompt": ["a"], "n": 128, "best_of": 3}', "best_of")):
            code, _, text = server.call("POST", "/v1/completions", body, {"Content-Type": "application/json"})
            error = json.loads(text)["error"]
            assert code == 400 and error["param"] == param and error["message"], (body[:40], code, text)
        for method, path, code in (("GET", "/v1/completions", 405), ("DELETE", "/health", 405), ("GET", "/nope", 404), ("GET", "/v1/models/", 404),
                                   ("GET", "/v1/models/nope", 404), ("GET", "/favicon.ico", 204), ("HEAD", "/health", 200), ("OPTIONS", "/health", 405)):
            got, headers, text = server.call(method, path)
            assert got == code and (code < 400 or json.loads(text)["error"]), (method, path, got, text)
            assert (got == 405) == ("Allow" in headers) and headers["X-Content-Type-Options"] == "nosniff"
        page = server.call("GET", "/")
        assert page[0] == 200 and "default-src 'none'" in page[1]["Content-Security-Policy"] and "</html>" in page[2]
        keep = server.connect()  # several requests on one connection
        keep.connect()
        kept = keep.sock
        for _ in range(3):
            keep.request("POST", "/v1/completions", good, {"Content-Type": "application/json"})
            assert keep.getresponse().read() and keep.sock is kept
        keep.close()
        assert server.text(prompt="a", max_tokens=1) is not None


def slow_clients(place):
    """a client that sends or reads slowly costs at most its own connection; those beyond the limit get 503"""
    with Server("--checkpoint", checkpoints(place), "--max-connections", "20", "--sequences", "2") as server:
        server.text(prompt="a")
        flat = server.descriptors()
        head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n"
        started = time.monotonic()
        slow = [socket.create_connection((server.host, server.port)) for _ in range(15)]
        for i, client in enumerate(slow):
            client.sendall([b"", b"P", head, head + b"\r\n", head + b"\r\n{"][i % 5])
        reader = socket.create_connection((server.host, server.port))  # which reads nothing of a long stream
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.sendall(request(json.dumps({"prompt": "a", "max_tokens": ENDLESS - 10, "stream": True, "ignore_eos": True, "logprobs": 20}).encode()))
        server.text(prompt="a", max_tokens=5)
        others = [socket.create_connection((server.host, server.port)) for _ in range(300)]
        refused, deadline = 0, time.monotonic() + 30
        left = set(others)
        while refused < 280 and time.monotonic() < deadline:
            for other in select.select(left, [], [], 1)[0]:
                left.discard(other)
                refused += b"too_many_connections" in other.recv(1000)
        assert refused >= 280, refused
        for other in others:
            other.close()
        reader.close()
        server.wait_until(lambda: server.call("GET", "/health")[0] == 200)
        # One byte a second does not help: a head has 10 seconds, and so has a body.
        for i, client in enumerate(slow):
            if i % 5 == 0:
                client.close()  # idle connections may stay for a minute
        dripping = [client for i, client in enumerate(slow) if i % 5]
        while time.monotonic() < started + 9:
            for client in dripping:
                client.send(b" ")
            server.text(prompt="a", max_tokens=5)
            time.sleep(0.8)
        server.wait_until(lambda: server.descriptors() <= flat + 1)
        assert time.monotonic() - started < 25
        for client in dripping:
            client.close()


def cancelling(place):
    """texts of clients that go are cancelled, and their places and the queue are free; the queue has a limit"""
    with Server("--checkpoint", checkpoints(place), "--sequences", "1", "--max-queue", "2") as server:
        endless = {"prompt": "a", "max_tokens": ENDLESS - 10, "ignore_eos": True, "temperature": 2}
        running = server.stream(**endless)
        next(running)
        body = json.dumps(endless).encode()

        def send():
            client = socket.create_connection((server.host, server.port))
            client.sendall(request(body))
            return client

        def texts():
            (model,) = json.loads(server.call("GET", "/v1/models")[2])["data"]
            return model["running"], model["waiting"]

        assert "takes 3" in server.complete(400, **{**endless, "n": 4})["error"]["message"]  # would never have room
        clients = [send(), send()]
        server.wait_until(lambda: texts() == (1, 2), 10)
        code, headers, refusal = server.call("POST", "/v1/completions", body)
        assert code == 429 and json.loads(refusal)["error"]["code"] == "queue_full" and int(headers["Retry-After"]) >= 1
        clients.pop().close()
        server.wait_until(lambda: texts() == (1, 1), 10)
        running.close()
        server.wait_until(lambda: texts() == (1, 0), 10)
        clients.pop().close()
        server.wait_until(lambda: texts() == (0, 0), 10)
        server.text(prompt="a", max_tokens=3)
        for _ in range(20):  # clients that send a request and go
            send().close()
        server.wait_until(lambda: server.call("POST", "/v1/completions", json.dumps({"prompt": "a", "max_tokens": 3}))[0] == 200, 10)
        server.wait_until(lambda: texts() == (0, 0), 10)
    with Server("--checkpoint", checkpoints(place), "--sequences", "1", "--timeout", "0.3") as server:
        assert server.complete(503, **endless)["error"]["code"] == "timeout"
        *_, last = server.stream(**endless)
        assert last["error"]["code"] == "timeout", last


def access(place):
    """keys, Host and Origin decide who may connect; other addresses than loopback need keys"""
    source = ["--checkpoint", checkpoints(place)]
    with open(place.file("keys"), "w") as file:
        file.write(f"# one\nalice:{KEY}\n\n{KEY}{KEY}\n")
    with Server(*source, "--context", "64", "--api-key-file", place.file("keys"), "--allow-host", "gpu7.example") as server:
        for key in (KEY, KEY + KEY):
            assert server.call("GET", "/v1/models", headers={"Authorization": f"Bearer {key}"})[0] == 200
        for wrong in ("", "Bearer ", f"Basic {KEY}", f"Bearer {KEY}x", f"Bearer {KEY[:-1]}", f"bearer {KEY}", f"Bearer alice:{KEY}"):
            code, headers, text = server.call("POST", "/v1/completions", "{}", {"Authorization": wrong})
            assert code == 401 and headers["WWW-Authenticate"] == "Bearer" and KEY not in text, (wrong, code)
        assert server.call("GET", "/v1/models/served")[0] == 401 and server.call("GET", "/health")[0] == 200 and server.call("GET", "/")[0] == 200
        ours = [f"{name}{port}" for name in ("localhost", "127.0.0.1", "[::1]", "LocalHost", "gpu7.example") for port in ("", f":{server.port}")]
        for host, code in {**dict.fromkeys(ours, 200), **dict.fromkeys(("evil.example", "localhost.evil.example", "localhost:1", "", "gpu7.example:443"), 403)}.items():
            assert server.call("GET", "/health", headers={"Host": host})[0] == code, host
            if host:
                assert server.call("GET", "/health", headers={"Origin": f"http://{host}"})[0] == code, host
        assert server.call("GET", "/health", headers={"Origin": "file://"})[0] == 403
        assert KEY not in server.log()
    for arguments, code, what in ((["--host", "0.0.0.0"], 2, "--api-key-file"), (["--api-key-file", place.file("none")], 2, "none"),
                                  (["--host", "256.1.1.1", "--api-key-file", place.file("keys")], 2, "256.1.1.1"), (["--port", "99999"], 2, "--port"),
                                  (["--sequences", "0"], 2, "--sequences"), (["--timeout", "0"], 2, "--timeout"),
                                  (["--sequences", "4096", "--context", "4000000"], 5, "--sequences")):
        done = call([TOKAMAK, "serve", *source, *(["--port", "0"] if "--port" not in arguments else []), *arguments])
        assert done.returncode == code and what in done.stdout, (arguments, done.stdout)
    with open(place.file("short"), "w") as file:
        file.write("abc\n")
    done = call([TOKAMAK, "serve", *source, "--api-key-file", place.file("short")])
    assert done.returncode == 2 and "16 characters" in done.stdout and "abc" not in done.stdout, done.stdout


def ending(place):
    """SIGTERM and SIGINT: no new requests, texts that run are finished, exit 0; a port that is taken is an error"""
    for number in (signal.SIGTERM, signal.SIGINT):
        with Server("--checkpoint", checkpoints(place), "--context", str(LONG)) as server:
            taken = call([TOKAMAK, "serve", "--checkpoint", checkpoints(place), "--port", str(server.port)])
            assert taken.returncode == 2 and "--port" in taken.stdout, taken.stdout
            fields = {"prompt": "a", "max_tokens": LONG // 2, "ignore_eos": True, "seed": 4}
            whole = server.text(**fields)
            events = server.stream(**fields)
            text = next(events)["choices"][0]["text"]
            idle = server.connect()
            idle.connect()
            server.process.send_signal(number)
            finished = [choice for event in events for choice in event["choices"]]
            assert text + "".join(choice["text"] for choice in finished) == whole and finished[-1]["finish_reason"] == "length"
            assert server.process.wait(timeout=20) == 0, server.log()
            server.code = 0
            try:
                server.call("GET", "/health")
                raise AssertionError("it still answers")
            except OSError:
                pass


def following(place):
    """--follow takes the run's newer checkpoints, finishes what runs with the old ones, and skips damaged ones"""
    run = place.run("grows")

    place.train("grows", 1, "training.max_steps=40", "checkpoint.interval=10", "checkpoint.keep_latest=9",
                f"model.max_position_embeddings={LONG}")
    for later in (20, 30, 40):
        os.rename(place.checkpoint("grows", later), place.file(f"later-{later}"))
    (shard,) = [name for name in os.listdir(place.file("later-40")) if name.endswith(".safetensors")]
    with open(os.path.join(place.file("later-40"), shard), "r+b") as file:
        file.seek(-8, os.SEEK_END)
        file.write(b"damaged!")

    def save(step):  # as a run commits it
        os.rename(place.file(f"later-{step}"), place.checkpoint("grows", step))

    def text_of(step):
        (one,) = generated("--checkpoint", place.checkpoint("grows", step), "--prompt", "ab", "--temperature", "0",
                           "--max-tokens", "30")
        return one["text"]

    with Server("--checkpoint", run, "--follow", "--name", "mine") as server:
        def step():
            return json.loads(server.call("GET", "/v1/models/mine")[2])["step"]

        fields = {"prompt": "ab", "max_tokens": 30, "temperature": 0}
        assert step() == 10 and server.text(**fields) == text_of(10)
        running = server.stream(prompt="ab", max_tokens=LONG - 500, ignore_eos=True, temperature=0)
        events = [next(running)]
        save(20)
        server.wait_until(lambda: step() == 20, 120)  # which waits for the text
        events += running  # which wait in the server, and are of the old weights
        assert {event["model"] for event in events} == {"mine@10"}, {event["model"] for event in events}
        (old,) = generated("--checkpoint", place.checkpoint("grows", 10), "--prompt", "ab", "--temperature", "0", "--ignore-eos",
                           "--max-tokens", str(LONG - 500))
        assert "".join(choice["text"] for event in events for choice in event["choices"]) == old["text"]
        reply = server.complete(model="mine@20", **fields)
        assert reply["model"] == "mine@20" and reply["choices"][0]["text"] == text_of(20)
        assert server.complete(404, model="mine@10", **fields)["error"]["code"] == "model_not_found"
        save(40)
        server.wait_until(lambda: "cannot be used" in server.log())
        assert step() == 20 and server.text(**fields) == text_of(20) and server.call("GET", "/health")[0] == 200
        with concurrent.futures.ThreadPoolExecutor(8) as pool:  # requests that keep coming do not hold new weights off
            def ask(tokens):
                while server.complete(prompt="ab", max_tokens=tokens, ignore_eos=True)["model"] != "mine@30":
                    pass

            asking = [pool.submit(ask, tokens) for tokens in range(200, 520, 40)]
            save(30)
            server.wait_until(lambda: all(one.done() for one in asking))
        assert step() == 30
        assert server.text(**fields) == text_of(30) and server.log().count("cannot be used") == 1, server.log()
    done = call([TOKAMAK, "serve", "--checkpoint", place.checkpoint("grows", 30), "--follow"])
    assert done.returncode == 2 and "--follow" in done.stdout, done.stdout
    with Server("--checkpoint", place.checkpoint("grows", 10), "--compare", place.checkpoint("grows", 30)) as server:
        names = [model["id"] for model in json.loads(server.call("GET", "/v1/models")[2])["data"]]
        assert names == ["grows", "grows-2"], names
        assert [server.text(model=name, **fields) for name in names] == [text_of(10), text_of(30)]


if __name__ == "__main__":
    main([texts, limits, slow_clients, cancelling, access, ending, following])
