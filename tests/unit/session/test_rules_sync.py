"""Groups of rules that are added to a chat (R-549)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from codecompanion.errors import InputError
from codecompanion.session.rules_sync import RuleKeeper
from codecompanion.settings import load

from .fakes import Bench, ScriptedAdapter, says


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
