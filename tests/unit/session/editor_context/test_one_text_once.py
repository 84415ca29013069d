"""A text is sent once per request, whether attached, mentioned in several ways, or gathered."""

from __future__ import annotations

import msgspec
import pytest

from codecompanion.errors import InputError
from codecompanion.model.history import ViewChanged
from codecompanion.model.messages import EDITOR_TAG, GATHERED_TAG, UPDATE_TAG, with_changes
from codecompanion.model.view import project
from codecompanion.session.attachments.read_attachment import read_attachment
from codecompanion.session.chat.inspection import inspect
from codecompanion.wire.events import ContextItems, EditorContextSent, ViewMarks
from codecompanion.wire.requests import (
    Attach,
    ClearMessage,
    EditorItem,
    EditorText,
    RestoreMessage,
    Snapshot,
    Submit,
    UndoChange,
)
from tests.unit.session.actions.test_code_report import traced
from tests.unit.session.codebase.test_code_still_above import WithoutIndex
from tests.unit.session.fakes import Bench, ScriptedAdapter, says

LINES = [f"    line_{n} = parse_config({n}) # so long that it is worth naming" for n in range(1, 41)]
TEXT = "\n".join(["def parse_config(text):", *LINES]) + "\n"
QUESTION = "How does parse_config work in this project?"


class Place:
    """A chat in a project with one file, `src/a.py`."""

    def __init__(self, root, **more):
        self.root, self.number = root, 0
        (root / "src").mkdir(parents=True)
        self.write(TEXT)
        self.bench = Bench(root, ScriptedAdapter("model", lambda request: says("answer")), **more)

    def write(self, text, name="src/a.py"):
        (self.root / name).write_text(text)

    async def open(self):
        self.session = await self.bench.open()
        return self

    async def attach(self, path="src/a.py", **more):
        request = Attach(chat="chat-1", kind="file", path=path, **more)
        message = await read_attachment(self.bench.services, request, self.root)
        await self.session.attach(message)
        return message.id

    async def ask(self, *items, text=QUESTION):
        """Send a message; return its attachments."""
        self.number += 1
        before = {message.id for message in self.session.log.view.messages}
        self.session.submit(
            Submit(
                chat="chat-1", submit_id=self.number, text=text, key=f"k{self.number}", items=items, snapshot=Snapshot()
            )
        )
        await self.bench.until(lambda: self.bench.is_idle(self.session))
        return [
            message
            for message in self.session.log.view.messages
            if message.id not in before and message.tag in (EDITOR_TAG, GATHERED_TAG, UPDATE_TAG)
        ]

    def of(self, **more):
        return EditorText(path=str(self.root / "src/a.py"), **more)

    def whole(self, written="#{buffer}", text=TEXT):
        return EditorItem(written=written, name="buffer", texts=(self.of(text=text, first=1, whole=True),))

    def part(self, first, last, written="#{viewport}", title="on the screen of", **more):
        lines = TEXT.split("\n")[first - 1 : last]
        return EditorItem(
            written=written, name="viewport", texts=(self.of(text="\n".join(lines), first=first, title=title, **more),)
        )

    def file(self):
        return EditorItem(written="#{file:src/a.py}", name="file", argument="src/a.py", comes="by_host")

    def sent(self):
        """Return the texts of the last request."""
        return [message.text for message in self.bench.adapter.requests[-1].messages if message.role != "system"]

    def said(self, message):
        """Return the current text of a message in the view, after checking the token counts."""
        view = self.session.log.view
        assert view.tokens == sum(one.tokens for one in view.messages)
        found = next(one for one in view.messages if one.id == message.id)
        counted = self.session.control.meter.counted(with_changes(found, content=found.text))
        assert abs(counted.tokens - found.tokens) <= 8
        return found.text

    def lost(self):
        """Return the messages below which the buffer reports that the text they refer to is no longer sent."""
        return self.bench.of(ViewMarks)[-1].lost if self.bench.of(ViewMarks) else ()

    def count(self, line="line_30 ="):
        return sum(text.count(line) for text in self.sent())


@pytest.fixture
async def place(tmp_path):
    return await Place(tmp_path / "project").open()


