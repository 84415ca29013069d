"""Live attachments: before each message the model gets the changes, once, and can rebuild the file."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codecompanion.errors import InputError
from codecompanion.model.history import MessageAdded, ViewChanged
from codecompanion.model.live_files import files_in
from codecompanion.model.messages import UPDATE_TAG, Message, with_changes
from codecompanion.session.attachments.read_attachment import read_attachment
from codecompanion.session.chat.inspection import inspect
from codecompanion.session.session import Session
from codecompanion.tools.files.open_files import Opened, OpenFile
from codecompanion.wire.events import ContextItems, FileUpdated, Notice
from codecompanion.wire.requests import Attach, Buffer, EditTarget, Snapshot, Submit
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says

TEXT = "".join(f"line {number} of the file\n" for number in range(1, 41))


class Editor:
    """An editor with at most one open file."""

    def __init__(self) -> None:
        self.files: dict[str, OpenFile] = {}
        self.asked = 0

    async def look(self, paths):
        self.asked += 1
        wanted = None if paths is None else {str(path) for path in paths}
        return Opened({p: f for p, f in self.files.items() if wanted is None or p in wanted})

    async def change(self, file, text, *, save=True):
        raise AssertionError("nothing is changed here")

    async def reload(self, deleted=None):
        return

    def edit(self, path: Path, text: str, tick: int) -> Snapshot:
        self.files[str(path)] = OpenFile(path=str(path), buffer=1, tick=tick, modified=True, text=text)
        return Snapshot(buffers=(Buffer(name=str(path), modified=True, tick=tick),))


class Desk:
    """A chat with attachments, and the messages sent to its model."""

    def __init__(self, root: Path, replies=None, **more) -> None:
        self.root = root
        self.adapter = ScriptedAdapter("offline", replies or (lambda request: says("ok")))
        self.bench = Bench(root, self.adapter, **more)
        self.editor = Editor()
        self.bench.services.editor = self.editor
        self.number = 0

    async def open(self) -> Session:
        self.session = await self.bench.open()
        return self.session

    async def attach(self, name: str = "a.py", live: bool | None = None, kind: str = "file", text: str = "") -> None:
        request = Attach(chat="chat-1", kind=kind, path=name, live=live, text=text)
        await self.session.attach(await read_attachment(self.bench.services, request, self.root))

    async def say(self, text: str = "go on", snapshot: Snapshot | None = None) -> list[Message]:
        """Send a message; return the updates sent right before it."""
        self.number += 1
        snapshot = snapshot or Snapshot()
        before = len(self.session.log.view.messages)
        self.session.submit(Submit(chat="chat-1", submit_id=self.number, text=text, snapshot=snapshot))
        await self.bench.until(lambda: len(self.adapter.requests) and self.session.task is None)
        return [m for m in self.session.log.view.messages[before:] if m.tag == UPDATE_TAG]

    def write(self, text: str, name: str = "a.py") -> None:
        path = self.root / name
        old = path.stat().st_mtime_ns if path.exists() else 0
        path.write_text(text)
        os.utime(path, ns=(old + 1_000_000, old + 1_000_000))


@pytest.fixture
async def desk(tmp_path):
    made = Desk(tmp_path)
    await made.open()
    made.write(TEXT)
    return made


def applied(text: str, message: Message) -> str:
    """Return the text after an update, as a reader of the message would rebuild it."""
    lines = message.text.split("\n")
    fences = [at for at, line in enumerate(lines) if re.fullmatch(r"`{3,}\w*", line)]
    body = lines[fences[0] + 1 : fences[-1]]
    if "Its current text" in lines[0]:
        ends = "has no newline" not in lines[-1] and any(body)
        return "\n".join(body) + ("\n" if ends else "")
    old, new, at = text.removesuffix("\n").split("\n") if text.strip("\n") or text else [], [], 0
    for line in body[2:]:
        header = re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@", line)
        if header:
            start = int(header[1]) - (header[2] != "0")
            new += old[at:start]
            at = start
        elif line.startswith("+"):
            new.append(line[1:])
        else:
            assert old[at] == line[1:]
            at += 1
            if line.startswith(" "):
                new.append(line[1:])
    new += old[at:]
    ends = text.endswith("\n") or not text
    if "now has no newline" in lines[-1]:
        ends = False
    elif "now has a newline" in lines[-1]:
        ends = True
    return "\n".join(new) + ("\n" if ends and new else "")


async def test_text_attached_by_a_command_does_not_change(desk):
    """A user's slash command attaches its own version of a file under the file's name."""
    await desk.attach(kind="text", text="- [ ] water the plants\n")
    shown = next(m for m in desk.session.log.view.messages if m.tag == "text")
    assert shown.text == "`a.py`, as attached:\n```\n- [ ] water the plants\n```"
    assert (shown.path, shown.file) == ("a.py", None)
    desk.write("something else\n")
    assert await desk.say() == []
    assert [(item.kind, item.live) for item in desk.bench.of(ContextItems)[-1].items] == [("text", False)]


async def test_a_change_is_sent_as_a_diff_in_the_commit_of_the_message(desk):
    """Earlier messages stay byte for byte, so the prompt cache survives."""
    await desk.attach()
    await desk.say("first")
    above = desk.adapter.requests[-1].messages
    desk.write(TEXT.replace("line 7 of", "line seven of"))
    seen, append = [], desk.bench.services.store.append
    desk.bench.services.store.append = lambda chat, payloads: (seen.append(list(payloads)), append(chat, payloads))[1]
    [told] = await desk.say("second")
    assert "-line 7 of the file\n+line seven of the file" in told.text
    assert len(told.text) < 400
    assert desk.adapter.requests[-1].messages[: len(above)] == above
    [commit] = [c for c in seen if any(isinstance(p, MessageAdded) and p.message.tag == UPDATE_TAG for p in c)]
    assert [p.message.text for p in commit if isinstance(p, MessageAdded)] == [told.text, "second"]
    [event] = [e for e in desk.bench.events if isinstance(e, FileUpdated)]
    assert event.title == "a.py · +1 −1"


async def test_without_permission_to_send_code_no_change_is_sent_and_no_tool_offered(desk):
    """`opts.send_code`; the changes are sent once code may be sent again."""
    await desk.attach()
    await desk.say("first")
    desk.write(TEXT.replace("line 7 of", "line seven of"))
    no_code = Snapshot(send_code=False)
    assert await desk.say("second", no_code) == []
    assert desk.adapter.requests[-1].tools == ()
    await desk.say("third", no_code)
    notices = [e.text for e in desk.bench.events if isinstance(e, Notice)]
    assert [text.split(":")[0] for text in notices] == ["Code is not sent (opts.send_code is false)"], "said once"
    assert len(await desk.say("fourth")) == 1
    assert desk.adapter.requests[-1].tools != ()


async def test_an_edit_in_place_is_refused_without_permission_to_send_code(desk):
    """The editor refuses it as well; nothing is logged."""
    edit = EditTarget(path="a.py", first=1, region=("x",))
    request = Submit(chat="chat-1", submit_id=1, text="edit", snapshot=Snapshot(send_code=False), edit=edit)
    with pytest.raises(InputError, match=r"opts\.send_code is false"):
        desk.session.submit(request)
    assert desk.adapter.requests == []


async def test_unchanged_files_cost_nothing(desk):
    """No tokens; the file is not read again, and the editor is not asked."""
    await desk.attach()
    await desk.say()
    file = desk.root / "a.py"
    before = file.stat()
    file.write_text(TEXT.swapcase())  # reading it would be reported
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    assert await desk.say() == []
    assert desk.editor.asked <= 1
    assert not [e for e in desk.bench.events if isinstance(e, Notice)]


async def test_a_touched_file_is_not_sent(desk):
    """The modification time only triggers a check; the content decides."""
    await desk.attach()
    await desk.say()
    desk.write(TEXT)
    assert await desk.say() == []


async def test_a_change_is_sent_once(desk):
    """The next change is a diff against the text that was sent."""
    await desk.attach()
    desk.write(TEXT + "one more\n")
    assert len(await desk.say()) == 1
    assert await desk.say() == []
    desk.write(TEXT + "one more\nand another\n")
    [told] = await desk.say()
    assert "+and another" in told.text
    assert "+one more" not in told.text


async def test_the_whole_file_is_sent_if_that_is_shorter(desk):
    """A rewritten file is shorter than its diff."""
    await desk.attach()
    desk.write("all new\n")
    [told] = await desk.say()
    assert "Its current text" in told.text
    assert "all new" in told.text


async def test_unsaved_changes_of_an_open_buffer_count(desk):
    """The model gets the text that the user sees; the changedtick triggers the check."""
    await desk.attach(kind="buffer", text=TEXT)
    path = desk.root / "a.py"
    snapshot = desk.editor.edit(path, TEXT.replace("line 3 ", "line three "), 5)
    [told] = await desk.say(snapshot=snapshot)
    assert "+line three of the file" in told.text
    await desk.say(snapshot=snapshot)
    asked = desk.editor.asked
    assert await desk.say(snapshot=snapshot) == []
    assert desk.editor.asked == asked


async def test_a_deleted_renamed_or_binary_file_is_reported_once(desk):
    """The file's reappearance is also reported once."""
    await desk.attach()
    (desk.root / "a.py").rename(desk.root / "b.py")
    [told] = await desk.say()
    assert "`a.py` is gone" in told.text
    assert "`b.py` beside it has its old text" in told.text
    assert await desk.say() == []
    desk.write("\0\0binary")
    [told] = await desk.say()
    assert "can no longer be read as text" in told.text
    desk.write(TEXT)
    [told] = await desk.say()
    assert "Its current text" in told.text
    (desk.root / "a.py").unlink()
    (desk.root / "b.py").unlink()
    [told] = await desk.say()
    assert told.text.endswith("has been deleted or moved since you last saw it.")


