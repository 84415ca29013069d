"""Everything needed by a host's first compaction is loaded beforehand."""

from __future__ import annotations

import subprocess
import sys

from codecompanion.context.policy.policy_catalog import load_policy
from codecompanion.context.warm_up import rehearse
from codecompanion.model.messages import SUMMARY_TAG

RUN = """
import re, sys
from codecompanion.context.policy.policy_catalog import load_policy
from codecompanion.context.warm_up import rehearse

def count():
    made, loaded = [], set(sys.modules)
    compile_pattern = re._compiler.compile
    re._compiler.compile = lambda *given: (made.append(given), compile_pattern(*given))[1]
    rehearse(load_policy("codecompanion"))
    re._compiler.compile = compile_pattern
    return len(made), len(set(sys.modules) - loaded)

print(*count(), *count())
"""


def test_the_rehearsal_runs_a_whole_compaction() -> None:
    """A summary is requested, checked, completed and inserted."""
    prepared = rehearse(load_policy("codecompanion"))
    (report,) = [report for report in prepared.reports if report.event == "context_compacted"]
    assert report.outcome == "changed"
    assert report.details.unverified
    assert report.details.user_messages_quoted
    assert [message.tag for message in prepared.messages] == [SUMMARY_TAG]


def test_the_next_compaction_loads_and_compiles_nothing() -> None:
    ran = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, check=True)
    patterns, modules, *again = map(int, ran.stdout.split())
    assert patterns > 10
    assert modules > 5
    assert again == [0, 0]