async def test_a_file_that_is_attached_mentioned_four_times_and_gathered_is_sent_once(tmp_path):
    place = Place(tmp_path / "project")
    place.bench.services.gatherer = WithoutIndex()
    await place.open()
    await place.attach()
    items = (place.file(), place.whole(), place.part(20, 40), place.part(10, 32, "#{selection}", "selected in"))
    along = await place.ask(*items, text=f"{QUESTION} #{{codebase}} @src/a.py")
    assert place.count() == 1
    file, whole, screen, selected, code = along
    again = "not sent again, because it is above, as attached."
    assert file.text == f"`#{{file:src/a.py}}`: `src/a.py`, all 41 lines: {again}"
    assert whole.text == f"`#{{buffer}}`: `src/a.py`, all 41 lines: {again}"
    ends = f"from `{LINES[18].strip()}` to `{LINES[38].strip()}`"
    assert screen.text == f"`#{{viewport}}`: on the screen of `src/a.py`, lines 20-40, {ends}: {again}"
    assert "lines 10-32" in selected.text
    assert code.tag == GATHERED_TAG
    assert "Already above, unchanged: src/a.py:1-41." in code.text
    assert [event.title for event in place.bench.of(EditorContextSent)] == [
        "#{file:src/a.py} · already sent, as attached",
        "#{buffer} src/a.py · already sent, as attached",
        "#{viewport} src/a.py:20-40 · already sent, as attached",
        "#{selection} src/a.py:10-32 · already sent, as attached",
    ]
    trace = await traced(place.session)
    assert "## Attachments" in trace
    assert "#{viewport} src/a.py:20-40 · already sent, as attached" in trace


async def test_within_a_message_the_whole_file_is_sent_and_its_parts_refer_to_it(place):
    part, other, whole = await place.ask(place.part(20, 40), place.part(30, 32), place.whole())
    assert place.count() == 2, "three short lines are sent: naming them would be as long"
    assert "not sent again, because it is in this message, as `#{buffer}`" in part.text
    assert "line_30 =" in other.text
    assert "line_30 =" in whole.text
    titles = [event.title for event in place.bench.of(EditorContextSent)]
    assert titles[0] == "#{viewport} src/a.py:20-40 · part of #{buffer}"
    same, *_ = await place.ask(place.file())
    assert same.text.endswith("not sent again, because it is above, as `#{buffer}`.")


@pytest.mark.parametrize("brought", ["mentioned", "gathered"])
async def test_a_file_attached_after_a_message_included_it_is_a_reference(tmp_path, brought):
    """In the reverse order the attachment stays, so its text is sent again once the message has lost its copy."""
    place = Place(tmp_path / "project")
    place.bench.services.gatherer = WithoutIndex()
    await place.open()
    if brought == "mentioned":
        (first,) = await place.ask(place.whole())
        where = "as `#{buffer}`"
    else:
        (first,) = await place.ask(text=f"{QUESTION} #{{codebase}} @src/a.py")
        where = "in the code gathered for an earlier message"
    item = await place.attach()
    view = place.session.log.view
    attached = next(one for one in view.messages if one.id == item)
    sentence = f"`src/a.py` is attached, all 41 lines: not sent again, because it is above, {where}."
    assert place.said(attached) == sentence
    (shown,) = [one for one in place.bench.of(ContextItems)[-1].items if one.id == item]
    assert (shown.note, shown.live) == ("already sent", True)
    assert shown.tokens < 60
    assert await place.ask() == []
    assert place.count() == 1
    (named,) = await place.ask(place.file())
    assert "not sent again, because it is above" in named.text
    if brought == "mentioned":
        with pytest.raises(InputError, match="would save nothing"):
            await place.session.edits.carry_out(ClearMessage(chat="chat-1", item=first.id))
    await place.session.log.write(ViewChanged(change_id="taken", kind="cleared", removed=(first.id,)))
    place.session.show_meter()
    assert "line_30 =" in place.said(attached), "it is what the user attached"
    (shown,) = [one for one in place.bench.of(ContextItems)[-1].items if one.id == item]
    assert shown.note == ""
    await place.ask()
    assert place.count() == 1
    await place.session.log.undo(("taken",))
    assert place.said(attached) == sentence
    assert project(await place.session.log.events()).messages == place.session.log.view.messages
    await place.ask()
    assert place.count() == 1


async def test_a_live_attachment_is_sent_where_it_differs(place):
    await place.ask(place.whole())
    await place.attach()
    place.write(TEXT.replace("line_5 ", "line_five "))
    (update,) = await place.ask()
    assert update.tag == UPDATE_TAG
    assert update.text.count("line_") < 20, "what has changed, not the file"
    place.write(TEXT.replace("line_5 ", "line_six "))
    item = await place.attach()
    assert "line_six" in place.said(next(one for one in place.session.log.view.messages if one.id == item))


async def test_a_changed_file_is_sent_again(place):
    """The attachment is not live: the model has not seen the new text."""
    await place.attach(live=False)
    await place.ask(place.file())
    assert place.count() == 1
    place.write(TEXT.replace("line_5 ", "line_five "))
    (file,) = await place.ask(place.file())
    assert "line_five" in file.text
    (part,) = await place.ask(place.part(20, 40))
    assert part.text.endswith("it is above, as `#{file:src/a.py}`."), "as the newest shows it"


async def test_a_live_file_and_its_updates_replace_its_text(place):
    await place.attach()
    await place.ask()
    now = TEXT.replace("line_5 ", "line_five ").replace("    line_9 ", "    new = 1\n    line_9 ")
    place.write(now)
    update, file = await place.ask(place.file())
    assert update.tag == UPDATE_TAG
    assert file.text.endswith("it is above, as attached, with its later changes.")
    lines = now.split("\n")
    (moved,) = await place.ask(
        EditorItem(written="#{viewport}", name="v", texts=(place.of(text="\n".join(lines[20:40]), first=21),))
    )
    assert "not sent again" in moved.text, "the lines are where the change moved them"


