"""Gathered code in a chat: timing, position, and that nothing is lost (R-201, R-202, R-213, R-253, R-268)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from codecompanion.model.chosen_code import GATHERED_EVENT
from codecompanion.model.gathered import Classification, Dropped, Gathered, Selection, Snippet, UtilityCalls
from codecompanion.model.history import Insertion, LogEvent, MessageAdded, PolicyEvent, UsageReported, ViewChanged
from codecompanion.model.messages import GATHERED_TAG, Message, Usage
from codecompanion.reports.cost import cost_report
from codecompanion.reports.gathered_code import classified_text
from codecompanion.reports.markdown import Page
from codecompanion.retrieval.mentions import MAX_FILES
from codecompanion.session.actions.code_report import preview_code, show_gathered
from codecompanion.session.actions.forking import fork
from codecompanion.session.chat.buffer_entries import entries
from codecompanion.session.message_context.gathering import INCOMPLETE
from codecompanion.session.state import State
from codecompanion.wire.events import (
    CodeGathered,
    ContextItems,
    Gathering,
    MessageSent,
    Notice,
    SubmitFailed,
    TurnFinished,
)
from codecompanion.wire.events import State as StateEvent
from codecompanion.wire.requests import (
    Buffer,
    ForkChat,
    Pin,
    PreviewCode,
    RestoreMessage,
    ShowGathered,
    Snapshot,
    Submit,
)
from tests.unit.reports.logs import read_log
from tests.unit.session.fakes import Bench, ScriptedAdapter, says

CODE = "### File: src/a.py\ndef secret(): ...\n"


class FakeGatherer:
    """Finds the same code for every question; waits for `holds`, raises `fails`."""

    def __init__(self, enabled=True, text=CODE, *, snippets=2, fails=None, holds=None, notes=(), timed_out=(), **more):
        self.enabled, self.text, self.snippets = enabled, text, snippets
        self.fails, self.holds, self.notes, self.timed_out = fails, holds, notes, timed_out
        self.questions, self.cancelled = [], 0
        about = Classification(is_codebase_related=True, categories=("api",), confidence="high")
        self.classification, self.named = more.get("classification", about), more.get("named", "")

    async def gather(self, question, tell):
        self.questions.append(question)
        try:
            if self.holds is not None:
                tell("indexing 40 %")
                await self.holds.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.fails is not None:
            raise self.fails
        found = tuple(
            Snippet(
                path=f"src/{i}.py", start=i + 1, end=i + 9, text="x = 1\n" * 9, name=f"f{i}", kind="function", score=0.5
            )
            for i in range(self.snippets)
        )
        if self.named:
            found = (Snippet(path=self.named, start=1, end=1, text="KEY=1", is_selected=True, source="mention"),)
        left = (
            Dropped(
                Snippet(path="big.py", start=1, end=900, text="a line that says something"), "the budget is used up"
            ),
        )
        return Gathered(
            question=question.text, text=self.text, found=found, ms=140, timed_out=self.timed_out, notes=self.notes,
            classification=self.classification,
            beside=(Snippet(path="", start=0, end=0, text="a map", source="map", kind="map"),) if self.snippets else (),
            selection=Selection(snippets=found, dropped=left, budget_tokens=question.max_tokens),
        )  # fmt: skip


def ask(text, submit_id=1, **snapshot):
    return Submit(chat="chat-1", submit_id=submit_id, text=text, snapshot=Snapshot(**snapshot), key=f"k{submit_id}")


async def bench_with(root, gatherer, *, replies=None, **more):
    adapter = ScriptedAdapter("model", replies or (lambda request: says("answer")))
    bench = Bench(root, adapter, **more)
    bench.services.gatherer = gatherer
    context = msgspec.structs.replace(bench.services.settings.context, enabled=gatherer.enabled)
    bench.services.settings = msgspec.structs.replace(bench.services.settings, context=context)
    return bench, await bench.open()


def idle(session):
    return lambda: session.task is None and session.state is State.IDLE


async def asked(bench, session, *requests):
    for request in requests:
        session.submit(request)
        await bench.until(idle(session))


async def test_the_cost_of_the_utility_model_is_logged_with_the_message_and_with_a_preview(tmp_path):
    """The calls are part of the chat's cost, but neither of its context nor of its summaries."""
    paid = UtilityCalls("small", "mini", (Usage(90, 4), Usage(80, 2)))

    class Asks(FakeGatherer):
        async def gather(self, question, tell):
            return msgspec.structs.replace(await super().gather(question, tell), utility=paid)

    bench, session = await bench_with(tmp_path, Asks())
    await asked(bench, session, ask("how does it start?"))
    await preview_code(session, PreviewCode(chat="chat-1", question="and how does it end?", snapshot=Snapshot()))
    log = list(bench.store.load_events("chat-1"))
    logged = [e.payload for e in log if isinstance(e.payload, UsageReported) and e.payload.purpose == "gathering"]
    assert [one.other_passes for one in logged] == [(Usage(90, 4),), (Usage(80, 2),)] * 2
    record = read_log(log)
    assert [turn.question for turn in record.turns] == ["how does it start?"]
    assert "- 4 requests for code search: 352 tokens" in cost_report(record, Page()).text
    assert "for summaries" not in cost_report(record, Page()).text


