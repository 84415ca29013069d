"""Mentions in a session: order, limits, repetition, stops, branches, clearing, restarts."""

from __future__ import annotations

import asyncio
import subprocess

import pytest

from codecompanion.counting.calibration import Calibration
from codecompanion.errors import NetworkFailed
from codecompanion.model.messages import EDITOR_TAG, GATHERED_TAG, LOOKING_TAG
from codecompanion.session.actions.forking import fork
from codecompanion.session.chat.buffer_entries import entries
from codecompanion.session.chat.inspection import original
from codecompanion.session.chat.redraw import redraw
from codecompanion.session.editor_context.source import SourceResult
from codecompanion.session.message_context import resolve_mentions
from codecompanion.session.message_context.visible_file import TOLD
from codecompanion.wire.events import (
    EditorContextSent,
    Gathering,
    MessageSent,
    Notice,
    Restored,
    SubmitFailed,
    TurnFinished,
)
from codecompanion.wire.requests import (
    ClearMessage,
    EditorContext,
    EditorItem,
    EditorText,
    ForkChat,
    Pin,
    RestoreMessage,
    Snapshot,
    Submit,
)
from tests.unit.session.fakes import Bench, ScriptedAdapter, says


def item(written="#{x}", text="content\n", **more):
    return EditorItem(written=written, name="x", texts=(EditorText(text, title="the x"),), **more)


def ask(text, *items, submit_id=1, **snapshot):
    return Submit(
        chat="chat-1", submit_id=submit_id, text=text, snapshot=Snapshot(**snapshot), key=f"k{submit_id}", items=items
    )


@pytest.fixture
async def bench(tmp_path):
    return Bench(tmp_path, ScriptedAdapter("model", lambda request: says("answer")))


async def say(bench, session, request):
    session.submit(request)
    await bench.until(lambda: bench.is_idle(session))


def sent(bench):
    return [message.text for message in bench.adapter.requests[-1].messages if message.role != "system"]


async def test_the_size_is_the_models_count_also_after_a_redraw(bench):
    session = await bench.open()
    session.meter.switch_model(Calibration(ratio=1.5))
    await say(bench, session, ask("see #{x}", item(text="some words " * 90)))
    (told,) = bench.of(EditorContextSent)
    await redraw(session)
    drawn = [entry.tokens for piece in bench.of(Restored) for entry in piece.entries if entry.kind == "mentioned"]
    (mentioned,) = (message for message in session.log.view.messages if message.mentioned is not None)
    assert drawn == [told.tokens] == [round(1.5 * mentioned.tokens)]


async def test_the_context_comes_right_before_its_question_in_one_commit(bench, monkeypatch):
    session, written, append = await bench.open(), [], bench.store.append
    monkeypatch.setattr(
        bench.store, "append", lambda chat, payloads: [written.append(payloads), append(chat, payloads)][1]
    )
    await say(bench, session, ask("see #{x}", item()))
    assert sent(bench) == ["`#{x}`: the x:\n```\ncontent\n```", "see #{x}"]
    together = [
        [m.message.tag for m in payloads if hasattr(m, "message") and m.message.role == "user"] for payloads in written
    ]
    assert [EDITOR_TAG, None] in together
    (told,) = bench.of(EditorContextSent)
    assert (told.title, told.tokens > 0) == ("#{x} · 1 line", True)
    assert bench.events.index(told) > bench.events.index(bench.of(MessageSent)[0])
    kinds = [(entry.kind, entry.title) for entry in entries(await session.log.events())][:2]
    assert kinds == [("user", ""), ("mentioned", "#{x} · 1 line")]


async def test_slow_context_is_awaited_and_the_order_kept(bench):
    session = await bench.open()
    late = EditorItem(written="#{lsp}", name="lsp", comes="later")
    session.submit(ask("first #{lsp}", late))
    await bench.until(lambda: bench.of(Gathering))
    assert bench.of(Gathering)[0].what == resolve_mentions.LABEL
    session.submit(ask("second", submit_id=2))
    session.mentioned.take(EditorContext(submit_id=1, items=(item("#{lsp}"),)))
    await bench.until(lambda: bench.is_idle(session))
    typed = [message.text for message in session.log.view.messages if message.role == "user"]
    assert typed == ["`#{lsp}`: the x:\n```\ncontent\n```", "first #{lsp}", "second"]


async def test_a_silent_editor_delays_nothing(bench, monkeypatch):
    monkeypatch.setattr(resolve_mentions, "LATE_LIMIT_S", 0.01)
    session = await bench.open()
    await say(bench, session, ask("#{lsp}", EditorItem(written="#{lsp}", name="lsp", comes="later")))
    assert sent(bench)[0] == "`#{lsp}`: the editor did not answer in time."


async def test_a_stop_returns_the_message_and_late_context_is_dropped(bench):
    session = await bench.open()
    session.submit(ask("#{lsp}", EditorItem(written="#{lsp}", name="lsp", comes="later")))
    await bench.until(lambda: bench.of(Gathering))
    await session.stop()
    assert [event.text for event in bench.of(SubmitFailed)] == ["#{lsp}"]
    session.mentioned.take(EditorContext(submit_id=1, items=(item(),)))
    assert [m.text for m in session.log.view.messages if m.role == "user"] == []
    await say(bench, session, ask("again", submit_id=2))
    assert sent(bench) == ["again"]


