"""CodeBuddy's questions in a chat: relation to the project, named files and search terms (R-201…R-220, R-267)."""

from __future__ import annotations

import json

import pytest

from codecompanion.errors import NetworkFailed
from tests.conform.code_chat import QUESTIONS, write

PARSER = '''import re


def parse_config(text):
    """Parse the configuration."""
    return re.split("=", text)
'''
FILES = {
    "src/parser.py": PARSER,
    "src/other.py": "def something_else():\n    return 1\n",
    "docs/parser.py": "x = 1\n",
    "README.md": "# Example\n",
    ".hidden/notes.py": "def parse_config(hidden):\n    return hidden\n",
}
QUESTION = "How does parse_config work in this project?"
UNRELATED = "What is the capital of France?"


def answers(classification: str = "{}", kinds: str = "{}", terms: str = "") -> dict[str, str | Exception]:
    return dict(zip(QUESTIONS, (classification, kinds, terms), strict=True))


def related(**changed: object) -> str:
    return json.dumps({"isCodebaseRelated": True, "categories": ["api"], "confidence": "high", **changed})


async def test_the_question_decides_whether_code_is_gathered(code_chat):
    """R-201: for an unrelated question nothing is gathered, and it is sent as typed."""
    chat = await code_chat(FILES)
    block = await chat.ask(QUESTION)
    assert "#### function `parse_config` (lines 4-6)" in block
    assert await chat.ask(UNRELATED) == ""
    assert chat.request[-1].text == UNRELATED
    assert (chat.found["is_codebase_related"], chat.found["found"], chat.found["terms"]) == (False, 0, [])


async def test_all_gatherers_run_in_parallel_and_a_late_one_is_missing(code_chat):
    """R-203: the limit is 8 s by default; the team's program exceeds it, and the code is still included."""
    chat = await code_chat(FILES, team={"enabled": True, "command": ("sleep", "600")}, timeout_s=3.0)
    await chat.ask("who on the team knows parse_config in this project?")
    assert chat.found["timed_out"] == ["team"]
    assert "src/parser.py" in chat.paths
    assert chat.found["duration_ms"] < 3_000
    assert chat.defaults.timeout_s == 8


async def test_one_call_to_a_small_model_classifies(code_chat):
    """R-204, R-267: the reply is JSON with three fields and one to five categories, or none for unrelated questions."""
    chat = await code_chat(FILES, replies=answers(related(categories=list("abcdefg"))))
    await chat.ask(UNRELATED)
    assert (chat.asked.count(QUESTIONS[0]), chat.found["classified_by"]) == (1, "model")
    assert (chat.found["categories"], chat.found["confidence"]) == (list("abcde"), "high")
    no = await code_chat(FILES, replies=answers(related(isCodebaseRelated=False)))
    assert await no.ask(QUESTION) == ""
    assert (no.found["categories"], no.found["found"]) == ([], 0)


@pytest.mark.parametrize(
    ("reply", "by", "confidence"),
    [
        (f"```\n{related(confidence='low')}\n```", "model", "low"),
        (f"  ```json\n{related()}```\n", "model", "high"),
        (related(confidence="very"), "model", "medium"),
        (related(isCodebaseRelated="yes"), "keywords", "high"),
        (related(categories="api"), "keywords", "high"),
        ("I cannot say", "keywords", "high"),
        (NetworkFailed("no network"), "keywords", "high"),
    ],
)
async def test_a_reply_is_parsed_without_its_fences_or_the_words_decide(code_chat, reply, by, confidence):
    """R-205."""
    chat = await code_chat(FILES, replies=answers(reply))
    await chat.ask(QUESTION)
    assert (chat.found["classified_by"], chat.found["confidence"]) == (by, confidence)


async def test_the_kinds_of_a_question_choose_format_and_architecture(code_chat):
    """R-212: several kinds are joined; without any, the question is a general inquiry."""
    kinds = json.dumps({"isArchitectural": True, "isDebugging": True})
    chat = await code_chat(FILES, replies=answers(related(), kinds))
    block = await chat.ask(QUESTION)
    assert chat.found["type"] == "Architectural + Debugging"
    assert "State the cause and its location first, then the fix. Name the parts" in block
    assert "## Architecture\n\n- Size: 4 files" in block
    plain = await code_chat(FILES, replies=answers(related(), '{"isDebugging": false}'))
    block = await plain.ask(QUESTION)
    assert plain.found["type"] == "General Inquiry"
    assert "## Architecture" not in block
    assert block.endswith("in fenced blocks that name its language.")


async def test_the_words_of_a_question_determine_its_kinds(code_chat):
    """R-212: this also works without a model."""
    chat = await code_chat(FILES)
    for question, kind in (
        ("Explain the architecture of this project", "Architectural"),
        ("Why does parse_config fail with this error?", "Debugging"),
        ("Explain how parse_config works", "Code Explanation"),
        ("Add a new feature to parse_config", "Feature Request"),
        ("How is parse_config implemented?", "Implementation"),
    ):
        await chat.ask(question)
        assert kind in chat.found["type"].split(" + "), question