def roles(session):
    return [(m.role, m.tag) for m in session.log.view.messages]


def of(bench, kind):
    return [event for event in bench.events if isinstance(event, kind)]


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    return root


async def test_the_code_comes_right_before_its_question(project, monkeypatch):
    """R-253, for the prompt cache: never before the history, and in one commit with its question."""
    gatherer = FakeGatherer()
    bench, session = await bench_with(project, gatherer)
    written, append = [], bench.store.append
    monkeypatch.setattr(
        bench.store, "append", lambda chat, payloads: [written.append(payloads), append(chat, payloads)][1]
    )
    await asked(bench, session, ask("first"), ask("second", 2))
    expected = [("user", GATHERED_TAG), ("user", None), ("assistant", None)]
    assert roles(session) == expected * 2
    sent = bench.adapter.requests[-1].messages
    assert [m.text for m in sent[1:]] == [CODE, "first", "answer", CODE, "second"]
    assert bench.adapter.requests[0].messages[1:3] == sent[1:3], "logged once, the same bytes ever after"
    code, question = session.log.view.messages[3:5]
    assert code.cycle == question.cycle == 2, "it opens no cycle (R-002)"
    assert code.turn_id == question.turn_id
    assert [piece.path for piece in code.gathered] == ["src/0.py", "src/1.py", ""]
    together = [{p.message.id for p in batch if isinstance(p, MessageAdded)} for batch in written]
    assert {code.id, question.id} in together, "one commit: never the one without the other"


async def test_the_editor_shows_one_line_below_the_message(project):
    bench, session = await bench_with(project, FakeGatherer())
    await asked(bench, session, ask("why?"))
    told = of(bench, CodeGathered)[0]
    assert told.title == "2 snippets from 2 files"
    assert told.body.splitlines()[0] == "src/0.py:1-9 · function f0 · search 0.50"
    assert told.body.splitlines()[-1] == "map"
    assert told.duration_ms == 140
    kinds = [
        type(event).__name__ for event in bench.events if isinstance(event, MessageSent | CodeGathered | Gathering)
    ]
    assert kinds == ["Gathering", "MessageSent", "CodeGathered"]
    assert of(bench, ContextItems)[-1].items == () if of(bench, ContextItems) else True, "nothing the user attached"
    drawn = entries(await session.log.events())
    assert [entry.kind for entry in drawn] == ["user", "gathered", "reply"]
    assert (drawn[1].title, drawn[1].text, drawn[1].duration_ms) == (told.title, told.body, 140)


async def test_the_status_shows_each_step(project):
    bench, session = await bench_with(project, FakeGatherer(holds=asyncio.Event()))
    session.submit(ask("why?"))
    await bench.until(lambda: any(e.label == "gathering code · indexing 40 %" for e in of(bench, StateEvent)))
    assert session.state is State.PREPARING
    await session.stop()


