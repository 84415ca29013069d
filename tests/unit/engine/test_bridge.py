"""The order in which a chat's requests are carried out (`engine.request_order`)."""

from __future__ import annotations

import asyncio
import json
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from codecompanion.engine import log
from codecompanion.engine.bridge import Bridge
from codecompanion.wire import requests
from tests.patience import PATIENCE_S


class Recorder:
    """A runtime that records when requests begin and end; awaited operations take time."""

    def __init__(self) -> None:
        self.happened: list[str] = []
        self.requests: list[requests.Request] = []
        self.done = threading.Event()

    async def handle(self, request: requests.Request) -> None:
        self.requests.append(request)
        name = type(request).__name__
        self.happened.append(f"{name} begins")
        if isinstance(request, requests.CloseChat | requests.DeleteSession | requests.Attach | requests.Detach):
            await asyncio.sleep(0.02)
        self.happened.append(f"{name} ends")
        if isinstance(request, requests.Cancel) and request.chat != "other":
            self.done.set()

    async def aclose(self) -> None:
        return


FOLDERS = {"settings": {}, "data_dir": "", "cache_dir": "", "log_path": "", "nvim": "0.11"}


def bridge_to(runtime: Recorder) -> Bridge:
    nvim: Any = SimpleNamespace(loop=SimpleNamespace(call_soon_threadsafe=lambda call: None))
    return Bridge(nvim, lambda emit: runtime)


@pytest.mark.parametrize("verb", ["close_chat", "delete_session"])
def test_a_chat_is_opened_only_after_its_close_or_deletion(verb: str) -> None:
    """If it were opened earlier, it would continue without its lease, or in a deleted log."""
    runtime = Recorder()
    bridge = bridge_to(runtime)
    bridge.receive("hello", json.dumps(FOLDERS))
    for each in (verb, "open_chat", "cancel"):
        bridge.receive(each, json.dumps({"chat": "c", **({"snapshot": {}} if each == "open_chat" else {})}))
    assert runtime.done.wait(PATIENCE_S), runtime.happened
    ends = "CloseChat" if verb == "close_chat" else "DeleteSession"
    wanted = [f"{name} {step}" for name in (ends, "OpenChat", "Cancel") for step in ("begins", "ends")]
    assert runtime.happened[2:] == wanted
    bridge.close()


@pytest.mark.parametrize("verb", ["attach", "detach"])
def test_a_message_waits_for_earlier_attach_and_detach_requests(verb: str) -> None:
    """Otherwise a message could be refused because of a large file that the user has just removed with `dd`.

    A request to stop the message comes after it; other chats do not wait.
    """
    runtime = Recorder()
    bridge = bridge_to(runtime)
    bridge.receive("hello", json.dumps(FOLDERS))
    bridge.receive(
        verb,
        json.dumps({"chat": "c", "kind": "file", "path": "a.txt"} if verb == "attach" else {"chat": "c", "items": []}),
    )
    bridge.receive("cancel", json.dumps({"chat": "other"}))
    bridge.receive("submit", json.dumps({"chat": "c", "submit_id": 1, "text": "x", "snapshot": {}}))
    bridge.receive("submit", json.dumps({"chat": "other", "submit_id": 1, "text": "x", "snapshot": {}}))
    bridge.receive("cancel", json.dumps({"chat": "c"}))
    assert runtime.done.wait(PATIENCE_S), runtime.happened
    begins, ends = f"{verb.title()} begins", f"{verb.title()} ends"
    submit, cancel = ["Submit begins", "Submit ends"], ["Cancel begins", "Cancel ends"]
    assert runtime.happened[2:] == [begins, *cancel, *submit, ends, *submit, *cancel]
    bridge.close()


def test_a_secret_keeps_its_bytes_and_is_redacted_in_the_log() -> None:
    """A password in Latin-1 arrives as in `os.environ`; common words stay readable."""
    runtime = Recorder()
    bridge = bridge_to(runtime)
    told = {"X_PASSWORD": "gr\udce4y-pencil", "DB_ADDRESS": "postgres://me:pencil@db", "PGHOST": "localhost"}
    later = {"Y_PASS": "m\udce4uve-pencil", "AWS_REGION": "eu-central"}
    bridge.receive("hello", json.dumps({**FOLDERS, "environment": told}, ensure_ascii=False))
    bridge.receive("give_environment", json.dumps({"changed": later}, ensure_ascii=False))
    bridge.receive("cancel", "{}")
    assert runtime.done.wait(PATIENCE_S), runtime.happened
    hello, given, _ = runtime.requests
    assert isinstance(hello, requests.Hello)
    assert isinstance(given, requests.GiveEnvironment)
    assert (hello.environment, given.changed) == (told, later)
    for secret in (told["X_PASSWORD"], "gr\ufffdy-pencil", told["DB_ADDRESS"], later["Y_PASS"]):
        assert log.redact(f"a {secret} b") == "a [redacted] b"
    assert log.redact("localhost eu-central") == "localhost eu-central"
    bridge.close()


def test_requests_with_secrets_show_none() -> None:
    hello = requests.Hello(
        settings={"headers": "pencil"}, data_dir="", cache_dir="", log_path="", nvim="", id=7,
        secrets={"a": "pencil"}, environment={"b": "pencil"},
    )  # fmt: skip
    assert repr(hello) == "Hello(id=7, chat='', …)"
    assert "pencil" not in repr(requests.GiveEnvironment(changed={"b": "pencil"}))
    assert "pencil" not in repr(requests.GiveSecrets(secrets={"b": "pencil"}))
    assert "pencil" not in repr(requests.SetModel(adapter="a", secrets={"a": "pencil"}))


def test_a_snapshot_includes_the_open_files_named_before() -> None:
    """The editor sends all of them once, and with each request only those with unsaved changes."""
    runtime = Recorder()
    bridge = bridge_to(runtime)
    bridge.receive("hello", json.dumps(FOLDERS))

    def submit(*buffers: dict[str, Any]) -> None:
        message = {"chat": "c", "submit_id": 1, "text": "x", "snapshot": {"cwd": "/p", "buffers": buffers}}
        bridge.receive("submit", json.dumps(message))

    submit({"name": "/p/b.py", "modified": True, "tick": 7})
    bridge.receive("give_open_files", json.dumps({"names": ["/p/a.py", "/p/b.py"]}))
    submit()
    submit({"name": "/p/b.py", "modified": True, "tick": 7}, {"name": "/p/new.py", "modified": True, "tick": 2})
    bridge.receive("give_open_files", json.dumps({"names": []}))
    submit()
    bridge.receive("cancel", json.dumps({"chat": "c"}))
    assert runtime.done.wait(PATIENCE_S), runtime.happened
    snapshots = [request.snapshot for request in runtime.requests if isinstance(request, requests.Submit)]
    a, b = requests.Buffer("/p/a.py"), requests.Buffer("/p/b.py")
    changed, new = requests.Buffer("/p/b.py", True, 7), requests.Buffer("/p/new.py", True, 2)
    assert [snapshot.buffers for snapshot in snapshots] == [(changed,), (a, b), (a, changed, new), ()]
    assert {snapshot.cwd for snapshot in snapshots} == {"/p"}
    assert not any(isinstance(request, requests.GiveOpenFiles) for request in runtime.requests)
    bridge.close()
