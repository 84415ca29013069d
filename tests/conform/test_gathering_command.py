"""The chat's gathering of code as the command line shows it: classification, definitions, completion (R-206…R-261)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conform.code_chat import write
from tests.contract.command_line import run


def answers(command: str, *jobs: dict[str, Any], cache: Path | None = None) -> list[dict[str, Any]]:
    """Return the answer to each job of a command, all of which must succeed."""
    stdin = "".join(json.dumps(job) + "\n" for job in jobs)
    environment = {"XDG_CACHE_HOME": str(cache), "HOME": str(cache)} if cache else {}
    status, out, err = run(command, "--jobs", stdin=stdin, **environment)
    assert (status, err) == (0, "")
    return [json.loads(line) for line in out.splitlines()]


def classified(*texts: str, **more: Any) -> list[dict[str, Any]]:
    return answers("classify", *({"text": text, "strict": True, **more} for text in texts))


def test_confidence_is_a_number():
    """R-206: an unknown word is 0.7."""
    values = {"high": 0.9, "medium": 0.7, "low": 0.4, "sure": 0.7}
    replies = (json.dumps({"isCodebaseRelated": True, "categories": ["api"], "confidence": word}) for word in values)
    answered = answers("classify", *({"text": "x", "reply": reply} for reply in replies))
    assert [one["confidenceValue"] for one in answered] == list(values.values())


CONFIDENCE = {
    "mock coverage": "low",
    "mock coverage flaky": "medium",
    "mock coverage flaky stub": "medium",
    "mock coverage flaky stub jest": "high",
    "load_user": "medium",
    "load_user mock": "medium",
    "load_user mock coverage": "high",
    "database": "medium",
    "database mock": "medium",
    "database mock coverage": "high",
}


def test_confidence_is_counted_from_patterns_keywords_and_strong_words():
    """R-209: they give 3, 1 and 2 points each; 5 points are high confidence, 3 medium."""
    answered = classified(*CONFIDENCE)
    assert {text: one["confidence"] for text, one in zip(CONFIDENCE, answered, strict=True)} == CONFIDENCE
    assert all(one["isCodebaseRelated"] for one in answered)


def test_categories_are_sorted_by_their_keywords():
    """R-209: an unrelated question has no categories and low confidence."""
    many, unrelated = classified("mock coverage fixture database schema oauth", "What is the capital of France?")
    assert many["categories"][:3] == ["testing", "database", "authentication"]
    shown = {name: unrelated[name] for name in ("isCodebaseRelated", "categories", "confidence")}
    assert shown == {"isCodebaseRelated": False, "categories": [], "confidence": "low"}


CATEGORIES = {
    "authentication": "oauth password",
    "api": "endpoint route",
    "database": "sql migration",
    "architecture": "coupling abstraction",
    "configuration": "dotenv yaml",
    "implementation": "algorithm recursion",
    "testing": "mock fixture",
    "frontend": "css widget",
    "backend": "cron daemon",
    "general": "repository changelog",
    "debugging": "traceback segfault",
    "feature": "feature enhancement",
}


def test_each_category_has_its_words():
    """R-210."""
    assert [one["categories"][0] for one in classified(*CATEGORIES.values())] == list(CATEGORIES)


POINTS = 60
"""The number of points at which a definition gets the highest score, 0.9."""


def definitions(folder: Path, files: dict[str, str], question: str) -> dict[str, float]:
    """Return the points of each definition found by `gather`, by path and line, in the document's pipeline."""
    write(folder / "project", files)
    options = {"root": str(folder / "project"), "always": True, "budget": "1M"}
    [answer] = answers("gather", {"question": question, "options": options, "strict": True}, cache=folder)
    found = [one for one in answer["gathered"] if one["source"] == "ast"]
    return {f"{one['path']}:{one['start']}": round((one["score"] - 0.1) / 0.8 * POINTS, 1) for one in found}