async def test_a_stop_during_gathering_returns_the_message_and_logs_nothing(project):
    """Lessons 16, 41: the stop is immediate, and no text is lost."""
    gatherer = FakeGatherer(holds=asyncio.Event())
    bench, session = await bench_with(project, gatherer)
    session.submit(ask("do not lose me"))
    await bench.until(lambda: gatherer.questions)
    session.cancel()
    await bench.until(idle(session))
    assert gatherer.cancelled == 1
    assert [event.text for event in of(bench, SubmitFailed)] == ["do not lose me"]
    assert [(event.reason, event.unsent) for event in of(bench, TurnFinished)] == [("stopped", True)]
    kinds = {type(event.payload).__name__ for event in await session.log.events()}
    assert kinds == {"ChatCreated"}
    assert bench.adapter.requests == []
    gatherer.holds = None
    await asked(bench, session, ask("do not lose me", 2))
    assert roles(session) == [("user", GATHERED_TAG), ("user", None), ("assistant", None)]
    assert session.log.view.cycle == 1, "there was no turn"


async def test_a_message_typed_during_gathering_is_sent_after_it(project):
    gatherer = FakeGatherer(holds=asyncio.Event())
    bench, session = await bench_with(project, gatherer)
    session.submit(ask("first"))
    await bench.until(lambda: gatherer.questions)
    session.submit(ask("second", 2))
    gatherer.holds.set()
    await bench.until(idle(session))
    assert [event.text for event in of(bench, MessageSent)] == ["first", "second"]
    assert [m.text for m in bench.adapter.requests[-1].messages[1:]] == [CODE, "first", CODE, "second"]


@pytest.mark.parametrize("error", [RuntimeError("broken"), TimeoutError(), ValueError("x" * 5000)])
async def test_after_any_failure_the_plain_message_is_sent(project, error):
    """R-202."""
    bench, session = await bench_with(project, FakeGatherer(fails=error))
    await asked(bench, session, ask("why?"))
    assert roles(session) == [("user", None), ("assistant", None)]
    assert any(notice.text.startswith("No code was gathered: ") for notice in of(bench, Notice))


async def test_a_message_whose_mentions_cannot_be_read_is_still_sent(project, monkeypatch):
    """R-202."""

    def fail(*args):
        raise RuntimeError("a bug")

    monkeypatch.setattr("codecompanion.workspace.named_files.files_named", fail)
    bench, session = await bench_with(project, FakeGatherer("auto"))
    await asked(bench, session, ask("see @a.py"))
    assert roles(session) == [("user", None), ("assistant", None)]
    assert of(bench, Notice)[0].text.startswith("No code was gathered: ")


@pytest.mark.parametrize(
    ("enabled", "policy", "text", "gathers"),
    [
        (False, "codebuddy", "what does #{codebase} do?", False),
        (True, "codecompanion", "hello", True),
        ("auto", "codecompanion", "hello", False),
        ("auto", "codebuddy", "hello", True),
        ("auto", "codecompanion", "how does #{codebase} start?", True),
        ("auto", "adaptive", "what is in @src/here.py?", True),
        ("auto", "adaptive", "what is in @here.py?", True),
        ("auto", "adaptive", "write to me@here.py", False),
        ("auto", "adaptive", "@nobody and @pytest.fixture", False),
        ("auto", "adaptive", "```python\n@src/here.py\n```", False),
        ("auto", "kodacode", "the word `#{codebase}` in backticks", False),
    ],
)
async def test_code_is_gathered_by_option_policy_or_mention(project, enabled, policy, text, gathers):
    """R-213: `auto` follows the policy, or else the message."""
    (project / "src").mkdir()
    (project / "src" / "here.py").write_text("x = 1\n")
    gatherer = FakeGatherer(enabled)
    bench, session = await bench_with(project, gatherer, settings={"policy": policy})
    await asked(bench, session, ask(text))
    assert bool(gatherer.questions) == gathers
    assert session.log.view.messages[-2].text == text, "the message is sent as it was typed"


