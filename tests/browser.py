"""A real headless browser that opens one of our pages and reports errors, requests, layout and pictures.

It is controlled over the DevTools protocol. Where no browser is installed, `BROWSER` is "" and such tests are skipped.
"""

from __future__ import annotations

import asyncio
import base64
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tests.patience import PATIENCE_S

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome") or ""
WHY_NOT = "no Chromium or Chrome on the PATH"
_OPTIONS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars --remote-debugging-port=0"
).split()
PHONE, DESK = (390, 844), (1280, 900)


class Browser:
    """One open tab. `errors`: console messages and exceptions; `requests`: every requested URL."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket, self._number = socket, 0
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._loaded = asyncio.Event()
        self.errors: list[str] = []
        self.requests: list[str] = []

    async def listen(self) -> None:
        """Receive the browser's messages until it is closed."""
        async for message in self._socket:
            said = message.json()
            if said.get("id") in self._answers:
                self._answers.pop(said["id"]).set_result(said)
                continue
            method, about = said.get("method"), said.get("params", {})
            if method == "Network.requestWillBeSent":
                self.requests.append(about["request"]["url"])
            elif method == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
                self.errors.append(about["entry"]["text"])
            elif method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled"):
                self.errors.append(str(about))
            elif method == "Page.javascriptDialogOpening":
                self.errors.append(f"dialog: {about.get('message')}")
                await self.send("Page.handleJavaScriptDialog", wait=False, accept=False)
            elif method == "Page.loadEventFired":
                self._loaded.set()

    async def send(self, method: str, *, wait: bool = True, **parameters: Any) -> dict[str, Any]:
        """Send a DevTools command and return its result."""
        self._number += 1
        answer = self._answers[self._number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        if not wait:
            return {}
        said = await asyncio.wait_for(answer, PATIENCE_S)
        assert "error" not in said, (method, said["error"])
        return dict(said["result"])

    async def open(self, page: Path, *, dark: bool = False, size: tuple[int, int] = DESK, scale: float = 1) -> None:
        """Open a file in a window of the given size and colour scheme; return once it has loaded."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        await self.send("Emulation.setEmulatedMedia", features=scheme)
        await self.send(
            "Emulation.setDeviceMetricsOverride",
            width=size[0], height=size[1], deviceScaleFactor=scale, mobile=size[0] < 600,
        )  # fmt: skip
        self._loaded.clear()
        self.requests.clear()
        self.errors.clear()
        await self.send("Page.navigate", url=page.resolve().as_uri())
        await asyncio.wait_for(self._loaded.wait(), PATIENCE_S)

    async def ask(self, expression: str) -> Any:
        """Return the value of an expression in the page; the page's own content policy does not block it."""
        done = await self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    async def picture(self, path: Path) -> None:
        """Save a screenshot of the whole page as a PNG."""
        done = await self.send("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(done["data"]))

    async def names(self) -> list[tuple[str, str]]:
        """Return (role, name) of everything announced by a screen reader."""
        tree = await self.send("Accessibility.getFullAXTree")
        return [
            (node["role"]["value"], node.get("name", {}).get("value", ""))
            for node in tree["nodes"]
            if not node.get("ignored") and "role" in node
        ]


@asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    """Start a browser with its own profile, and end it after the test."""
    profile = Path(tempfile.mkdtemp(prefix="browser-"))
    process = await asyncio.create_subprocess_exec(
        BROWSER, *_OPTIONS, f"--user-data-dir={profile}", "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        port = await _port(profile)
        async with aiohttp.ClientSession() as http:
            async with http.get(f"http://127.0.0.1:{port}/json/list") as listed:
                tab = next(one for one in await listed.json() if one["type"] == "page")
            async with http.ws_connect(tab["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                opened = Browser(socket)
                listening = asyncio.create_task(opened.listen())
                for domain in ("Page", "Network", "Log", "Runtime", "Accessibility"):
                    await opened.send(f"{domain}.enable")
                yield opened
                listening.cancel()
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
        shutil.rmtree(profile, ignore_errors=True)


async def _port(profile: Path) -> int:
    told = profile / "DevToolsActivePort"
    async with asyncio.timeout(PATIENCE_S):
        while not (told.exists() and told.read_text().strip()):  # noqa: ASYNC110 - the browser tells by a file
            await asyncio.sleep(0.05)
    return int(told.read_text().split()[0])