async def test_the_models_own_edit_is_not_sent_back(tmp_path):
    """It knows its own edits; only the user's other changes are sent."""
    edit = json.dumps({"path": "a.py", "old_text": "line 7 of the file", "new_text": "line seven"})
    script = iter([calls(("c1", "insert_edit", edit)), says("done"), says("ok"), says("ok")])
    desk = Desk(tmp_path, lambda request: next(script))
    await desk.open()
    desk.write(TEXT)
    await desk.attach()
    await desk.say("edit it")
    assert "line seven\n" in (tmp_path / "a.py").read_text()
    assert await desk.say() == []
    desk.write((tmp_path / "a.py").read_text().replace("line 30 of", "line thirty of"))
    [told] = await desk.say()
    assert "+line thirty of the file" in told.text
    assert "+line seven" not in told.text


async def test_a_file_attached_once_does_not_follow_changes(desk):
    """A file that is not live is sent as it was; once it is made live, changes are relative to the sent text."""
    await desk.attach(live=False)
    desk.write(TEXT + "more\n")
    assert await desk.say() == []
    item = next(iter(desk.session.log.files.values())).item
    said = await desk.session.context.set_live((item,), True)
    assert said == "a.py is live: changes are sent with your messages."
    assert [e for e in desk.bench.events if isinstance(e, ContextItems)][-1].items[0].live
    [told] = await desk.say()
    assert "+more" in told.text


