"""Groups of rules that are added to a chat (R-549)."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from codecompanion.errors import InputError
from codecompanion.session.attachments.rules_sync import RuleKeeper
from codecompanion.settings import load
from tests.unit.session.fakes import Bench, ScriptedAdapter, says


def keeper(tmp_path) -> RuleKeeper:
    (tmp_path / "AGENTS.md").write_text("Be brief.")
    files = {"default": ("AGENTS.md", "CLAUDE.md"), "none": ("STYLE.md",)}
    groups = {
        name: {"description": "", "files": [{"path": path, "parser": "none"} for path in paths]}
        for name, paths in files.items()
    }
    rules = {"enabled": True, "autoload": ["default"], "groups": groups}
    bench = Bench(tmp_path, ScriptedAdapter("s", lambda request: says("ok")))
    return RuleKeeper(replace(bench.services, settings=load({"rules": rules})))


async def test_a_group_that_is_attached_already_is_not_called_missing(tmp_path):
    """The sentence names the files that are attached, not those of the group that do not exist."""
    rules = keeper(tmp_path)
    assert [message.path for message in (await rules.autoload(tmp_path))[0]] == ["AGENTS.md"]
    assert await rules.add_group("default", tmp_path) == ([], ("Already attached, nothing changed: AGENTS.md.",))


async def test_a_group_without_a_file_names_what_was_looked_for(tmp_path):
    with pytest.raises(InputError, match=r"The rules 'none' have no file here; expected one of STYLE\.md\.$"):
        await keeper(tmp_path).add_group("none", tmp_path)


async def _autoloaded(rules: RuleKeeper, root) -> tuple[list[str | None], tuple[str, ...]]:
    """Return what was loaded, and what is held back."""
    messages, problems = await rules.autoload(root)
    assert problems == ()
    return [message.path for message in messages], tuple(item.path for item in rules.held_back)


def _linked(tmp_path, monkeypatch, name: str = "diary.md") -> tuple[RuleKeeper, Path, Path]:
    home, root = tmp_path / "home", tmp_path / "project"
    for folder in (home, root):
        folder.mkdir()
    monkeypatch.setenv("HOME", str(home))
    rules = keeper(root)
    (home / name).write_text("Dear diary")
    (root / "AGENTS.md").unlink()
    (root / "AGENTS.md").symlink_to(home / name)
    return rules, root, home / name


async def test_a_link_out_of_the_repository_is_held_back_until_it_is_answered(tmp_path, monkeypatch):
    """R-549: a cloned repository must not send the user's diary to a provider; "no" is kept, silence is not."""
    rules, root, _ = _linked(tmp_path, monkeypatch)
    assert await _autoloaded(rules, root) == ([], ("~/diary.md",))
    later = RuleKeeper(rules._services)
    assert await _autoloaded(later, root) == ([], ("~/diary.md",))
    await later.refuse(later.held_back, root)
    assert await _autoloaded(RuleKeeper(rules._services), root) == ([], ())


async def test_what_the_user_asked_for_is_read_in_later_chats_until_it_changes(tmp_path, monkeypatch):
    """The answer holds for the path and its content, in this repository only."""
    rules, root, diary = _linked(tmp_path, monkeypatch)
    await rules.autoload(root)
    messages, _ = await rules.add_group("default", root)
    assert "Dear diary" in messages[0].text
    later = RuleKeeper(rules._services)
    assert await _autoloaded(later, root) == (["~/diary.md"], ())
    other = tmp_path / "other"
    other.mkdir()
    (other / "AGENTS.md").symlink_to(diary)
    assert await _autoloaded(RuleKeeper(rules._services), other) == ([], ("~/diary.md",))
    diary.write_text("Dear diary, a secret")
    assert await _autoloaded(RuleKeeper(rules._services), root) == ([], ("~/diary.md",))


async def test_an_include_that_leads_out_of_the_repository_is_held_back_too(tmp_path, monkeypatch):
    """A folder of the user's agent rules is not the project's, neither directly nor after another file."""
    rules, root, diary = _linked(tmp_path, monkeypatch)
    (diary.parent / ".claude").mkdir()
    (diary.parent / ".claude" / "own.md").write_text("mine")
    (root / "AGENTS.md").unlink()
    (root / "AGENTS.md").write_text("@~/.claude/own.md")
    groups = dict(rules._services.settings.rules.groups)
    files = tuple(msgspec.structs.replace(file, parser="claude") for file in groups["default"].files)
    groups["default"] = msgspec.structs.replace(groups["default"], files=files)
    changed = msgspec.structs.replace(rules._services.settings.rules, groups=groups)
    settings = msgspec.structs.replace(rules._services.settings, rules=changed)
    rules = RuleKeeper(replace(rules._services, settings=settings))
    assert await _autoloaded(rules, root) == (["AGENTS.md"], ("~/.claude/own.md",))
    messages, _ = await rules.add_group("default", root)
    assert [message.path for message in messages] == ["~/.claude/own.md"]
