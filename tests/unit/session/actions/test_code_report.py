"""`/context`, `K` below a message, and `/trace`: code that was or would be gathered, and why (R-268)."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import msgspec
import pytest

from codecompanion.adapters.base import TextDelta
from codecompanion.errors import InputError
from codecompanion.model.chosen_code import ChosenPiece
from codecompanion.model.gathered import Classification
from codecompanion.reports.markdown import Page
from codecompanion.reports.record import LogReader
from codecompanion.reports.trace import find_turn, trace_report
from codecompanion.session.actions.code_report import choose_code, preview_code, show_gathered
from codecompanion.session.actions.forking import fork
from codecompanion.session.chat.inspection import inspect
from codecompanion.session.chat.redraw import redraw
from codecompanion.wire.events import CodeGathered, Restored, Text, TurnFinished
from codecompanion.wire.requests import ChooseCode, ClearMessage, ForkChat, PreviewCode, ShowGathered, Snapshot
from tests.unit.session.fakes import says
from tests.unit.session.message_context.test_gathering import FakeGatherer, ask, asked, bench_with

F0, F1 = ChosenPiece("src/0.py", 1, 9, "function", "f0"), ChosenPiece("src/1.py", 2, 10, "function", "f1")


def choose(session, piece, choice):
    fields = {name: getattr(piece, name) for name in ("path", "start", "end", "kind", "name")}
    return choose_code(session, ChooseCode(chat="chat-1", choice=choice, **fields))


def preview(session, question=""):
    return preview_code(session, PreviewCode(chat="chat-1", question=question, snapshot=Snapshot()))


async def test_a_preview_shows_the_code_and_sends_nothing(tmp_path):
    gatherer = FakeGatherer("auto", timed_out=("search",))
    bench, session = await bench_with(tmp_path, gatherer)
    report = await preview(session, "how does it start?")
    assert report.title == "2 snippets from 2 files"
    assert [(row.what, row.state, row.why) for row in report.rows] == [
        ("src/0.py:1-9 f0", "in", ""),
        ("src/1.py:2-10 f1", "in", ""),
        ("map", "in", ""),
        ("big.py:1-900", "out", "the budget is used up"),
    ]
    head = "\n".join(report.head)
    assert re.search(r"~[\d,]+ tokens of code, at most [\d,]+ · ", head)
    assert "about the project (by keywords)" in head
    assert "timed out: search" in head
    assert "write #{codebase} in it" in head, "this message would get none by itself"
    assert report.can_choose
    assert (report.root, report.text) == (str(tmp_path), gatherer.text)
    assert bench.adapter.requests == []
    assert session.log.view.messages == ()


@pytest.mark.parametrize(
    ("policy", "question", "said"),
    [
        ("codebuddy", "where are the help texts wrapped?", "this message (not about the project, by keywords)"),
        ("codebuddy", "where are the #{codebase} help texts wrapped?", "code was requested"),
        ("codecompanion", "where are the help texts wrapped?", "this message. To add the code below"),
    ],
)
async def test_a_preview_reports_the_effect_of_sending_it(tmp_path, policy, question, said):
    """R-201: the rows are the code that `#{codebase}` would send; the decision to send it is made as for a message."""
    forced = Classification(is_codebase_related=True, source="forced", overruled="keywords")
    gatherer = FakeGatherer("auto", classification=forced)
    _, session = await bench_with(tmp_path, gatherer, settings={"policy": policy})
    report = await preview(session, question)
    assert gatherer.questions[-1].is_asked
    assert said in "\n".join(report.head)
    assert ("code was requested" in report.head) == ("#{codebase}" in question)
    assert report.head[0].startswith("No code is added to this message") == ("#{codebase}" not in question)
    assert report.text_title == f"Sent with {'the message' if '#{codebase}' in question else '#{codebase}'}:"


async def test_without_a_question_the_report_is_about_the_newest_message(tmp_path):
    gatherer = FakeGatherer()
    bench, session = await bench_with(tmp_path, gatherer)
    with pytest.raises(InputError, match="write a question after /context"):
        await preview(session)
    await asked(bench, session, ask("the first"))
    report = await preview(session)
    assert gatherer.questions[-1].text == "the first"
    assert not any("#{codebase}" in line for line in report.head)


async def test_a_report_shows_that_gathering_is_off_or_nothing_fits(tmp_path):
    _, session = await bench_with(tmp_path, FakeGatherer(False))
    with pytest.raises(InputError, match=r"context\.enabled is false"):
        await preview(session, "q")
    _, session = await bench_with(tmp_path, FakeGatherer(), window=2000)
    with pytest.raises(InputError, match="no room"):
        await preview(session, "word " * 3000)


async def test_the_report_uses_the_current_folder_of_the_editor(tmp_path):
    """After a `:cd`, the report uses the new folder even before the next message is sent."""
    gatherer = FakeGatherer()
    bench, session = await bench_with(tmp_path, gatherer)
    settings = bench.services.settings
    anywhere = msgspec.structs.replace(settings.workspace, root="")
    bench.services.settings = msgspec.structs.replace(settings, workspace=anywhere)
    request = PreviewCode(chat="chat-1", question="q", snapshot=Snapshot(cwd=str(tmp_path / "other")))
    assert (await preview_code(session, request)).root == str(tmp_path / "other")
    assert gatherer.questions[-1].root == tmp_path / "other"


async def test_a_home_directory_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    _, session = await bench_with(tmp_path, FakeGatherer())
    assert any("is a home directory or larger, not a project" in line for line in (await preview(session, "q")).head)


async def test_pieces_are_excluded_and_pinned_for_later_messages(tmp_path):
    gatherer = FakeGatherer()
    bench, session = await bench_with(tmp_path, gatherer)
    assert await choose(session, F0, "left_out") == "Left out of the next question: src/0.py:1 f0"
    assert await choose(session, F1, "pinned") == "Pinned in this chat: src/1.py:2 f1"
    assert [row.state for row in (await preview(session, "q")).rows][:2] == ["left out", "pinned"]
    await asked(bench, session, ask("q"))
    assert (gatherer.questions[-1].left_out, gatherer.questions[-1].pinned) == ((F0,), (F1,))
    await asked(bench, session, ask("another", 2))
    question = gatherer.questions[-1]
    assert (question.left_out, question.pinned) == ((), (F1,)), "left out of one question, pinned for the chat"
    assert await choose(session, F1, "") == "No longer left out or pinned: src/1.py:2 f1"
    await asked(bench, session, ask("q", 3))
    assert not gatherer.questions[-1].pinned


async def test_a_choice_during_gathering_begins_no_turn(tmp_path):
    """After a stop nothing was asked, so there is no turn, and the pin is kept."""
    gatherer = FakeGatherer(holds=asyncio.Event())
    bench, session = await bench_with(tmp_path, gatherer)
    session.submit(ask("do not lose me"))
    await bench.until(lambda: gatherer.questions)
    await choose(session, F1, "pinned")
    session.cancel()
    await bench.until(lambda: session.task is None)
    assert {type(event.payload).__name__ for event in await session.log.events()} == {"ChatCreated", "PolicyEvent"}
    assert [event.unsent for event in bench.events if isinstance(event, TurnFinished)] == [True]
    assert session.log.chosen.pinned == (F1,)


async def test_the_report_can_be_read_and_changed_while_a_reply_streams(tmp_path):
    gatherer, going = FakeGatherer(), asyncio.Event()

    def reply(request):
        return (TextDelta("half"), going, *says(" of it"))

    bench, session = await bench_with(tmp_path, gatherer, replies=reply)
    session.submit(ask("first"))
    await bench.until(lambda: any(isinstance(event, Text) for event in bench.events))
    assert (await preview(session, "q")).title == "2 snippets from 2 files"
    await choose(session, F1, "pinned")
    going.set()
    await bench.until(lambda: session.task is None)
    assert [m.role for m in session.log.view.messages] == ["user", "user", "assistant"]
    assert (await bench.resume("chat-1")).log.chosen.pinned == (F1,)


async def test_a_choice_is_in_the_log(tmp_path):
    """The pin survives a killed host, reopening the chat, and a branch."""
    gatherer = FakeGatherer()
    bench, session = await bench_with(tmp_path, gatherer)
    await asked(bench, session, ask("first"), ask("second", 2))
    await choose(session, F1, "pinned")
    await choose(session, F0, "left_out")
    at = session.log.view.messages[4].id
    branch = await fork(bench.services, ForkChat(chat="chat-1", fork="chat-2", at=at))
    whole = await fork(bench.services, ForkChat(chat="chat-1", fork="chat-3"))
    again = await bench.resume("chat-1")
    assert (again.log.chosen.pinned, again.log.chosen.left_out) == ((F1,), (F0,))
    assert (await bench.resume(whole)).log.chosen == again.log.chosen
    edited = await bench.resume(branch)
    assert edited.log.chosen.pinned == (F1,), "pinned since the message that is edited"
    assert edited.log.view.cycle == 1


async def test_clearing_the_chat_keeps_the_pins(tmp_path):
    """`/clear` empties the model's view; a pin still applies to every later question."""
    gatherer = FakeGatherer()
    bench, session = await bench_with(tmp_path, gatherer)
    await asked(bench, session, ask("first"))
    await choose(session, F1, "pinned")
    await session.clear()
    assert session.log.view.messages == ()
    await asked(bench, session, ask("second", 2))
    assert gatherer.questions[-1].pinned == (F1,)
    assert (await bench.resume("chat-1")).log.chosen.pinned == (F1,)


