"""The displayed part of a model's reply, as a table of cases: the cursor is `|`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.completion.families import family_of, stops_of
from codecompanion.completion.usable_reply import MAX_LINES, Place, usable

QWEN, PLAIN = family_of("qwen"), family_of("gpt")


def shown(code, text, *, family=QWEN, multi_line=True, is_cut=False):
    before, _, after = code.partition("|")
    return usable(text, Place(before, after), family, stops_of(family), multi_line=multi_line, is_cut=is_cut)


@pytest.mark.parametrize(
    ("code", "reply", "wanted"),
    [
        # As it is: indentation, a first line feed, blank lines within.
        ("x = |", "1", "1"),
        ("def f():|", "\n    a = 1\n\n    return a", "\n    a = 1\n\n    return a"),
        ("def f():\n    |", "a = 1\n    return a\n", "a = 1\n    return a"),
        ("\tif x {|\n\t}\n", "\n\t\ty()\n", "\n\t\ty()"),
        # Ends.
        ("x = |", "1<|endoftext|>and more", "1"),
        ("x = |", "1<|fim_middle|>2", "1"),
        ("x = |", "1\n\n\ny", "1"),
        ("x = |", "1<file_sep>", "1"),
        ("x = |", "1\r\ny = 2\r\n", "1\ny = 2"),
        ("x = |", "1\x00\x01binary", "1"),
        ("x = |", "\x1b[31mred", ""),
        ("x = |", "1 # caf\ufffd", "1 # caf"),
        ("x = |", "'\ud800'", "'"),
        # Indented as the file is.
        ("if a:\n    b\nif c:|", "\n\td\n\t\te", "\n    d\n        e"),
        ("if a:\n  if b:\n    c\n|", "if c:\n\td\n\te\tf", "if c:\n  d\n  e\tf"),
        ("if a {\n\tb\n\tif c {|\n\t}\n", "\n        d", "\n\t\td"),
        ("if a {\n\tb\n|", "if c {\n    d\n      e\n}", "if c {\n\td\n\t  e\n}"),
        ("if a {\n\tb(1,\n\t  2)\n|", "if c {\n\td\n}", "if c {\n\td\n}"),
        ("if a {\n\tb\n    c\n|", "if c {\n\td\n    e}", "if c {\n\td\n    e}"),
        ("if a:|", "\n\tb", "\n\tb"),
        # Nothing.
        ("x = |", "", ""),
        ("x = |", "  \n \n", ""),
        ("x = |", "<|endoftext|>", ""),
        # Text after the cursor on the line.
        ("f(|)", "a, b)", "a, b"),
        ("f(|)", "g(a), b)", "g(a), b"),
        ("f(|)", "g(a)", "g(a)"),
        ("f(|)\n", "a, b):\n    return a", "a, b"),
        ("def f(|):", "a, b):\n    return a", "a, b"),
        ("x = [|]", "\n    1,\n    2,\n]", "\n    1,\n    2,\n"),
        ("x = {|}", '"a": ")"}', '"a": ")"'),
        ('print("|")', 'hello")', "hello"),
        ('print("|")', 'it\'s", end="")', "it's"),
        ("a = | + b", "c + b", "c"),
        ("a = | + b", "c\nd = e", "c"),
        ("x = f(|, 3)", "1, 2, 3)", "1, 2"),
        # Text below.
        ("a = 1\n|\nreturn value\n", "b = 2\nreturn value\n", "b = 2"),
        ("a = 1\n|\n    return value\n", "b = 2\n    return value\n\ndef g():", "b = 2"),
        ("a = 1\n|\n    return value\n", "b = 2\n    return va", "b = 2"),
        ("a = 1\n|\nreturn value\n", "return value\n", ""),
        ("if x:\n    |\n}\n", "y()\n}\n", "y()"),
        ("if x {\n    |\n}\n", "if y {\n    z()\n}\nw()\n}\n", "if y {\n    z()\n}\nw()"),
        # The line above again.
        ("total += value\n|", "total += value\ncount += 1", "count += 1"),
        ("total += value\n|", "total += value", ""),
        ("    total += value\n    total|", " += value", ""),
        ("    total += value|", "\n    total += value", ""),
        ("    total += value|", "\n    total += value\n    count()", "\n    count()"),
        ("}\n|", "}\n", "}"),
        # A loop.
        ("|", "x = f(1)\ny = g(2)\ny = g(2)\ny = g(2)\ny = g(2)", "x = f(1)\ny = g(2)"),
        ("|", "a(1)\nb(1)\na(1)\nb(1)\na(1)\nb(1)", "a(1)\nb(1)"),
        ("|", "}\n}\n}", "}\n}\n}"),
    ],
)
def test_existing_text_is_removed_from_a_reply(code, reply, wanted):
    assert shown(code, reply) == wanted.rstrip()


def test_a_single_line_is_one_line():
    """R-261: multiLine."""
    assert shown("x = |", "1\ny = 2", multi_line=False) == "1"
    assert shown("x = 1|", "\ny = 2", multi_line=False) == ""


def test_a_reply_truncated_by_the_limit_loses_its_half_line():
    assert shown("|", "a = 1\nb = so", is_cut=True) == "a = 1"
    assert shown("|", "a = some_lo", is_cut=True) == "a = some_lo"
    assert shown("x:|", "\n    y = some_lo", is_cut=True) == "\n    y = some_lo"


def test_a_model_that_cannot_fill_in_may_wrap_and_repeat():
    assert shown("return a|", "```python\nreturn a + b\n```\nThis adds.", family=PLAIN) == ""
    assert (
        usable("```python\nreturn a + b\n```\nWords.", Place("return a", ""), PLAIN, (), multi_line=True, is_cut=False)
        == " + b"
    )


def test_a_huge_reply_is_shortened():
    text = "\n".join(f"line_{number}()" for number in range(100_000))
    assert shown("|", text).count("\n") == MAX_LINES - 1


@given(st.text("ab() {}\n\"'[]=<|", max_size=80), st.text("ab()\n }", max_size=40), st.text("ab()\n }", max_size=40))
def test_a_reply_is_only_shortened_and_never_extended(text, before, after):
    """The displayed characters occur in the reply in the same order; the generated texts contain no tabs."""
    found = usable(text, Place(before, after), QWEN, stops_of(QWEN), multi_line=True, is_cut=False)
    rest = iter(text)
    assert all(character in rest for character in found)
    assert found == found.rstrip()
