"""Decisions about folders and files: their scope, duration and storage."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
from pathlib import Path

import pytest

from codecompanion.errors import InputError
from codecompanion.session.trust.decisions import FileHash
from codecompanion.session.trust.folders import covers, folder_of, identity_of, is_listed
from codecompanion.session.trust.trust import Trust


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with rules."""
    folder = tmp_path.resolve() / "work" / "repo"
    (folder / ".git").mkdir(parents=True)
    (folder / "AGENTS.md").write_text("Be brief.")
    return folder


@pytest.fixture
def trust(tmp_path: Path) -> Trust:
    """Trust stored in a file, without decisions."""
    return Trust(tmp_path / "data" / "trust.json", neovim=tmp_path / "trust")


async def test_nothing_is_trusted_before_the_user_decides(trust: Trust, repo: Path) -> None:
    """Neither the folder nor its files are trusted."""
    assert not trust.is_trusted(repo)
    assert not trust.allows(repo, repo / "AGENTS.md", sha("Be brief."))


async def test_a_trusted_folder_covers_changes_but_not_a_repository_inside(trust: Trust, repo: Path) -> None:
    """Its subfolders belong to the folder; a clone inside is a separate one."""
    child = repo / "vendor" / "child"
    (child / ".git").mkdir(parents=True)
    await trust.trust_folder(folder_of(repo))
    assert trust.is_trusted(repo / "src")
    assert trust.allows(repo, repo / "AGENTS.md", sha("anything"))
    assert not trust.is_trusted(child)
    assert not trust.allows(repo, child / "AGENTS.md", sha("x"))
    assert not trust.allows(child, child / "AGENTS.md", sha("x"))


async def test_files_that_start_programs_are_trusted_with_their_content(trust: Trust, repo: Path) -> None:
    """A command in the sandbox may write the file that starts servers outside of it."""
    file = repo / ".mcp.json"
    await trust.trust_folder(folder_of(repo), [FileHash(str(file), sha("one"))])
    assert trust.allows(repo, file, sha("one"), runs=True)
    assert not trust.allows(repo, file, sha("two"), runs=True)


async def test_a_change_since_the_decision_is_detected(trust: Trust, repo: Path) -> None:
    """The page marks it: for a single file, and for one that starts programs in a trusted folder."""
    folder, rules, servers = folder_of(repo), repo / "AGENTS.md", repo / ".mcp.json"
    await trust.trust_folder(folder, [FileHash(str(servers), sha("one"))])
    await trust.trust_files(folder, [FileHash(str(rules), sha("Be brief."))])
    known = trust.decisions()
    for file, same, other in ((servers, "one", "two"), (rules, "Be brief.", "Be long.")):
        assert not known.knows_other(folder, str(file), sha(same))
        assert known.knows_other(folder, str(file), sha(other))
    assert not known.knows_other(folder, str(repo / "CLAUDE.md"), sha("new"))


async def test_a_trusted_file_is_trusted_with_its_content_in_its_folder(trust: Trust, repo: Path) -> None:
    """A change asks again; the decision does not apply in another folder that links to the same file."""
    file = repo / "AGENTS.md"
    await trust.trust_files(folder_of(repo), [FileHash(str(file), sha("Be brief."))])
    assert trust.allows(repo, file, sha("Be brief."))
    assert not trust.allows(repo, file, sha("Be long."))
    other = repo.parent / "other"
    other.mkdir()
    (other / "AGENTS.md").symlink_to(file)
    assert not trust.allows(other, other / "AGENTS.md", sha("Be brief."))


async def test_a_folder_moved_to_a_trusted_path_is_not_trusted(trust: Trust, repo: Path) -> None:
    """The trusted folder is not trusted under its new name either."""
    await trust.trust_folder(folder_of(repo))
    (repo.parent / "evil").mkdir()
    repo.rename(repo.parent / "moved")
    assert not trust.is_trusted(repo.parent / "moved")
    (repo.parent / "evil").rename(repo)
    assert not trust.is_trusted(repo)