async def test_cleared_text_is_reported_and_sent_again_until_an_undo(place):
    """References to the cleared text say so in every later request, until the text is restored."""
    (first,) = await place.ask(place.whole())
    (named,) = await place.ask(place.file())
    assert place.said(named).endswith("it is above, as `#{buffer}`.")
    await place.session.edits.carry_out(ClearMessage(chat="chat-1", item=first.id))
    gone = "not sent again, because it was above, as `#{buffer}`; since removed from context, read the file if needed."
    assert place.said(named).endswith(gone)
    assert place.lost() == (named.id,)
    rows = inspect(place.session.control, place.session.log)["rows"]
    assert sum(row["tokens"] for row in rows) == place.session.control.shaper.current().measure.tokens
    (again,) = await place.ask(place.file())
    assert "line_30 =" in again.text, "it is sent again"
    assert any(text.endswith(gone) for text in place.sent()), "and what the request says of the earlier one is true"
    await place.session.edits.carry_out(RestoreMessage(chat="chat-1", item=first.id))
    assert place.said(named).endswith("it is above, as `#{buffer}`.")
    assert place.lost() == ()
    await place.session.edits.carry_out(UndoChange(chat="chat-1"))
    assert place.said(named).endswith(gone)
    assert place.lost() == (named.id,)
    view = place.session.log.view
    assert project(await place.session.log.events()).messages == view.messages, "as it is when the chat is resumed"


async def test_a_removed_attachment_is_reported_and_its_text_sent_again(place):
    item = await place.attach()
    (named,) = await place.ask(place.file())
    before = place.session.log.view.tokens
    await place.session.detach((item,))
    assert "it was above, as attached; since removed" in place.said(named)
    assert place.lost() == (named.id,)
    assert place.session.log.view.tokens < before
    (again,) = await place.ask(place.file())
    assert "line_30 =" in again.text


async def test_a_cleared_text_of_the_same_message_is_reported(place):
    part, whole = await place.ask(place.part(20, 40), place.whole())
    await place.session.edits.carry_out(ClearMessage(chat="chat-1", item=whole.id))
    view = {message.id: message for message in place.session.log.view.messages}
    assert "because it was in the same message, as `#{buffer}`; since removed" in view[part.id].text


async def test_a_part_outside_the_truncated_file_is_sent_itself(tmp_path):
    """The file is truncated: a part that is not among its sent lines is sent separately."""
    place = await Place(tmp_path / "project", window=2_600).open()
    long = TEXT * 12
    whole = place.whole(text=long)
    lines = long.split("\n")
    first = len(lines) - 40
    part = EditorItem(
        written="#{viewport}", name="v", texts=(place.of(text="\n".join(lines[first - 1 : first + 9]), first=first),)
    )
    sent_part, sent_whole = await place.ask(part, whole, text="go")
    assert "cut, " in sent_whole.mentioned.title
    assert lines[first + 3] in sent_part.text


async def test_a_selection_of_partial_lines_is_named_by_its_ends(place):
    await place.attach()
    lines = TEXT.split("\n")[9:20]
    text = "\n".join([lines[0][8:], *lines[1:-1], lines[-1][:12]])
    selected = EditorItem(
        written="#{selection}",
        name="selection",
        texts=(place.of(text=text, first=10, title="selected in", partial=True),),
    )
    (message,) = await place.ask(selected)
    assert f"lines 10-20, from `{lines[0][8:]}` to `{lines[-1][:12].strip()}`: not sent again" in message.text
    short = msgspec.structs.replace(selected.texts[0], text="parse_config")
    (message,) = await place.ask(msgspec.structs.replace(selected, texts=(short,)))
    assert "```py\nparse_config\n```" in message.text


async def test_text_summarised_by_a_compaction_is_reported(place):
    (whole,) = await place.ask(place.whole())
    (named,) = await place.ask(place.file())
    change = ViewChanged(change_id="c", kind="compacted", removed=(whole.id,))
    await place.session.log.write(change)
    assert "since removed from context" in place.said(named)
    place.session.show_meter()
    assert place.lost() == (named.id,)


async def test_gathered_code_reports_a_reference_to_removed_text(tmp_path):
    """The sentence in gathered code is a reference, too."""
    place = Place(tmp_path / "project")
    place.bench.services.gatherer = WithoutIndex()
    await place.open()
    item = await place.attach()
    (code,) = await place.ask(text=f"{QUESTION} #{{codebase}} @src/a.py")
    assert "Already above, unchanged: src/a.py:1-41." in place.said(code)
    await place.session.detach((item,))
    assert "Already above" not in place.said(code)
    assert "Previously provided; some has since been removed" in place.said(code)
    assert place.lost() == (code.id,)
