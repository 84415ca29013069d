"""Mentions of the project in a message (R-213)."""

from __future__ import annotations

import pytest

from codecompanion.retrieval.mentions import MAX_FILES, Mentions, asked_words, mentions_in, wants_code


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("look at @src/a.py", ("src/a.py",)),
        ("@a.py is wrong", ("a.py",)),
        ("(@a.py), @b.py; and @c.py!", ("a.py", "b.py", "c.py")),
        ("see @a.py:10-20 and @a.py:3", ("a.py",)),
        ("@Makefile", ("Makefile",)),
        ("@.env and @./x/y.lua", (".env", "./x/y.lua")),
        ('@"my file.txt" and @my\\ other.txt', ("my file.txt", "my other.txt")),
        ("@föö/bär.py", ("föö/bär.py",)),
        ("mail me@example.org", ()),
        ("a@@b and x/@y", ()),
        ("`@a.py`", ()),
        ("see @`src/alpha.py`, @`b c.py` and `x`", ("src/alpha.py", "b c.py")),
        ("@`property` and `a.b` of x@`c.py`", ()),
        ('what is in @"with space.py"?', ("with space.py",)),
        ("```\n@a.py\n```", ()),
        ("```python\n@a.py", ()),
        ("~~~\n@a.py\n~~~\n@b.py", ("b.py",)),
        ("@ alone, and @", ()),
        ("@; rm -rf", ()),
        ("nothing", ()),
        ("", ()),
    ],
)
def test_names_after_an_at_sign_may_be_files(text, files):
    assert mentions_in(text).files == files


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("see @a.py:10-20 and @a.py:3", [("a.py", 10, 20), ("a.py", 3, 3)]),
        ("see @a.py:10-20, @a.py", []),
        ("is @a.py:20-10?", [("a.py", 20, 10)]),
        ("(@a.py#L5-L9).", [("a.py", 5, 9)]),
        ("@a.py#L5", [("a.py", 5, 5)]),
        ("@a.py#L5C2-L9C1", [("a.py", 5, 9)]),
        ("@a.py:12:4 fails", [("a.py", 12, 12)]),
        ("@a.py:0", [("a.py", 0, 0)]),
        ('@"my file.txt":3-4 and @"your file.txt:5"', [("my file.txt", 3, 4), ("your file.txt", 5, 5)]),
        ("@`src/a.py:3-4`", [("src/a.py", 3, 4)]),
        ("@a.py: see", []),
        ("@a.py#notes", []),
        ("@a.py:12345678901", []),
    ],
)
def test_lines_after_a_name_are_parsed(text, lines):
    found = mentions_in(text)
    assert [(one.name, one.start, one.end) for one in found.lines] == lines
    assert {one.name for one in found.lines} <= set(found.files)


@pytest.mark.parametrize(
    ("text", "is_meant"),
    [
        ("how does #{codebase} work?", True),
        ("#{Codebase}", True),
        ("#codebase", False),
        ("write `#{codebase}` for that", False),
        ("# {codebase}", False),
    ],
)
def test_one_word_means_the_whole_project(text, is_meant):
    assert mentions_in(text).codebase is is_meant


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("how does undo work? #{codebase}", "how does undo work?"),
        ("#{Codebase}", ""),
        ("what is the codebase?\n  a #b", "what is the codebase?\n  a #b"),
        ("#{buffer} #{diagnostics} @shop/cli.py explain add", "explain add"),
        ("#{file:shop/prices.py:1-6} and #{ diff : staged } why", "and why"),
        ("use @{read_only}: where is @shop/cli.py:3-9.", "use : where is ."),
        ('@`shop/cli.py` @"my file.py":3 why', "why"),
        ("what does @property do in @other.py", "what does @property do in @other.py"),
        ("why `@shop/cli.py` and `#{buffer}`?", "why `@shop/cli.py` and `#{buffer}`?"),
        ("say #{buffer}\n```ruby\n  f #{buffer}\n```", "say\n```ruby\n  f #{buffer}\n```"),
        ('puts "Hello #{name}"', 'puts "Hello #{name}"'),
        ("mail me@{x}.org", "mail me@{x}.org"),
    ],
)
def test_mentions_are_not_the_subject_of_the_question(text, words):
    """Else every question with `#{codebase}` would be one about the project as a whole (R-236)."""
    assert asked_words(text, ("shop/cli.py", "my file.py")) == words


def test_files_over_the_limit_are_counted():
    found = mentions_in(" ".join(f"@f{i}.py:1 @f{i}.py:9" for i in range(MAX_FILES + 3)))
    assert (len(found.files), len(found.lines), found.beyond) == (MAX_FILES, 2 * MAX_FILES, 3)


def test_a_long_message_of_at_signs_is_parsed_quickly_and_names_few_files():
    text = "@a.py " * 50_000 + "@" * 100_000 + " ".join(f"@f{i}.py" for i in range(1000))
    assert len(mentions_in(text).files) == MAX_FILES
    assert asked_words(text, ("a.py",)).startswith("@@")


@pytest.mark.parametrize(
    ("enabled", "always", "mentions", "files", "wanted"),
    [
        (True, False, Mentions(), (), True),
        (False, True, Mentions(codebase=True), ("a",), False),
        ("auto", True, Mentions(), (), True),
        ("auto", False, Mentions(), (), False),
        ("auto", False, Mentions(codebase=True), (), True),
        ("auto", False, Mentions(files=("a",)), (), False),
        ("auto", False, Mentions(files=("a",)), ("a",), True),
    ],
)
def test_requests_for_code_are_recognised(enabled, always, mentions, files, wanted):
    assert wants_code(enabled, always, mentions, files) is wanted
