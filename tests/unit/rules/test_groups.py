"""Groups of rule files (R-549): loaded, refused and reported files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import pytest

from codecompanion.rules.groups import RulesLoaded, autoload, load_group, load_named, reread, rules_text
from codecompanion.settings_sections import RuleFile, RuleGroup, RulesSettings

_DEFAULT = (
    ".clinerules",
    ".cursorrules",
    ".goosehints",
    ".rules",
    ".windsurfrules",
    ".github/copilot-instructions.md",
    "AGENT.md",
    "AGENTS.md",
)
_CLAUDE = ("CLAUDE.md", "CLAUDE.local.md", "~/.claude/CLAUDE.md")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the workspace `project`, next to the user's home and another folder."""
    for name in ("project", "home/.claude", "home/.ssh", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    _write(tmp_path / "home", **{".ssh/id_rsa": "PRIVATE KEY"})
    return tmp_path / "project"


def _write(folder: Path, **contents: str) -> None:
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)


def _group(*paths: str, parser: Literal["none", "claude"] = "none") -> RuleGroup:
    return RuleGroup(description="", files=tuple(RuleFile(path=path, parser=parser) for path in paths))


def _paths(loaded: RulesLoaded) -> list[str]:
    return [item.path for item in loaded.items]


def test_the_default_group_loads_existing_files_in_order(root: Path) -> None:
    _write(root, **{name: f"text of {name}\n" for name in ("AGENTS.md", ".rules", "CLAUDE.md")})
    _write(root.parent / "home", **{".claude/CLAUDE.md": "mine"})
    plain, claude = _group(*_DEFAULT), _group(*_CLAUDE, parser="claude")
    loaded = load_group(RuleGroup(description="", files=plain.files + claude.files), root)
    assert _paths(loaded) == [".rules", "AGENTS.md", "CLAUDE.md", "~/.claude/CLAUDE.md"]
    assert loaded.items[1].text == "text of AGENTS.md\n"
    assert loaded.problems == ()
    assert len(loaded.missing) == 7


def test_globs_and_folders_are_expanded_sorted(root: Path) -> None:
    names = ("docs/b.md", "docs/a.md", "docs/deep/c.md", "docs/x.png", "docs/.hidden.md", "node_modules/n.md", "top.md")
    _write(root, **dict.fromkeys(names, "x"))
    assert _paths(load_group(_group("docs/*.md"), root)) == ["docs/.hidden.md", "docs/a.md", "docs/b.md"]
    assert _paths(load_group(_group("**/[bc].md"), root)) == ["docs/b.md", "docs/deep/c.md"]
    assert "node_modules/n.md" not in _paths(load_group(_group("**/*.md"), root))
    assert _paths(load_group(_group("docs"), root)) == ["docs/.hidden.md", "docs/a.md", "docs/b.md", "docs/deep/c.md"]
    assert load_group(_group("none/*.md"), root).missing == ("none/*.md",)
    _write(root, **{".cursor/rules/style.mdc": "x"})
    assert _paths(load_group(_group(".cursor/rules"), root)) == [".cursor/rules/style.mdc"]


def test_a_file_is_loaded_once_for_any_number_of_paths_to_it(root: Path) -> None:
    _write(root, **{"AGENTS.md": "@AGENTS.md @./AGENTS.md", "sub/x.md": "x"})
    (root / "CLAUDE.md").symlink_to("AGENTS.md")
    group = _group(
        "AGENTS.md", "./AGENTS.md", "CLAUDE.md", "*.md", f"{root}/AGENTS.md", "sub/../AGENTS.md", parser="claude"
    )
    loaded = load_group(group, root)
    assert _paths(loaded) == ["AGENTS.md"]
    assert load_group(group, root, already={loaded.items[0].real}).items == ()


def test_includes_follow_the_file_that_names_them_and_cycles_end(root: Path) -> None:
    _write(
        root,
        **{
            "CLAUDE.md": "a @docs/one.md b @docs/two.md",
            "docs/one.md": "@sub/three.md @../CLAUDE.md",
            "docs/sub/three.md": "@../one.md",
            "docs/two.md": "see @docs/sub/three.md and @AT.ROOT.md",
            "AT.ROOT.md": "",
        },
    )
    loaded = load_group(_group("CLAUDE.md", parser="claude"), root)
    assert _paths(loaded) == ["CLAUDE.md", "docs/one.md", "docs/sub/three.md", "docs/two.md", "AT.ROOT.md"]
    assert loaded.problems == ()
    assert _paths(load_group(_group("CLAUDE.md"), root)) == ["CLAUDE.md"], "only the parser claude follows includes"


