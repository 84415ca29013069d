"""Checkpoint files (R-463, R-469, R-478): kills, full and read-only disks, sharing, and limits."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from codecompanion.errors import StoreUnavailable
from codecompanion.model import checkpoint as payloads
from codecompanion.model.checkpoint import Checkpoint, Snapshot
from codecompanion.store.files import checkpoints as module
from codecompanion.store.files import spans as spans_module
from codecompanion.store.files.checkpoints import CheckpointFiles, file_name
from codecompanion.store.files.conversations import KEY, Place, place_in

PYTHON_DIR = Path(__file__).resolve().parents[4] / "python"


def checkpoint(number: int, kind: str = "periodic", chat: str = "c", size: int = 0) -> dict:
    said = ({"role": "user", "content": f"words {number} " + "x" * size},)
    return payloads.write(
        Checkpoint(
            id=f"k{number}", checkpoint_kind=kind, timestamp=1000 + number, chat_id=chat, title="T",
            message_count=1, conversation_history=said,
        )
    )  # fmt: skip


def words(stored) -> list[str]:
    return [one.raw["conversationHistory"][0]["content"].strip() if one.raw else one.problem for one in stored]


def test_files_are_where_the_source_has_them(tmp_path):
    """R-478: they are spans/<chat>.jsonl and checkpoints/<chat>.json, private and without leftovers."""
    files = CheckpointFiles(tmp_path)
    files.save_checkpoint("c", checkpoint(1), keep=True)
    files.save_snapshot("c", payloads.write(Snapshot(title="s")))
    files.append_spans("c", [{"objectId": "m1", "text": "t"}])
    paths = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert paths == [
        "transcripts/checkpoints/c.json",
        "transcripts/checkpoints/c/0000000001001-periodic-1-k1.json",
        "transcripts/snapshots/c.json",
        "transcripts/spans/c.jsonl",
    ]
    for path in tmp_path.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o600 if path.is_file() else 0o700), path


def test_only_the_newest_snapshot_is_kept(tmp_path):
    """R-463."""
    files = CheckpointFiles(tmp_path)
    for title in ("one", "two"):
        size = files.save_snapshot("c", payloads.write(Snapshot(title=title)))
    (stored,) = files.payloads_of("c")
    assert stored.kind == "conversation_snapshot"
    assert stored.raw["title"] == "two"
    assert size == (tmp_path / "transcripts/snapshots/c.json").stat().st_size


def test_the_newest_is_tried_first_then_earlier_ones_then_the_snapshot(tmp_path):
    """R-473, R-474: a damaged one is reported and skipped by its reader."""
    files = CheckpointFiles(tmp_path)
    files.save_snapshot("c", {"conversationHistory": [{"role": "user", "content": "snapshot"}]})
    files.save_checkpoint("c", checkpoint(1), keep=True)
    files.save_checkpoint("c", checkpoint(2), keep=True)
    files.save_checkpoint("c", checkpoint(3, "snapshot"), keep=False)
    assert words(files.payloads_of("c")) == ["words 3", "words 2", "words 1", "snapshot"]
    (tmp_path / "transcripts/checkpoints/c.json").write_bytes(b'{"cut')
    assert "c.json is damaged" in words(files.payloads_of("c"))[0]
    assert [stored.kind for stored in files.list_checkpoints()] == ["damaged", "periodic", "periodic"]


def test_a_chosen_checkpoint_is_tried_first(tmp_path):
    """R-473: the others follow, so that an unreadable one falls through."""
    files = CheckpointFiles(tmp_path)
    for number in (1, 2, 3):
        files.save_checkpoint("c", checkpoint(number), keep=True)
    wanted = next(stored for stored in files.list_checkpoints("c") if stored.time == 1001)
    chat, name = wanted.id.split("/")
    assert words(files.payloads_of(chat, name)) == ["words 1", "words 3", "words 3", "words 2"]
    assert files.payloads_of("c", "../../secret")[0].where.endswith("checkpoints/c/secret.json")
    assert files.payloads_of("c", "nope")[0].problem


def test_the_picker_shows_kind_time_and_messages(tmp_path):
    """The newest comes first, and each is listed once, even if it has two names."""
    files = CheckpointFiles(tmp_path)
    files.save_checkpoint("c", checkpoint(1, "pre_compaction"), keep=True)
    files.save_checkpoint("c", checkpoint(2), keep=True)
    files.save_checkpoint("d", checkpoint(3, "completion", "d"), keep=True)
    listed = [
        (stored.id, stored.kind, stored.time, stored.messages, stored.title) for stored in files.list_checkpoints()
    ]
    assert listed == [
        ("d", "completion", 1003, 1, "T"),
        ("c", "periodic", 1002, 1, "T"),
        ("c/0000000001001-pre_compaction-1-k1", "pre_compaction", 1001, 1, "T"),
    ]


def test_a_chat_keeps_ten_and_the_newest_before_a_compaction(tmp_path):
    """The growth rule keeps 10 checkpoints of a chat, and always the newest one before a compaction."""
    files = CheckpointFiles(tmp_path)
    files.save_checkpoint("c", checkpoint(0, "pre_compaction"), keep=True)
    for number in range(1, 16):
        files.save_checkpoint("c", checkpoint(number), keep=True)
    times = sorted(stored.time - 1000 for stored in files.list_checkpoints("c"))
    assert times == [0, *range(6, 16)]


def test_large_checkpoints_of_a_chat_are_dropped_by_size(tmp_path, monkeypatch):
    """The growth rule allows at most that many bytes, but never drops the newest checkpoint."""
    monkeypatch.setattr(module, "KEPT_BYTES", 5_000)
    files = CheckpointFiles(tmp_path)
    for number in range(6):
        files.save_checkpoint("c", checkpoint(number, size=2_000 if number < 5 else 9_000), keep=True)
    assert [stored.time for stored in files.list_checkpoints("c")] == [1005]


def test_the_least_recently_written_chat_is_dropped_first(tmp_path, monkeypatch):
    """The growth rule also limits all chats together."""
    files = CheckpointFiles(tmp_path)
    for number, chat in enumerate("abc"):
        files.save_checkpoint(chat, checkpoint(number, chat=chat, size=3_000), keep=True)
        files.append_spans(chat, [{"objectId": "m"}])
        for path in tmp_path.rglob(f"{chat}*"):
            os.utime(path, (number * 1000, number * 1000))
        for path in (tmp_path / f"transcripts/checkpoints/{chat}").iterdir():
            os.utime(path, (number * 1000, number * 1000))
    monkeypatch.setattr(module, "ALL_BYTES", 8_500)
    CheckpointFiles(tmp_path).save_snapshot("z", {})
    assert [stored.chat for stored in files.list_checkpoints()] == ["c", "b"]
    assert not (tmp_path / "transcripts/spans/a.jsonl").exists()


def test_text_is_stored_once_and_halved_if_there_is_too_much(tmp_path, monkeypatch):
    """R-469, R-478: a message is in the file once, even after a restart; old ones are dropped first."""
    files = CheckpointFiles(tmp_path)
    files.append_spans("c", [{"objectId": "1"}, {"objectId": "2"}])
    files.append_spans("c", [{"objectId": "2"}, {"objectId": "3"}])
    again = CheckpointFiles(tmp_path)
    again.append_spans("c", [{"objectId": "3"}, {"objectId": "4"}])
    assert [span["objectId"] for span in again.load_spans("c")] == ["1", "2", "3", "4"]
    monkeypatch.setattr(spans_module, "SPANS_BYTES", 2_000)
    again.append_spans("c", [{"objectId": f"n{number}", "text": "x" * 100} for number in range(30)])
    kept = [span["objectId"] for span in again.load_spans("c")]
    assert kept == [f"n{number}" for number in range(30 - len(kept), 30)]
    assert (tmp_path / "transcripts/spans/c.jsonl").stat().st_size <= 1_000


def test_a_line_truncated_by_a_kill_harms_no_other(tmp_path):
    """R-478: the line is skipped, and the next append starts its own line."""
    files = CheckpointFiles(tmp_path)
    files.append_spans("c", [{"objectId": "1"}])
    path = tmp_path / "transcripts/spans/c.jsonl"
    path.write_bytes(path.read_bytes() + b'{"objectId": "cu')
    files.append_spans("c", [{"objectId": "2"}])
    assert [span["objectId"] for span in files.load_spans("c")] == ["1", "2"]


@pytest.mark.parametrize("chat", ["../../etc/passwd", "a/b", "", "x" * 300, "ü", "a.json", ".hidden", "a\nb"])
def test_no_chat_id_leads_out_of_the_folder(tmp_path, chat):
    """R-478: an id that cannot be a file name is hashed; the listing still shows the chat."""
    files = CheckpointFiles(tmp_path / "state")
    files.save_checkpoint(chat, checkpoint(1, chat=chat), keep=True)
    assert [path.name for path in tmp_path.iterdir()] == ["state"]
    assert len(file_name(chat)) == 64
    assert [stored.chat for stored in files.list_checkpoints()] == [chat]
    assert words(files.payloads_of(chat))[0] == "words 1"


def test_a_file_that_names_another_chat_is_listed_under_its_own_name(tmp_path):
    """A copied file must not send a restore elsewhere."""
    files = CheckpointFiles(tmp_path)
    files.save_checkpoint("mine", checkpoint(1, chat="../other"), keep=False)
    assert [stored.chat for stored in files.list_checkpoints()] == ["mine"]


SAVE = """
import os, signal, sys
from pathlib import Path
from codecompanion.store.files.checkpoints import CheckpointFiles
from tests.unit.store.files.test_checkpoints import save