async def test_named_files_come_first_and_the_active_one_before_them(code_chat):
    """R-213, R-214, R-247: they have score 1.0.

    The active file is omitted if a named file has its path or base name.
    """
    chat = await code_chat(FILES)
    for files, active, first in (
        ("@src/other.py", "src/parser.py", ["src/parser.py", "src/other.py"]),
        ("@src/parser.py", "src/parser.py", ["src/parser.py"]),
        ("@docs/parser.py", "src/parser.py", ["docs/parser.py"]),
        ("@src/other.py", "", ["src/other.py"]),
    ):
        await chat.ask(f"explain parse_config, {files}", current=active)
        chosen = [piece.path for piece in chat.pieces if piece.score == 1.0]
        assert chosen == first == chat.paths[: len(first)], files


async def test_names_are_paths_or_searched_below_the_root(code_chat, tmp_path):
    """R-215: a single letter is skipped, the shortest of two paths is chosen, and each file not read is named."""
    chat = await code_chat(FILES, supplement_when_files_selected=False)
    write(tmp_path, {"secret.py": "TOKEN = 1\n"})
    for name, paths, said in (
        ("@x", [], ""),
        ("@src/other.py", ["src/other.py"], ""),
        ("@parser.py", ["src/parser.py"], "1 other file has that name"),
        ("@missing.py", [], "@missing.py was not read: no such file in project."),
        ("@../../secret.py", [], "outside the workspace"),
    ):
        await chat.ask(f"#{{codebase}} {name}" if paths else f"explain {name} @src/other.py")
        assert chat.paths == (paths or ["src/other.py"]), name
        assert said in " ".join(chat.found["notes"]), name
        assert bool(said) == bool(chat.found["notes"]), name


async def test_hidden_and_large_files_are_read_only_if_named(code_chat):
    """R-216: hidden files and files above 1 MB are skipped by default.

    A named large one is read up to the limit, with a note (R-248: ours).
    """
    large = "".join(f"def parse_config_{n}():\n    return {n}\n" for n in range(30_000))
    chat = await code_chat({**FILES, "large.py": large})
    await chat.ask(QUESTION)
    assert chat.found["failed"] == {}
    assert set(chat.paths) == {"src/parser.py", "README.md"}
    named = "what is in @.hidden/notes.py and @large.py"
    await chat.ask(named)
    assert chat.paths[0] == ".hidden/notes.py"
    assert chat.found["notes"] == ["large.py was not sent: the budget is used up."]
    ours = await code_chat({**FILES, "large.py": large}, policy="codebuddy", pipeline="document")
    await ours.ask(named)
    assert ours.paths[:2] == [".hidden/notes.py", "large.py"]
    assert ours.found["notes"][0].startswith("Sent 827 of 60,000 lines of large.py (1.3 MB): ")
    hidden = await code_chat(FILES, include_hidden=True)
    await hidden.ask(QUESTION)
    assert ".hidden/notes.py" in hidden.paths
    assert (hidden.defaults.include_hidden, hidden.defaults.max_file_size_mb) == (False, 1)


async def test_more_is_searched_beside_named_files_unless_disabled(code_chat):
    """R-217."""
    question = "explain parse_config, @src/other.py"
    chat = await code_chat(FILES)
    await chat.ask(question)
    assert {"src/other.py", "src/parser.py"} <= set(chat.paths)
    chat.set(supplement_when_files_selected=False)
    await chat.ask(question)
    assert (chat.paths, chat.found["terms"]) == (["src/other.py"], [])
    assert chat.defaults.supplement_when_files_selected is True


async def test_with_files_the_words_are_the_terms_otherwise_a_model_provides_them(code_chat):
    """R-218, R-220: of ten terms the first five are searched."""
    terms = "something else, something_else, a1, a2, a3, a4, a5, a6, a7, a8"
    chat = await code_chat(FILES, replies=answers(related(), terms=terms))
    await chat.ask("tell me everything")
    assert chat.found["terms"] == ["something else", "something_else", "a1", "a2", "a3"]
    assert "src/other.py" in chat.paths
    asked = next(request for request in chat.small.requests if request.messages[0].id == QUESTIONS[2])
    assert "10" in asked.messages[0].text
    await chat.ask("explain parse_config, @src/other.py")
    assert chat.found["terms"] == ["parse_config"]
    assert chat.asked.count(QUESTIONS[2]) == 1


@pytest.mark.parametrize("reply", ["", "no list", NetworkFailed("no network")])
async def test_without_a_models_terms_the_words_are_searched(code_chat, reply):
    """R-219, R-220: the first ten distinct words in lower case are used.

    They exclude punctuation, stop words and words of up to two letters.
    """
    chat = await code_chat(FILES, replies={**answers(related()), QUESTIONS[2]: reply})
    await chat.ask("Why is PARSE_config-file of AB parse_config? w1x w2x w3x w4x w5x w6x w7x w8x w9x")
    assert chat.found["terms"] == ["parse_config", "file", *(f"w{n}x" for n in range(1, 9))]


async def test_without_a_utility_model_no_model_is_asked(code_chat):
    """R-267: only the chat's own request is sent."""
    chat = await code_chat(FILES)
    await chat.ask(QUESTION)
    assert chat.asked == []
    assert len(chat.bench.adapter.requests) == 1
    asked = await code_chat(FILES, replies=answers(related()))
    await asked.ask(QUESTION)
    assert sorted(asked.asked) == sorted(QUESTIONS)
