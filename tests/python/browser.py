"""A headless Chromium that is told what to do over a pipe, by the DevTools protocol; no driver and no network.

As a program, it takes a picture of a page: ``browser.py page.html picture.png``.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
#: Seconds that an answer may take.
ANSWER_SECONDS = 60.0


def find() -> str | None:
    """The browser: what ``HYPERSLAB_CHROMIUM`` names, or one on the path."""
    named = os.environ.get("HYPERSLAB_CHROMIUM")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One page of a browser."""

    def __init__(self, reader: int, writer: int) -> None:
        self._reader, self._writer = reader, writer
        self._rest = b""
        self._number = 0
        self._session: str | None = None
        self.errors: list[str] = []
        self.requests: list[str] = []

    def _receive(self) -> dict[str, Any]:
        limit = time.monotonic() + ANSWER_SECONDS
        while b"\0" not in self._rest:
            part = os.read(self._reader, 1 << 20)
            if not part or time.monotonic() > limit:
                message = "the browser does not answer"
                raise RuntimeError(message)
            self._rest += part
        text, _, self._rest = self._rest.partition(b"\0")
        told: dict[str, Any] = json.loads(text)
        return told

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol."""
        self._number += 1
        question: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            question["sessionId"] = self._session
        unsent = json.dumps(question).encode() + b"\0"
        while unsent:
            unsent = unsent[os.write(self._writer, unsent) :]
        while True:
            told = self._receive()
            if told.get("id") == self._number:
                if "error" in told:
                    raise RuntimeError(f"{method}: {told['error']}")
                return dict(told["result"])
            self._note(told)

    def _note(self, told: dict[str, Any]) -> None:
        parameters = told.get("params", {})
        if told.get("method") == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(parameters["exceptionDetails"])[:500])
        elif told.get("method") == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def open(self, page: Path, width: int = 1280, height: int = 900, *, dark: bool = False) -> None:
        """Show a file and wait until it says that it is ready."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network"):
            self.ask(f"{domain}.enable")
        scheme = "dark" if dark else "light"
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.resize(width, height)
        self.ask("Page.navigate", url=page.resolve().as_uri())
        self.wait_for("document.body && document.body.dataset.ready === '1'")

    def resize(self, width: int, height: int) -> None:
        """Change the size of the window [px]."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of the page."""
        told = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in told:
            raise RuntimeError(f"{expression}: {told['exceptionDetails']}")
        return told["result"].get("value")

    def wait_for(self, condition: str, seconds: float = 30.0) -> None:
        """Wait until an expression is true."""
        limit = time.monotonic() + seconds
        while not self.evaluate(condition):
            if time.monotonic() > limit:
                failed = self.evaluate("document.body && document.body.dataset.failed")
                raise RuntimeError(f"{condition} does not become true; {failed or self.errors}")
            time.sleep(0.02)

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """Let the mouse do something, such as ``mouseMoved`` or ``mouseWheel``, and the page draw what follows."""
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def screenshot(self, path: Path) -> None:
        """Save what the window shows."""
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))


@contextmanager
def browser(program: str) -> Iterator[Browser]:
    """Start a browser with an empty profile; it ends with the context."""
    to_reader, to_writer = os.pipe()
    from_reader, from_writer = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        # The browser reads from descriptor 3 and writes to 4.
        wrapped = f'exec "$@" 3<&{to_reader} 4>&{from_writer}'
        process = subprocess.Popen(
            ["bash", "-c", wrapped, "browser", program, *FLAGS, f"--user-data-dir={profile}"],
            pass_fds=(to_reader, from_writer),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_reader)
        os.close(from_writer)
        try:
            yield Browser(from_reader, to_writer)
        finally:
            os.close(to_writer)
            with suppress(subprocess.TimeoutExpired):
                process.wait(5)
            if process.poll() is None:
                process.kill()
                process.wait()
            os.close(from_reader)


def main() -> int:
    """Take a picture of a page that says when it is ready."""
    parser = argparse.ArgumentParser(description="Take a picture of a page.")
    parser.add_argument("page", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--width", type=int, default=1100)
    parser.add_argument("--height", type=int, default=720)
    asked = parser.parse_args()
    program = find()
    if program is None:
        print(f"{sys.argv[0]}: no Chromium on the path, nor named by HYPERSLAB_CHROMIUM")
        return 1
    with browser(program) as made:
        made.open(asked.page, asked.width, asked.height)
        made.screenshot(asked.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
