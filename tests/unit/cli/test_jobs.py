"""Jobs of the command line in which any fault may occur."""

from __future__ import annotations

import io
import json
import pwd
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codecompanion.cli.environment import cache_dir, home_dir
from codecompanion.cli.jobs import answer_jobs
from codecompanion.errors import InputError


class Job(msgspec.Struct):
    n: int


def test_a_fault_in_one_job_does_not_lose_the_next_ones(tmp_path: Path) -> None:
    def answer(job: Job) -> dict[str, Any]:
        return {"n": 10 // job.n}

    (tmp_path / "jobs").write_text('{"n":1}\n{"n":0}\n{"n":5}\n')
    out = io.StringIO()
    assert answer_jobs("divide", str(tmp_path / "jobs"), Job, '{"n": 1}', answer, out) == 2
    first, faulty, last = map(json.loads, out.getvalue().splitlines())
    assert (first, last) == ({"n": 10}, {"n": 2})
    assert ":2: " in faulty["error"]


def test_a_user_without_a_home_sees_the_variable_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """This happens, for example, with a numeric user id in a container."""

    def nobody(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert home_dir() is None
    with pytest.raises(InputError, match="set HOME or XDG_CACHE_HOME"):
        cache_dir()
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache/me")
    assert cache_dir().parts[:4] == ("/", "var", "cache", "me")
