"""The project of a file, and updates of its index (R-239, R-266)."""

from __future__ import annotations

from contextlib import aclosing as closing
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from codecompanion import settings as all_settings
from codecompanion.completion.window import cut_window
from codecompanion.session.code.project_index import Freshness
from codecompanion.session.code.project_indexes import ProjectIndexes
from codecompanion.session.complete.projects import REFRESH_EVERY_S, Projects
from codecompanion.tools.files.open_files import NoEditor, Opened, OpenFile


class FakeIndex:
    def __init__(self, root):
        self.reader = SimpleNamespace(name=root)
        self.path = Path("/no/such/index.db")
        self.refreshed = 0
        self.unsaved = {}

    async def refresh(self, unsaved=None):
        self.refreshed += 1
        self.unsaved = unsaved
        return Freshness(written=len(unsaved))


class FakeIndexes:
    def __init__(self):
        self.made = {}

    async def of(self, root, choice=None):
        return self.made.setdefault(root, FakeIndex(root))


@pytest.fixture
def now():
    return [0.0]


@pytest.fixture
def make(now):
    def projects(indexes=None, root="", editor=None, project=True):
        settings = all_settings.load({"completion": {"project": project}})
        settings = msgspec.structs.replace(settings, workspace=msgspec.structs.replace(settings.workspace, root=root))
        services = SimpleNamespace(settings=settings, indexes=indexes, editor=editor or NoEditor())
        return Projects(services, lambda: now[0])

    return projects


def folder(path, *marks):
    for mark in marks:
        (path / mark).mkdir(parents=True)
    return path


async def test_a_file_is_found_by_its_absolute_path_or_below_the_working_folder(make, tmp_path):
    async with closing(make()) as projects:
        for path in (str(tmp_path / "a" / "b.py"), "a/b.py"):
            found = await projects.find(path, str(tmp_path))
            assert found is not None
            assert (found[0].root, found[1]) == (tmp_path, "a/b.py")


async def test_nothing_is_indexed_if_only_the_file_is_wanted(make, tmp_path):
    """With `completion.project = false`, no indexing starts."""
    indexes = FakeIndexes()
    async with closing(make(indexes, project=False)) as projects:
        await projects.find("a.py", str(folder(tmp_path, ".git")))
        assert projects._refreshing is None


async def test_a_file_outside_a_folder_has_no_project(make, tmp_path):
    async with closing(make()) as projects:
        assert await projects.find("/elsewhere/a.py", str(tmp_path)) is None
        assert await projects.find("../a.py", str(tmp_path)) is None
        assert await projects.find("", str(tmp_path)) is None
        assert await projects.find("a.py", "") is None
        assert await projects.find("a.py", str(Path.home())) is None, "a home folder is not a project"
        assert await projects.find("a.py", "/") is None
        assert await projects.find("a\0.py", str(tmp_path)) is None


async def test_a_link_out_of_the_project_is_outside(make, tmp_path):
    inside = folder(tmp_path / "demo", "pkg")
    (tmp_path / "secret.py").write_text("x = 1\n")
    (inside / "link.py").symlink_to(tmp_path / "secret.py")
    async with closing(make()) as projects:
        assert await projects.find("link.py", str(inside)) is None


async def test_the_configured_root_takes_precedence_over_the_working_folder(make, tmp_path):
    root = folder(tmp_path / "demo", "pkg")
    async with closing(make(root=str(root))) as projects:
        found = await projects.find(str(root / "pkg" / "a.py"), "/elsewhere")
        assert found is not None
        assert found[1] == "pkg/a.py"


async def settle(projects):
    task = projects._refreshing
    if task is not None:
        await task


async def test_a_project_under_version_control_is_indexed_and_refreshed_periodically(make, now, tmp_path):
    indexes, root = FakeIndexes(), folder(tmp_path, ".git")
    async with closing(make(indexes)) as projects:
        for at in (0, 1, REFRESH_EVERY_S - 1, REFRESH_EVERY_S, REFRESH_EVERY_S + 1):
            now[0] = at
            await projects.find("a.py", str(root))
            await settle(projects)
        assert indexes.made[root].refreshed == 2


