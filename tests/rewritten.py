"""Rewriting the asserts of the test files once instead of in each worker, where no bytecode is cached, as in CI.

Each worker collects all files, in the same order and at the same speed, so each of them used to rewrite all of their
14,000 asserts: half a minute of CPU time. Now each begins with its own share and finds the others' files already done.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from _pytest.assertion import rewrite  # the cache has no public door; the version of pytest is locked


def rewrite_share(config: pytest.Config, worker: dict[str, object]) -> None:
    """Rewrite this worker's share of the collected files, as assigned by pytest-xdist."""
    number, count = int(str(worker["workerid"]).removeprefix("gw")), int(str(worker["workercount"]))
    if count > 1 and not sys.dont_write_bytecode:
        given = [Path(argument.split("::")[0]) for argument in config.args]
        files = sorted({file for path in given for file in (path.rglob("test_*.py") if path.is_dir() else [path])})
        rewrite_files(config, files[number::count])


def rewrite_files(config: pytest.Config, files: Iterable[Path]) -> None:
    """Put the rewritten form of each file without one into the cache, where the import finds it.

    An outdated one is left to the import.
    """
    for file in files:
        kept = rewrite.get_cache_dir(file) / f"{file.stem}{rewrite.PYC_TAIL}"
        if not kept.exists():
            kept.parent.mkdir(exist_ok=True)
            with contextlib.suppress(SyntaxError, OSError):
                source_hash, code = rewrite._rewrite_test(file, config)
                rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, source_hash, kept)
