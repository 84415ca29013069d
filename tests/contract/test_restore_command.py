"""`sessions restore`: R-473, R-475 and R-478 without Neovim or the database."""

from __future__ import annotations

import json
from typing import NamedTuple

import pytest

from codecompanion.model import checkpoint as payloads
from codecompanion.model.checkpoint import Checkpoint
from codecompanion.model.history import ChatCreated, MessageAdded
from codecompanion.model.messages import Message
from codecompanion.store.files.checkpoints import CheckpointFiles
from codecompanion.store.opening import open_store
from tests.contract.command_line import run

SAID = ({"role": "user", "content": "question"}, {"role": "assistant", "content": "answer"})


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def restore(tmp_path, *arguments, state="state"):
    folders = ("sessions", "--data-dir", str(tmp_path / "data"), "restore", "--state-dir", str(tmp_path / state))
    return Done(*run(*folders, *arguments))


@pytest.fixture
def files(tmp_path):
    files = CheckpointFiles(tmp_path / "state")
    for number, kind in enumerate(("pre_compaction", "periodic")):
        made = Checkpoint(
            id=f"k{number}", chat_id="c", title="T", checkpoint_kind=kind, timestamp=1000 + number,
            conversation_history=SAID[: number + 1],
        )  # fmt: skip
        files.save_checkpoint("c", payloads.write(made), keep=True)
    return files


def test_checkpoints_are_listed_newest_first(tmp_path, files):
    done = restore(tmp_path)
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["c", "c/0000000001000-pre_compaction-1-k0"]
    assert "periodic" in done.stdout.splitlines()[0]
    assert "2 messages  T" in done.stdout.splitlines()[0]


def test_a_chat_is_printed_as_a_transcript(tmp_path, files):
    """Only the transcript is on stdout; its source is reported on stderr."""
    done = restore(tmp_path, "c")
    assert [json.loads(line)["content"] for line in done.stdout.splitlines()] == ["question", "answer"]
    assert "source 1 of 5" in done.stderr
    one = restore(tmp_path, "c/0000000001000-pre_compaction-1-k0")
    assert [json.loads(line)["content"] for line in one.stdout.splitlines()] == ["question"]


def test_the_database_provides_what_the_files_lack(tmp_path, files):
    """R-475: the database is the last resort."""
    store = open_store(tmp_path / "data")
    store.append(
        "d",
        [
            ChatCreated(adapter="a", model="m", policy="p", cwd="/"),
            MessageAdded(message=Message(id="1", role="user", content="from the log")),
        ],
    ).result()
    store.close()
    done = restore(tmp_path, "d")
    assert "User: from the log" in json.loads(done.stdout.splitlines()[0])["content"]
    assert "source 5 of 5" in done.stderr


def test_a_damaged_database_is_reported_and_not_needed(tmp_path, files):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/sessions.db").write_bytes(b"no database" * 100)
    done = restore(tmp_path, "c")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 2


def test_a_missing_chat_is_one_line(tmp_path, files):
    """The exit status is 2, and the error shows the expected form."""
    done = restore(tmp_path, "nope")
    assert done.returncode == 2
    assert 'No stored chat or checkpoint is called "nope"; nothing was restored.' in done.stderr
    assert done.stdout == ""
    gone = restore(tmp_path, state="none")
    assert gone.returncode == 2
    assert "does not exist" in gone.stderr