def watch(event, arguments):
    global left
    if event in ("open", "os.rename", "os.link", "os.mkdir", "os.remove") and sys.argv[1] in str(arguments[0]):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

flush = os.fsync
def fsync(descriptor):
    watch("open", [sys.argv[1]])
    flush(descriptor)

for left in range(120):
    folder = Path(sys.argv[1]) / str(left)
    folder.mkdir()
    save(folder, 1)
    child = os.fork()
    if child == 0:
        sys.addaudithook(watch)
        os.fsync = fsync
        save(folder, 2)
        os._exit(0)
    if os.waitpid(child, 0)[1] == 0:
        sys.exit(0)
sys.exit("it takes more steps than that")
"""


def save(folder: Path, number: int) -> None:
    """Write all files, in the order of the session."""
    files = CheckpointFiles(folder)
    place = files.begin_conversation("c")
    said = f'{{"history":[[0,0],{{"role":"user","content":"words {number}"}}]}}\n'.encode()
    place = files.append_conversation("c", place, [said])
    files.save_snapshot("c", named({**checkpoint(number), "checkpointKind": "snapshot"}, place))
    files.save_checkpoint("c", named(checkpoint(number, "pre_compaction"), place), keep=True)
    files.append_spans("c", [{"objectId": f"m{number}"}])


def named(raw: dict, place: Place) -> dict:
    """Return the payload with its conversation stored elsewhere."""
    rest = {key: value for key, value in raw.items() if key != "conversationHistory"}
    return {**rest, KEY: {"name": place.name, "bytes": place.bytes}}


def said(*texts: str, at: int = 0) -> list[bytes]:
    """Return lines that append these messages at that position."""
    return [
        b'{"history":[[0,%d],{"role":"user","content":"%s"}]}\n' % (number, text.encode())
        for number, text in enumerate(texts, at)
    ]


def conversations(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "transcripts/conversations/c").iterdir())


def test_a_conversation_is_stored_once_for_all_its_checkpoints(tmp_path):
    """R-463, R-478: a checkpoint stores the length of its part of the file; later lines do not change it."""
    files = CheckpointFiles(tmp_path)
    first = files.append_conversation("c", files.begin_conversation("c"), said("words 1"))
    files.save_checkpoint("c", named(checkpoint(1), first), keep=True)
    second = files.append_conversation("c", first, said("more", at=1))
    files.save_checkpoint("c", named(checkpoint(2), second), keep=True)
    newest, *earlier = [one.raw["conversationHistory"] for one in files.payloads_of("c")]
    assert [[m["content"] for m in told] for told in (newest, *earlier)] == [["words 1", "more"]] * 2 + [["words 1"]]
    assert [stored.messages for stored in files.list_checkpoints("c")] == [1, 1], "as the checkpoint itself says"
    assert KEY not in files.payloads_of("c")[0].raw


def test_a_conversation_is_deleted_with_the_last_checkpoint_that_names_it(tmp_path, monkeypatch):
    """R-478: the file of a restarted chat stays as long as a kept checkpoint needs it."""
    monkeypatch.setattr(module, "KEPT", 1)
    files = CheckpointFiles(tmp_path)
    for number in range(3):
        place = files.append_conversation("c", files.begin_conversation("c"), said(f"words {number}"))
        files.save_checkpoint("c", named(checkpoint(number), place), keep=number == 0)
        assert words(files.payloads_of("c")) == ([f"words {number}"] if number else ["words 0"]) + ["words 0"]
        assert conversations(tmp_path) == [["1.jsonl"], ["1.jsonl", "2.jsonl"], ["1.jsonl", "3.jsonl"]][number]
    files.save_checkpoint("c", named(checkpoint(4), place), keep=True)
    assert words(files.payloads_of("c")) == ["words 2", "words 2"]
    assert len(conversations(tmp_path)) == 1


def test_a_conversation_counts_towards_the_limit(tmp_path, monkeypatch):
    """R-478: 32 MB for the checkpoints with everything they refer to."""
    monkeypatch.setattr(module, "KEPT_BYTES", 20_000)
    files = CheckpointFiles(tmp_path)
    for number in range(4):
        place = files.append_conversation("c", files.begin_conversation("c"), said("x" * 8_000))
        files.save_checkpoint("c", named(checkpoint(number), place), keep=True)
    assert len(files.list_checkpoints("c")) == 2
    assert len(conversations(tmp_path)) == 2


def test_a_truncated_conversation_is_reported_and_skipped(tmp_path):
    """R-474: a file shorter than in its checkpoint, or with a damaged line, is not a valid state."""
    files = CheckpointFiles(tmp_path)
    good = files.append_conversation("c", files.begin_conversation("c"), said("words 1"))
    files.save_snapshot("c", named(checkpoint(1), good))
    files.save_checkpoint("c", named(checkpoint(2), Place(good.name, good.bytes + 5)), keep=False)
    newest, snapshot = files.payloads_of("c")
    assert newest.problem.endswith("is shorter than a checkpoint says")
    assert words([snapshot]) == ["words 1"]
    bad = files.append_conversation("c", good, [b'{"history":[[0,9]]}\n'])
    files.save_checkpoint("c", named(checkpoint(2), bad), keep=False)
    assert "line 2: the range [0, 9] does not exist" in files.payloads_of("c")[0].problem


def test_the_remains_of_a_failed_append_are_overwritten(tmp_path):
    """R-478: no checkpoint names them."""
    files = CheckpointFiles(tmp_path)
    place = files.append_conversation("c", files.begin_conversation("c"), said("words 1"))
    files.append_conversation("c", place, said("lost, and longer than what comes", at=1))
    place = files.append_conversation("c", place, said("two", at=1))
    files.save_checkpoint("c", named(checkpoint(2), place), keep=False)
    assert [m["content"] for m in files.payloads_of("c")[0].raw["conversationHistory"]] == ["words 1", "two"]
    files.delete("c")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.sweep
def test_a_kill_between_any_two_steps_leaves_complete_files(tmp_path):
    """R-478: killed -9 at every opening, flush, link and rename, each file is the old or the new one, whole."""
    environment = {**os.environ, "PYTHONPATH": f"{PYTHON_DIR}:{PYTHON_DIR.parent}"}
    subprocess.run([sys.executable, "-c", SAVE, str(tmp_path)], env=environment, check=True)
    seen = set()
    for folder in tmp_path.iterdir():
        files = CheckpointFiles(folder)
        stored = files.payloads_of("c")
        assert not any(one.problem for one in stored)
        newest, snapshot = words(stored)[0], words(stored)[-1]
        # The snapshot is written first: it is never older than the checkpoint.
        assert (newest, snapshot) != ("words 2", "words 1")
        seen.add((newest, snapshot))
        assert [span["objectId"] for span in files.load_spans("c")][:1] == ["m1"]
        files.save_checkpoint("c", checkpoint(3), keep=True)
        assert words(files.payloads_of("c"))[0] == "words 3"
    assert seen == {("words 1", "words 1"), ("words 1", "words 2"), ("words 2", "words 2")}


def test_drafts_of_killed_hosts_are_removed(tmp_path):
    """They have no owner, and would pile up."""
    files = CheckpointFiles(tmp_path)
    files.save_snapshot("c", {})
    draft = tmp_path / "transcripts/snapshots/c.json.abc.new"
    draft.write_text("half")
    CheckpointFiles(tmp_path).save_snapshot("c", {})
    assert draft.exists(), "a young one may be in the making"
    os.utime(draft, (0, 0))
    CheckpointFiles(tmp_path).save_snapshot("c", {})
    assert not draft.exists()


@pytest.mark.parametrize("call", ["open", "fsync", "replace"])
def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch, call):
    """R-472: the caller gets one sentence; the old file is unchanged, no draft stays."""
    files = CheckpointFiles(tmp_path)
    files.save_checkpoint("c", checkpoint(1), keep=False)
    real = os.open

    def full(*arguments, **rest):
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "c.json"))

    with monkeypatch.context() as patched:
        if call == "open":
            patched.setattr(os, "open", lambda path, flags, *mode: full() if flags & os.O_CREAT else real(path, flags))
        elif call == "fsync":
            patched.setattr(os, "fsync", full)
        else:
            patched.setattr(Path, "replace", full)
        with pytest.raises(StoreUnavailable, match="the disk is full"):
            files.save_checkpoint("c", checkpoint(2), keep=False)
    assert words(files.payloads_of("c")) == ["words 1"]
    assert [path.name for path in (tmp_path / "transcripts/checkpoints").iterdir()] == ["c.json"]


def test_without_links_both_names_are_written(tmp_path, monkeypatch):
    """Some file systems have no hard links."""
    monkeypatch.setattr(os, "link", lambda *names: (_ for _ in ()).throw(OSError(errno.EPERM, "no links")))
    files = CheckpointFiles(tmp_path)
    files.save_checkpoint("c", checkpoint(1), keep=True)
    assert words(files.payloads_of("c")) == ["words 1", "words 1"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_folder_is_reported(tmp_path):
    """R-472."""
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StoreUnavailable, match="permission"):
            CheckpointFiles(tmp_path / "state").save_snapshot("c", {})
    finally:
        tmp_path.chmod(0o700)


def test_a_file_in_place_of_the_folder_is_reported(tmp_path):
    """R-472: it is reported for root, too."""
    (tmp_path / "state").write_text("not a folder")
    with pytest.raises(StoreUnavailable, match="cannot use"):
        CheckpointFiles(tmp_path / "state").save_snapshot("c", {})


def test_two_neovims_write_their_own_chats(tmp_path):
    """Each host has its own files; the folder is shared."""
    one, other = CheckpointFiles(tmp_path), CheckpointFiles(tmp_path)
    for number in range(3):
        one.save_checkpoint("a", checkpoint(number, chat="a"), keep=True)
        other.save_checkpoint("b", checkpoint(number, chat="b"), keep=True)
    assert [stored.chat for stored in one.list_checkpoints()].count("b") == 3
    assert words(other.payloads_of("a"))[0] == "words 2"


def read_plainly(stored: bytes) -> Place | None:
    """Return the position found by reading the whole file."""
    raw = json.loads(stored)
    return msgspec.convert(raw[KEY], Place) if KEY in raw else None


@pytest.mark.parametrize(
    "raw",
    [
        {"a": 1, KEY: {"name": "3", "bytes": 12, "crc": 7}},
        {KEY: {"name": "3", "bytes": 12}},
        {KEY: {"name": "3", "bytes": 12, "crc": None}, "later": "x"},
        {"group": {"x": 1, KEY: {"name": "9", "bytes": 1}}},
        {KEY: {"name": "3", "bytes": 12}, "group": {"x": 1, KEY: {"name": "9", "bytes": 1}}},
        {"text": f',"{KEY}":{{"name":"9","bytes":1}}}}', KEY: {"name": "3", "bytes": 12}},
        {"a": 1, "text": f',"{KEY}":{{"name":"9","bytes":1}}}}'},
        {"a": 1, KEY: {"name": "ä", "bytes": 12}},
        {"a": 1},
    ],
)
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_reading_only_the_end_yields_the_same_position(raw, separators):
    stored = json.dumps(raw, separators=separators).encode()
    assert place_in(stored) == read_plainly(stored)


def test_of_our_own_files_only_the_end_is_read(monkeypatch):
    stored = payloads.encode({"a": "x" * 1000, KEY: msgspec.to_builtins(Place("3", 12, 7))})

    def loads(given):
        raise AssertionError("the whole file was read")

    monkeypatch.setattr(json, "loads", loads)
    assert place_in(stored) == Place("3", 12, 7)