async def test_missing_context_is_one_sentence_and_the_message_returns(bench):
    session = await bench.open()
    wrong = EditorItem(written="#{file:gone}", name="file", argument="gone", comes="by_host")
    session.submit(ask("see #{file:gone}", wrong))
    session.submit(ask("and this", submit_id=2))
    await bench.until(lambda: bench.is_idle(session))
    (failed,) = bench.of(SubmitFailed)
    assert failed.text == "see #{file:gone}"
    assert failed.error.count("Your message is back in the input.") == 1
    assert "There is no file" in failed.error
    assert sent(bench) == ["and this"], "the one after it is not held up"


async def test_a_first_message_that_cannot_be_sent_reports_it_once(bench):
    session = await bench.open()
    await say(bench, session, ask("x", EditorItem(written="#{nope}", name="nope", comes="by_host")))
    (failed,) = bench.of(SubmitFailed)
    assert failed.error == "Not sent: #{nope}: it is not available here. Your message is back in the input."
    assert bench.adapter.requests == []


async def test_context_is_not_sent_again_while_the_model_has_it(bench):
    session = await bench.open()
    long = "content\n" * 40
    await say(bench, session, ask("one", item(text=long)))
    await say(bench, session, ask("two", item(text=long), submit_id=2))
    assert sent(bench)[-2] == "`#{x}`: unchanged since it was sent above."
    await say(bench, session, ask("three", item(text="other"), item("#{y}", text="other"), submit_id=3))
    assert sent(bench)[-3:-1] == ["`#{x}`: the x:\n```\nother\n```", "`#{y}`: the same as `#{x}`."]
    first = next(message for message in session.log.view.messages if message.mentioned)
    await session.edits.carry_out(ClearMessage(chat="chat-1", item=first.id))
    await say(bench, session, ask("four", item(text=long), submit_id=4))
    assert sent(bench)[-2] == f"`#{{x}}`: the x:\n```\n{long}```", "what was cleared is sent again"


async def test_context_is_cleared_restored_and_pinned_like_other_messages(bench):
    session = await bench.open()
    await say(bench, session, ask("one", item(text="content\n" * 50)))
    message = next(message for message in session.log.view.messages if message.mentioned)
    await session.edits.carry_out(ClearMessage(chat="chat-1", item=message.id))
    cleared = next(m for m in session.log.view.messages if m.id == message.id)
    assert cleared.text == (
        "<important>`#{x}` of an earlier message cleared to save context. Read the files again, or ask the user,"
        " if you need it.</important>"
    )
    assert original(await session.log.events(), session.log.view.messages, message.id).text == message.text
    await session.edits.carry_out(RestoreMessage(chat="chat-1", item=message.id))
    assert next(m for m in session.log.view.messages if m.id == message.id).text == message.text
    assert await session.edits.carry_out(Pin(chat="chat-1", item=message.id)) == "Pinned: #{x} · 50 lines."


async def test_a_branch_at_its_question_leaves_it_out(bench):
    session = await bench.open()
    await say(bench, session, ask("zero"))
    await say(bench, session, ask("one", item(), submit_id=2))
    at = next(message for message in session.log.view.messages if message.text == "one").id
    branch = await fork(bench.services, ForkChat(chat="chat-1", fork="chat-2", at=at))
    copied = await bench.resume(branch)
    assert [message.text for message in copied.log.view.messages] == ["zero", "answer"]


async def test_long_context_is_truncated_to_the_room_and_short_context_is_not(tmp_path):
    bench = Bench(tmp_path, ScriptedAdapter("model", lambda request: says("answer")), window=8_000)
    session = await bench.open()
    large = item("#{large}", text="some words of it\n" * 20_000)
    await say(bench, session, ask("see", large, item("#{small}", text="just this\n")))
    first, second, _ = sent(bench)
    assert "of 20,000 lines fit" in first
    assert second == "`#{small}`: the x:\n```\njust this\n```"
    assert session.meter.measure(session.log.view.messages).tokens < 8_000
    assert "cut, " in bench.of(EditorContextSent)[0].title


async def test_a_full_window_leaves_it_out_and_reports_it(tmp_path):
    bench = Bench(tmp_path, ScriptedAdapter("model", lambda request: says("answer")), window=4_000)
    session = await bench.open()
    await say(bench, session, ask("w " * 1_200, item(text="words of it\n" * 5_000)))
    shown = [event.title for event in bench.of(EditorContextSent)]
    assert shown
    assert "no room" in shown[0] or "cut" in shown[0]


async def test_secret_files_are_named(bench, tmp_path):
    session = await bench.open()
    secret = EditorText("KEY=1", path=str(tmp_path / ".env"), first=1, whole=True)
    await say(bench, session, ask("see", EditorItem(written="#{buffer}", name="buffer", texts=(secret,))))
    assert [notice.text for notice in bench.of(Notice)] == ["Sent with 1 secret file because you named it: .env"]