async def test_the_edited_question_includes_the_excluded_code(tmp_path):
    bench, session = await bench_with(tmp_path, FakeGatherer())
    await choose(session, F0, "left_out")
    await asked(bench, session, ask("first"))
    assert session.log.chosen.left_out == ()
    at = session.log.view.messages[1].id
    edited = await bench.resume(await fork(bench.services, ForkChat(chat="chat-1", fork="chat-2", at=at)))
    assert edited.log.chosen.left_out == (F0,)


async def test_a_pin_that_was_not_found_has_a_row_to_unpin_it(tmp_path):
    gone = ChosenPiece("src/gone.py", 7, 9, "function", "pop")
    bench, session = await bench_with(tmp_path, FakeGatherer())
    await choose(session, gone, "pinned")
    (row,) = (row for row in (await preview(session, "q")).rows if row.state == "pinned")
    assert (row.what, row.why, row.start, row.name) == (
        "src/gone.py:7 pop", "not searched for", 7, "pop",
    )  # fmt: skip
    bench.services.gatherer = FakeGatherer(notes=("Pinned code is gone: src/gone.py:7 pop, there is no such file",))
    assert [row.why for row in (await preview(session, "q")).rows if row.state == "pinned"] == ["gone"]
    (dropped,) = (row for row in (await preview(session, "q")).rows if row.path == "big.py")
    assert (dropped.name, dropped.anchor) == ("", "a line that says something"), "found again by it"
    assert (await preview(session, "q")).title == "2 snippets from 2 files"


