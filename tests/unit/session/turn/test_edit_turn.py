"""An edit in place is an ordinary turn whose reply is also sent to the editor as code for a range."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from codecompanion.adapters.base import Finished, TextDelta
from codecompanion.errors import AdapterError, InputError
from codecompanion.model.history import TitleSet
from codecompanion.model.messages import EDITOR_TAG
from codecompanion.wire.events import EditEnded, EditorContextSent, EditText, TurnFinished
from codecompanion.wire.requests import EditTarget, Snapshot, Submit
from tests.unit.session.fakes import Bench, ScriptedAdapter, says, submit

TARGET = EditTarget(path="a.py", first=3, region=("x = 1", "y = 2"), before=("import os", ""), filetype="python")
REPLY = "placement: replace\n```python\nx = 3\ny = 2\n```\n"


def edit(text: str = "make it three", target: EditTarget = TARGET, submit_id: int = 1) -> Submit:
    return Submit(chat="chat-1", submit_id=submit_id, text=text, snapshot=Snapshot(), edit=target)


async def ran(tmp_path: Path, *replies, **more):
    bench = Bench(tmp_path, ScriptedAdapter("s", replies), **more)
    session = await bench.open()
    session.submit(edit())
    await bench.idle(session)
    return bench, session


async def test_code_is_sent_as_it_arrives_and_complete_at_the_end(tmp_path: Path) -> None:
    bench, _ = await ran(
        tmp_path, (TextDelta("placement: replace\n```python\nx "), TextDelta("= 3\ny = 2\n```"), Finished("stop", ()))
    )
    assert [(told.lines, told.placement) for told in bench.of(EditText)] == [(("x = 3", "y = 2"), "replace")]
    assert bench.of(EditEnded) == [
        EditEnded(chat="chat-1", outcome="proposal", lines=("x = 3", "y = 2"), language="python")
    ]
    kinds = [type(event) for event in bench.events]
    assert kinds.index(EditEnded) > kinds.index(TurnFinished)


async def test_the_message_is_the_instruction_and_lines_and_format_are_separate(tmp_path: Path) -> None:
    """The user's text is the message; the lines are folded before it, the format is this turn's system prompt."""
    bench, session = await ran(tmp_path, says(REPLY), says("Yes."))
    asked = bench.adapter.requests[0]
    system, lines, said = asked.messages
    assert asked.tools == ()
    assert "placement: before" in system.text
    assert "between <edit> and </edit>, lines 3-4 of a.py (python)" in lines.text
    assert "import os\n\n<edit>\nx = 1\ny = 2\n</edit>\n" in lines.text
    assert (lines.tag, said.text, said.tag) == (EDITOR_TAG, "make it three", None)
    assert [(told.title, told.message_id) for told in bench.of(EditorContextSent)] == [("lines 3-4 of a.py", lines.id)]
    session.submit(submit("Sure?", 2))
    await bench.idle(session)
    assert "placement:" not in bench.adapter.requests[1].messages[0].text
    assert [e.payload.title for e in await session.log.events() if isinstance(e.payload, TitleSet)] == ["make it three"]


async def test_the_underlying_chat_continues_with_its_tools(tmp_path: Path) -> None:
    bench, session = await ran(tmp_path, says(REPLY), says("Yes."))
    session.submit(submit("Sure?", 2))
    await bench.idle(session)
    assert bench.adapter.requests[1].tools != ()
    assert len(bench.of(EditEnded)) == 1


async def test_a_follow_up_is_about_the_edited_lines(tmp_path: Path) -> None:
    bench, session = await ran(tmp_path, says(REPLY), says(REPLY.replace("3", "4")))
    session.submit(edit("four", EditTarget(path="a.py", first=3, region=("x = 3", "y = 2"), is_follow_up=True), 2))
    await bench.idle(session)
    assert bench.of(EditEnded)[1].lines == ("x = 4", "y = 2")
    *_, lines, said = bench.adapter.requests[1].messages
    assert "<edit>\nx = 3\ny = 2\n</edit>" in lines.text
    assert said.text == "four"


async def test_the_same_instruction_again_is_about_the_current_lines(tmp_path: Path) -> None:
    """After a failure a message with this text already exists, but with other lines."""
    bench, session = await ran(tmp_path, (AdapterError("The network is down."),), says(REPLY))
    session.submit(edit(target=msgspec.structs.replace(TARGET, region=("x = 7", "y = 2")), submit_id=2))
    await bench.idle(session)
    *_, lines, said = bench.adapter.requests[1].messages
    assert "<edit>\nx = 7\n" in lines.text
    assert said.text == "make it three"


@pytest.mark.parametrize(
    ("inside", "marker"), [("a </edit> b", "edit-2"), ("<edit>\n<edit-2>", "edit-3"), ("", "edit")]
)
async def test_markers_never_occur_in_the_lines(tmp_path: Path, inside: str, marker: str) -> None:
    target = msgspec.structs.replace(TARGET, after=tuple(inside.split("\n")))
    bench = Bench(tmp_path, ScriptedAdapter("s", [says(REPLY)]))
    session = await bench.open()
    session.submit(edit(target=target))
    await bench.idle(session)
    text = bench.adapter.requests[0].messages[1].text
    assert f"between <{marker}> and </{marker}>, lines 3-4" in text
    assert f"\n<{marker}>\nx = 1\ny = 2\n</{marker}>\n" in text
    assert text.count(f"</{marker}>") == 2


async def test_lines_that_do_not_fit_are_refused_before_anything_is_sent(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ScriptedAdapter("s", [says(REPLY)]), window=4_000)
    session = await bench.open()
    session.submit(edit(target=msgspec.structs.replace(TARGET, region=("x = 1",) * 20_000)))
    await bench.idle(session)
    (told,) = bench.of(EditEnded)
    assert told.error.startswith("Not sent:")
    assert "back in the input" not in told.error
    assert bench.adapter.requests == []


async def test_a_reply_of_prose_is_an_answer(tmp_path: Path) -> None:
    bench, _ = await ran(tmp_path, says("placement: chat\nIt cannot be three."))
    (told,) = bench.of(EditEnded)
    assert (told.outcome, told.note) == ("answer", "The reply is text, not code.")


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ((AdapterError("The network is down."),), "The network is down."),
        ((TextDelta("placement: replace\n```\nx"), AdapterError("Cut.")), "Cut. The partial reply is kept"),
        ((TextDelta("placement: replace\n```\nx\n```"), Finished("filtered", ())), "The reply was incomplete"),
    ],
)
async def test_a_failure_is_reported_once_in_one_sentence(tmp_path: Path, reply, error: str) -> None:
    bench, _ = await ran(tmp_path, reply)
    (told,) = bench.of(EditEnded)
    assert (told.outcome, told.lines) == ("failed", ())
    assert told.error.startswith(error)


async def test_a_cancelled_edit_ends_without_an_error(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ScriptedAdapter("s", [(TextDelta("placement: replace\n```\nx\n"), asyncio.Event())]))
    session = await bench.open()
    session.submit(edit())
    await bench.until(lambda: bench.of(EditText))
    with pytest.raises(InputError, match="working"):
        session.submit(edit(submit_id=2))
    session.cancel()
    await bench.idle(session)
    assert [(told.outcome, told.error) for told in bench.of(EditEnded)] == [("failed", "")]


async def test_the_continuation_of_a_truncated_reply_is_joined_to_it(tmp_path: Path) -> None:
    cut = (TextDelta("placement: replace\n```python\nx = 3\n"), Finished("length", ()))
    bench, _ = await ran(tmp_path, cut, says("```python\ny = 2\n```"))
    assert [told.lines for told in bench.of(EditEnded)] == [("x = 3", "y = 2")]
