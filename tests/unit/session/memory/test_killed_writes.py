"""kill -9 at any step of a memory write leaves the old text or the new one, and no draft, no lock, no lost source."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from codecompanion.model.messages import Source
from codecompanion.model.provenance import UNKNOWN
from codecompanion.session.provenance.memory_sources import FILE_NAME, MemorySources
from codecompanion.store.files.memory_files import MemoryFiles
from codecompanion.tools.builtin import memory
from tests.unit.session.fakes import calls, says
from tests.unit.session.memory.test_memory_in_chats import harbour, sent, summarise

STEPS = ("open", "os.rename", "os.remove", "os.mkdir", "os.link", "os.utime", "sqlite3.connect")
MAX_STEPS = 80
PAGE = Source("page", "https://evil.example")


def killed_at_each_step(tmp_path: Path, prepare: Callable[[Path], Any], work: Callable[[Path], Any]) -> list[Path]:
    """Return one folder per step of `work`, killed at that step; in the last one it completed."""
    folders = []
    for left in range(MAX_STEPS):
        folder = tmp_path / str(left)
        folder.mkdir()
        prepare(folder)
        child = os.fork()
        if child == 0:
            _be_killed(folder, left)
            work(folder)
            os._exit(0)
        folders.append(folder)
        if os.waitpid(child, 0)[1] == 0:
            return folders
    raise AssertionError("it takes more steps than that")


def _be_killed(folder: Path, left: int) -> None:
    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        # a draft of a note is renamed in a folder that is named by its descriptor
        if event in STEPS and (str(folder) in str(arguments[0]) or event == "os.rename"):
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


def drafts(folder: Path) -> list[str]:
    return [one.name for one in folder.rglob("*") if one.suffix in (".new", ".tmp")]


def note(folder: Path, **arguments: Any) -> None:
    """Carry out a tool call in a chat that has read a page."""
    files = MemoryFiles(folder / "memories", folder / "state")
    sources = MemorySources(folder / "memories", "p")
    asked = SimpleNamespace(shared_dir=lambda: None, changing=files.changing, why_refused=lambda text: "")
    here = files.places.project_dir("p")
    context: Any = SimpleNamespace(memory_dir=here, memory=asked, why_secret=lambda text, path: "")
    sources.before_call(arguments, [PAGE])
    memory._perform(arguments, context, lambda: None)
    sources.after_call(arguments)


def create(folder: Path) -> None:
    note(folder, command="create", path="/memories/a.md", file_text="one\n")


def insert(folder: Path) -> None:
    note(folder, command="insert", path="/memories/a.md", insert_line=1, insert_text="two\n")


def rename(folder: Path) -> None:
    note(folder, command="rename", old_path="/memories/a.md", new_path="/memories/b.md")


@pytest.mark.parametrize(
    ("prepare", "work", "texts"),
    [
        (lambda folder: None, create, [{}, {"a.md": "one\n"}]),
        (create, insert, [{"a.md": "one\n"}, {"a.md": "one\ntwo\n"}]),
        (create, rename, [{"a.md": "one\n"}, {"b.md": "one\n"}]),
    ],
)
def test_a_killed_note_is_the_old_or_the_new_one_and_keeps_its_sources(tmp_path, prepare, work, texts):
    seen = []
    for folder in killed_at_each_step(tmp_path, prepare, work):
        below = folder / "memories/projects/p"
        found = {one.name: one.read_text() for one in below.glob("*.md")}
        assert found in texts
        seen.append(found)
        table = MemorySources(folder / "memories", "p")
        assert {table.of(f"/memories/{name}") for name in found} <= {(PAGE,)}
        note(folder, command="create", path="/memories/next.md", file_text="the next call works")
        assert drafts(below) == []
    assert all(text in seen for text in texts)


def test_a_killed_summary_is_complete_and_keeps_its_sources(tmp_path):
    def save(folder: Path) -> None:
        files, sources = MemoryFiles(folder / "memories", folder / "state"), MemorySources(folder / "memories")
        files.save("summary", "T", "text", "chat", 1000.0, "p", lambda path: sources.before_file(path, [PAGE]))

    for folder in killed_at_each_step(tmp_path, lambda folder: None, save):
        for path in (folder / "memories").rglob("*.md"):
            assert path.read_text().endswith("text\n")
            name = path.relative_to(folder / "memories").as_posix()
            assert MemorySources(folder / "memories").of_files([name]) == ((PAGE,),)


@pytest.mark.parametrize("kit", [False, True])
def test_a_killed_daily_log_is_the_old_or_the_new_one(tmp_path, kit):
    """With `.cowork` it is in the workspace, where a draft would eventually be committed."""

    def log(folder: Path) -> None:
        root = folder / "work"
        (root / ".cowork").mkdir(parents=True) if kit and not root.exists() else None
        MemoryFiles(folder / "memories", folder / "state").append_to_daily_log(root, [("Decisions", ["tea"])], 1000.0)

    for folder in killed_at_each_step(tmp_path, log, log):
        (path,) = folder.rglob("*.md")
        assert path.read_text().count("tea") in (1, 2)
        log(folder)
        assert path.read_text().count("tea") in (2, 3)
        assert drafts(folder) == []


def test_a_damaged_source_table_is_rewritten_with_all_other_notes_as_unknown(tmp_path):
    """Otherwise the next note would make the others look as if no outside text had gone into them."""
    create(tmp_path)
    (tmp_path / FILE_NAME).write_text('{"memories/pro')
    note(tmp_path, command="create", path="/memories/b.md", file_text="b")
    table = MemorySources(tmp_path / "memories", "p")
    assert table.of("/memories/a.md") == (UNKNOWN,)
    assert table.of("/memories/b.md") == (PAGE,)


async def test_a_note_whose_sources_cannot_be_recorded_is_not_written(tmp_path):
    """On a full disk the text of a page must not become a note without an outside source."""
    create = {"command": "create", "path": "/memories/a.md", "file_text": "from a page"}
    bench = harbour(tmp_path, calls(("c", "memory", json.dumps(create))), says("ok"))
    MemorySources(tmp_path / "memories").before_file(summarise(bench), [PAGE])
    lock = (tmp_path / FILE_NAME).with_suffix(".lock")
    lock.unlink()
    lock.mkdir()
    await sent(bench, await bench.open())
    result = bench.adapter.requests[-1].messages[-1].text
    assert result.startswith("Nothing was saved: the sources of the note cannot be recorded (")
    assert [path.name for path in (tmp_path / "memories").rglob("a.md")] == []