@pytest.mark.parametrize(
    ("enabled", "text", "told"),
    [
        ("auto", "how does #codebase start?", ["Sent as plain text: #codebase · write #{codebase}"]),
        ("auto", "see #{image}", ["Sent as plain text: #{image} · /image attaches one"]),
        (True, "see #{image}", ["Sent as plain text: #{image} · /image attaches one"]),
        ("auto", "see @src/gone.py", ["@src/gone.py was not read: no such file in project."]),
        (
            "auto",
            "see @gone.py:10",
            ["@gone.py was not read: no such file in project."],
        ),
        ("auto", "see @src/here.py and @src/gone.py", []),
        (
            "auto",
            " ".join(["@src/here.py", *(f"@name{i}" for i in range(MAX_FILES))]),
            ["A message can name at most 200 files; 1 more was ignored."],
        ),
        ("auto", "@nobody, @pytest.fixture, @vue.config.js and @types/node", []),
        ("auto", "what is in @src?", ["@src was not read: it is a folder: name its files, or write #{codebase}."]),
        ("auto", "what is in @src/?", ["@src/ was not read: it is a folder: name its files, or write #{codebase}."]),
        (True, "what is in @src/?", ["@src/ was not read: it is a folder: name its files, or write #{codebase}."]),
        (False, "how does #{codebase} start?", ["No code · context.enabled is false"]),
        (False, "how does @codebase start?", ["No code · context.enabled is false"]),
        (False, "see @src/here.py", ["No code · context.enabled is false"]),
        (False, "see @src/gone.py and #include", []),
        (False, "see #{image}", ["Sent as plain text: #{image} · /image attaches one"]),
    ],
)
async def test_misunderstood_mentions_are_reported_below_the_message(project, enabled, text, told):
    """Nothing is silently ignored; a reopened chat reports it at the same position."""
    (project / "src").mkdir()
    (project / "src" / "here.py").write_text("x = 1\n")
    bench, session = await bench_with(project, FakeGatherer(enabled))
    await asked(bench, session, ask(text))
    shown = [event for event in bench.events if isinstance(event, MessageSent | CodeGathered | Notice)]
    assert [event.text for event in shown if isinstance(event, Notice)] == told
    assert isinstance(shown[0], MessageSent), "all of it below"
    assert session.log.view.messages[-2].text == text, "sent as it was typed"
    drawn = entries(await session.log.events())
    assert [entry.text for entry in drawn if entry.kind == "note"] == told
    kinds = [entry.kind for entry in drawn if entry.kind != "gathered"]
    assert kinds == ["user", *["note"] * len(told), "reply"]


async def test_a_name_that_is_not_a_file_reference_is_not_looked_up(project):
    (project / "a.py").write_text("x\n")
    gatherer = FakeGatherer(True)
    bench, session = await bench_with(project, gatherer)
    await asked(bench, session, ask("@a.py, @pytest.fixture, @gone.py, @src/gone and @nobody"))
    assert gatherer.questions[0].files == ("a.py", "gone.py")


async def test_disabled_gathering_is_reported_once(project):
    bench, session = await bench_with(project, FakeGatherer(False))
    await asked(bench, session, ask("#{codebase} a"), ask("#{codebase} b #{symbols}", 2))
    assert [notice.text for notice in of(bench, Notice)] == [
        "No code · context.enabled is false", "Sent as plain text: #{symbols} · paste its content",
    ]  # fmt: skip


async def test_a_branch_omits_the_reports_about_the_edited_question(project):
    bench, session = await bench_with(project, FakeGatherer("auto", text="", snippets=0))
    await asked(bench, session, ask("#{codebase} a #{symbols}"), ask("#{codebase} b", 2))
    at = session.log.view.messages[2].id
    copied = await bench.resume(await fork(bench.services, ForkChat(chat="chat-1", fork="chat-2", at=at)))
    assert copied is not None
    notes = [entry.text for entry in entries(await copied.log.events()) if entry.kind == "note"]
    assert notes[:2] == [
        "Sent as plain text: #{symbols} · paste its content",
        "No code · nothing found in project · why: /context",
    ]  # fmt: skip
    assert len(notes) == 3, "and that it is a branch"


async def test_the_gatherer_receives_the_question_and_the_editor_state(project):
    (project / "a.py").write_text("x\n")
    gatherer = FakeGatherer("auto")
    bench, session = await bench_with(project, gatherer)
    await asked(bench, session, ask("#{codebase} and @a.py:10-20, and @a.py.", current=str(project / "b.py")))
    question = gatherer.questions[0]
    assert (question.files, question.active, question.is_asked) == (("a.py",), str(project / "b.py"), True)
    assert (question.root, question.only_files, question.model) == (project, False, "scripted-1")
    assert 0 < question.max_tokens < 50_000, "half of the window less prompt and reply, as characters / 4"


