"""`replay` and `summarize` as used by outside callers (`:help codecompanion-cli`)."""

from __future__ import annotations

import json

import pytest

from codecompanion.context.policy.policy_catalog import policy_names
from tests.contract.command_line import REPO, run

SESSION = str(REPO / "tools" / "demo" / "demo_session.jsonl")


def test_replay_prints_a_row_for_every_policy_by_default() -> None:
    status, out, err = run("replay", SESSION)
    assert (status, err) == (0, "")
    rows = [line.split()[0] for line in out.splitlines()[1:] if line and line[0] != "1"]
    assert rows[: len(policy_names()) + 1] == ["(none)", *policy_names()]


def test_replay_json_has_the_same_figures_per_file_and_in_total() -> None:
    status, out, _ = run("replay", "--json", "--policy", "codecompanion", "--policy", "adaptive", "--window", "64000",
                         "--cache", "1h", SESSION, SESSION)  # fmt: skip
    assert status == 0
    answer = json.loads(out)
    assert (answer["window"], answer["cache"]) == (64000, "1h")
    assert [entry["policy"] for entry in answer["total"]] == ["(none)", "codecompanion", "adaptive"]
    assert [entry["file"] for entry in answer["files"]] == [SESSION, SESSION]
    for row, total in enumerate(answer["total"]):
        one = answer["files"][0]["policies"][row]
        assert one == answer["files"][1]["policies"][row]
        for name in ("requests", "prompt_tokens", "edits", "compactions", "faults", "text_edits"):
            assert total[name] == 2 * one[name]
        assert total["peak"] == one["peak"]
        assert total["relative_cost"] == one["relative_cost"]
    assert answer["total"][0]["relative_cost"] == 1.0
    assert max(entry["peak"] for entry in answer["total"][1:]) <= 64000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("replay", "--policy", "adaptiv", SESSION), "adaptive"),
        (("replay", "--window", "0", SESSION), "--window 0"),
        (("replay", "/nowhere/x.jsonl"), "/nowhere/x.jsonl: No such file"),
        (("summarize", "/nowhere/x.jsonl"), "/nowhere/x.jsonl: No such file"),
        (("summarize", "--max-tokens", "0", SESSION), "--max-tokens 0"),
        (("replay", "/dev/null"), "/dev/null: no messages in it; expected one message object per line"),
        (("replay", "--window", "12x", SESSION), "found '12x'; `codecompanion replay"),
        (("import", SESSION), "--from"),
        (("nonsense",), "invalid choice: 'nonsense'"),
    ],
)  # fmt: skip
def test_bad_input_is_named_and_nothing_is_printed(arguments: tuple[str, ...], words: str) -> None:
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert words in err
    assert err.startswith("codecompanion: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", ["replay", "summarize"])
def test_a_broken_line_is_named_by_file_and_number(command: str, tmp_path) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_text('{"role": "user", "content": "hi"}\n\n{"role": "nobody"}\n')
    status, out, err = run(command, str(path))
    assert (status, out) == (2, "")
    assert f'{path}:3: "role": expected one of' in err


def test_summarize_prints_the_summary_that_needs_no_model() -> None:
    status, out, err = run("summarize", SESSION)
    assert (status, err) == (0, "")
    assert out.startswith("1. **Primary Request and Intent**")
    assert "planner.py" in out
    assert len(run("summarize", "--max-tokens", "500", SESSION)[1]) < len(out)
