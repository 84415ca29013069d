"""Jobs with an impossible folder, path or text: each is answered in its place, and the next ones are done."""

from __future__ import annotations

import json

import pytest

from tests.contract.command_line import run

ODD = ("~nobody-of-this-name/x", "a\0b", "\ud800", "x" * 5000, "/never/at/all")


def jobs_of(command, root):
    by_command = {
        "search": {"query": "x"},
        "gather": {"question": "x"},
        "fim": {"model": "qwen", "path": "a.py", "text": "a", "line": 0, "column": 1},
    }
    return {**by_command[command], "options": {"root": root}}


@pytest.mark.parametrize("command", ["search", "gather", "fim"])
def test_an_impossible_root_is_reported_and_the_next_job_is_done(tmp_path, command):
    (tmp_path / "a.py").write_text("def x(): pass\n")
    lines = [json.dumps(jobs_of(command, root)) for root in (*ODD, str(tmp_path))]
    stdin = "\n".join(lines)
    status, out, err = run(command, "--jobs", stdin=stdin, XDG_CACHE_HOME=str(tmp_path / "cache"))
    *odd, last = map(json.loads, out.splitlines())
    assert status == 2
    assert [set(answer) for answer in odd] == [{"error"}] * len(ODD)
    assert all("there is no such folder" in answer["error"] and len(answer["error"]) < 400 for answer in odd)
    assert "error" not in last
    assert "Traceback" not in err


@pytest.mark.parametrize("path", ["\ud800", "x" * 5000, "", "~nobody/x", "../x.py"])
def test_an_impossible_path_still_has_a_prompt(tmp_path, path):
    """R-259: only the text matters."""
    job = {**jobs_of("fim", str(tmp_path)), "path": path}
    status, out, _ = run("fim", "--jobs", stdin=json.dumps(job), XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert (status, json.loads(out)["prefix"]) == (0, "a")
