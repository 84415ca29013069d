"""`context --jobs` under every policy over real transcripts (pipeline.md 5.5, R-137).

Each transcript (a sample by default, see `samples.py`) is processed in a window that it exceeds, proactively, and in
one that it fits, manually.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from samples import sampled

from codecompanion.context.policy.policy_catalog import policy_names
from codecompanion.model.invariants import violations
from codecompanion.model.messages import SUMMARY_TAG, is_protected
from codecompanion.model.transcript_format import read_objects

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "transcripts"
pytestmark = [
    pytest.mark.slow("recorded sessions under every policy"),
    pytest.mark.skipif(not DATA.is_dir(), reason=f"the recorded transcripts in {DATA} are not on this machine"),
]
PYTHON = Path(__file__).resolve().parents[2] / "python"
FILES = sampled(sorted(DATA.rglob("*.jsonl")), 5)
RESULT = {"compacted", "originalCount", "finalCount", "originalTokens", "finalTokens", "tier", "warningLevel"}
RULES = {"role": "user", "content": "Rule: é ```x```", "meta": {"tag": "rules", "path": "AGENTS.md"}}


def answers(jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the answers of the command line, one for each job."""
    done = subprocess.run(
        [sys.executable, "-m", "codecompanion", "context", "--jobs", "-"],
        input="".join(json.dumps(job) + "\n" for job in jobs).encode(),
        capture_output=True, check=False, env={"PYTHONPATH": str(PYTHON)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()[:2000]
    found = [json.loads(line) for line in done.stdout.decode().split("\n") if line]
    assert len(found) == len(jobs)
    return found


@pytest.mark.parametrize("policy", policy_names())
def test_the_invariants_are_kept_for_every_recorded_session(policy: str) -> None:
    """These are pairs, protected messages, order, at most one summary, no growth, and the fields of the result."""
    jobs = []
    for path in FILES:
        messages = [RULES, *[json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]]
        size = sum(len(json.dumps(message)) for message in messages) // 4
        for window, manual in ((max(4_000, size // 2), False), (4 * size + 8_000, True)):
            jobs.append({"messages": messages, "options": {"policy": policy, "window": window, "manual": manual}})
    changed = 0
    for job, answer in zip(jobs, answers(jobs), strict=True):
        changed += check(job, answer)
    assert changed > len(FILES) / 4, f"only {changed} of {len(jobs)} jobs changed anything"


def check(job: dict[str, Any], answer: dict[str, Any]) -> bool:
    """Check one answer; return whether the policy changed anything."""
    before = read_objects(job["messages"], "before").messages
    after = read_objects(answer["messages"], "after").messages
    result = answer["result"]
    assert set(result) == RESULT
    assert (result["originalCount"], result["finalCount"]) == (len(before), len(after))
    assert (result["originalTokens"], result["finalTokens"]) == (answer["before"]["tokens"], answer["after"]["tokens"])
    assert 0 <= result["tier"] <= 4
    assert violations(after) == []
    assert [m.text for m in after if is_protected(m)] == [m.text for m in before if is_protected(m)]
    assert sum(m.tag == SUMMARY_TAG for m in after) <= 1
    if "repaired" not in answer["actions"]:
        assert answer["after"]["tokens"] <= answer["before"]["tokens"]
    texts = iter([m.text for m in before])
    typed = [m.text for m in after if m.role == "user" and m.tag is None]
    assert all(any(text == other for other in texts) for text in typed), "the order of user messages changed"
    return bool({"edited", "compacted", "shaped"} & set(answer["actions"]))