async def test_sent_code_can_be_viewed_after_it_was_cleared(tmp_path):
    bench, session = await bench_with(tmp_path, FakeGatherer(text="### File: src/0.py\n" * 50))
    await asked(bench, session, ask("why?"))
    item = session.log.view.messages[0].id
    report = await show_gathered(session, ShowGathered(chat="chat-1", item=item))
    assert report.title == "2 snippets from 2 files"
    assert report.text.startswith("### File: src/0.py")
    assert not report.can_choose
    tokens = session.log.view.messages[0].tokens
    assert report.head[0] == f"~{tokens:,} tokens with headings and map"
    await session.edits.carry_out(ClearMessage(chat="chat-1", item=item))
    assert session.log.view.messages[0].edited
    report = await show_gathered(session, ShowGathered(chat="chat-1", item=item))
    assert "The code was cleared: the model has only the names." in report.head
    assert report.text.startswith("### File: src/0.py"), "K shows what it was"
    with pytest.raises(InputError, match="has the id 'nothing'"):
        await show_gathered(session, ShowGathered(chat="chat-1", item="nothing"))


@pytest.mark.parametrize("ratio", [0.8, 1.35])
async def test_the_line_the_list_and_the_inspector_count_alike(tmp_path, ratio):
    """Lesson 8: an estimate is scaled as in the meter, both when the code is sent and when the chat is redrawn."""
    bench, session = await bench_with(tmp_path, FakeGatherer(text="### File: src/0.py\n" * 500))
    session.meter.calibration = msgspec.structs.replace(session.meter.calibration, ratio=ratio)
    await asked(bench, session, ask("why?"))
    message = session.log.view.messages[0]
    shown = next(event.tokens for event in bench.events if isinstance(event, CodeGathered))
    inspected = next(row["tokens"] for row in inspect(session.control, session.log)["rows"] if row["id"] == message.id)
    assert shown != message.tokens
    assert shown == inspected
    report = await show_gathered(session, ShowGathered(chat="chat-1", item=message.id))
    assert report.head[0] == f"~{shown:,} tokens with headings and map"
    assert report.rows[0].tokens == round(message.gathered[0].tokens * ratio)
    session.meter.calibration = msgspec.structs.replace(session.meter.calibration, ratio=1.0)
    assert await show_gathered(session, ShowGathered(chat="chat-1", item=message.id, tokens=shown)) == report
    session.meter.calibration = msgspec.structs.replace(session.meter.calibration, ratio=ratio)
    bench.events.clear()
    await redraw(session)
    drawn = [entry for event in bench.events if isinstance(event, Restored) for entry in event.entries]
    assert next(entry.tokens for entry in drawn if entry.kind == "gathered") == shown