def test_definitions_with_a_term_in_name_or_text_are_found_by_kind(tmp_path):
    """R-222, R-223: points are given for the type, and for terms in the name (twice) and the code (once).

    Points are also given for a child (2), a class or method (3) and 1000 characters.

    Of two terms, the first is worth 10 and the second 1; from the third hit on, each counts half a point.
    """
    long = "    x = 'zebra'\n" + "    y = 1\n" * 120
    files = {
        "named.py": "def zebra():\n    return 0\n\ndef other():\n    return 'zebra'\n\ndef nothing():\n    return 1\n",
        "second.py": "def giraffe():\n    return 0\n",
        "box.py": "class Box:\n    def one(self):\n        return 'zebra'\n\n    def two(self):\n        return 1\n",
        "long.py": f"def endless():\n{long}",
        "both.py": "def zebra_giraffe():\n    return 0\n",
        "constant.py": "LIMIT = 'zebra'\n",
    }
    assert definitions(tmp_path, files, "zebra giraffe") == {
        "named.py:1": 8 + 2 * 10 + 10,
        "named.py:4": 8 + 10,
        "second.py:1": 8 + 2 * 1 + 1,
        "box.py:1": 10 + 10 + 2 * 2 + 3,
        "box.py:2": 8 + 10 + 3,
        "long.py:1": 8 + 10 - 2,
        "both.py:1": 8 + 2 * 11 + 11 + 0.5 * 4,
        "constant.py:1": 4 + 10,
    }


def test_unparsable_text_yields_its_lines_or_pattern_matches(tmp_path):
    """R-222, R-225: TypeScript, JavaScript and Python yield pattern matches, other text its first lines."""
    files = {"notes.txt": "first\nthe zebra\nthird\n", "broken.xyz": "function zebra() {\n  return 1\n}\n"}
    found = definitions(tmp_path, files, "zebra")
    assert {place.partition(":")[0] for place in found} == set(files)


@pytest.mark.parametrize(
    ("others", "kept"),
    [
        # Below 50 from 5 points on, all of them.
        (40, {"function": 40, "variable": 4}),
        # Below 200 from 10 points on: a variable with the last term has 5.
        (60, {"function": 60, "variable": 0}),
        (140, {"function": 100, "variable": 0}),
        # Below 500 from 15 on, with a term in the name, none inside another, at most 75.
        (300, {"function": 0, "variable": 0, "named": 75}),
        (600, {"function": 0, "variable": 0, "named": 50}),
    ],
)
def test_more_definitions_are_chosen_more_strictly(tmp_path, others, kept):
    """R-224: the minimum is 5 points (all are kept), then 10 (100 are kept), 15 (75) and 20 (50)."""
    named = max(0, 90 if kept.get("named") else 0)
    files = {
        "function.py": "".join(f"def f{n}():\n    return 'zebra'\n\n" for n in range(others - named)),
        "named.py": "".join(f"def zebra_{n}():\n    return 1\n\n" for n in range(named)),
        "variable.py": "".join(f"LIMIT_{n} = 'giraffe'\n" for n in range(4)),
    }
    found = definitions(tmp_path, files, "zebra giraffe")
    counted = {kind: sum(place.startswith(kind) for place in found) for kind in kept}
    assert counted == kept


FIM = {
    "deepseek-coder": (
        "<\uff5cfim\u2581begin\uff5c>",
        "<\uff5cfim\u2581hole\uff5c>",
        "<\uff5cfim\u2581end\uff5c>",
        "<\uff5cend\u2581of\u2581sentence\uff5c>",
    ),
    "codellama-7b": ("<PRE>", "<SUF>", "<MID>", "<EOT>"),
    "starcoder2": ("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<|endoftext|>"),
    "codestral-latest": ("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<|endoftext|>"),
    "qwen2.5-coder": ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|endoftext|>"),
}


def completions(*models: str, text: str = "a = 1\nb = \n", line: int = 1, column: int = 4, **options: str):
    job = {"path": "a.py", "text": text, "line": line, "column": column, "options": options}
    return answers("fim", *({**job, "model": model} for model in models))


