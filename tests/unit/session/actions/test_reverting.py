"""Reverting one change in the current text of a file."""

from __future__ import annotations

import contextlib
import json
import random
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codecompanion.errors import InputError
from codecompanion.session.files.revert_plan import Clash, revert_change
from codecompanion.wire.events import ApprovalRequested, ToolFinished
from codecompanion.wire.requests import Approve, ListChanges, RevertChanges
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says, submit

BEFORE = "".join(f"line {number}\n" for number in range(12))
AFTER = BEFORE.replace("line 4\n", "four\nand more\n").replace("line 9\n", "")
EDITS = st.lists(
    st.tuples(st.sampled_from(["replace", "insert", "delete"]), st.integers(0, 11)), min_size=1, max_size=4
)


def test_an_unchanged_file_is_reverted_exactly() -> None:
    assert revert_change(AFTER, BEFORE, AFTER) == BEFORE
    assert revert_change(BEFORE, BEFORE, AFTER) == BEFORE
    assert revert_change("new\n", None, "new\n") is None
    assert revert_change(None, BEFORE, None) == BEFORE


@pytest.mark.parametrize(
    ("now", "before", "after", "reason"),
    [
        ("changed\n", None, "new\n", "changed since then"),
        ("other\n", BEFORE, None, "exists again"),
        (None, BEFORE, AFTER, "deleted since then"),
        (AFTER.replace("four", "mine"), BEFORE, AFTER, "later changes overlap"),
    ],
)
def test_a_revert_that_would_lose_later_changes_is_refused(now, before, after, reason) -> None:
    with pytest.raises(Clash, match=reason):
        revert_change(now, before, after)


@given(EDITS)
@settings(max_examples=60, deadline=None)
def test_later_edits_are_never_lost(edits: list[tuple[str, int]]) -> None:
    """Each later line is in the reverted text, or in the one with conflict markers."""
    lines = AFTER.splitlines(keepends=True)
    typed = []
    for number, (kind, at) in enumerate(edits):
        row = min(at, len(lines) - 1)
        line = f"typed {number}\n"
        if kind == "delete":
            typed = [one for one in typed if one != lines[row]]
            del lines[row]
        else:
            lines[row : row + (kind == "replace")] = [line]
            typed.append(line)
    typed = [line for line in typed if line in lines]
    marked, text = _outcome("".join(lines))
    assert all(line in (marked or text) for line in typed)
    assert marked or "and more" not in text


def _outcome(now: str) -> tuple[str, str]:
    """Return the text with conflict markers, or the text without the change."""
    try:
        return "", revert_change(now, BEFORE, AFTER) or ""
    except Clash as clash:
        return clash.marked or now, ""


async def _changed(tmp_path, *wanted):
    """Let a model make changes in a workspace; return the chat and the ids of the changes, oldest first."""
    root = tmp_path / "workspace"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "a.txt").write_text("one\n")
    (root / "sub" / "link").symlink_to("a.txt")
    replies = [calls(*((f"c{at}", name, json.dumps(given)) for at, (name, given) in enumerate(wanted)))]
    bench = Bench(root, ScriptedAdapter("s", [*replies, says("done")]))
    session = await bench.open()
    session.submit(submit("go"))
    if wanted[0][0] == "delete_file":
        await bench.until(lambda: bench.of(ApprovalRequested))
        session.desk.answer(Approve(call_id="c0", decision="once"))
    await bench.idle(session)
    assert {event.status for event in bench.of(ToolFinished)} == {"ok"}
    rows = await session.changes.carry_out(ListChanges())
    return root, session, [row["change_id"] for row in reversed(rows)]


def _contents(folder):
    return {entry.name: entry.is_symlink() or entry.read_bytes() for entry in folder.iterdir()}