async def test_the_inspector_names_the_gathered_code(tmp_path):
    bench, session = await bench_with(tmp_path, FakeGatherer())
    await asked(bench, session, ask("why?"))
    row = next(row for row in inspect(session.control, session.log)["rows"] if row["tag"] == "gathered_context")
    assert (row["name"], row["state"], row["cycle"]) == ("2 snippets from 2 files", "live", 1)
    assert row["tokens"] > 0


async def traced(session, width=80):
    reader = LogReader()
    for event in await session.log.events():
        reader.read(event)
    record = reader.record()
    return trace_report(record, find_turn(record), Page(width=width))


@pytest.mark.parametrize("width", [40, 80, 200])
async def test_the_trace_keeps_source_place_score_and_tokens_of_each_piece(tmp_path, width):
    bench, session = await bench_with(tmp_path, FakeGatherer(timed_out=("ast",)))
    await asked(bench, session, ask("why?"))
    text = await traced(session, width)
    section = text.split("## Gathered code\n", 1)[1].split("\n## ", 1)[0]
    assert "- 2 snippets from 2 files · " in section
    assert "- about api · high confidence, by keywords · General Inquiry" in section
    assert "- timed out: ast" in section
    assert "### Not sent (1)" in section
    assert "0.50" in section
    assert "src/0.py" in section
    assert all(len(line) <= width for line in section.splitlines() if line.startswith("|"))
    assert "code_gathered" not in text, "not as a named event once more"


async def test_the_trace_shows_why_a_question_got_no_code(tmp_path):
    """R-201, R-268."""
    gatherer = FakeGatherer("auto", text="", snippets=0, classification=Classification())
    bench, session = await bench_with(tmp_path, gatherer, settings={"policy": "codebuddy"})
    await asked(bench, session, ask("where are the help texts wrapped?"))
    text = await traced(session)
    assert "- nothing sent: question did not look project-related · " in text
    assert "- not about the project (by keywords)" in text


async def test_a_turn_without_code_has_no_such_section(tmp_path):
    bench, session = await bench_with(tmp_path, FakeGatherer("auto"))
    await asked(bench, session, ask("plain"))
    assert "Gathered code" not in await traced(session)


async def test_prompt_compiled_has_the_pieces_of_its_turn(tmp_path):
    """R-268, R-328: a policy that logs the contents of its requests lists the gathered code in the event."""
    bench, session = await bench_with(tmp_path, FakeGatherer(), settings={"policy": "kodacode"})
    await asked(bench, session, ask("why?"))
    events = [e.payload for e in await session.log.events() if getattr(e.payload, "name", "") == "prompt_compiled"]
    assert [(p["path"], p["source"], p["score"]) for p in events[0].fields["gathered"]] == [
        ("src/0.py", "search", 0.5),
        ("src/1.py", "search", 0.5),
        ("", "map", 0.0),
    ]


async def test_a_preview_can_run_during_a_turn(tmp_path):
    """A preview does not change the chat."""
    held = asyncio.Event()
    gatherer = FakeGatherer(holds=held)
    bench, session = await bench_with(tmp_path, gatherer)
    session.submit(ask("why?"))
    await bench.until(lambda: gatherer.questions)
    looking = asyncio.ensure_future(preview(session, "another"))
    await bench.until(lambda: len(gatherer.questions) == 2)
    state = session.state
    held.set()
    assert (await looking).rows
    assert state.value == "preparing"
    await bench.until(lambda: session.task is None)
    assert [m.text for m in session.log.view.messages if m.tag is None] == ["why?", "answer"]