async def test_unsaved_texts_are_requested_only_if_there_are_any(project):
    class FakeEditor:
        looked = 0

        async def look(self, paths):
            from codecompanion.tools.files.open_files import Opened, OpenFile

            self.looked += 1
            file = OpenFile(path="/p/a.py", buffer=1, tick=2, modified=True, text="unsaved\n")
            return Opened({file.path: file})

    gatherer = FakeGatherer()
    bench, session = await bench_with(project, gatherer)
    editor = bench.services.editor = FakeEditor()
    await asked(bench, session, ask("one", buffers=(Buffer("/p/a.py"),)))
    assert (editor.looked, gatherer.questions[-1].unsaved) == (0, {})
    await asked(bench, session, ask("two", 2, buffers=(Buffer("/p/a.py", modified=True),)))
    assert (editor.looked, gatherer.questions[-1].unsaved) == (1, {"/p/a.py": "unsaved\n"})


async def test_a_home_directory_is_not_searched(project, monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: project)
    gatherer = FakeGatherer()
    bench, session = await bench_with(project, gatherer)
    await asked(bench, session, ask("why?"), ask("and why?", 2))
    assert [question.only_files for question in gatherer.questions] == [True, True]
    said = [
        notice.text for notice in of(bench, Notice) if "is a home directory or larger, not a project" in notice.text
    ]
    assert len(said) == 1, "said once in a chat"


async def test_without_room_the_message_is_sent_alone(project):
    """With less code or none, the message is still sent."""
    gatherer = FakeGatherer()
    bench, session = await bench_with(
        project, gatherer, window=3000, settings={"context_management": {"enabled": False}}
    )
    await asked(bench, session, ask("#{codebase} " + "word " * 600))
    assert gatherer.questions == [] or gatherer.questions[0].max_tokens < 1500
    assert [m.role for m in session.log.view.messages if m.tag is None] == ["user", "assistant"]


async def test_code_larger_than_the_room_is_left_out(project):
    bench, session = await bench_with(project, FakeGatherer(text="word " * 60_000), window=20_000)
    await asked(bench, session, ask("why?"))
    assert roles(session) == [("user", None), ("assistant", None)]
    assert any("the message was sent without it" in notice.text for notice in of(bench, Notice))


async def test_an_empty_result_is_reported_only_if_code_was_requested(project):
    bench, session = await bench_with(project, FakeGatherer(text="", snippets=0, timed_out=("search",)))
    await asked(bench, session, ask("hello"))
    assert of(bench, Notice) == []
    await asked(bench, session, ask("#{codebase}?", 2))
    assert [n.text for n in of(bench, Notice)] == ["No code · search took too long · why: /context"]
    shown = [e for e in bench.events if isinstance(e, MessageSent | Notice)]
    assert isinstance(shown[-1], Notice), "below its message"


async def test_truncated_code_is_shown_as_truncated(project):
    """The user expects a named file to be complete; the same for the index."""

    class Cuts(FakeGatherer):
        async def gather(self, question, tell):
            whole = Snippet(path="big.py", start=1, end=2019, text="x\n", source="mention", is_selected=True)
            cut = msgspec.structs.replace(whole, end=265, is_cut=True)
            short = Snippet(path="README.md", start=1, end=9, text="x", source="common", is_cut=True)
            found, selection = (whole, short), Selection(snippets=(cut, short), budget_tokens=400)
            return Gathered(question=question.text, text=CODE, found=found, selection=selection, is_index_partial=True)

    bench, session = await bench_with(project, Cuts())
    await asked(bench, session, ask("why?"))
    told = of(bench, CodeGathered)[0]
    assert told.title == "2 snippets from 2 files, 1 cut"
    assert told.body.split("\n") == [
        "big.py:1-265 of 2019 · named 0.00",
        "README.md:1-9 (cut) · project 0.00",
    ]
    report = await show_gathered(session, ShowGathered(chat="chat-1", item=session.log.view.messages[0].id))
    assert [row.what for row in report.rows] == ["big.py:1-265 of 2019", "README.md:1-9 (cut)"]
    assert "the index was not complete yet: the rest was searched as text" in report.head
    assert [notice.text for notice in of(bench, Notice)] == [INCOMPLETE], "weaker code is announced"
    await asked(bench, session, ask("and why not?", 2))
    assert len(of(bench, Notice)) == 1, "once in a chat"