CHANGES = [
    ("insert_edit", {"path": "sub/a.txt", "old_text": "one", "new_text": "two"}),
    ("create_file", {"path": "sub/new.txt", "content": "new\n"}),
    ("delete_file", {"path": "sub/a.txt"}),
    ("delete_file", {"path": "sub/link"}),
]


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: f"{change[0]} {change[1]['path']}")
async def test_a_revert_does_not_follow_a_folder_that_became_a_link(tmp_path, change, inside):
    """A link out of the workspace, or within it to a file that something runs, is refused: no one agreed to that."""
    root, session, ids = await _changed(tmp_path, change)
    elsewhere = root / ".git" if inside else tmp_path / "outside"
    elsewhere.mkdir()
    shutil.copytree(root / "sub", elsewhere, dirs_exist_ok=True, symlinks=True)
    shutil.rmtree(root / "sub")
    before = _contents(elsewhere)
    (root / "sub").symlink_to(elsewhere)
    answer = await session.changes.carry_out(RevertChanges(changes=tuple(ids)))
    assert "its folder is now a link to" in answer["text"]
    assert answer["reverted"] == 0
    assert _contents(elsewhere) == before


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: f"{change[0]} {change[1]['path']}")
@pytest.mark.parametrize("there", [True, False])
async def test_a_revert_does_not_write_through_a_link_that_replaced_the_file(tmp_path, change, there):
    """A revert does not write through a dangling link either, because that would create the link's target."""
    root, session, ids = await _changed(tmp_path, change)
    target = tmp_path / "target"
    if there:
        target.write_text("two\n")
    path = root / change[1]["path"]
    path.unlink(missing_ok=True)
    path.symlink_to(target)
    answer = await session.changes.carry_out(RevertChanges(changes=tuple(ids)))
    assert answer["reverted"] == 0
    assert path.is_symlink()
    assert target.exists() == there
    assert not there or target.read_text() == "two\n"


async def test_of_two_changes_in_a_file_the_one_without_overlap_is_reverted(tmp_path):
    """The other one is named, and can be compared or marked like a single change."""
    edits = [
        ("create_file", {"path": "b.txt", "content": BEFORE}),
        ("insert_edit", {"path": "b.txt", "old_text": "line 2\n", "new_text": "two\n"}),
        ("insert_edit", {"path": "b.txt", "old_text": "line 9\n", "new_text": "nine\n"}),
    ]
    for at, typed in enumerate(["two", "nine"]):
        root, session, (_, *ids) = await _changed(tmp_path / str(at), *edits)
        path = root / "b.txt"
        path.write_text(path.read_text().replace(typed, "mine"))
        answer = await session.changes.carry_out(RevertChanges(changes=tuple(ids)))
        line, was = {"two": (3, "line 2"), "nine": (10, "line 9")}[typed]
        assert answer["text"] == (
            f"Reverted 1 of 2 changes to b.txt. Not changed: b.txt (change at line {line}: later changes overlap)."
        )
        assert path.read_text() == BEFORE.replace(was, "mine")
        (conflict,) = answer["conflicts"]
        assert (conflict.changes, conflict.can_compare, conflict.can_mark) == ((ids[at],), True, True)
        rows = await session.changes.carry_out(ListChanges())
        assert {row["change_id"]: row["reverted"] for row in rows if row["change_id"] in ids} == {
            ids[at]: False,
            ids[1 - at]: True,
        }


async def _two_hunks(tmp_path):
    """Return the workspace and chat with one change of two hunks, its id, and the tool result the model receives."""
    text = BEFORE.replace("line 1\n", "first\n").replace("line 10\n", "last\n")
    made = ("create_file", {"path": "b.txt", "content": BEFORE})
    edited = ("insert_edit", {"path": "b.txt", "old_text": BEFORE, "new_text": text})
    root, session, ids = await _changed(tmp_path, made, edited)
    return root / "b.txt", session, ids[-1], text


def _told(session):
    return [message.text for message in session.log.view.messages if message.tag in ("reverted", "reapplied")]


async def _is_reverted(session, change_id):
    rows = await session.changes.carry_out(ListChanges())
    return next(row["reverted"] for row in rows if row["change_id"] == change_id)


