"""`classify` and `select`: the contract as seen by an outside caller (R-204 … R-212, R-243 … R-251)."""

from __future__ import annotations

import json

from tests.contract.command_line import run


def jobs(command, *wanted):
    lines = [job if isinstance(job, str) else json.dumps(job) for job in wanted]
    status, out, err = run(command, "--jobs", stdin="\n".join(lines) + "\n")
    return status, [json.loads(line) for line in out.splitlines()], err


def test_classify_returns_one_object():
    status, out, _ = run("classify", "How is the login error handled in this project?")
    assert status == 0
    assert json.loads(out) == {
        "isCodebaseRelated": True,
        "categories": ["authentication", "api", "debugging", "general"],
        "confidence": "high",
        "confidenceValue": 0.9,
        "types": {
            "isImplementation": True,
            "isArchitectural": False,
            "isDebugging": True,
            "isCodeExplanation": False,
            "isFeatureRequest": False,
        },
        "type": "Implementation + Debugging",
        "source": "keywords",
    }


def test_classify_answers_jobs_in_order_and_damaged_ones_in_their_place():
    reply = '```json\n{"isCodebaseRelated": true, "categories": ["api"], "confidence": "?"}\n```'
    status, answers, err = jobs(
        "classify",
        {"text": "What is the capital of France?"},
        "{not json",
        {"text": None},
        {"question": "x"},
        {"text": "hello", "reply": reply, "type_reply": '{"isDebugging": true}'},
        {"text": "hello", "reply": "I do not know"},
    )
    assert status == 2
    assert [answer.get("isCodebaseRelated") for answer in answers] == [False, None, False, None, True, False]
    assert "standard input:2" in answers[1]["error"]
    assert "standard input:4" in answers[3]["error"]
    assert err.count("\n") == 2
    assert (answers[4]["confidence"], answers[4]["confidenceValue"], answers[4]["source"]) == ("medium", 0.7, "model")
    assert answers[4]["type"] == "Debugging"
    assert answers[5]["source"] == "keywords"
    assert answers[5]["type"] == "General Inquiry"


def test_classify_uses_the_index_of_a_folder(tmp_path):
    """R-207: the index decides; with `strict` or without an index, the words decide."""
    for number in range(12):
        (tmp_path / f"redirects_{number}.py").write_text(
            f"def follow_redirects_{number}(response):\n    return response.next_request\n"
        )
    asked = {"text": "where are redirects followed", "root": str(tmp_path)}
    status, answers, _ = jobs(
        "classify",
        asked,
        {**asked, "text": "recipe for lemon cake"},
        {**asked, "strict": True},
        {"text": asked["text"]},
    )
    assert status == 0
    assert [answer["source"] for answer in answers] == ["index", "index", "keywords", "keywords"]
    assert [answer["isCodebaseRelated"] for answer in answers[:2]] == [True, False]
    assert answers[0]["likelihood"] > 0.5 > answers[1]["likelihood"]
    assert answers[0]["isBroad"] is False
    assert "likelihood" not in answers[2]
    gathered = json.loads(run("gather", "--root", str(tmp_path), asked["text"])[1])
    assert gathered["classification"] == answers[0]


def test_classify_refuses_a_missing_folder():
    assert run("classify", "--root", "/nonexistent", "a question")[0] == 2


def test_classify_requires_a_question():
    assert run("classify")[0] == 2
    assert run("classify", "--jobs", stdin="\n")[0] == 2


FILES = [
    {"path": "chosen.py", "content": "one = 1\n", "selected": True},
    {"path": "parser.py", "content": "import re\n\n\ndef parse(text):\n    return re.split(text)\n"},
    {"path": "other.py", "content": "def unrelated():\n    return 0\n"},
]


def test_select_returns_the_documents_selection():
    status, [answer], _ = jobs("select", {"question": "How does parse work?", "budget": 100, "files": FILES})
    assert status == 0
    assert answer["selection"] == {
        "snippets": [
            {
                "path": "chosen.py", "start": 1, "end": 1, "type": "block", "name": "",
                "score": 1.0, "selected": True, "tokens": 2,
            },
            {
                "path": "parser.py", "start": 4, "end": 5, "type": "function", "name": "parse",
                "score": 0.9, "selected": False, "tokens": 11,
            },
        ],
        "totalTokens": 13, "budgetTokens": 100, "wasTruncated": False, "droppedCount": 0,
    }  # fmt: skip
    assert answer["text"].startswith("### File: chosen.py\n#### lines 1-1\n```\none = 1\n```\n### File: parser.py\n")
    assert {name: answer[name] for name in answer["selection"]} == answer["selection"]


