"""`tokamak serve` as a process, for tests and for scripts/bench/serve_load.py. Standard library only."""
import http.client
import json
import signal
import subprocess
import tempfile
import time

from harness import ENV, TOKAMAK


class Server:
    """Runs while the `with` block does. Its log is in `log()`, its exit code in `code` after stop()."""

    def __init__(self, *arguments, threads=1):
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([TOKAMAK, "serve", "--port", "0", "--threads", str(threads), *arguments], env=ENV, text=True,
                                        stdout=subprocess.PIPE, stderr=self.errors)
        self.url = self.process.stdout.readline().strip()
        assert self.url.startswith("http://"), self.log()
        self.host, port = self.url.removeprefix("http://").rstrip("/").rsplit(":", 1)
        self.port = int(port)
        self.code = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.code is None:
            self.stop()

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.code = self.process.wait(timeout=60)
        self.process.stdout.close()

    def log(self):
        self.errors.seek(0)
        return self.errors.read()

    def connect(self, timeout=60):
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def call(self, method, path, body=None, headers=None):
        """(status, headers, text) of one request on its own connection."""
        connection = self.connect()
        try:
            connection.request(method, path, body, headers or {})
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read().decode()
        finally:
            connection.close()

    def complete(self, expect=200, headers=None, **fields):
        status, _, text = self.call("POST", "/v1/completions", json.dumps(fields), {"Content-Type": "application/json", **(headers or {})})
        assert status == expect, (status, text)
        return json.loads(text)

    def stream(self, **fields):
        """Yields the events of a stream; a comment is None."""
        connection = self.connect()
        try:
            connection.request("POST", "/v1/completions", json.dumps({**fields, "stream": True}), {"Content-Type": "application/json"})
            reply = connection.getresponse()
            assert reply.status == 200, (reply.status, reply.read())
            for line in reply:
                if line.startswith(b"data: [DONE]"):
                    return
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])
        finally:
            connection.close()

    def text(self, **fields):
        return self.complete(**fields)["choices"][0]["text"]

    def wait_until(self, holds, seconds=30):
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.05)

    def descriptors(self):
        return len(subprocess.run(["ls", f"/proc/{self.process.pid}/fd"], capture_output=True, text=True, check=True).stdout.split())

    def resident(self):
        """Bytes."""
        with open(f"/proc/{self.process.pid}/status") as file:
            return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmRSS"))