async def test_other_sources_are_selected_by_argument(bench):
    async def read(argument, root):
        return SourceResult((EditorText(f"read {argument}", title="a resource"),))

    bench.services.context_sources["mcp"] = read
    session = await bench.open()
    wanted = EditorItem(written="#{mcp:a/b}", name="mcp", argument="a/b", comes="by_host")
    await say(bench, session, ask("see", wanted))
    assert sent(bench)[0] == "`#{mcp:a/b}`: a resource:\n```\nread a/b\n```"


@pytest.mark.parametrize(
    ("kind", "said"), [("", "+two"), ("staged", "+staged"), ("unstaged", "+two"), ("branch", "+two")]
)
async def test_diffs_are_those_of_git(bench, tmp_path, kind, said):
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tmp_path)]
    (tmp_path / "a.txt").write_text("one\n", "utf-8")
    (tmp_path / "b.txt").write_text("b\n", "utf-8")
    (tmp_path / "id_rsa").write_text("private\n", "utf-8")
    for command in (["init", "-qb", "main"], ["add", "a.txt", "b.txt", "id_rsa"], ["commit", "-qm", "x"]):
        await asyncio.to_thread(subprocess.run, [*git, *command], check=True)
    (tmp_path / "b.txt").write_text("staged\n", "utf-8")
    await asyncio.to_thread(subprocess.run, [*git, "add", "b.txt"], check=True)
    (tmp_path / "a.txt").write_text("two\n", "utf-8")
    (tmp_path / "id_rsa").write_text("planted\n", "utf-8")
    session = await bench.open()
    wanted = EditorItem(written="#{diff}", name="diff", argument=kind, comes="by_host")
    await say(bench, session, ask("see", wanted))
    diff = sent(bench)[0]
    assert said in diff
    assert "planted" not in diff
    assert ("+staged" in diff) == (kind != "unstaged")
    assert ("+two" in diff) == (kind != "staged")


async def test_a_missing_repository_is_reported(bench):
    session = await bench.open()
    await say(bench, session, ask("see", EditorItem(written="#{diff}", name="diff", comes="by_host")))
    assert "is not in a git repository" in bench.of(SubmitFailed)[0].error


async def test_the_visible_text_is_reported_once_and_only_in_the_workspace(bench, tmp_path):
    session = await bench.open()
    here = {"cwd": str(tmp_path), "current": str(tmp_path / "a.py"), "cursor": (3, 0), "visible": (1, 40, 90)}
    await say(bench, session, ask("one", **here))
    line = "The user is looking at `a.py`, lines 1-40 of 90, cursor on line 3."
    assert sent(bench) == [line, "one"]
    await say(bench, session, ask("two", submit_id=2, **here))
    assert sent(bench)[-2:] == ["answer", "two"]
    await say(bench, session, ask("three", submit_id=3, **{**here, "current": "/elsewhere/b.py"}))
    assert sent(bench)[-2:] == ["answer", "three"]
    await session.clear()
    await say(bench, session, ask("four", submit_id=4, **here))
    assert sent(bench)[-2:] == [line, "four"], "what is cleared is not known any more"
    assert [m.tag for m in session.log.view.messages if m.tag] == [LOOKING_TAG]
    assert [(notice.text, notice.help) for notice in bench.of(Notice)] == [(TOLD, "codecompanion-looking-at")]
    assert GATHERED_TAG not in {m.tag for m in session.log.view.messages}
    other = await bench.open("chat-2")
    await say(bench, other, ask("five", submit_id=5, **here))
    assert sent(bench) == [line, "five"]
    assert [notice.text for notice in bench.of(Notice)] == [TOLD], "once ever"


async def test_a_turn_without_an_open_file_shows_no_notice_about_an_earlier_one(bench, tmp_path):
    """As in a chat resumed in a new Neovim, whose user has not read the notice."""
    session = await bench.open()
    here = {"cwd": str(tmp_path), "current": str(tmp_path / "a.py"), "cursor": (3, 0), "visible": (1, 40, 90)}
    await say(bench, session, ask("one", **here))
    bench.services.open_file_notice = "not sent"
    bench.events.clear()
    await say(bench, session, ask("two", submit_id=2, cwd=str(tmp_path)))
    assert [notice.text for notice in bench.of(Notice)] == []


async def test_an_unanswered_request_shows_no_notice_about_the_open_file(tmp_path):
    """Such a request may never have left; the first answered one shows the notice."""
    replies = [(NetworkFailed("no connection"),), says("answer")]
    bench = Bench(tmp_path, ScriptedAdapter("model", lambda request: replies.pop(0)))
    session = await bench.open()
    here = {"cwd": str(tmp_path), "current": str(tmp_path / "a.py"), "cursor": (3, 0), "visible": (1, 40, 90)}
    await say(bench, session, ask("one", **here))
    assert bench.of(TurnFinished)[-1].reason == "failed"
    assert TOLD not in [notice.text for notice in bench.of(Notice)]
    await say(bench, session, ask("two", submit_id=2, **here))
    assert [notice.text for notice in bench.of(Notice)] == [TOLD]