async def test_a_change_counts_as_reverted_once_its_last_hunk_is_reverted(tmp_path):
    """Reapplying the change restores all of it, not only its last hunk."""
    path, session, change, text = await _two_hunks(tmp_path)
    answer = await session.changes.carry_out(RevertChanges(changes=(change,), hunk=0))
    assert answer["text"] == "Reverted one hunk of b.txt."
    assert not await _is_reverted(session, change)
    assert "reverted a part of your change of `b.txt`" in _told(session)[-1]
    answer = await session.changes.carry_out(RevertChanges(changes=(change,), hunk=0))
    assert answer["text"] == "Reapplied one hunk of b.txt."
    await session.changes.carry_out(RevertChanges(changes=(change,), hunk=0))
    answer = await session.changes.carry_out(RevertChanges(changes=(change,), hunk=1))
    assert answer["text"] == "Reverted b.txt."
    assert path.read_text() == BEFORE
    assert await _is_reverted(session, change)
    (told,) = _told(session)
    assert "reverted your change of `b.txt`" in told
    answer = await session.changes.carry_out(RevertChanges(changes=(change,)))
    assert answer["text"] == "Reapplied b.txt."
    assert path.read_text() == text
    assert not await _is_reverted(session, change)


async def _hunks(session, change_id):
    rows = await session.changes.carry_out(ListChanges(hunks=True))
    return next([hunk["reverted"] for hunk in row["hunks"]] for row in rows if row["change_id"] == change_id)


async def _reverts(session):
    """Return the ids of the reverts, oldest first."""
    rows = await session.changes.carry_out(ListChanges())
    return [row["change_id"] for row in reversed(rows) if row["kind"] != "tool"]


@pytest.mark.parametrize("how", ["its hunk", "its revert"])
@pytest.mark.parametrize("whole", ["hunk by hunk", "the rest at once"])
@pytest.mark.parametrize("hunk", [0, 1])
async def test_a_change_counts_again_once_a_hunk_is_reapplied(tmp_path, how, whole, hunk):
    """The file's content decides, whichever hunk is reapplied, and in whichever way."""
    path, session, change, text = await _two_hunks(tmp_path)
    texts = [BEFORE.replace("line 1\n", "first\n"), BEFORE.replace("line 10\n", "last\n")]
    first = 1 - hunk if whole == "hunk by hunk" else hunk
    await session.changes.carry_out(RevertChanges(changes=(change,), hunk=first))
    rest = 1 - first if whole == "hunk by hunk" else None
    await session.changes.carry_out(RevertChanges(changes=(change,), hunk=rest))
    assert path.read_text() == BEFORE
    assert await _is_reverted(session, change)
    assert await _hunks(session, change) == [True, True]
    revert = (await _reverts(session))[0 if hunk == first else 1]
    wanted = RevertChanges(changes=(change,), hunk=hunk) if how == "its hunk" else RevertChanges(changes=(revert,))
    answer = await session.changes.carry_out(wanted)
    assert answer["text"].startswith("Reapplied ")
    assert path.read_text() == texts[hunk]
    assert not await _is_reverted(session, change)
    assert await _hunks(session, change) == [hunk != 0, hunk != 1]
    assert "reapplied a part of your change of `b.txt`" in _told(session)[-1]
    # and reverted once more
    answer = await session.changes.carry_out(RevertChanges(changes=(change,)))
    assert answer["text"] == "Reverted b.txt."
    assert path.read_text() == BEFORE
    assert await _is_reverted(session, change)
    answer = await session.changes.carry_out(RevertChanges(changes=(change,)))
    assert path.read_text() == text
    assert await _hunks(session, change) == [False, False]
    assert "reapplied your change of `b.txt`" in _told(session)[-1]


