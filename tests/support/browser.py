"""Drives headless Chromium through the DevTools protocol over pipes, for tests of HTML pages. Standard library only."""
import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
#: Chromium as root has no sandbox. Tests open local files only.
OPTIONS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-background-networking", "--remote-debugging-pipe"]


def find_browser():
    """The path of Chromium, or None."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One page of a browser. `messages` has the errors and warnings of its console, `requests` the addresses that it asked for."""

    def __init__(self, program: str):
        self.folder = tempfile.TemporaryDirectory(prefix="scalide-browser-")
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()

        def connect():  # Chromium reads commands from file 3 and writes answers to file 4
            read, write = os.dup(to_browser), os.dup(from_browser)
            os.dup2(read, 3)
            os.dup2(write, 4)

        self.process = subprocess.Popen([program, *OPTIONS, f"--user-data-dir={self.folder.name}", "about:blank"], preexec_fn=connect,
                                        close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        os.close(to_browser)
        os.close(from_browser)
        self.number, self.rest, self.session = 0, b"", None
        self.messages, self.requests, self.loaded = [], [], False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.write_end)
        os.close(self.read_end)
        shutil.rmtree(self.folder.name, ignore_errors=True)

    def call(self, method, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters, **({"sessionId": self.session} if self.session else {})}
        os.write(self.write_end, json.dumps(request).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def receive(self):
        while b"\0" not in self.rest:
            data = os.read(self.read_end, 1 << 20)
            if not data:
                raise RuntimeError("the browser ended")
            self.rest += data
        message, self.rest = self.rest.split(b"\0", 1)
        answer = json.loads(message)
        method, values = answer.get("method", ""), answer.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = values["exceptionDetails"]
            self.messages.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and values["type"] in ("error", "warning", "assert"):
            self.messages.append(" ".join(str(each.get("value", each.get("description"))) for each in values["args"]))
        elif method == "Log.entryAdded" and values["entry"]["level"] in ("error", "warning"):
            self.messages.append(values["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(values["request"]["url"])
        elif method == "Page.loadEventFired":
            self.loaded = True
        return answer

    def open(self, file, width=1440, height=900, dark=False) -> float:
        """Opens a file. Returns the seconds up to the end of its scripts and its first picture."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.loaded, start = False, time.monotonic()
        self.call("Page.navigate", url=Path(file).resolve().as_uri())
        while not self.loaded:
            self.receive()
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return time.monotonic() - start

    def evaluate(self, code):
        result = self.call("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{code}: {result['exceptionDetails'].get('exception', {}).get('description')}")
        return result["result"].get("value")

    def press(self, key, **more):
        codes = {"Tab": 9, "Enter": 13, "ArrowDown": 40, "ArrowRight": 39}
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes.get(key, 0), **(text if kind == "keyDown" else {}), **more)

    def picture(self, file, whole=False):
        """Writes a PNG of the window, or of the whole page."""
        Path(file).write_bytes(base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]))
