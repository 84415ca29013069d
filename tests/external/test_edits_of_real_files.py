"""Tests that random edits of files from real plugins have the intended result, however the reply is indented.

Needs clones under /work/.mirror (or in the folders named by `$EDITED_REPOSITORIES`, separated by colons); otherwise the
tests are skipped with a message.
"""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from samples import sampled

from codecompanion.edit_in_place.fit import fitted
from tests.unit.edit_in_place.indented_edits import file_of, is_determined, is_intended, is_uniform, random_case

MIRROR = Path("/work/.mirror")
NAMED = os.environ.get("EDITED_REPOSITORIES", "")
CLONES = [Path(name) for name in NAMED.split(":")] if NAMED else sorted(MIRROR.glob("*/repo"))
FILETYPES = {
    "c": "c", "css": "css", "go": "go", "html": "html", "js": "javascript", "lua": "lua", "py": "python", "rs": "rust",
    "scm": "query", "sh": "sh", "ts": "typescript", "vim": "vim", "yml": "yaml",
}  # fmt: skip
FILES_PER_CLONE, EDITS_PER_FILE = 60, 10


def git(clone: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(clone), *arguments], check=True, capture_output=True).stdout


@pytest.mark.slow("random edits of many files")
@pytest.mark.skipif(not CLONES, reason=f"no clones at {MIRROR}; set EDITED_REPOSITORIES to some")
@pytest.mark.parametrize("clone", CLONES, ids=lambda clone: clone.parent.name)
def test_random_edits_are_the_intended_ones(clone: Path) -> None:
    names = git(clone, "ls-tree", "-r", "--name-only", "HEAD").decode().splitlines()
    names = [name for name in names if name.rpartition(".")[2] in FILETYPES or name.endswith("Makefile")]
    seen: Counter[str] = Counter()
    for name in sampled(names, FILES_PER_CLONE):
        text = git(clone, "show", f"HEAD:{name}").decode("utf-8", "replace")
        file = file_of(name, text.rstrip("\n"), FILETYPES.get(name.rpartition(".")[2], "make"))
        if not is_uniform(file) or "\r" in text or len(file.lines) < 10:
            continue
        for seed in range(EDITS_PER_FILE):
            case = random_case(file, Random(f"{name} {seed}"))
            if case is not None and is_determined(case):
                seen["edits"] += 1
                seen["other"] += not is_intended(case, fitted(case.reply, case.place, "replace"))
    assert seen["other"] <= 1 + 0.01 * seen["edits"], seen
    print(clone.parent.name, dict(seen))
