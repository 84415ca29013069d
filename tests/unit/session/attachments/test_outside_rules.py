"""The question about rules outside of the repository: in the chat, with keys, blocking nothing (issue 9, section 5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codecompanion.errors import InputError
from codecompanion.model.messages import RULES_TAG
from codecompanion.session.history.redraw import redraw
from codecompanion.settings import load
from codecompanion.wire.events import ApprovalClosed, ApprovalRequested, Notice
from codecompanion.wire.requests import Approve
from tests.unit.session.fakes import Bench, ScriptedAdapter, says, submit


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Return a host in a repository whose AGENTS.md is a link to the user's diary."""
    home, root = tmp_path / "home", tmp_path / "project"
    for folder in (home, root):
        folder.mkdir()
    monkeypatch.setenv("HOME", str(home))
    (home / "diary.md").write_text("Dear diary,\nnobody reads this.")
    (root / "AGENTS.md").symlink_to(home / "diary.md")
    made = Bench(root, ScriptedAdapter("s", lambda request: says("ok")))
    group = {"default": {"description": "", "files": [{"path": "AGENTS.md", "parser": "claude"}]}}
    rules = {"enabled": True, "autoload": ["default"], "groups": group}
    given = {"workspace": {"root": str(root)}, "rules": rules, "chat": {"adapter": "offline"}}
    made.services.settings = load(given)
    return made


def asked(bench: Bench) -> list[ApprovalRequested]:
    return [event for event in bench.of(ApprovalRequested) if event.kind == "rules"]


def loaded(session: Any) -> list[str]:
    return [message.path for message in session.log.view.messages if message.tag == RULES_TAG]


async def answer(session: Any, question: ApprovalRequested, decision: Any) -> None:
    await session.desk.take(Approve(chat="chat-1", call_id=question.call_id, decision=decision))


async def test_nothing_is_read_and_nothing_waits_before_the_answer(bench):
    """The message goes out without the file; the question stays, also when the chat is drawn again."""
    session = await bench.open()
    (question,) = asked(bench)
    assert question.title == "read 1 file from outside of the repository?"
    assert question.body == "~/diary.md · 30 bytes · Dear diary, nobody reads this."
    session.submit(submit("hello"))
    await bench.idle(session)
    assert not any("diary" in message.text for message in bench.adapter.requests[0].messages)
    assert loaded(session) == []
    assert bench.of(ApprovalClosed) == []
    await redraw(session)
    assert [again.call_id for again in asked(bench)] == [question.call_id] * 2


@pytest.mark.parametrize(("decision", "asked_later", "read_later"), [("once", 1, []), ("always", 0, ["~/diary.md"])])
async def test_yes_reads_it_at_once_and_always_in_later_chats(bench, decision, asked_later, read_later):
    session = await bench.open()
    await answer(session, asked(bench)[0], decision)
    assert loaded(session) == ["~/diary.md"]
    assert [closed.decision for closed in bench.of(ApprovalClosed)] == [decision]
    with pytest.raises(InputError, match="already answered"):
        await answer(session, asked(bench)[0], decision)
    later = await bench.open("chat-2")
    assert len(asked(bench)) == 1 + asked_later
    assert loaded(later) == read_later


async def test_no_is_kept_until_the_file_changes(bench, tmp_path):
    """By path and content: another diary is another question."""
    session = await bench.open()
    await answer(session, asked(bench)[0], "reject")
    (notice,) = bench.of(Notice)
    assert notice.text.startswith("Not read: ~/diary.md. ")
    assert loaded(session) == []
    assert loaded(await bench.open("chat-2")) == []
    assert len(asked(bench)) == 1
    (tmp_path / "home" / "diary.md").write_text("Another day.")
    await bench.open("chat-3")
    assert len(asked(bench)) == 2


async def test_a_file_that_changed_behind_the_question_is_asked_about_again(bench, tmp_path):
    """What was shown is what was allowed."""
    session = await bench.open()
    (tmp_path / "home" / "diary.md").write_text("Something else.")
    await answer(session, asked(bench)[0], "always")
    assert loaded(session) == []
    assert "Something else." in asked(bench)[1].body
    await answer(session, asked(bench)[1], "always")
    assert loaded(session) == ["~/diary.md"]


async def test_what_an_allowed_file_leads_to_is_asked_too(bench, tmp_path):
    (tmp_path / "home" / ".claude").mkdir()
    (tmp_path / "home" / ".claude" / "more.md").write_text("More.")
    (tmp_path / "home" / "diary.md").write_text("@~/.claude/more.md")
    session = await bench.open()
    await answer(session, asked(bench)[0], "once")
    assert loaded(session) == ["~/diary.md"]
    assert asked(bench)[1].body.startswith("~/.claude/more.md · ")
    await answer(session, asked(bench)[1], "once")
    assert loaded(session) == ["~/diary.md", "~/.claude/more.md"]


async def test_a_stored_chat_asks_again_what_was_not_answered(bench):
    session = await bench.open()
    session.submit(submit("hello"))
    await bench.idle(session)
    await session.close()
    bench.store.release("chat-1").result()
    again = await bench.resume()
    assert len(asked(bench)) == 2
    await answer(again, asked(bench)[1], "always")
    assert loaded(again) == ["~/diary.md"]


@pytest.mark.parametrize("decision", ["once", "always"])
async def test_what_is_written_into_an_allowed_file_later_is_not_sent(bench, tmp_path, decision):
    """What was allowed is the text that was shown; the chat says so once, and the next chat asks."""
    session = await bench.open()
    await answer(session, asked(bench)[0], decision)
    (tmp_path / "home" / "diary.md").write_text("A secret of tonight.")
    for number in (1, 2):
        session.submit(submit(f"hello {number}", number))
        await bench.idle(session)
    sent = " ".join(message.text for message in bench.adapter.requests[-1].messages)
    assert "nobody reads this" in sent
    assert "A secret of tonight" not in sent
    told = [notice.text for notice in bench.of(Notice) if "changed" in notice.text]
    assert told == [
        "Rules ~/diary.md have changed, outside of the repository. The chat keeps the version you allowed;"
        " a new chat asks about the new one."
    ]
    await bench.open("chat-2")
    assert "A secret of tonight" in asked(bench)[-1].body