def test_includes_are_followed_five_files_deep(root: Path) -> None:
    _write(root, **{f"{number}.md": f"@{number + 1}.md" for number in range(9)})
    loaded = load_group(_group("0.md", parser="claude"), root)
    assert _paths(loaded) == [f"{number}.md" for number in range(6)]
    assert loaded.problems == ("Rules 5.md: @6.md was not read: more than 5 levels deep.",)


def test_a_missing_include_is_reported_if_it_is_a_line_of_its_own(root: Path) -> None:
    _write(root, **{"CLAUDE.md": "@docs/gone.md\nask @alice or @types/node\n@mention\n"})
    loaded = load_group(_group("CLAUDE.md", parser="claude"), root)
    assert loaded.problems == ("CLAUDE.md includes @docs/gone.md, which does not exist.",)
    assert _paths(loaded) == ["CLAUDE.md"]


@pytest.mark.parametrize(
    "include",
    [
        "~/.ssh/id_rsa",
        "../home/.ssh/id_rsa",
        "/etc/passwd",
        "../elsewhere/x.md",
        "~/notes.md",
        "link.md",
        "~/.claude/key",
    ],
)
def test_a_project_cannot_include_the_users_other_files(root: Path, include: str) -> None:
    """A cloned repository must not make its reader send private files to a provider."""
    _write(root.parent, **{"elsewhere/x.md": "private", "home/notes.md": "private", "home/.claude/key": "private"})
    (root / "link.md").symlink_to("../home/.ssh/id_rsa")
    _write(root, **{"CLAUDE.md": f"@{include}", "AGENTS.md": "x"})
    loaded = load_group(_group("CLAUDE.md", "AGENTS.md", parser="claude"), root)
    assert _paths(loaded) == ["CLAUDE.md", "AGENTS.md"]
    assert len(loaded.problems) == 1
    assert loaded.problems[0].startswith("CLAUDE.md includes ")


@pytest.mark.parametrize("target", ["../home/.ssh/id_rsa", "/etc/passwd", "../elsewhere/x.md"])
def test_a_project_cannot_link_its_rules_to_the_users_other_files(root: Path, target: str) -> None:
    _write(root.parent, **{"elsewhere/x.md": "private"})
    (root / "AGENTS.md").symlink_to(target)
    loaded = load_group(_group("AGENTS.md", "*.md"), root)
    assert loaded.items == ()
    assert "AGENTS.md: it is a link to" in loaded.problems[0]


@pytest.mark.parametrize(
    ("target", "is_read"), [(".env", False), ("config/key.pem", False), (".cursorrules", True), ("docs/rules.md", True)]
)
def test_a_link_within_the_workspace_may_only_lead_to_rules(root: Path, target: str, is_read: bool) -> None:
    """With `AGENTS.md -> .env`, a cloned project could otherwise send the user's private files."""
    _write(root, **{target: "TEXT=1"})
    (root / "AGENTS.md").symlink_to(target)
    loaded = load_group(_group("AGENTS.md"), root)
    assert [item.text for item in loaded.items] == (["TEXT=1"] if is_read else [])
    assert is_read or "AGENTS.md: it is a link to" in loaded.problems[0]


def test_rules_are_shared_across_a_repository_a_home_and_the_users_own_folder(root: Path) -> None:
    (root.parent / ".git").mkdir()
    _write(
        root.parent, **{"SHARED.md": "repository", "home/dotfiles/AGENTS.md": "dotfiles", "home/.claude/own.md": "own"}
    )
    (root / "AGENTS.md").symlink_to("../home/dotfiles/AGENTS.md")
    _write(root, **{"CLAUDE.md": "@../SHARED.md @~/.claude/own.md"})
    loaded = load_group(_group("AGENTS.md", "CLAUDE.md", parser="claude"), root)
    assert [item.text for item in loaded.items] == ["dotfiles", "@../SHARED.md @~/.claude/own.md", "repository", "own"]
    assert _paths(loaded)[3] == "~/.claude/own.md"
    assert loaded.problems == ()


