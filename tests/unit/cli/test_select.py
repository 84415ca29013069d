"""`select` runs the stages of the pipeline's table after the search, like a chat (R-243, R-247)."""

from __future__ import annotations

import io
import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codecompanion.cli.commands import select
from codecompanion.retrieval.gather_pipeline import (
    DemoteRepeats,
    FillBudget,
    FillBudgetOnce,
    PipelineName,
    Stage,
    TakeStructures,
    load_pipeline,
)

NAMES = "left, middle, right, first, second, third, fourth, fifth, last"
REPEATS = f"def parse_{{0}}(text):\n    {NAMES} = text.parse()\n    return {NAMES}, parse\n"
FILES = {
    "a.py": "\n\n".join(map(REPEATS.format, ("one", "two", "three"))),
    "b.py": "def parse_other(text):\n    return parse(text)\n\n\nclass Parser:\n    LIMIT = 'parse'\n",
}


def selected(folder: Path, pipeline: PipelineName) -> list[dict[str, Any]]:
    """Return the snippets that are selected from `FILES`."""
    files = [{"path": name, "content": text} for name, text in FILES.items()]
    jobs, out = folder / "jobs", io.StringIO()
    jobs.write_text(json.dumps({"question": "parse", "budget": 180, "pipeline": pipeline, "files": files}))
    assert select.run(Namespace(file=str(jobs), pipeline=None, strict=False), out) == 0
    found: list[dict[str, Any]] = json.loads(out.getvalue())["snippets"]
    return found


@pytest.mark.parametrize(
    ("pipeline", "stage"), [("document", TakeStructures), ("ranked", DemoteRepeats), ("ranked", FillBudgetOnce)]
)
def test_a_removed_stage_changes_the_result(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pipeline: PipelineName, stage: type[Stage]
) -> None:
    """Without `FillBudgetOnce`, the document's `FillBudget` fills the budget."""
    document = load_pipeline("document").stage(FillBudget)
    without = [one for one in load_pipeline(pipeline).stages if type(one) is not stage]
    stages = (*without, document) if stage is FillBudgetOnce else tuple(without)
    other = msgspec.structs.replace(load_pipeline(pipeline), stages=stages)
    before = selected(tmp_path, pipeline)
    assert before
    monkeypatch.setattr(select, "load_pipeline", lambda name: other)
    assert before != selected(tmp_path, pipeline)
