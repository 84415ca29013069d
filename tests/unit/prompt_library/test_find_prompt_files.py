"""The files that are prompts, their owners, and the files that are not read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codecompanion.prompt_library.find_prompt_files import MAX_BYTES, MAX_FILES, PromptText, Refused, find_prompts

TEXT = "---\nname: x\n---\nhi\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    (folder / ".codecompanion" / "prompts").mkdir(parents=True)
    return folder


def found(project: Path, *folders: str, own: str = "") -> tuple[dict[str, str], list[str]]:
    all_found = list(find_prompts(folders, own, project))
    read = {f.label: f.origin for f in all_found if isinstance(f, PromptText)}
    return read, [f.text for f in all_found if isinstance(f, Refused)]


def test_the_projects_files_come_from_its_repository(project: Path) -> None:
    """They are found from a folder below it, too; nested folders count, hidden ones do not."""
    prompts = project / ".codecompanion" / "prompts"
    for name in ("b.md", "deep/a.md", ".hidden/c.md", "notes.txt"):
        (prompts / name).parent.mkdir(exist_ok=True)
        (prompts / name).write_text(TEXT)
    (project / "sub").mkdir()
    assert found(project / "sub") == (
        {".codecompanion/prompts/b.md": "project", ".codecompanion/prompts/deep/a.md": "project"},
        [],
    )


def test_a_file_in_the_project_belongs_to_the_project(project: Path, tmp_path: Path) -> None:
    """A configured folder does not make a repository's text the user's; the user's own folder is theirs anywhere."""
    for folder in (project / "prompts", tmp_path / "mine", project / "nvim"):
        folder.mkdir()
        (folder / "p.md").write_text(TEXT)
    read, _ = found(project, "prompts", str(tmp_path / "mine"), own=str(project / "nvim"))
    assert sorted(read.values()) == ["project", "user", "user"]
    (tmp_path / "link").symlink_to(project / "prompts")
    assert set(found(project, str(tmp_path / "link"))[0].values()) == {"project"}


def test_a_link_out_of_the_project_is_refused_and_the_users_own_is_not(project: Path, tmp_path: Path) -> None:
    """`secrets.md -> ~/.netrc` brings nothing into a chat."""
    (tmp_path / "secret.md").write_text(TEXT)
    (project / ".codecompanion/prompts/p.md").symlink_to(tmp_path / "secret.md")
    mine = tmp_path / "mine"
    mine.mkdir()
    read, refused = found(project, own=str(mine))
    assert read == {}
    assert refused == [".codecompanion/prompts/p.md: it links outside the project, so it is not read."]
    (mine / "q.md").symlink_to(tmp_path / "secret.md")
    assert list(found(project, own=str(mine))[0].values()) == ["user"]


def test_binary_or_oversized_files_are_named(project: Path) -> None:
    """Binary and huge files, pipes, folders and dead links are reported; none of them blocks."""
    prompts = project / ".codecompanion" / "prompts"
    (prompts / "binary.md").write_bytes(b"---\0\n")
    (prompts / "huge.md").write_bytes(b"x" * (MAX_BYTES + 1))
    os.mkfifo(prompts / "pipe.md")
    (prompts / "folder.md").mkdir()
    (prompts / "dead.md").symlink_to(prompts / "nowhere.md")
    read, refused = found(project)
    assert read == {}
    for name, why in (("binary", "binary"), ("huge", "at most"), ("pipe", "regular"), ("dead", "no file")):
        assert any(f"{name}.md" in text and why in text for text in refused), (name, refused)


def test_bom_and_windows_line_ends_are_not_part_of_the_text(project: Path) -> None:
    """The front matter of a file from Windows is found."""
    (project / ".codecompanion/prompts/w.md").write_bytes(b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode())
    (only,) = find_prompts((), "", project)
    assert isinstance(only, PromptText)
    assert only.text == TEXT


def test_too_many_files_are_reported(project: Path) -> None:
    """A folder of thousands is a mistake, and costs no more than the limit."""
    for number in range(MAX_FILES + 1):
        (project / f".codecompanion/prompts/{number:03}.md").write_text(TEXT)
    read, refused = found(project)
    assert len(read) == MAX_FILES
    assert "more than 200 prompts" in refused[0]


def test_a_loop_of_links_terminates(project: Path, tmp_path: Path) -> None:
    """The user's folders may be linked; a link that leads into itself is followed a few times at most."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "p.md").write_text(TEXT)
    (mine / "again").symlink_to(mine)
    assert len(found(project, own=str(mine))[0]) == 1
