"""`python -m codecompanion fim`: a stable contract, as an outside caller sees it (R-256 … R-261)."""

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


def test_a_position_gives_the_documents_prompt():
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


def test_a_long_file_is_cut_and_its_imports_stay():
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
    assert "within a character" in said[2]
    assert "line 7 is beyond the text" in said[3]
    assert "deepseek-ascii" in said[4]
    assert "path" in said[5]
    assert found[6]["family"] == "qwen"
    assert [line for line in err.splitlines() if line] == said[:6]


def test_without_jobs_there_is_one_sentence():
    assert run("fim")[0] == 2
    status, out, err = run("fim", "--jobs", stdin="\n")
    assert (status, out) == (2, "")
    assert "no job in it" in err
