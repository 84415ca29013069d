"""Groups of rules added to a chat (R-549)."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from codecompanion.errors import InputError
from codecompanion.session.attachments.rules_sync import RuleKeeper
from codecompanion.session.trust.folders import folder_of
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


async def test_an_attached_group_is_not_reported_as_missing(tmp_path):
    """The sentence names the attached files, not those of the group that do not exist."""
    rules = keeper(tmp_path)
    await rules._services.trust.trust_folder(folder_of(tmp_path))
    assert [message.path for message in (await rules.autoload(tmp_path))[0]] == ["AGENTS.md"]
    assert await rules.add_group("default", tmp_path) == ([], ("Already attached: AGENTS.md.",))


async def test_a_group_without_a_file_names_the_searched_paths(tmp_path):
    with pytest.raises(InputError, match=r"The rules 'none' have no file here; expected one of STYLE\.md\.$"):
        await keeper(tmp_path).add_group("none", tmp_path)


def _linked(tmp_path, monkeypatch) -> tuple[RuleKeeper, Path, Path]:
    home, root = tmp_path / "home", tmp_path / "project"
    for folder in (home, root):
        folder.mkdir()
    monkeypatch.setenv("HOME", str(home))
    rules = keeper(root)
    (home / "diary.md").write_text("Dear diary")
    (root / "AGENTS.md").unlink()
    (root / "AGENTS.md").symlink_to(home / "diary.md")
    return rules, root, home / "diary.md"


async def _autoloaded(rules: RuleKeeper, root) -> list[str | None]:
    messages, problems = await RuleKeeper(rules._services).autoload(root)
    assert problems == ()
    return [message.path for message in messages]


async def test_a_trusted_folder_does_not_expose_the_users_other_files(tmp_path, monkeypatch):
    """R-549: a cloned repository must not send the user's diary to a provider."""
    rules, root, _ = _linked(tmp_path, monkeypatch)
    await rules._services.trust.trust_folder(folder_of(root))
    assert await _autoloaded(rules, root) == []


async def test_rules_the_user_requested_are_read_in_later_chats_until_they_change(tmp_path, monkeypatch):
    """`/rules` is the user's decision: it applies to the path and its content, in this folder only."""
    rules, root, diary = _linked(tmp_path, monkeypatch)
    messages, _ = await rules.add_group("default", root)
    assert "Dear diary" in messages[0].text
    assert await _autoloaded(rules, root) == ["~/diary.md"]
    other = tmp_path / "other"
    other.mkdir()
    (other / "AGENTS.md").symlink_to(diary)
    assert await _autoloaded(rules, other) == []
    diary.write_text("Dear diary, a secret")
    assert await _autoloaded(rules, root) == []