def test_an_absolute_path_set_by_the_user_is_read_anywhere(root: Path) -> None:
    _write(root.parent / "elsewhere", **{"rules": "@more.md", "more.md": "more"})
    loaded = load_group(_group(f"{root.parent}/elsewhere/rules", parser="claude"), root)
    assert [item.text for item in loaded.items] == ["@more.md", "more"]
    assert _paths(loaded)[0] == f"{root.parent}/elsewhere/rules"


def test_an_unreadable_file_is_named_and_the_others_still_load(root: Path) -> None:
    _write(root, **{"a.md": "a", "binary.md": "x\0y", "big.md": "x" * 1_000_001, "z.md": "z"})
    os.mkfifo(root / "fifo.md")
    (root / "circle.md").symlink_to("circle.md")
    loaded = load_group(_group("a.md", "binary.md", "big.md", "fifo.md", "circle.md", "nul\0.md", "z.md"), root)
    assert _paths(loaded) == ["a.md", "z.md"]
    assert len(loaded.problems) == 5
    for name, problem in zip(
        ("binary", "big", "fifo", "circle", "nul"), loaded.problems[:4] + loaded.problems[4:], strict=True
    ):
        assert name in problem


def test_a_file_without_permission_is_a_problem(root: Path) -> None:
    """Because root can read everything, the test makes the open itself fail."""
    _write(root, **{"a.md": "a", "b.md": "b"})
    opened = os.open

    def refuse(path: str | Path, *arguments: int) -> int:
        if str(path).endswith("a.md"):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", refuse)
        loaded = load_group(_group("a.md", "b.md"), root)
    assert _paths(loaded) == ["b.md"]
    assert "a.md" in loaded.problems[0]
    assert "permission denied" in loaded.problems[0]


def test_a_glob_over_everything_is_a_problem_and_not_a_flood(root: Path) -> None:
    _write(root, **{f"{number}.md": "x" for number in range(201)}, keep="x")
    loaded = load_group(_group("*.md", "keep"), root)
    assert _paths(loaded) == ["keep"]
    assert loaded.problems == ("Rules *.md: more than 200 files match, so none was read. Name fewer files.",)


def test_a_file_with_glob_signs_in_its_name_is_itself(root: Path) -> None:
    _write(root, **{"[a].md": "brackets", "a.md": "a"})
    assert _paths(load_group(_group("[a].md"), root)) == ["[a].md"]


def test_only_changed_files_are_reread(root: Path) -> None:
    _write(root, **{"a.md": "a", "b.md": "b", "c.md": "c", "d.md": "d"})
    items = load_group(_group("a.md", "b.md", "c.md", "d.md"), root).items
    assert reread(items) == RulesLoaded()
    os.utime(root / "a.md", ns=(1, 1))
    _write(root, **{"b.md": "new"})
    (root / "c.md").unlink()
    again = reread(items)
    assert [(item.path, item.text) for item in again.items] == [("b.md", "new")]
    assert again.problems == ("Rules c.md: no such file or directory. The chat keeps the earlier version.",)
    (root / "d.md").write_text("D")
    os.utime(root / "d.md", ns=(items[3].mtime_ns + 1, items[3].mtime_ns + 1))
    assert [item.text for item in reread(items[3:]).items] == ["D"], "the same size is not the same content"


def test_autoload_reads_each_group_once_and_names_those_that_do_not_exist(root: Path) -> None:
    _write(root, **{"a.md": "a", "b.md": "b"})
    settings = RulesSettings(
        groups={"one": _group("a.md"), "two": _group("a.md", "b.md")}, autoload=("one", "two", "twoo"), enabled=True
    )
    loaded = autoload(settings, root)
    assert _paths(loaded) == ["a.md", "b.md"]
    assert loaded.problems == ("There is no rule group named 'twoo'; did you mean 'two'?",)
    assert autoload(RulesSettings(groups=settings.groups, autoload=("one",), enabled=False), root) == RulesLoaded()
    assert load_named(settings, "zzz", root).problems[0].endswith("the groups are: one, two.")


def test_the_message_names_the_file_and_contains_its_text(root: Path) -> None:
    assert rules_text("AGENTS.md", "Use tabs.\n") == '<rules path="AGENTS.md">\nUse tabs.\n</rules>'
    assert rules_text('a".md', "") == '<rules path="a&quot;.md">\n\n</rules>'


def test_text_is_unchanged_except_for_line_ends(root: Path) -> None:
    (root / "a.md").write_bytes("\ufeffä\r\n{{x}} @b\r\n".encode())
    assert load_group(_group("a.md"), root).items[0].text == "ä\n{{x}} @b\n"