async def test_the_option_sets_the_default(tmp_path):
    """`interactions.chat.opts.live_attachments`."""
    desk = Desk(tmp_path, settings={"live_attachments": False})
    await desk.open()
    desk.write(TEXT)
    await desk.attach()
    assert not desk.session.log.files["a.py"].live


async def test_secret_files_are_never_live(desk):
    """R-266: such a file is read only when the user names it, each time."""
    desk.write("KEY=1\n", ".env")
    await desk.attach(".env")
    desk.write("KEY=2\n", ".env")
    assert await desk.say() == []
    item = desk.session.log.files[".env"].item
    with pytest.raises(Exception, match="looks like a file of keys or passwords"):
        await desk.session.context.set_live((item,), True)
    with pytest.raises(Exception, match="cannot be live"):
        await desk.attach(".env", live=True)


async def test_updates_are_a_projection_of_the_log(desk):
    """A restarted host continues where the previous one ended."""
    await desk.attach()
    desk.write(TEXT + "one\n")
    await desk.say()
    await desk.session.close()
    events = desk.bench.services.store.load_events("chat-1")
    assert files_in(events) == desk.session.log.files
    desk.bench.services.store.release("chat-1").result()
    desk.session = await desk.bench.resume()
    assert await desk.say() == []
    desk.write(TEXT + "one\ntwo\n")
    [told] = await desk.say()
    assert "+two" in told.text
    assert "+one" not in told.text


