"""A real Chromium without a window, spoken to over a pipe in the DevTools protocol."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SECONDS = 60
# The browser reads from descriptor 3 and writes to 4: put what we have there, and become the browser.
LAUNCH = (
    "import fcntl, os, sys\n"
    "ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]\n"
    "[os.dup2(end, place) for end, place in zip(ends, (3, 4))]\n"
    "os.execv(sys.argv[3], sys.argv[3:])"
)
KEYS = {
    "Tab": (9, ""),
    "Enter": (13, "\r"),
    " ": (32, " "),
    "ArrowUp": (38, ""),
    "ArrowRight": (39, ""),
    "ArrowDown": (40, ""),
    "ArrowLeft": (37, ""),
    "End": (35, ""),
    "Home": (36, ""),
}


def find():
    """Give the path of a Chromium, None where there is none."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """A browser with a profile of its own; use it in a `with` block."""

    def __init__(self):
        self._number = 0
        self._buffer = b""
        self.events = []

    def __enter__(self):
        self._profile = tempfile.mkdtemp(prefix="popf-browser-")
        hears, self._to = os.pipe()
        self._from, says = os.pipe()
        command = [
            sys.executable,
            "-c",
            LAUNCH,
            str(hears),
            str(says),
            find(),
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--hide-scrollbars",
            "--disable-background-networking",
            "--disable-component-update",
            f"--user-data-dir={self._profile}",
            "--remote-debugging-pipe",
        ]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(
            command, pass_fds=(hears, says), stdin=quiet, stdout=quiet, stderr=quiet
        )
        os.close(hears)
        os.close(says)
        return self

    def __exit__(self, *error):
        try:
            self.call("Browser.close")
            self._process.wait(SECONDS)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._to)
        os.close(self._from)
        shutil.rmtree(self._profile, ignore_errors=True)

    def call(self, method, session=None, **parameters):
        """Call a method of the protocol, and give its result; events meanwhile are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        answer = self._until(lambda found: found.get("id") == message["id"])
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def wait_for(self, method, session, start):
        """Wait for an event, from the given place in `events` on."""
        for event in self.events[start:]:
            if event.get("method") == method and event.get("sessionId") == session:
                return event
        return self._until(
            lambda found: found.get("method") == method and found.get("sessionId") == session
        )

    def _until(self, wanted):
        end = time.monotonic() + SECONDS
        while True:
            while b"\0" not in self._buffer:
                left = end - time.monotonic()
                ready = select.select([self._from], [], [], max(left, 0))[0]
                more = os.read(self._from, 1 << 16) if ready else b""
                if not more:
                    raise RuntimeError("the browser does not answer")
                self._buffer += more
            line, _, self._buffer = self._buffer.partition(b"\0")
            message = json.loads(line)
            if "method" in message:
                self.events.append(message)
            if wanted(message):
                return message

    def open(self, url, *, width=1200, height=900, scheme="light"):
        """Open a page in a tab of its own."""
        return Page(self, url, width, height, scheme)


class Page:
    """A tab."""

    def __init__(self, browser, url, width, height, scheme):
        self._browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = browser.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Network", "Log", "DOM", "Accessibility"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.media(scheme)
        self._start = len(browser.events)
        self.call("Page.navigate", url=url)
        browser.wait_for("Page.loadEventFired", self._session, self._start)

    def call(self, method, **parameters):
        return self._browser.call(method, self._session, **parameters)

    def media(self, scheme, media="", motion="no-preference"):
        """Prefer light or dark, screen or print, motion or none."""
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": motion},
        ]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)

    def run(self, expression):
        """Evaluate JavaScript, wait for it if it is a promise, and give its plain value."""
        found = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"]["exception"].get("description"))
        return found["result"].get("value")

    def text(self, id):
        return self.run(f"document.getElementById({json.dumps(id)}).textContent")

    def press(self, key, times=1):
        code, text = KEYS[key]
        for _ in range(times):
            for kind in ("keyDown", "keyUp"):
                self.call(
                    "Input.dispatchKeyEvent",
                    type=kind,
                    key=key,
                    code=key,
                    windowsVirtualKeyCode=code,
                    **({"text": text} if text and kind == "keyDown" else {}),
                )

    def click(self, selector):
        """Click with the mouse in the middle of an element."""
        x, y = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def _events(self, *methods):
        return [
            event["params"]
            for event in self._browser.events[self._start :]
            if event.get("sessionId") == self._session and event.get("method") in methods
        ]

    def requests(self):
        """Give the addresses that the page has asked for, or wanted to, data: left out."""
        self.run("0")  # whatever was said before this answer has been read
        found = [event["request"]["url"] for event in self._events("Network.requestWillBeSent")]
        return [url for url in found if not url.startswith("data:")]

    def complaints(self):
        """Give what the page has written to the console, thrown, or was refused."""
        self.run("0")
        found = self._events(
            "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"
        )
        return [json.dumps(event)[:300] for event in found]

    def screenshot(self, path):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        data = self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def pdf(self):
        data = self.call("Page.printToPDF", printBackground=False)["data"]
        return base64.b64decode(data)