@pytest.mark.parametrize("seed", range(8))
async def test_the_state_follows_the_content_of_the_file(tmp_path, seed):
    """The state is correct after any sequence of reverts: of hunks, of the change, and of reverts."""
    path, session, change, _ = await _two_hunks(tmp_path)
    choose = random.Random(seed)
    for _ in range(8):
        kind = choose.choice(["hunk", "hunk", "change", "revert"])
        hunk = choose.randrange(2)
        reverts = await _reverts(session)
        wanted = RevertChanges(changes=(change,), hunk=hunk if kind == "hunk" else None)
        if kind == "revert" and reverts:
            wanted = RevertChanges(changes=(choose.choice(reverts),))
        with contextlib.suppress(InputError):
            await session.changes.carry_out(wanted)
        gone = [word not in path.read_text() for word in ("first", "last")]
        assert await _hunks(session, change) == gone, f"after {kind} {hunk}"
        assert await _is_reverted(session, change) is all(gone)


async def test_one_hunk_of_a_fully_reverted_change_can_be_reapplied(tmp_path):
    path, session, change, _ = await _two_hunks(tmp_path)
    await session.changes.carry_out(RevertChanges(changes=(change,)))
    answer = await session.changes.carry_out(RevertChanges(changes=(change,), hunk=1))
    assert answer["text"] == "Reapplied one hunk of b.txt."
    assert path.read_text() == BEFORE.replace("line 10\n", "last\n")
    assert await _hunks(session, change) == [True, False]


async def test_a_revert_undone_twice_is_a_revert_again(tmp_path):
    """The sentences for the user and for the model state what was done to the file."""
    path, session, change, text = await _two_hunks(tmp_path)
    await session.changes.carry_out(RevertChanges(changes=(change,)))
    for verb, now in (("Reapplied", text), ("Reverted", BEFORE), ("Reapplied", text)):
        newest = (await _reverts(session))[-1]
        answer = await session.changes.carry_out(RevertChanges(changes=(newest,)))
        assert (answer["text"], answer["reapplied"]) == (f"{verb} b.txt.", verb == "Reapplied")
        rows = await session.changes.carry_out(ListChanges())
        assert rows[0]["kind"] == {"Reapplied": "reapply", "Reverted": "revert"}[verb]
        assert path.read_text() == now
        assert f"{verb.lower()} your change" in _told(session)[-1]
        assert await _is_reverted(session, change) is (verb == "Reverted")


async def test_later_edits_elsewhere_do_not_keep_a_change_from_counting_as_reverted(tmp_path):
    path, session, change, _ = await _two_hunks(tmp_path)
    path.write_text(path.read_text().replace("line 6", "mine"))
    for hunk in (1, 0):
        await session.changes.carry_out(RevertChanges(changes=(change,), hunk=hunk))
    assert path.read_text() == BEFORE.replace("line 6", "mine")
    assert await _is_reverted(session, change)


async def test_a_reported_revert_stays_where_it_was_sent(tmp_path):
    """The next request begins with the whole previous one (prompt caches)."""
    root = tmp_path / "workspace"
    root.mkdir()
    (root / "b.txt").write_text("one\n")
    edit = json.dumps({"path": "b.txt", "old_text": "one", "new_text": "two"})
    bench = Bench(root, ScriptedAdapter("s", [calls(("c0", "insert_edit", edit)), says("done"), says("a"), says("b")]))
    session = await bench.open()
    session.submit(submit("go"))
    await bench.idle(session)
    (row,) = await session.changes.carry_out(ListChanges())
    await session.changes.carry_out(RevertChanges(changes=(row["change_id"],), hunk=0))
    session.submit(submit("and now?"))
    await bench.idle(session)
    sent = [message.id for message in session.log.view.messages]
    await session.changes.carry_out(RevertChanges(changes=(row["change_id"],)))
    assert [message.id for message in session.log.view.messages][: len(sent)] == sent
    assert [text.split("`")[0] for text in _told(session)] == [
        "The user reverted your change of ",
        "The user reapplied your change of ",
    ]