async def test_after_a_compaction_the_diff_says_that_earlier_text_is_gone(desk):
    """The sent text is the base; a small file is sent whole again, and unchanged ones are not."""
    await desk.attach()
    await desk.say()
    view = desk.session.log.view
    attachment = next(m for m in view.messages if m.tag == "file")
    gone = with_changes(attachment, content="[file a.py was here]", compacted=True)
    await desk.session.log.write(ViewChanged(change_id="x", kind="compacted", replaced=(gone,)))
    assert await desk.say() == []
    desk.session.context.show()
    item = [e for e in desk.bench.events if isinstance(e, ContextItems)][-1].items[0]
    assert (item.live, item.note) == (True, "summarised, changes are still sent")
    desk.write(TEXT + "more\n")
    [told] = await desk.say()
    assert "Its current text" in told.text
    big = "".join(f"number {n} of many lines that are all a little different {n * n}\n" for n in range(2000))
    desk.write(big)
    await desk.say()
    for m in [m for m in desk.session.log.view.messages if m.tag == UPDATE_TAG]:
        await desk.session.log.write(ViewChanged(change_id=m.id + "x", kind="compacted", removed=(m.id,)))
    desk.write(big + "the end\n")
    [told] = await desk.say()
    assert "no longer in this conversation" in told.text
    assert "+the end" in told.text
    assert len(told.text) < 800


async def test_an_undone_detach_continues_from_the_sent_text(desk):
    """While the file is detached, no updates are sent and earlier ones are removed; undoing the detach resumes them."""
    await desk.attach()
    desk.write(TEXT + "one\n")
    await desk.say()
    item = desk.session.log.files["a.py"].item
    await desk.session.detach((item,))
    assert not [m for m in desk.session.log.view.messages if m.tag in ("file", UPDATE_TAG)]
    desk.write(TEXT + "one\ntwo\n")
    assert await desk.say() == []
    events = desk.bench.services.store.load_events("chat-1")
    [change] = [e.payload for e in events if isinstance(e.payload, ViewChanged) and e.payload.kind == "detached"]
    await desk.session.log.undo([change.change_id], by_user=True)
    [told] = await desk.say()
    assert "+two" in told.text
    assert "+one" not in told.text


async def test_a_change_too_large_to_send_is_reported_and_the_base_stays(tmp_path):
    """A change of 50,000 lines does not fit a small window, so the model gets a note to read the file."""
    desk = Desk(tmp_path, window=12_000)
    await desk.open()
    desk.write("short\n")
    await desk.attach()
    await desk.say()
    desk.write("".join(f"line {n} is another one\n" for n in range(50_000)))
    [told] = await desk.say()
    assert "in too many places to show here" in told.text
    assert any("changed too much" in e.text for e in desk.bench.events if isinstance(e, Notice))
    assert await desk.say() == []
    desk.write("short\nbut more\n")
    [told] = await desk.say()
    assert "+but more" in told.text or "Its current text" in told.text


