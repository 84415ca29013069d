"""A key that a tool found is in no result, no event and no request (lesson 44)."""

from __future__ import annotations

import base64
import json

import pytest

from codecompanion.wire.events import ApprovalRequested, ToolFinished
from codecompanion.wire.requests import Approve
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says, submit

KEY = "sk-proj-Zq8vT1mWbR5xY2nK7pL4cD9f"


def _call(name: str, **arguments: object) -> tuple[str, str, str]:
    return ("c1", name, json.dumps(arguments))


@pytest.mark.parametrize(
    "call",
    [
        _call("read_file", path="settings.txt"),
        _call("grep_search", query="KEY"),
        _call("run_command", command="cat settings.txt"),
        _call("run_command", command="base64 -w0 settings.txt"),
        _call("run_command", command="cat settings.txt >&2; exit 3"),
        _call("run_command", command="yes aaaaaaaaaaaaaaaa | head -c 300000; cat settings.txt"),
        _call("insert_edit", path="settings.txt", old_text="# mine", new_text="# my own"),
        _call("read_file", path=f"{KEY}.txt"),
    ],
    ids=lambda call: f"{call[1]} {call[2][:40]}",
)
async def test_a_known_key_is_neither_stored_nor_shown_nor_sent(tmp_path, call):
    (tmp_path / "settings.txt").write_text(f"# mine\nOPENAI_KEY={KEY}\n")
    adapter = ScriptedAdapter("s", [calls(call), says("done")])
    bench = Bench(tmp_path, adapter, tools={"yolo": True, "entries": {"run_command": {"allowed_in_yolo_mode": True}}})
    bench.services.known_secrets.learn([KEY])
    session = await bench.open()
    session.submit(submit("go"))
    await bench.until(lambda: bench.is_idle(session) or bench.of(ApprovalRequested))
    for asked in bench.of(ApprovalRequested):  # reading a key file asks, even under YOLO
        session.desk.answer(Approve(call_id=asked.call_id, decision="once"))
    await bench.idle(session)
    [finished] = bench.of(ToolFinished)
    assert finished.status in ("ok", "error")
    results = [message for message in session.log.view.messages if message.role == "tool"]
    texts = [finished.preview, finished.summary, *(message.text for message in results)]
    texts += [bench.store.read_blob(message.blob).decode() for message in results if message.blob]
    inner = base64.b64encode(KEY.encode()).decode()[4:-4]
    for text in texts:
        assert KEY not in text
        assert inner not in text
    assert any("[hidden]" in text for text in texts)
    assert all(KEY not in repr(message) for message in results)
    if call[1] == "insert_edit":
        assert (tmp_path / "settings.txt").read_text() == f"# my own\nOPENAI_KEY={KEY}\n"
