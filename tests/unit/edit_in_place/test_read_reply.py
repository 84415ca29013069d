"""Replies in many shapes: edits and answers."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.edit_in_place.read_reply import ReplyReader, read_reply
from codecompanion.wire.requests import EditPlace

REGION = ("def fact(n):", "    if n < 2:", "        return 1", "    return n * fact(n - 1)")
CODE = ("def fact(n):", "    result = 1", "    for i in range(2, n + 1):", "        result *= i", "    return result")
PLACE = EditPlace(
    region=REGION, before=("import sys", ""), after=("", "print(fact(int(sys.argv[1])))"), filetype="python"
)
TEXT = "\n".join(CODE)

SHAPES = {
    "as asked": f"placement: replace\n```python\n{TEXT}\n```\n",
    "no final newline": f"placement: replace\n```python\n{TEXT}\n```",
    "Windows line ends": f"placement: replace\r\n```python\r\n{TEXT.replace(chr(10), chr(13) + chr(10))}\r\n```\r\n",
    "bold header": f"**Placement:** replace\n\n```python\n{TEXT}\n```",
    "a word alone": f"replace\n```python\n{TEXT}\n```",
    "no header": f"```python\n{TEXT}\n```",
    "tildes": f"placement: replace\n~~~python\n{TEXT}\n~~~",
    "longer fence": f"placement: replace\n````\n{TEXT}\n````",
    "prose around": f"Sure! Here it is:\n\nplacement: replace\n```python\n{TEXT}\n```\nIt now uses a loop.",
    "prose, no header": f"Here is the loop:\n```python\n{TEXT}\n```\nHope this helps!",
    "header in the fence": f"```\nplacement: replace\n{TEXT}\n```",
    "header in a fence of its own": f"```\nplacement: replace\n```\n```python\n{TEXT}\n```",
    "open fence": f"placement: replace\n```python\n{TEXT}\n",
    "no fence": f"placement: replace\n{TEXT}\n",
    "thoughts": f"<think>I could ```replace``` it.\n```\nx\n```</think>\nplacement: replace\n```python\n{TEXT}\n```",
    "blank lines": f"placement: replace\n```python\n\n{TEXT}\n\n\n```",
    "an indented block": "placement: replace\n  ```python\n" + "\n".join("  " + line for line in CODE) + "\n  ```",
    "JSON": json.dumps({"placement": "replace", "code": TEXT, "language": "python"}),
    "JSON in a fence": "```json\n" + json.dumps({"code": TEXT, "placement": "replace"}) + "\n```",
    "surroundings repeated": f"placement: replace\n```\nimport sys\n\n{TEXT}\n\nprint(fact(int(sys.argv[1])))\n```",
    "bare code": TEXT,
    "the tags of the message": f"placement: replace\n```python\n<edit>\n{TEXT}\n</edit>\n```",
    "numbered lines": "placement: replace\n```python\n"
    + "\n".join(f"{number:3} | {line}" for number, line in enumerate(CODE, 3))
    + "\n```",
    "numbers and colons": "```\n" + "\n".join(f"{number}: {line}" for number, line in enumerate(CODE, 1)) + "\n```",
    "usage shown below": f"placement: replace\n```python\n{TEXT}\n```\nUse it:\n```python\nfact(3)\n```",
    "a diff": "placement: replace\n```diff\n@@ -1,4 +1,5 @@\n def fact(n):\n-    if n < 2:\n-        return 1\n"
    "-    return n * fact(n - 1)\n+    result = 1\n+    for i in range(2, n + 1):\n+        result *= i\n"
    "+    return result\n```",
}
ANSWERS = {
    "announced": ("placement: chat\nIt is recursive: it calls itself.\n```python\nfact(3)\n```", "text, not code"),
    "prose": ("The function computes the factorial of n. It calls itself until n is below two.", "text, not code"),
    "prose in lines": ("- It calls itself (n times).\n- It returns 1.\nTry `fact(3)`.", "text, not code"),
    "prose, announced as code": (
        "placement: replace\nI am sorry, but I cannot.\nPlease ask differently.",
        "text, not code",
    ),
    "nothing": ("", "no code"),
    "white space": (" \n\n", "no code"),
    "only a header": ("placement: replace", "no code"),
    "two examples": ("Use it so:\n```python\nfact(3)\n```\nor so:\n```python\nfact(4)\n```", "several blocks"),
    "a long explanation": ("word " * 80 + "\n```python\nfact(3)\n```", "explains code instead"),
    "another diff": ("placement: replace\n```diff\n-    nothing like it\n+    x\n```", "diff that does not apply"),
    "nothing to add": ("placement: after\n```python\n\n```", "no code"),
    "JSON for a chat": ('{"placement": "chat", "code": ""}', "text, not code"),
}
BARE = {
    "a statement": ("x = fact(3)",),
    "a function": ('"""Count things."""', "", "def double(n):", '    """Return twice n."""', "    return 2 * n"),
    "a shell script": ("if [ -f x ]; then", "  cat x", "fi"),
    "keys and values": ("name: CI", "on:", "  push:", "    branches: [main]"),
    "a page": ("<p>", "  Some words of it.", "</p>"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_code_is_found_in_every_shape_of_a_reply(shape):
    reading = read_reply(SHAPES[shape], PLACE)
    assert (reading.placement, reading.lines, reading.note) == ("replace", CODE, "")


@pytest.mark.parametrize("shape", ANSWERS)
def test_a_reply_that_is_not_an_edit_is_an_answer(shape):
    text, why = ANSWERS[shape]
    reading = read_reply(text, PLACE)
    assert reading.placement == "chat"
    assert why in reading.note


@pytest.mark.parametrize("what", BARE)
@pytest.mark.parametrize("region", [("",), ("old()",)])
def test_code_alone_replaces_the_selection(what, region):
    """Without a fence and a header, there is only one interpretation, even in an empty buffer."""
    reading = read_reply("\n".join(BARE[what]), EditPlace(region=region))
    assert (reading.placement, reading.lines) == ("replace", BARE[what])


def test_numbers_in_the_text_stay():
    """Lists and tables may be numbered, too; an unknown tag is text."""
    code = ("1 | one", "2 | two", "3 | three")
    reply = "placement: replace\n```\n{}\n```".format("\n".join(code))
    assert read_reply(reply, EditPlace(region=("1 | one", "2 | zwei"))).lines == code
    pairs = ("1: a", "2: b")
    assert read_reply("placement: replace\n```\n1: a\n2: b\n```", EditPlace(region=("x: y",))).lines == pairs
    xml = ("<edit>", "  x", "</edit>")
    place = EditPlace(region=("<edit>", "  y", "</edit>"))
    assert read_reply("placement: replace\n```xml\n<edit>\n  x\n</edit>\n```", place).lines == xml


@pytest.mark.parametrize(
    ("word", "placement"),
    [("replace", "replace"), ("add", "after"), ("after", "after"), ("before", "before"), ("new", "new")],
)
def test_every_placement_has_its_keyword(word, placement):
    reading = read_reply(f"Placement: {word.upper()}\n```python\nassert fact(3) == 6\n```", PLACE)
    assert (reading.placement, reading.lines) == (placement, ("assert fact(3) == 6",))


def test_added_lines_are_indented_like_the_place():
    place = EditPlace(region=("    def a(self):", "        pass"), before=("class A:",), filetype="python")
    reading = read_reply("placement: after\n```python\n\ndef b(self):\n    pass\n```", place)
    assert reading.lines == ("", "    def b(self):", "        pass")


def test_a_selection_repeated_before_the_addition_is_dropped():
    text = "\n".join((*REGION, "", "", "def double(n):", "    return 2 * n"))
    reading = read_reply(f"placement: after\n```python\n{text}\n```", PLACE)
    assert reading.lines == ("", "", "def double(n):", "    return 2 * n")


def test_missing_indentation_is_restored():
    place = EditPlace(region=("        x = 1", "        if x:", "            y()"), filetype="python")
    reading = read_reply("placement: replace\n```python\nx = 2\nif x:\n    y()\n```", place)
    assert reading.lines == ("        x = 2", "        if x:", "            y()")


def test_a_block_without_its_outer_indentation_keeps_its_own():
    place = EditPlace(region=("    x = 1", "    y = 2"), filetype="python")
    reading = read_reply("placement: replace\n```python\nif x:\n    y()\n```", place)
    assert reading.lines == ("    if x:", "        y()")


def test_indentation_missing_only_in_the_first_line_is_restored():
    place = EditPlace(region=("    x = 1", "    y = 2"), filetype="python")
    reading = read_reply("placement: replace\n```python\nx = 3\n    y = 4\n```", place)
    assert reading.lines == ("    x = 3", "    y = 4")


@pytest.mark.parametrize("lead", ["", "    "])
def test_code_indented_too_far_as_a_whole_is_shifted_back(lead):
    region = (lead + "def a():", lead + "    pass")
    deeper = "\n".join(lead + "    " + line for line in ("def a():", "    return 1"))
    reading = read_reply(f"placement: replace\n```python\n{deeper}\n```", EditPlace(region=region))
    assert reading.lines == (lead + "def a():", lead + "    return 1")


def test_code_moved_on_purpose_stays():
    """The move is intended if only white space differs, if a new parent is above the code, or if the code is added."""
    place = EditPlace(region=("a()", "b()"), filetype="python")
    assert read_reply("placement: replace\n```\n    a()\n    b()\n```", place).lines == ("    a()", "    b()")
    nested = ("if x:", "    a()", "    c()")
    assert read_reply("placement: replace\n```\n" + "\n".join(nested) + "\n```", place).lines == nested
    added = read_reply("placement: after\n```\n    c()\n    d()\n```", EditPlace(region=("if x:",)))
    assert added.lines == ("    c()", "    d()")


def test_spaces_become_the_files_tabs_and_tabs_its_spaces():
    tabs = EditPlace(region=("func f() {", "\tg()", "}"), filetype="go", tabs=True)
    reading = read_reply("placement: replace\n```go\nfunc f() {\n    if x {\n        g()\n    }\n}\n```", tabs)
    assert reading.lines == ("func f() {", "\tif x {", "\t\tg()", "\t}", "}")
    spaces = EditPlace(region=("a {", "  b", "}"), width=2)
    assert read_reply("placement: replace\n```\na {\n\tc\n}\n```", spaces).lines == ("a {", "  c", "}")


def test_an_empty_block_deletes_the_lines():
    reading = read_reply("placement: replace\n```python\n```", PLACE)
    assert (reading.placement, reading.lines) == ("replace", ())


def test_a_reply_with_omitted_code_is_reported():
    reading = read_reply("placement: replace\n```python\ndef fact(n):\n    # ... rest of the code ...\n```", PLACE)
    assert "rest of the code" in reading.note
    kept = EditPlace(region=("a()", "# ... existing code ...", "b()"))
    assert read_reply("placement: replace\n```\nb()\n# ... existing code ...\n```", kept).note == ""


def test_fences_inside_the_code_belong_to_it():
    doc = 'def f():\n    """Do it.\n\n    ```python\n    f()\n    ```\n    and\n    ```\n    x\n    ```\n    """'
    reading = read_reply(f"placement: replace\n```python\n{doc}\n```\nDone.", EditPlace(region=("def f():",)))
    assert reading.lines == tuple(doc.split("\n"))


def test_a_markdown_file_may_have_fences_like_the_one_around_it():
    text = ["# A", "", "```", "x", "```", "", "```lua", "y", "```", "end"]
    place = EditPlace(region=("# B",), filetype="markdown")
    reading = read_reply("placement: replace\n```markdown\n" + "\n".join(text) + "\n```", place)
    assert reading.lines == tuple(text)


def test_code_arrives_line_by_line_and_the_continuation_of_a_truncated_reply_follows():
    reader = ReplyReader()
    pieces = ("placem", "ent: replace\n``", "`python\nde", "f f():\n  ")
    first = [line for piece in pieces for line in reader.feed(piece)]
    assert (first, reader.placement) == (["def f():"], "replace")
    reader.expect_continuation()
    assert reader.feed("```python\n  pass\n```\nDone\n") == ("    pass",)
    assert read_reply(reader.text, EditPlace()).lines == ("def f():", "    pass")


def test_an_answer_streams_no_code():
    reader = ReplyReader()
    assert reader.feed("placement: chat\n```python\nx\n```\n") == ()


PIECES = st.lists(
    st.sampled_from(
        ["placement: ", "replace", "chat", "new", "\n", "```", "````", "~~~", "python", "diff", "{", '"code"', "}",
         "    ", "\t", "def f():", "-x", "+y", "@@", "<think>", "</think>", "…", "\r\n", "é𝛼\u200b", "\x00", " "]
    ),
    max_size=40,
)  # fmt: skip


@given(PIECES, st.lists(st.text(max_size=12), max_size=5), st.integers(1, 7))
def test_no_reply_breaks_the_parser_or_adds_a_line_end(pieces, region, size):
    text = "".join(pieces)
    lines = tuple(line.replace("\n", "") for line in region)
    reading = read_reply(text, EditPlace(region=lines, before=("a",), after=("b",)))
    assert all("\n" not in line for line in reading.lines)
    assert reading.placement != "chat" or not reading.lines
    reader = ReplyReader()
    for at in range(0, len(text), size):
        assert all("\n" not in line for line in reader.feed(text[at : at + size]))
    assert reader.text == text


@given(st.lists(st.from_regex(r"[a-z ]{1,6}[^\n`~\r\x00.…]{0,12}", fullmatch=True), min_size=1, max_size=12))
def test_the_requested_placement_is_read_as_written(code):
    place = EditPlace(region=("zz = 1",))
    code.insert(0, "begin")  # code that is indented deeper as a whole is moved to the level of the replaced lines
    wanted = tuple(code)
    while wanted and not wanted[-1].strip():
        wanted = wanted[:-1]
    reading = read_reply("placement: replace\n```\n" + "\n".join(code) + "\n```\n", place)
    assert reading.lines == wanted
