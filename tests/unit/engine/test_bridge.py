"""The order in which requests of a chat are carried out (`engine.bridge`)."""

from __future__ import annotations

import asyncio
import json
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from codecompanion import requests
from codecompanion.engine.bridge import Bridge


class Recorder:
    """A runtime that writes down when requests begin and end; what opens or ends a chat takes its time."""

    def __init__(self) -> None:
        self.happened: list[str] = []
        self.done = threading.Event()

    async def handle(self, request: requests.Request) -> None:
        name = type(request).__name__
        self.happened.append(f"{name} begins")
        if isinstance(request, requests.CloseChat | requests.DeleteSession):
            await asyncio.sleep(0.02)
        self.happened.append(f"{name} ends")
        if isinstance(request, requests.Cancel):
            self.done.set()

    async def aclose(self) -> None:
        return


@pytest.mark.parametrize("verb", ["close_chat", "delete_session"])
def test_a_chat_is_opened_once_it_is_closed_or_deleted(verb: str) -> None:
    """Opened in the middle of it, it would go on without its lease, or in a log that is gone."""
    runtime = Recorder()
    nvim: Any = SimpleNamespace(loop=SimpleNamespace(call_soon_threadsafe=lambda call: None))
    bridge = Bridge(nvim, lambda emit: runtime)
    folders = {"settings": {}, "data_dir": "", "cache_dir": "", "log_path": "", "nvim": "0.11"}
    bridge.receive("hello", json.dumps(folders))
    for each in (verb, "open_chat", "cancel"):
        bridge.receive(each, json.dumps({"chat": "c", **({"snapshot": {}} if each == "open_chat" else {})}))
    assert runtime.done.wait(5), runtime.happened
    ends = "CloseChat" if verb == "close_chat" else "DeleteSession"
    wanted = [f"{name} {step}" for name in (ends, "OpenChat", "Cancel") for step in ("begins", "ends")]
    assert runtime.happened[2:] == wanted
    bridge.close()