async def test_a_folder_that_is_not_a_project_is_not_indexed(make, tmp_path):
    """Editing a file in a downloads folder must not read the whole folder."""
    indexes = FakeIndexes()
    async with closing(make(indexes)) as projects:
        assert await projects.find("a.py", str(tmp_path)) is not None
        await settle(projects)
        assert indexes.made[tmp_path].refreshed == 0


async def test_a_failing_refresh_is_harmless(make, tmp_path, caplog):
    indexes, root = FakeIndexes(), folder(tmp_path, ".git")

    async def broken(unsaved):
        raise OSError("the disk is gone")

    async with closing(make(indexes)) as projects:
        (await indexes.of(root)).refresh = broken
        assert await projects.find("a.py", str(root)) is not None
        await settle(projects)
    assert "could not be refreshed" in caplog.text


async def test_the_chats_indexes_are_used(make, tmp_path):
    """Nothing is read twice, and only the chats' code creates an index."""
    root = folder(tmp_path / "demo", ".hg")
    (root / "store.py").write_text("def open_store(path: str): ...\n")
    indexes = ProjectIndexes(tmp_path / "cache", lambda event: None)
    async with closing(make(indexes)) as projects, closing(indexes):
        found = await projects.find("new.py", str(root))
        assert found is not None
        await settle(projects)
        index = await indexes.of(root)
        assert found[0].reads(index.reader)
        await index.wait()
        again = await projects.find("new.py", str(root))
        assert again is not None
        assert again[0] is found[0]


class Buffers(NoEditor):
    """An editor with unsaved buffers."""

    def __init__(self, texts):
        self.texts, self.looks = texts, 0

    async def look(self, paths):
        assert paths is None
        self.looks += 1
        if self.texts is None:
            return Opened(silent=True)
        return Opened(
            {
                str(path): OpenFile(path=str(path), buffer=1, tick=1, modified=True, text=text)
                for path, text in self.texts.items()
            }
        )


async def test_unsaved_buffers_override_their_files(make, now, tmp_path):
    """The editor is asked when the user goes to another file, and not during typing."""
    indexes, root = FakeIndexes(), folder(tmp_path / "demo", ".git", "pkg")
    (root / "pkg" / "a.py").write_text("def old_name(): ...\n")
    editor = Buffers({root / "pkg/a.py": "def new_name(): ...\n", root / ".env": "K=1", tmp_path / "b.py": "x"})
    async with closing(make(indexes, editor=editor)) as projects:
        found = await projects.find("pkg/c.py", str(root))
        assert found is not None
        await settle(projects)
        reader = found[0]
        assert indexes.made[root].unsaved == {"pkg/a.py": "def new_name(): ...\n"}
        version, window = reader.version, cut_window("", "")
        assert version > 0, "what was chosen before is chosen again"
        texts = [chunk.text for file in reader.view("pkg/c.py", window, {}).files for chunk in file.chunks.chunks]
        assert texts == ["def new_name(): ..."]
        for seconds in (1, REFRESH_EVERY_S):
            now[0] += seconds
            await projects.find("pkg/c.py", str(root))
            await settle(projects)
        assert (editor.looks, indexes.made[root].refreshed) == (1, 2)
        (root / "pkg" / "a.py").write_text("def written_name(): ...\n")
        now[0] += REFRESH_EVERY_S
        await projects.find("pkg/c.py", str(root))
        await settle(projects)
        assert indexes.made[root].unsaved == {}, "the file was written since"
        editor.texts = {root / "pkg/new.py": "def newer_name(): ...\n"}
        await projects.find("pkg/d.py", str(root))
        await settle(projects)
        texts = [chunk.text for file in reader.view("pkg/d.py", window, {}).files for chunk in file.chunks.chunks]
        assert texts == ["def written_name(): ...", "def newer_name(): ..."]
        editor.texts = None
        await projects.find("pkg/e.py", str(root))
        await settle(projects)
        assert list(indexes.made[root].unsaved) == ["pkg/new.py"], "an editor that is silent has not saved anything"
