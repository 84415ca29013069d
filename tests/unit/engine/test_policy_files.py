"""A user's policies as TOML files: read, used, and reported with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from codecompanion.context.policy.policy_catalog import load_policy
from codecompanion.engine.policy_files import read_policy_files, with_file_location
from codecompanion.errors import ConfigError

GOOD = """\
# my own
extends = "codecompanion"

[[stage]]
id = "editing"
event = "context_edited"
trigger = { at = 0.5 }
step = [{ use = "clear_tool_results" }]
"""


def folder(tmp_path: Path, **files: str) -> str:
    (tmp_path / "policies").mkdir()
    for name, text in files.items():
        (tmp_path / "policies" / f"{name}.toml").write_text(text, encoding="utf-8")
    return str(tmp_path)


def test_a_file_is_a_policy_named_after_it(tmp_path: Path) -> None:
    found = read_policy_files(folder(tmp_path, mine=GOOD), {})
    assert found.mistakes == ()
    policy = load_policy("mine", found.tables)
    assert policy.name == "mine"
    assert next(stage for stage in policy.stages if stage.id == "editing").trigger.at == 0.5


def test_a_missing_folder_is_not_a_mistake(tmp_path: Path) -> None:
    assert read_policy_files(str(tmp_path), {}).tables == {}
    assert read_policy_files("", {}).tables == {}


def test_invalid_toml_is_reported_with_its_line_and_affects_only_itself(tmp_path: Path) -> None:
    given = folder(tmp_path, a="extends = \n", b="x = 1\nx = 2\n", c="[[", d=GOOD, e=GOOD, f="x" * 1_000_001)
    (tmp_path / "policies" / "g.toml").write_bytes(b"x = '\xff'")
    (tmp_path / "policies" / "h.toml").mkdir()
    (tmp_path / "policies" / "i.txt").write_text("no policy")
    found = read_policy_files(given, {"e": {}})
    assert list(found.tables) == ["d"]
    first, second, third, *rest = found.mistakes
    assert f"{given}/policies/a.toml, line 1: Invalid value. The policy a is left out." == first
    assert f"{given}/policies/b.toml, line 2: Cannot overwrite a value. The policy b is left out." == second
    assert f"{given}/policies/c.toml, " in third
    assert "e.toml: not used, because interactions.chat.opts.policies.e has the same name." in rest[0]
    assert "f.toml: it is larger than 1,000,000 bytes" in rest[1]
    assert "g.toml: it is not UTF-8 text" in rest[2]
    assert "h.toml: Is a directory" in rest[3]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (GOOD.replace('"codecompanion"', '"codebuddyy"'), "line 2: extends: there is no policy"),
        (GOOD.replace("at = 0.5", "att = 0.5"), "line 7: "),
        (GOOD.replace("clear_tool_results", "clear_tol_results"), "line 8: "),
        (GOOD + "\n[[stage]]\nid = 'two'\n", "line 10: "),
        (GOOD + "\nnonsense = 3\n", "line 10: "),
    ],
)
def test_a_mistake_in_a_policy_is_reported_with_the_line_of_its_key(tmp_path: Path, text: str, told: str) -> None:
    found = read_policy_files(folder(tmp_path, mine=text), {})
    with pytest.raises(ConfigError) as error:
        load_policy("mine", found.tables, "the.key")
    sentence = with_file_location(str(error.value), "the.key.mine", found.paths["mine"])
    assert sentence.startswith(f"{found.paths['mine']}, {told}"), sentence


def test_an_unrelated_sentence_is_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    assert with_file_location("other.key: wrong", "the.key.mine", path) == "other.key: wrong"
    assert with_file_location("the.key.mine: wrong", "the.key.mine", None) == "the.key.mine: wrong"
    assert with_file_location("the.key.mine: wrong", "the.key.mine", path) == f"{path}: wrong"