async def test_a_sent_secret_file_is_named_on_its_own_line(project):
    """R-266: it is sent only if the user named it, and they see that at every width."""
    (project / ".env").write_text("KEY=1\n")
    gatherer = FakeGatherer("auto", named=".env")
    bench, session = await bench_with(project, gatherer)
    await asked(bench, session, ask("what is in @.env"))
    said = "Sent with 1 secret file because you named it: .env"
    assert [notice.text for notice in of(bench, Notice)] == [said]
    assert "secret" not in of(bench, CodeGathered)[0].title
    assert said in [entry.text for entry in entries(await session.log.events())]


NOT_ABOUT = "No code added (question did not look project-related) · #{codebase} adds it"


@pytest.mark.parametrize(
    ("text", "is_said"),
    [
        ("where are the help texts wrapped?", True),
        ("explain how context objects nest", True),
        ("帮助文本在哪里换行？", True),
        ("帮助文本在哪里换行", True),
        ("wo werden die Hilfetexte umgebrochen", True),
        ("thanks", False),
        ("Thanks, is that all of it?", False),
        ("that works very well now", False),
        ("why?", False),
        ("go on", False),
    ],
)
async def test_a_question_not_about_the_project_is_reported_as_such(project, text, is_said):
    """R-201: "thanks" gets no code and no note, but a question without code gets a note."""
    gatherer = FakeGatherer("auto", text="", snippets=0, classification=Classification())
    bench, session = await bench_with(project, gatherer, settings={"policy": "codebuddy"})
    await asked(bench, session, ask(text))
    assert [notice.text for notice in of(bench, Notice)] == ([NOT_ABOUT] if is_said else [])
    assert len(bench.adapter.requests) == 1


async def test_the_probability_of_a_project_question_is_shown(project):
    """R-207: it is shown below the message without code, and in the trace."""
    said = Classification(source="index", likelihood=0.124)
    gatherer = FakeGatherer("auto", text="", snippets=0, classification=said)
    bench, session = await bench_with(project, gatherer, settings={"policy": "codebuddy"})
    await asked(bench, session, ask("where are the help texts wrapped?"))
    assert [notice.text for notice in of(bench, Notice)] == [
        "No code added (12 % likely to be about the project) · #{codebase} adds it"
    ]
    records = [e.payload for e in await session.log.events() if isinstance(e.payload, PolicyEvent)]
    [fields] = [record.fields for record in records if record.name == GATHERED_EVENT]
    assert fields["likelihood"] == 0.124
    assert classified_text(fields) == "not about the project (by the index, 12 % likely)"
    named = {**fields, "pieces": [{"source": "mention"}]}
    assert classified_text(named) == "only the named files: not about the project (by the index, 12 % likely)"
    about = {**fields, "is_codebase_related": True, "likelihood": 0.98, "categories": ["api"], "type": "Debugging"}
    assert classified_text(about) == "about api · by the index, 98 % likely · Debugging"


async def test_the_reason_for_missing_code_is_given_each_time(project, monkeypatch):
    """In an empty folder or a home folder, an explicit request shows the reason below each message."""
    bench, session = await bench_with(project, FakeGatherer("auto", text="", snippets=0))
    await asked(bench, session, ask("#{codebase} a"), ask("#{codebase} b", 2))
    said = [notice.text for notice in of(bench, Notice)]
    assert said == ["No code · nothing found in project · why: /context"] * 2
    drawn = [(entry.kind, entry.text) for entry in entries(await session.log.events())]
    assert drawn[0:2] == [("user", "#{codebase} a"), ("note", said[0])], "also when the chat is opened again"
    assert drawn[3:5] == [("user", "#{codebase} b"), ("note", said[1])]
    monkeypatch.setattr(Path, "home", lambda: project)
    await asked(bench, session, ask("#{codebase} c", 3), ask("#{codebase} d", 4))
    said = [notice.text for notice in of(bench, Notice)][2:]
    assert said == [
        f"{project} is a home directory or larger, not a project: only files named with @ are read."
        " :cd into a project, or set workspace.root.",
        "No code · project is not a project · why: /context",
    ]


async def test_the_log_records_the_gathering(project):
    """R-268."""
    bench, session = await bench_with(project, FakeGatherer(timed_out=("ast",)))
    await asked(bench, session, ask("why?"))
    event = next(e.payload for e in await session.log.events() if isinstance(e.payload, PolicyEvent))
    assert event.name == GATHERED_EVENT
    assert event.fields["timed_out"] == ["ast"]
    assert (event.fields["confidence"], event.fields["categories"]) == ("high", ["api"])
    piece = event.fields["pieces"][0]
    assert (piece["path"], piece["start"], piece["end"], piece["source"]) == ("src/0.py", 1, 9, "search")
    assert event.fields["dropped"][0]["why"] == "the budget is used up"


