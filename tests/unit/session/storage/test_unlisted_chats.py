"""Chats without a window are listed once the user has opened them as a chat."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from codecompanion.session.storage.open_chat import open_new
from codecompanion.session.storage.open_stored import open_stored
from codecompanion.wire.requests import OpenChat, Snapshot
from tests.unit.session.fakes import Bench, ScriptedAdapter, says, submit


def opening(**fields: object) -> OpenChat:
    return msgspec.convert({"chat": "chat-1", "snapshot": Snapshot(), "adapter": "s", **fields}, OpenChat)


@pytest.mark.parametrize("purpose", ["edit_in_place", "command_line", "commit_message"])
async def test_a_chat_without_a_window_is_listed_once_it_is_opened_in_one(tmp_path: Path, purpose: str) -> None:
    bench = Bench(tmp_path, ScriptedAdapter("s", lambda request: says("fine")))
    session = await open_new(bench.services, opening(purpose=purpose))
    session.submit(submit("do it"))
    await bench.idle(session)
    await session.close()
    headless = await open_stored(bench.services, opening(resume="chat-1", purpose=purpose))
    assert headless is not None
    await headless.close()
    assert bench.store.list_sessions() == []
    for _ in range(2):
        shown = await open_stored(bench.services, opening(resume="chat-1"))
        assert shown is not None
        assert [info.title for info in bench.store.list_sessions()] == ["do it"]
        events = len(bench.store.load_events("chat-1"))
        await shown.close()
    again = await open_stored(bench.services, opening(resume="chat-1"))
    assert again is not None
    assert len(bench.store.load_events("chat-1")) == events, "it is said once"
    await again.close()


async def test_an_edit_in_place_has_the_rules_and_system_prompt_of_a_chat(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ScriptedAdapter("s", lambda request: says("fine")))
    edit = await open_new(bench.services, opening(purpose="edit_in_place"))
    plain = await open_new(bench.services, opening(chat="chat-2"))
    assert edit.control.system_message == plain.control.system_message
    assert edit.control.specs == plain.control.specs
