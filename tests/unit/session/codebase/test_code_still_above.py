"""Code is not sent twice while the model still sees it, in a whole chat."""

from __future__ import annotations

import msgspec
import pytest

from codecompanion import settings
from codecompanion.context.policy.policy_catalog import policy_names
from codecompanion.errors import ToolError
from codecompanion.model.history import PolicyEvent
from codecompanion.model.messages import GATHERED_TAG, GatheredPiece, Message
from codecompanion.model.transcript_format import read_message, write_message
from codecompanion.placeholders import gathered_names
from codecompanion.retrieval.snippets_in_view import STILL_ABOVE
from codecompanion.session.actions.code_report import preview_code, show_gathered
from codecompanion.session.codebase.shown_code import title_of_gathered
from codecompanion.session.gather.chat_gatherer import ProjectGatherer
from codecompanion.wire.events import CodeGathered
from codecompanion.wire.requests import ClearMessage, PreviewCode, RestoreMessage, ShowGathered, Snapshot
from tests.unit.session.actions.test_code_report import traced
from tests.unit.session.fakes import says
from tests.unit.session.message_context.test_gathering import ask, asked, bench_with, of

PARSER = "import re\n\n\ndef parse_config(text):\n" + "".join(
    f"    line_{n} = re.split('=', text)\n" for n in range(20)
)
QUESTION = "How does parse_config work in this project?"


class WithoutIndex(ProjectGatherer):
    """The real gatherer over files on disk, without an index."""

    enabled = True

    def __init__(self):
        context = settings.load({}).context
        memories = msgspec.structs.replace(context.memories, user="/nonexistent/memories.md")
        self.context = msgspec.structs.replace(context, memories=memories)
        super().__init__(lambda: self.context, None, self._no_index)

    async def _no_index(self, root):
        raise ToolError("there is none")


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "src/parser.py").write_text(PARSER)
    return root


def codes(session):
    return [message for message in session.log.view.messages if message.tag == GATHERED_TAG]


async def test_the_second_question_refers_to_code_sent_with_the_first(project):
    """Nothing before the second question has changed, so the prompt cache hits (lesson 22)."""
    bench, session = await bench_with(project, WithoutIndex())
    await asked(bench, session, ask(QUESTION), ask(QUESTION, 2))
    first, second = codes(session)
    assert "line_19" in first.text
    assert "line_19" not in second.text
    assert f"{STILL_ABOVE}src/parser.py:4-24" in second.text
    assert second.tokens < first.tokens / 2
    before, after = ([m.text for m in r.messages] for r in bench.adapter.requests)
    assert after[: len(before)] == before
    assert of(bench, CodeGathered)[-1].title == "1 snippet already sent"
    assert of(bench, CodeGathered)[-1].body.endswith("already sent")
    report = await show_gathered(session, ShowGathered(chat="chat-1", item=second.id))
    assert report.title == "1 snippet already sent"
    assert [(row.what, row.state, row.is_above, row.why) for row in report.rows] == [
        ("src/parser.py:4-24 parse_config", "in", True, "already sent: not sent again")
    ]
    preview = await preview_code(session, PreviewCode(chat="chat-1", question=QUESTION, snapshot=Snapshot()))
    assert preview.title == "1 snippet already sent"
    assert preview.head[0].startswith("~0 tokens of code")


async def test_the_reference_is_in_the_log_and_in_prompt_compiled_as_chosen(project):
    """R-268, R-329."""
    bench, session = await bench_with(project, WithoutIndex(), settings={"policy": "kodacode"})
    await asked(bench, session, ask(QUESTION), ask(QUESTION, 2))
    events = [e.payload for e in await session.log.events() if isinstance(e.payload, PolicyEvent)]
    compiled = [e.fields["gathered"] for e in events if e.name == "prompt_compiled"][-1]
    assert [(piece["path"], piece.get("is_above", False)) for piece in compiled] == [("src/parser.py", True)]
    assert "1 already sent" in await traced(session)


async def test_a_file_edited_on_disk_is_sent_again(project):
    bench, session = await bench_with(project, WithoutIndex())
    await asked(bench, session, ask(QUESTION))
    (project / "src/parser.py").write_text(PARSER.replace("line_7 ", "line_seven "))
    await asked(bench, session, ask(QUESTION, 2))
    assert "line_seven" in codes(session)[1].text
    assert STILL_ABOVE not in codes(session)[1].text


async def test_cleared_code_is_sent_again_and_restored_code_is_not(project):
    bench, session = await bench_with(project, WithoutIndex())
    await asked(bench, session, ask(QUESTION))
    await session.edits.carry_out(ClearMessage(chat="chat-1", item=codes(session)[0].id))
    await asked(bench, session, ask(QUESTION, 2))
    assert "line_19" in codes(session)[1].text
    await session.edits.carry_out(ClearMessage(chat="chat-1", item=codes(session)[1].id))
    await session.edits.carry_out(RestoreMessage(chat="chat-1", item=codes(session)[0].id))
    await asked(bench, session, ask(QUESTION, 3))
    assert "line_19" not in codes(session)[2].text


@pytest.mark.slow("a long chat under every policy")
@pytest.mark.parametrize("policy", policy_names())
async def test_every_request_shows_the_code_its_question_was_given(project, policy):
    """Whatever is cleared, summarised or shaped: code that a block refers to is above it, or in it."""
    long = "filler " * 300
    bench, session = await bench_with(
        project, WithoutIndex(), replies=lambda request: says("answer " * 60), window=4_500,
        settings={"policy": policy},
    )  # fmt: skip
    named = 0
    for number in range(1, 17):
        await asked(bench, session, ask(f"{QUESTION} {long}", number))
        request = [r for r in bench.adapter.requests if r.purpose == "chat"][-1]
        texts = [message.text for message in request.messages]
        assert any("line_19 = re" in text for text in texts), f"request {number} has no code at all"
        named += STILL_ABOVE in codes(session)[-1].text
    assert named >= 2, "some questions find it above"
    assert any(m.edited for m in codes(session)) or len(codes(session)) < 16, "the window was small enough"


def test_the_line_below_a_message_and_the_placeholder_match():
    """Code that was only referred to belongs to another message, which names it when cleared."""
    new = GatheredPiece(path="a.py", start=1, end=2)
    above = [
        GatheredPiece(path="b.py", start=3, end=9, is_above=True),
        GatheredPiece(path="", source="memory", is_above=True),
    ]
    message = Message(id="m", role="user", tag=GATHERED_TAG, content="x", gathered=(new, *above))
    assert title_of_gathered(message) == "1 snippet from 1 file, 2 already sent"
    assert gathered_names(message) == "a.py:1-2"
    cut = [GatheredPiece(path="c.py", start=n, end=n + 2, source="mention", is_cut=True, of=99) for n in (1, 40)]
    of_one = msgspec.structs.replace(message, gathered=tuple(cut))
    assert title_of_gathered(of_one) == "2 snippets from 1 file, 1 cut", "one file, in two parts"
    only = msgspec.structs.replace(message, gathered=tuple(above))
    assert title_of_gathered(only) == "2 snippets already sent"
    assert read_message(write_message(message), "m", "here").gathered == message.gathered
