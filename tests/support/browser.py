"""A real browser without a window: Debian's Chromium, over its own protocol."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from websockets.sync.client import ClientConnection, connect

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

_SECONDS = 60.0


class Tab:
    """One page of the browser."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._numbers = itertools.count(1)
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol; events that come meanwhile are kept."""
        number = next(self._numbers)
        self._connection.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._connection.recv(timeout=_SECONDS))
            if message.get("id") == number:
                assert "error" not in message, message
                return dict(message["result"])
            self.events.append(message)

    def open(self, address: str, *, cookies: dict[str, str] | None = None) -> None:
        """Open an address and wait until it is loaded."""
        self.events.clear()
        for name, value in (cookies or {}).items():
            self.call("Network.setCookie", name=name, value=value, url=address)
        self.call("Page.navigate", url=address)
        end = time.monotonic() + _SECONDS
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            assert time.monotonic() < end, f"{address} does not load"
            self.events.append(json.loads(self._connection.recv(timeout=_SECONDS)))

    def look(self, *, width: int, dark: bool = False) -> None:
        """Set the width of the window and the colour scheme."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def value(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def requests(self) -> list[str]:
        """Return the addresses that were requested since the last ``open``."""
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]

    def complaints(self) -> list[str]:
        """Return what the browser has logged since the last ``open``: refused styles, scripts, errors."""
        return [event["params"]["entry"]["text"] for event in self.events if event.get("method") == "Log.entryAdded"]


@contextmanager
def browser(folder: Path) -> Iterator[Tab]:
    """Yield a tab of a browser whose profile is ``folder``, and end the browser afterwards."""
    assert PROGRAM
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-port=0"]
    command = [PROGRAM, *options, f"--user-data-dir={folder}", "about:blank"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            with connect(_tab_address(folder), max_size=None) as connection:
                tab = Tab(connection)
                for domain in ("Page", "Network", "Log", "Runtime"):
                    tab.call(f"{domain}.enable")
                yield tab
        finally:
            process.terminate()


def _tab_address(folder: Path) -> str:
    file, end = folder / "DevToolsActivePort", time.monotonic() + _SECONDS
    while not (file.exists() and file.read_text(encoding="utf-8").strip()):
        assert time.monotonic() < end, "the browser does not start"
        time.sleep(0.1)
    port = file.read_text(encoding="utf-8").split()[0]
    while True:
        tabs = httpx.get(f"http://127.0.0.1:{port}/json/list").json()
        pages = [tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page"]
        if pages:
            return str(pages[0])
        assert time.monotonic() < end, "the browser has no tab"
        time.sleep(0.1)