def test_tokens_around_the_cursor_depend_on_the_models_name():
    """R-258, R-259: the order is prefix, suffix, middle, with stop tokens.

    R-260: the source's tokens for DeepSeek are an option.
    """
    [source] = completions("x", family="deepseek-ascii")
    assert source["prompt"] == "<|fim_begin|>a = 1\nb = <|fim_hole|>\n<|fim_end|>"
    assert source["stop"] == ["<|end_of_text|>", "<file_sep>", "\n\n\n"]
    for (model, (pre, suf, mid, end)), answer in zip(FIM.items(), completions(*FIM), strict=True):
        assert answer["prompt"] == f"{pre}a = 1\nb = {suf}\n{mid}", model
        assert answer["stop"] == [end, "<file_sep>", "\n\n\n"], model


def test_a_model_without_such_tokens_continues_the_text():
    """R-259: the prompt has the imports and the prefix; the completion stops at an empty line or a fence."""
    [answer] = completions("gpt-5")
    assert (answer["prompt"], answer["stop"]) == ("a = 1\nb = ", ["\n\n", "```"])


def test_a_prompt_has_2000_tokens_before_and_500_after_the_cursor():
    """R-256, R-257: 8,000 and 2,000 characters, preceded by at most 1,000 characters of imports."""
    imports = "".join(f"import m{n:03}\n" for n in range(300))
    text = imports + "x = 1\n" * 3_000
    [answer] = completions("starcoder2", text=text, line=2_000, column=2)
    assert (len(answer["prefix"]), len(answer["suffix"])) == (8_000, 2_000)
    assert answer["imports"] == imports[: 12 * 83]


def test_tokens_can_be_configured_and_those_in_a_file_are_harmless():
    """R-260: `deepseek` uses the published tokens, `deepseek-ascii` those of the source."""
    for family, begin in (("deepseek", "<\uff5cfim\u2581begin\uff5c>"), ("deepseek-ascii", "<|fim_begin|>")):
        [answer] = completions("some-model", family=family)
        assert answer["prompt"].startswith(begin), family
    text = "a = '<|fim_suffix|>'\nb = \n"
    [answer] = completions("qwen2.5-coder", text=text)
    assert answer["prompt"].count("<|fim_suffix|>") == 1


ABOUT_THE_PROJECT = {
    "": False,
    "   ": False,
    "explain it without the database schema": False,
    "load_user": True,
    "cron": False,
    "cron daemon": True,
    "refactor": True,
    "roses and poems": False,
}
"""Question → expected answer: empty, a negation, a pattern, one keyword, two keywords, a strong word, no match."""


def test_words_decide_in_the_documents_order():
    """R-207: empty and negated questions are decided first; then a pattern, two keywords or one strong word counts."""
    answered = classified(*ABOUT_THE_PROJECT)
    related = [one["isCodebaseRelated"] for one in answered]
    assert dict(zip(ABOUT_THE_PROJECT, related, strict=True)) == ABOUT_THE_PROJECT
    assert {one["source"] for one in answered} == {"keywords"}


@pytest.mark.parametrize("word", ["not", "no", "without", "exclude", "avoid"])
def test_a_negation_reaches_three_words(word):
    """R-208: a negation applies to a keyword among the next three words, not to the fourth."""
    near, far = classified(f"tell {word} of a database schema", f"tell {word} one two more database schema")
    assert (near["isCodebaseRelated"], far["isCodebaseRelated"]) == (False, True)


def test_long_words_may_be_misspelt():
    """R-211: two letters may be wrong in words of five or more; "the" does not match "rest" outside `strict`."""
    misspelt, other = classified("middlewre endpont", "gardening tulips")
    assert (misspelt["isCodebaseRelated"], other["isCodebaseRelated"]) == (True, False)
    [the] = answers("classify", {"text": "the rats and the cats in the mud"})
    assert the["isCodebaseRelated"] is False
