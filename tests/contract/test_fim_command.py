"""`python -m codecompanion fim`: a stable contract, as seen by an outside caller (R-256 … R-261)."""

from __future__ import annotations

import json

from tests.contract.command_line import run


def answers(*jobs):
    lines = "".join((job if isinstance(job, str) else json.dumps(job)) + "\n" for job in jobs)
    status, out, err = run("fim", "--jobs", stdin=lines)
    return status, [json.loads(line) for line in out.splitlines()], err


def job(model="qwen2.5-coder", text="a = 1\nb = \n", line=1, column=4, path="a.py", **options):
    asked = {"model": model, "path": path, "text": text, "line": line, "column": column}
    return {**asked, "options": options} if options else asked


def test_a_position_yields_the_documents_prompt():
    status, [answer], err = answers(job())
    assert (status, err) == (0, "")
    assert answer == {
        "family": "qwen",
        "prompt": "<|fim_prefix|>a = 1\nb = <|fim_suffix|>\n<|fim_middle|>",
        "stop": ["<|endoftext|>", "<file_sep>", "\n\n\n"],
        "imports": "",
        "prefix": "a = 1\nb = ",
        "suffix": "\n",
    }


def test_a_long_file_is_truncated_and_its_imports_stay():
    text = "import os\n" + "x = 1\n" * 3_000
    _, [answer], _ = answers(job("starcoder2", text, 2_000, 2))
    assert (len(answer["prefix"]), len(answer["suffix"]), answer["imports"]) == (8_000, 2_000, "import os\n")
    middle = answer["imports"] + answer["prefix"] + "<fim_suffix>" + answer["suffix"]
    assert answer["prompt"] == f"<fim_prefix>{middle}<fim_middle>"


def test_the_family_can_be_chosen_and_a_model_without_one_only_continues():
    _, [ascii_answer, plain, chosen], _ = answers(
        job("deepseek-coder", "", 0, 0, family="deepseek-ascii"), job("gpt-5.1"), job("gpt-5.1", family="codellama")
    )
    assert ascii_answer["prompt"] == "<|fim_begin|><|fim_hole|><|fim_end|>"
    assert (plain["family"], plain["prompt"], plain["stop"]) == ("plain", "a = 1\nb = ", ["\n\n", "```"])
    assert plain["suffix"] == "\n"
    assert chosen["prompt"] == "<PRE>a = 1\nb = <SUF>\n<MID>"


def test_a_wrong_job_is_answered_in_its_place_and_the_others_are_done():
    status, found, err = answers(
        job(column=5), "{", job(text="é", line=0, column=1), job(line=7), job(family="lama"), {"model": "x"}, job()
    )
    said = [answer.get("error", "") for answer in found]
    assert status == 2
    assert "column 5 is beyond line 1, which has 4 bytes" in said[0]
    assert "standard input:2: not JSON" in said[1]
    assert "inside a character" in said[2]
    assert "line 7 is beyond the text" in said[3]
    assert "deepseek-ascii" in said[4]
    assert "path" in said[5]
    assert found[6]["family"] == "qwen"
    assert [line for line in err.splitlines() if line] == said[:6]


def test_without_jobs_there_is_one_sentence():
    assert run("fim")[0] == 2
    status, out, err = run("fim", "--jobs", stdin="\n")
    assert (status, out) == (2, "")
    assert "no jobs in it" in err


def test_with_a_root_the_project_joins(tmp_path):
    """Signatures and similar code of other files come first, identical in every run; the file's own text comes last."""
    (tmp_path / "store.py").write_text("def open_store(path: str, *, is_new: bool = False):\n    return path\n")
    (tmp_path / ".env").write_text("open_store = 'secret words'\n")
    text = "from store import open_store\n\nstore = open_store(\n"
    wanted = [job(text=text, line=2, column=19, path="new.py", root=str(tmp_path)) for _ in range(2)]
    wanted += [job(text=text, line=2, column=19, path="new.py", root=str(tmp_path / "none"))]
    wanted += [job("codellama", text, 2, 19, "new.py", root=str(tmp_path))]
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    status, out, _ = run("fim", "--jobs", stdin="".join(json.dumps(one) + "\n" for one in wanted), **environment)
    first, again, missing, other = [json.loads(line) for line in out.splitlines()]
    assert status == 2
    assert first == again
    assert "def open_store(path: str, *, is_new: bool = False)" in first["prompt"]
    assert first["prompt"].startswith("<|repo_name|>")
    assert {"<|repo_name|>", "<|file_sep|>"} <= set(first["stop"])  # or the model writes the next file
    assert first["prompt"].endswith(f"<|fim_prefix|>{first['prefix']}<|fim_suffix|>{first['suffix']}<|fim_middle|>")
    assert first["prefix"] + first["suffix"] == text
    assert "secret words" not in first["prompt"]
    assert "options.root" in missing["error"]
    assert other["prompt"].startswith("<PRE># Path: store.py\n# def open_store(path: str, *, is_new: bool = False)")


def test_an_invalid_path_is_reported_and_the_other_jobs_are_done(tmp_path):
    odd = [job(path="a\0.py", root=str(tmp_path)), job(root=str(tmp_path / "a" / "b")), job(root="a\0")]
    status, found, _ = answers(*odd, job(root="", family=""), job(root=None))
    assert status == 2
    assert [bool(answer.get("error")) for answer in found] == [True, True, True, False, False]
    assert found[3]["prompt"] == found[4]["prompt"] == "<|fim_prefix|>a = 1\nb = <|fim_suffix|>\n<|fim_middle|>"


def test_imports_are_found_by_a_grammar_or_by_their_form():
    """R-257: a grammar rejects a comment that looks like an import; without a grammar, the form of the line decides."""
    filler = "// x\n" * 2_000
    script = "/*\nimport no from 'no';\n*/\nimport { a,\n  b } from 'c';\n" + filler
    other = "import Foundation\n" + filler
    _, [typed, plain], _ = answers(
        job(text=script, path="a.ts", line=2_000, column=0), job(text=other, path="a.swift", line=2_000, column=0)
    )
    assert typed["imports"] == "import { a,\n  b } from 'c';\n"
    assert plain["imports"] == "import Foundation\n"


def test_imports_of_a_huge_file_are_found_by_their_form():
    """For ten million characters, a grammar took 19 s and 1.7 GB."""
    text = "import { a } from 'c';\n" + "// a long line of filler\n" * 30_000
    _, [answer], _ = answers(job(text=text, path="a.js", line=20_000, column=0))
    assert answer["imports"] == "import { a } from 'c';\n"


def test_without_a_place_for_the_index_the_prompt_is_still_built(tmp_path):
    """The failure is reported on standard error and does not block the prompt."""
    (tmp_path / "cache").write_text("a file where the folder should be")
    wanted = json.dumps(job(path="new.py", root=str(tmp_path))) + "\n"
    status, out, err = run("fim", "--jobs", stdin=wanted, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert status == 0
    assert json.loads(out)["prefix"] == "a = 1\nb = "
    assert "working without an index" in err