def test_select_keeps_the_lines_the_document_keeps():
    """R-243: it keeps blank lines up to the next element, and a class as one line before its first method."""
    code = "class Box:\n    def box(self):\n        return 1\n\n\ndef other():\n    return Box\n"
    _, [answer], _ = jobs("select", {"question": "box", "budget": 100, "files": [{"path": "a.py", "content": code}]})
    found = {(one["type"], one["name"], one["start"], one["end"]) for one in answer["snippets"]}
    assert found == {("class", "Box", 1, 1), ("function", "box", 2, 5), ("function", "other", 6, 7)}


def test_strict_select_excludes_our_additions():
    """R-243, R-248: pieces have 31 lines whatever begins there, and none are indented.

    An oversized named file is omitted.
    """
    code = "class Box:\n    def box(self):\n        return 1\n\n\ndef other():\n    return Box\n"
    named = {"path": "b.py", "content": "box = 1\n" * 90, "selected": True}
    job = {"question": "box", "budget": 100, "files": [{"path": "a.py", "content": code}, named]}
    _, [ours, strict], _ = jobs("select", job, {**job, "strict": True})
    assert ours["snippets"][0]["path"] == "b.py"
    assert [(one["name"], one["start"], one["end"]) for one in strict["snippets"]] == [("Box", 1, 7), ("other", 6, 7)]
    assert (strict["droppedCount"], strict["wasTruncated"]) == (1, True)


def test_select_uses_the_budget_of_the_model():
    status, answers, _ = jobs(
        "select", *({"question": "x", "model": name} for name in ("claude-3-opus", "gpt-4o", "?"))
    )
    assert status == 0
    assert [answer["budgetTokens"] for answer in answers] == [50_000, 20_000, 4_000]
    assert answers[0]["text"] == "No relevant code context found."


def test_select_answers_damaged_jobs_in_their_place():
    good = {"question": "parse", "budget": 5, "files": FILES}
    bad = [
        {"files": FILES},
        {"question": "x", "budget": -1},
        {"question": "x", "budget": "many"},
        {"question": "x", "files": [{"path": "a"}]},
        {"question": "x", "fiels": []},
        "[]",
    ]
    status, answers, _ = jobs("select", *bad, good)
    assert status == 2
    assert all("error" in answer for answer in answers[:-1])
    assert "budget is -1; expected 0 or more tokens" in answers[1]["error"]
    assert (answers[-1]["droppedCount"], answers[-1]["totalTokens"]) == (1, 2)


def test_any_text_is_answered():
    """Unpaired surrogates, NUL and right-to-left text are answered without a crash."""
    file = '{"path": "\\ud800", "content": "def parse\\u0000(\\ud800"}'
    job = f'{{"question": "\\ud800 \\u0000 كيف parse", "files": [{file}]}}'
    status, [answer], _ = jobs("select", job)
    assert status == 0
    assert len(answer["snippets"]) == 1


def test_an_answer_is_one_line_for_every_reader():
    """U+0085, U+2028 and U+2029 end lines for Python and JavaScript: they are escaped without changing the meaning."""
    odd = "def f():\n    return '\u0085 \u2028 \u2029 é'\n"
    job = {"question": "f", "files": [{"path": "a.py", "content": odd, "selected": True}]}
    status, out, _ = run("select", "--jobs", stdin=json.dumps(job) + "\n")
    assert (status, len(out.splitlines())) == (0, 1)
    assert "é" in out
    assert odd.strip() in json.loads(out)["text"]


def test_a_budget_accepts_token_notation():
    """R-102: 16000 and "16k" are accepted, as everywhere."""
    status, [small, wrong], _ = jobs("select", {"question": "x", "budget": "2k"}, {"question": "x", "budget": "many"})
    assert (status, small["budgetTokens"]) == (2, 2000)
    assert "2k" not in wrong["error"]
    assert "many" in wrong["error"]


def test_select_is_the_documents_unless_ours_is_requested():
    """R-247: our pipeline repeats no line, and counts headings."""
    code = "def parse(text):\n    return text\n\n\ndef unparse(text):\n    return text\n"
    job = {"question": "parse", "budget": 30, "files": [{"path": "a.py", "content": code}]}
    _, (plain, strict, ours), _ = jobs("select", job, {**job, "strict": True}, {**job, "pipeline": "ranked"})
    assert [one["name"] for one in plain["snippets"]] == [one["name"] for one in strict["snippets"]]
    assert plain["selection"]["totalTokens"] > ours["selection"]["totalTokens"]
    assert jobs("classify", {"text": "x", "pipeline": "magic"})[0] == 2
    assert jobs("classify", {"text": "parse the code", "strict": True})[0] == 0
