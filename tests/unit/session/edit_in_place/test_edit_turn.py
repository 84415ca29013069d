"""An edit in place is a turn like any other, whose reply is also told as code for a place."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from codecompanion.adapters.base import Finished, TextDelta
from codecompanion.errors import AdapterError, InputError
from codecompanion.model.history import TitleSet
from codecompanion.wire.events import EditEnded, EditText, TurnFinished
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


async def test_code_is_told_as_it_arrives_and_whole_at_the_end(tmp_path: Path) -> None:
    bench, _ = await ran(
        tmp_path, (TextDelta("placement: replace\n```python\nx "), TextDelta("= 3\ny = 2\n```"), Finished("stop", ()))
    )
    assert [(told.lines, told.placement) for told in bench.of(EditText)] == [(("x = 3", "y = 2"), "replace")]
    assert bench.of(EditEnded) == [
        EditEnded(chat="chat-1", outcome="proposal", lines=("x = 3", "y = 2"), language="python")
    ]
    kinds = [type(event) for event in bench.events]
    assert kinds.index(EditEnded) > kinds.index(TurnFinished)


async def test_the_message_has_the_lines_and_the_title_only_the_instruction(tmp_path: Path) -> None:
    bench, session = await ran(tmp_path, says(REPLY))
    asked = bench.adapter.requests[0]
    text = asked.messages[-1].text
    assert asked.tools == ()
    assert text.startswith("make it three\n\nIt is about lines 3 to 4 of a.py (python)")
    assert "import os\n\n<edit>\nx = 1\ny = 2\n</edit>\n" in text
    assert [e.payload.title for e in await session.log.events() if isinstance(e.payload, TitleSet)] == ["make it three"]


async def test_the_chat_behind_it_goes_on_with_its_tools(tmp_path: Path) -> None:
    bench, session = await ran(tmp_path, says(REPLY), says("Yes."))
    session.submit(submit("Sure?", 2))
    await bench.idle(session)
    assert bench.adapter.requests[1].tools != ()
    assert len(bench.of(EditEnded)) == 1


async def test_a_follow_up_is_about_what_was_made_of_the_lines(tmp_path: Path) -> None:
    bench, session = await ran(tmp_path, says(REPLY), says(REPLY.replace("3", "4")))
    session.submit(edit("four", EditTarget(path="a.py", first=3, region=("x = 3", "y = 2"), is_follow_up=True), 2))
    await bench.idle(session)
    assert bench.of(EditEnded)[1].lines == ("x = 4", "y = 2")
    assert "<edit>\nx = 3\ny = 2\n</edit>" in bench.adapter.requests[1].messages[-1].text
    assert "placement: before" not in bench.adapter.requests[1].messages[-1].text


async def test_words_are_an_answer(tmp_path: Path) -> None:
    bench, _ = await ran(tmp_path, says("placement: chat\nIt cannot be three."))
    assert [told.outcome for told in bench.of(EditEnded)] == ["answer"]


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ((AdapterError("The network is down."),), "The network is down."),
        ((TextDelta("placement: replace\n```\nx"), AdapterError("Cut.")), "Cut. The part that arrived is kept"),
        ((TextDelta("placement: replace\n```\nx\n```"), Finished("filtered", ())), "The reply ended before"),
    ],
)
async def test_a_failure_is_told_once_in_one_sentence(tmp_path: Path, reply, error: str) -> None:
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


async def test_the_rest_of_a_reply_that_met_the_limit_joins_it(tmp_path: Path) -> None:
    cut = (TextDelta("placement: replace\n```python\nx = 3\n"), Finished("length", ()))
    bench, _ = await ran(tmp_path, cut, says("```python\ny = 2\n```"))
    assert [told.lines for told in bench.of(EditEnded)] == [("x = 3", "y = 2")]