async def test_trouble_with_a_file_never_blocks_a_message(desk):
    """An internal error is reported; the message is sent."""
    await desk.attach()
    desk.write("other\n")
    desk.bench.services.store.put_blob = lambda content: 1 / 0
    assert await desk.say() == []
    assert desk.bench.bugs
    assert desk.adapter.requests[-1].messages[-1].text == "go on"


edits = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.integers(0, 50), st.text("ab`\n€", max_size=8)),
        st.tuples(st.just("drop"), st.integers(0, 50), st.integers(1, 9)),
        st.tuples(st.just("all"), st.text("ab`@+- \n", max_size=60), st.none()),
        st.tuples(st.just("end"), st.none(), st.none()),
        st.tuples(st.just("unsaved"), st.integers(0, 50), st.text("xy\n", max_size=8)),
    ),
    min_size=1,
    max_size=6,
)


def edited(text: str, edit) -> str:
    lines = text.split("\n")
    match edit:
        case ("set" | "unsaved", at, new):
            lines[at % len(lines)] = new
        case ("drop", at, count):
            del lines[at % len(lines) : at % len(lines) + count]
        case ("all", new, _):
            return new
        case _:
            return text.removesuffix("\n") if text.endswith("\n") else text + "\n"
    return "\n".join(lines)


@pytest.mark.slow("random edits")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits)
async def test_after_any_edits_the_model_can_rebuild_the_file(tmp_path_factory, done):
    """Only from the messages sent: the attachment, then each update in turn."""
    desk = Desk(tmp_path_factory.mktemp("live"))
    await desk.open()
    desk.write(TEXT)
    await desk.attach()
    known, text, snapshot = TEXT, TEXT, Snapshot()
    for tick, edit in enumerate(done, 1):
        text = edited(text, edit)
        if edit[0] == "unsaved":
            snapshot = desk.editor.edit(desk.root / "a.py", text, tick)
        else:
            desk.write(text)
            desk.editor.files.clear()
            snapshot = Snapshot()
        told = await desk.say(snapshot=snapshot)
        assert len(told) <= 1
        for message in told:
            known = applied(known, message)
        assert known == text
    sent = desk.adapter.requests[-1].messages
    assert [m.text for m in sent if m.tag == UPDATE_TAG] == [
        m.text for m in desk.session.log.view.messages if m.tag == UPDATE_TAG
    ]
    assert msgspec.json.encode(desk.session.log.files["a.py"])


async def test_a_link_that_was_attached_is_followed_and_a_later_one_is_not(tmp_path):
    """A project file that is replaced by a link exposes nothing outside the project."""
    desk = Desk(tmp_path / "work")
    desk.root.mkdir()
    other = tmp_path / "other.py"
    other.write_text("first = 1\n")
    (desk.root / "link.py").symlink_to(other)
    desk.write(TEXT)
    await desk.open()
    for name in ("link.py", str(other), "a.py"):
        await desk.attach(name, live=True)
    await desk.say()
    other.write_text("first = 1\nsecond = 2\n")
    told = await desk.say()
    assert [message.path for message in told] == ["link.py", str(other)]
    assert all("second = 2" in message.text for message in told)
    (desk.root / "a.py").unlink()
    (desk.root / "a.py").symlink_to(other)
    (told,) = await desk.say()
    assert "it now links to a file" in told.text
    assert "second" not in told.text


async def test_the_context_block_the_line_below_and_the_inspector_show_the_same_count(desk):
    """One number per message everywhere, as counted for the chat's model."""
    meter = desk.session.meter
    meter.calibration = msgspec.structs.replace(meter.calibration, ratio=1.4)
    await desk.attach()
    await desk.say()
    desk.write(TEXT.replace("line 7 of", "line seven of"))
    [told] = await desk.say()
    rows = {row["id"]: row["tokens"] for row in inspect(desk.session.control, desk.session.log)["rows"]}
    (item,) = desk.bench.of(ContextItems)[-1].items
    assert item.tokens == rows[item.id] != next(m for m in desk.session.log.view.messages if m.id == item.id).tokens
    assert desk.bench.of(FileUpdated)[-1].tokens == rows[told.id]