async def test_retrying_a_message_does_not_gather_again(project):
    gatherer = FakeGatherer()
    replies = iter([(RuntimeError("down"),), says("answer")])
    bench, session = await bench_with(project, gatherer, replies=lambda request: next(replies))
    await asked(bench, session, ask("why?"))
    await asked(bench, session, ask("why?", 2))
    assert len(gatherer.questions) == 1
    assert roles(session) == [("user", GATHERED_TAG), ("user", None), ("assistant", None)]


async def test_an_edited_question_has_its_own_code(project):
    """Edit and resend: the branch has no code of the replaced question."""
    bench, session = await bench_with(project, FakeGatherer())
    await asked(bench, session, ask("first"), ask("second", 2))
    at = session.log.view.messages[4].id
    branch = await fork(bench.services, ForkChat(chat="chat-1", fork="chat-2", at=at))
    copied = await bench.resume(branch)
    assert copied is not None
    assert roles(copied) == [("user", GATHERED_TAG), ("user", None), ("assistant", None)]
    assert copied.log.view.cycle == 1
    first = await bench.resume(
        await fork(bench.services, ForkChat(chat="chat-1", fork="chat-3", at=session.log.view.messages[1].id))
    )
    assert first is not None
    assert roles(first) == []


async def test_a_new_answer_keeps_the_code(project):
    bench, session = await bench_with(project, FakeGatherer())
    await asked(bench, session, ask("why?"))
    await session.regenerate(Snapshot())
    await bench.until(idle(session))
    assert roles(session) == [("user", GATHERED_TAG), ("user", None), ("assistant", None)]


async def test_cleared_code_can_be_restored_and_pinned(project):
    """It is an ordinary message for restore, pin and recall."""
    bench, session = await bench_with(
        project,
        FakeGatherer(text=CODE * 40),
        settings={"context_management": {"editing": {"trigger": 2, "keep_cycles": 1}}},
    )
    await asked(bench, session, ask("one"), ask("two", 2))
    code = session.log.view.messages[0]
    assert code.edited
    assert "src/0.py:1-9; src/1.py:2-10" in code.text
    drawn = next(e for e in entries(await session.log.events()) if e.kind == "gathered")
    assert drawn.cleared
    await session.edits.carry_out(RestoreMessage(chat="chat-1", item=code.id))
    assert session.log.view.messages[0].text == CODE * 40
    await session.edits.carry_out(Pin(chat="chat-1", item=code.id))
    assert session.log.view.messages[0].pinned
    await asked(bench, session, ask("three", 3))
    assert session.log.view.messages[0].text == CODE * 40


async def test_a_chat_without_gathering_pays_nothing(project):
    gatherer = FakeGatherer("auto")
    bench, session = await bench_with(project, gatherer)
    await asked(bench, session, ask("a plain question with an address, me@example.org"))
    assert gatherer.questions == []
    assert not any(isinstance(e.payload, PolicyEvent) for e in await session.log.events())
    assert not of(bench, Gathering)


def test_a_compaction_before_the_answer_is_shown_above_the_message_and_its_lines():
    """R-551: the unanswered message survives it, and its lines stay together."""
    said = PolicyEvent(name="told_below_message", fields={"text": "No code"})
    summary = Insertion(Message(id="s", role="user", tag="compact_summary", content="so far"))
    payloads = (
        MessageAdded(message=Message(id="m1", role="user", content="one", cycle=1)),
        MessageAdded(message=Message(id="r1", role="assistant", content="done", cycle=1)),
        said,
        said,
        MessageAdded(message=Message(id="m2", role="user", content="two", cycle=2)),
        ViewChanged(change_id="c1", kind="compacted", removed=("m1", "r1"), inserted=(summary,)),
    )
    drawn = entries([LogEvent(seq, 0.0, payload) for seq, payload in enumerate(payloads, 1)])
    assert [entry.kind for entry in drawn] == ["user", "reply", "compacted", "user", "note", "note"]