async def test_a_folder_replaced_since_it_was_shown_is_refused(trust: Trust, repo: Path) -> None:
    """The page carries the identity of the folder that it showed."""
    shown = identity_of(repo)
    repo.rename(repo.parent / "moved")
    repo.mkdir()
    with pytest.raises(InputError, match="another folder"):
        await trust.trust_folder(repo, identity=shown)
    assert not trust.is_trusted(repo)


async def test_a_folder_that_is_deleted_and_recreated_is_a_different_one(trust: Trust, repo: Path) -> None:
    """`rm -rf proj && git clone … proj`: ext4 reuses the inode of the old folder."""
    for _ in range(20):
        await trust.trust_folder(repo)
        assert trust.is_trusted(repo)
        shutil.rmtree(repo)
        (repo / ".git").mkdir(parents=True)
        assert not trust.is_trusted(repo)
        (repo / "file").touch()


async def test_links_lead_to_the_decision_about_their_target(trust: Trust, repo: Path) -> None:
    """A path with a symlink or `..` is the same folder."""
    link = repo.parent / "link"
    link.symlink_to(repo)
    await trust.trust_folder(folder_of(link))
    assert trust.is_trusted(repo / "src" / "..")
    assert trust.is_trusted(link)
    outside = repo.parent / "outside.md"
    outside.write_text("x")
    (repo / "CLAUDE.md").symlink_to(outside)
    assert not trust.allows(repo, repo / "CLAUDE.md", sha("x"))


async def test_two_neovims_agree_at_once(trust: Trust, repo: Path, tmp_path: Path) -> None:
    """A decision in one applies in the other, and neither overwrites the other's."""
    other = Trust(tmp_path / "data" / "trust.json")
    await trust.trust_folder(folder_of(repo))
    assert other.is_trusted(repo)
    folders = [tmp_path.resolve() / f"f{number}" for number in range(8)]
    for folder in folders:
        folder.mkdir()
    await asyncio.gather(*((trust, other)[n % 2].trust_folder(f) for n, f in enumerate(folders)))
    assert all(trust.is_trusted(folder) and other.is_trusted(folder) for folder in folders)
    seen = trust.version()
    assert await other.revoke(repo)
    assert trust.version() != seen
    assert not trust.is_trusted(repo)
    assert trust.is_trusted(folders[0])


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"folders": [{"path": 1}]}', b"[" * 100_000])
async def test_a_damaged_file_trusts_nothing_and_is_kept_aside(content: bytes, repo: Path, tmp_path: Path) -> None:
    """This is reported once, and the next decision starts a new file."""
    said = list[str]()
    file = tmp_path / "trust.json"
    file.write_bytes(content)
    trust = Trust(file, report=said.append)
    assert not trust.is_trusted(repo)
    assert not trust.is_trusted(repo)
    assert len(said) == 1
    await trust.trust_folder(folder_of(repo))
    assert trust.is_trusted(repo)
    assert json.loads(file.read_text())["folders"][0]["path"] == str(repo)
    assert (tmp_path / "trust.json.damaged").read_bytes() == content


async def test_a_decision_that_cannot_be_stored_is_refused(repo: Path, tmp_path: Path) -> None:
    """A decision that the next Neovim would not know does not count."""
    (tmp_path / "data").write_text("a file")
    trust = Trust(tmp_path / "data" / "trust.json")
    with pytest.raises(InputError, match="Decision not saved: cannot write to"):
        await trust.trust_folder(folder_of(repo))
    assert not trust.is_trusted(repo)


async def test_a_decision_of_neovims_trust_counts_with_its_hash(trust: Trust, repo: Path, tmp_path: Path) -> None:
    """It allows a file with this content; it denies one even in a trusted folder; files elsewhere are not affected."""
    file = repo / "AGENTS.md"
    (tmp_path / "trust").write_text(f"{sha('Be brief.')} {file}\n")
    assert trust.allows(repo, file, sha("Be brief."))
    assert not trust.allows(repo, file, sha("Be long."))
    (tmp_path / "trust").write_text(f"! {file}\n# another line\n")
    await trust.trust_folder(folder_of(repo))
    assert not trust.allows(repo, file, sha("Be brief."))


