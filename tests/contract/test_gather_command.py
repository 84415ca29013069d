"""`gather`: the contract as seen by an outside caller (R-201 … R-253)."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.contract.command_line import run

FILES = {
    "src/parser.py": 'import re\n\n\ndef parse_config(text):\n    """Parse."""\n    return re.split("=", text)\n',
    "src/store.py": "class Store:\n    def save(self, value):\n        self.value = value\n",
    "README.md": "# Example\n",
    ".env": "TOKEN=abc\n",
    "; rm -rf": "nothing\n",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    root = tmp_path_factory.mktemp("gather") / "project"
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    return root


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    return {"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache")), "HOME": str(tmp_path_factory.mktemp("home"))}


def jobs(environment, *wanted):
    lines = [job if isinstance(job, str) else json.dumps(job) for job in wanted]
    status, out, err = run("gather", "--jobs", stdin="\n".join(lines) + "\n", **environment)
    return status, [json.loads(line) for line in out.splitlines()], err


def test_one_question_yields_one_documented_object(project, environment):
    status, out, err = run(
        "gather", "--root", str(project), "How does parse_config work in this project?", **environment
    )
    answer = json.loads(out)
    assert (status, err) == (0, "")
    assert set(answer) == {
        *("classification", "terms", "gathered", "selection", "text", "timed_out", "ms", "failed", "notes"),
    }
    assert answer["classification"]["isCodebaseRelated"]
    assert answer["terms"][0] == "parse_config"
    assert set(answer["gathered"][0]) == {"source", "path", "start", "end", "score", "tokens"}
    selection = answer["selection"]
    assert set(selection) == {"snippets", "totalTokens", "budgetTokens", "wasTruncated", "droppedCount"}
    first = selection["snippets"][0]
    assert set(first) == {"path", "start", "end", "type", "name", "score", "selected", "tokens"}
    assert (first["path"], first["start"], first["end"], first["name"]) == ("src/parser.py", 4, 6, "parse_config")
    assert "#### function `parse_config` (lines 4-6)\n```\ndef parse_config(text):" in answer["text"]
    assert (answer["timed_out"], answer["failed"]) == ([], {})
    assert "abc" not in answer["text"]


def test_jobs_are_answered_in_order_with_their_options(project, environment):
    root = str(project)
    status, answers, _ = jobs(
        environment,
        {"question": "What is the capital of France?", "options": {"root": root}},
        {"question": "What is the capital of France?", "options": {"root": root, "always": True}},
        {"question": "@src/store.py", "options": {"root": root}},
        {"question": "save the value", "options": {"root": root, "files": ["src/store.py"], "budget": 3}},
        {"question": "save the Store of this project", "options": {"root": root, "active": "src/parser.py"}},
        {"question": "what is in it?", "options": {"root": root, "files": ["; rm -rf", ".env", "../outside"]}},
        {"question": "how is it stored in this project", "options": {"root": root, "model": "gpt-4o"}},
        {"question": "", "options": {"root": root, "always": True}},
    )
    assert status == 0
    plain, asked, mentioned, small, active, named, large, empty = answers
    assert (plain["text"], plain["gathered"]) == ("", [])
    assert asked["classification"]["source"] == "forced"
    assert mentioned["selection"]["snippets"][0]["selected"]
    assert mentioned["selection"]["snippets"][0]["path"] == "src/store.py"
    assert small["selection"]["totalTokens"] <= 3
    assert small["selection"]["wasTruncated"]
    assert (active["selection"]["snippets"][0]["path"], active["selection"]["snippets"][0]["score"]) == (
        "src/parser.py",
        1,
    )
    assert [one["path"] for one in named["selection"]["snippets"]][:2] == ["; rm -rf", ".env"]
    assert "outside the workspace" in named["notes"][0]
    assert large["selection"]["budgetTokens"] == 20_000
    assert empty["text"] == ""
    for answer in answers:
        assert answer["selection"]["totalTokens"] <= answer["selection"]["budgetTokens"]


def test_a_damaged_job_is_answered_in_its_place(project, environment):
    good = {"question": "parse_config", "options": {"root": str(project), "budget": None}}
    status, answers, err = jobs(
        environment,
        "{",
        {"question": "x", "options": {"root": "/no/such/folder"}},
        {"question": "x", "options": {"rot": "."}},
        {"question": "x", "options": {"root": str(project), "budget": -1}},
        {"question": "x", "options": {"root": str(project), "embed": "nonsense"}},
        {"options": {}},
        good,
    )
    assert status == 2
    assert all("error" in answer for answer in answers[:-1])
    assert answers[-1]["selection"]["snippets"][0]["path"] == "src/parser.py"
    assert err.count("\n") == 6


def test_a_budget_accepts_token_notation(project, environment):
    """R-102: it does so on the command line and in a job; R-244: an answer without code also reports the budget."""
    root = str(project)
    status, out, _ = run("gather", "--root", root, "--budget", "16k", "parse_config", **environment)
    assert (status, json.loads(out)["selection"]["budgetTokens"]) == (0, 16_000)
    status, [in_job, about_else, wrong], _ = jobs(
        environment,
        {"question": "parse_config", "options": {"root": root, "budget": "1M"}},
        {"question": "What is the capital of France?", "options": {"root": root, "budget": 700}},
        {"question": "parse_config", "options": {"root": root, "budget": "many"}},
    )
    assert in_job["selection"]["budgetTokens"] == 1_000_000
    assert (about_else["text"], about_else["selection"]["budgetTokens"]) == ("", 700)
    assert (status, "many" in wrong["error"]) == (2, True)


def test_an_empty_text_has_a_reason(project, environment, tmp_path):
    """R-202, R-250: with an empty text, the message is sent without code; `notes` distinguishes the three reasons."""
    root = str(project)
    _, answers, _ = jobs(
        environment,
        {"question": "What is the capital of France?", "options": {"root": root}},
        {"question": "parse_config", "options": {"root": root, "budget": 0}},
        {"question": "parse_config", "options": {"root": root, "budget": 1}},
        {"question": "parse_config", "options": {"root": str(tmp_path)}},
        {"question": "parse_config", "options": {"root": root}},
    )
    reasons = ["not about the project", "budget of 0 tokens", "budget of 1 token;", "No relevant code context found"]
    for answer, reason in zip(answers[:-1], reasons, strict=True):
        assert answer["text"] == ""
        assert len(answer["notes"]) == 1
        assert reason in answer["notes"][0]
    assert answers[-1]["text"]
    assert answers[-1]["notes"] == []


def test_a_home_folder_is_not_a_project(environment):
    """R-266: it is not searched; a named file is read."""
    home = environment["HOME"]
    with open(f"{home}/notes.md", "w") as file:
        file.write("parse_config\n")
    options = {"root": home, "always": True}
    status, [alone, named], _ = jobs(
        environment,
        {"question": "parse_config", "options": options},
        {"question": "parse_config", "options": {**options, "files": ["notes.md"]}},
    )
    assert status == 0
    assert alone["gathered"] == []
    assert [one["path"] for one in named["selection"]["snippets"]] == ["notes.md"]


def test_a_question_is_required():
    assert run("gather")[0] == 2
    assert run("gather", "--root", "/no/such/folder", "x")[0] == 2


def test_the_pipeline_is_chosen_by_name_or_by_strict(project, environment):
    """The arguments, a job's fields and its options are equivalent; an incompatible option is refused (R-228)."""
    root, question = str(project), "How does parse_config work in this project?"
    wanted = (
        {"pipeline": "document"}, {"strict": True}, {"pipeline": "ranked"}, {"strict": True, "pipeline": "ranked"},
    )  # fmt: skip
    jobs_of = [{"question": question, "options": {"root": root, **one}} for one in wanted]
    jobs_of += [{"question": question, "options": {"root": root}, **one} for one in wanted]
    hybrid = {"root": root, "hybrid": {"top_k": 1}}
    jobs_of += [{"question": question, "options": {**hybrid, "strict": strict}} for strict in (True, False)]
    _, answers, _ = jobs(environment, *jobs_of)
    of_options, beside = answers[:4], answers[4:8]
    assert [one.get("text") for one in of_options] == [one.get("text") for one in beside]
    assert of_options[0]["text"] == of_options[1]["text"]
    sources = [{piece["source"] for piece in one["gathered"]} for one in of_options[:3]]
    assert ["common" in one for one in sources] == [True, True, False]
    assert "strict needs the pipeline document, but pipeline is 'ranked'" in of_options[3]["error"]
    assert "selection" in answers[8]
    assert "has no effect under pipeline ranked" in answers[9]["error"]
