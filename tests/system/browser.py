"""A headless Chromium, driven over a pipe by its DevTools protocol: pages, console messages, values of JavaScript,
screenshots. Standard library only."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PATIENCE = 120  # seconds for an answer; a loaded machine takes long to start a browser


def find_browser():
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    def __init__(self, program):
        self.home = tempfile.mkdtemp(prefix="tokamak-browser-")
        to_browser, self.commands = os.pipe()
        self.answers, from_browser = os.pipe()
        # The protocol's pipe is file descriptors 3 and 4. As root, Chromium refuses its own sandbox.
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "bash", program, "--headless=new",
             "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
             "--disable-extensions", "--disable-background-networking", "--remote-debugging-pipe",
             "--user-data-dir=" + self.home, "about:blank"],
            pass_fds=(to_browser, from_browser), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer = b""
        self.serial = 0
        self.events = []
        target = self.call("Target.createTarget", url="about:blank", session=None)["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True, session=None)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.commands)
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.answers)
        shutil.rmtree(self.home, ignore_errors=True)

    def message(self):
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.answers], [], [], max(0, deadline - time.monotonic()))
            part = os.read(self.answers, 1 << 20) if ready else b""
            assert part, "the browser does not answer" if not ready else "the browser has ended"
            self.buffer += part
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, session="own", **parameters):
        self.serial += 1
        message = {"id": self.serial, "method": method, "params": parameters}
        if session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.serial:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self.events.append(answer)

    def set_window(self, width, height, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 500)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, page):
        """Loads a file or an address, and waits for its load event."""
        self.events = []
        self.call("Page.navigate", url=page if page.startswith("http") else "file://" + os.path.abspath(page))
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.message())

    def value(self, script):
        """The value of a JavaScript expression, also of a promise."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, (script, result["exceptionDetails"])
        return result["result"].get("value")

    def complaints(self, *own):
        """Console messages, uncaught exceptions, and requests for anything but files and addresses that begin so."""
        found = []
        for event in self.events:
            method, said = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(said["exceptionDetails"])
            elif method == "Runtime.consoleAPICalled" and said["type"] in ("error", "warning", "assert"):
                found.append(said["args"])
            elif method == "Log.entryAdded" and said["entry"]["level"] in ("error", "warning"):
                found.append(said["entry"]["text"])
            elif method == "Network.requestWillBeSent" and not said["request"]["url"].startswith(("file:", "data:", *own)):
                found.append(said["request"]["url"])
        return found

    def screenshot(self, path):
        """The whole page."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        image = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(image))