@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r"])
async def test_a_path_with_a_line_separator_is_one_line_of_neovims_file(
    sign: str, trust: Trust, repo: Path, tmp_path: Path
) -> None:
    """A denied file stays denied, and no path can add a line about another file."""
    denied = repo / f"a{sign}b.md"
    denied.write_text("x")
    (tmp_path / "trust").write_bytes(f"! {denied}\n".encode())
    await trust.trust_folder(folder_of(repo))
    assert not trust.allows(repo, denied, sha("x"))
    forged = f"! {repo}/a{sign}{sha('evil')} {repo / 'AGENTS.md'}\n"
    (tmp_path / "trust").write_bytes(forged.encode())
    await trust.revoke(repo)
    assert not trust.allows(repo, repo / "AGENTS.md", sha("evil"))


@pytest.mark.parametrize("mark", [".hg", ".jj", ".svn", ".bzr", ".fslckout", "_FOSSIL_"])
async def test_a_nested_repository_of_another_system_is_a_separate_folder(mark: str, trust: Trust, repo: Path) -> None:
    """It is not trusted even if the outer folder is."""
    child = repo / "vendor" / "child"
    (child / "src").mkdir(parents=True)
    (child / mark).write_text("") if mark in (".fslckout", "_FOSSIL_") else (child / mark).mkdir()
    await trust.trust_folder(folder_of(repo))
    assert folder_of(child / "src") == child
    assert not trust.allows(repo, child / "src" / "AGENTS.md", sha("x"))
    assert not trust.allows(child, child / "AGENTS.md", sha("x"))


def test_disabled_trust_allows_everything(repo: Path) -> None:
    """With `trust.enabled = false`, every folder and file is allowed."""
    assert Trust(enabled=False).allows(repo, repo / ".mcp.json", sha("x"), runs=True)


def test_a_trusted_dotfiles_repository_covers_home_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository at the home folder counts only for that very workspace."""
    home = tmp_path.resolve() / "home"
    (home / ".git").mkdir(parents=True)
    (home / "downloads" / "unpacked").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    assert folder_of(home) == home
    assert folder_of(home / "downloads" / "unpacked") == home / "downloads" / "unpacked"


@pytest.mark.parametrize(
    ("pattern", "named"),
    [
        ("~/src", ["src"]),
        ("~/src/", ["src"]),
        ("~/src/*", ["src/a", "src/b"]),
        ("~/src/**", ["src", "src/a", "src/b", "src/a/c"]),
        ("~/s*/a", ["src/a"]),
        ("~/link/**", ["src", "src/a", "src/b", "src/a/c"]),
        ("src/**", []),
        ("", []),
        ("~/SRC", []),
    ],
)
def test_a_pattern_matches_its_folder_and_stars_those_below(
    pattern: str, named: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path matches only that folder; only `**` includes the folders below."""
    home = tmp_path.resolve()
    monkeypatch.setenv("HOME", str(home))
    all_folders = ["src", "src/a", "src/b", "src/a/c", "srcs", "other"]
    for folder in all_folders:
        (home / folder).mkdir(parents=True, exist_ok=True)
    (home / "link").symlink_to(home / "src")
    assert [folder for folder in all_folders if is_listed(home / folder, [pattern])] == named


def test_covers_stops_at_repositories(repo: Path) -> None:
    """The folder's own `.git` does not count."""
    assert covers(repo, repo / "a" / "b.md")
    assert not covers(repo, repo)
    assert not covers(repo, repo.parent / "x.md")


async def test_the_trust_of_a_folder_does_not_cover_files_a_command_wrote(trust: Trust, repo: Path) -> None:
    """The content decides: the user's own content is covered, and the command's content once the user trusts it."""
    rules = repo / "AGENTS.md"
    await trust.trust_folder(folder_of(repo))
    await trust.note_commands([FileHash(str(rules), sha("by a command"))])
    assert not trust.allows(repo, rules, sha("by a command"))
    assert trust.allows(repo, rules, sha("by the user"))
    await trust.revoke(folder_of(repo))
    await trust.trust_files(folder_of(repo), [FileHash(str(rules), sha("by a command"))])
    assert trust.allows(repo, rules, sha("by a command"))
    await trust.revoke(rules)
    await trust.trust_folder(folder_of(repo))
    assert trust.allows(repo, rules, sha("by a command"))
