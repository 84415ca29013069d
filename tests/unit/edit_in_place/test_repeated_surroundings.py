"""Surrounding lines repeated in a reply are dropped; similar lines of the edit are not."""

from __future__ import annotations

import pytest

from codecompanion.edit_in_place import restoring
from codecompanion.edit_in_place.fit import fitted
from codecompanion.edit_in_place.place import Placement
from codecompanion.wire.requests import EditPlace

PYTHON = EditPlace(region=("    x = 1",), before=("def f():",), after=("    return x",))
GO = EditPlace(region=("\tx := 1",), before=("func f() error {",), after=("\treturn nil", "}"), tabs=True)
RUBY = EditPlace(region=("  x = 1",), before=("def f",), after=("  return nil", "end"))
HTML = EditPlace(region=("  <p>x</p>",), before=('<section class="a">',), after=("</section>",))


def texts(lines: tuple[str, ...]) -> list[str]:
    return [line.strip() for line in lines]


@pytest.mark.parametrize(
    ("place", "reply"),
    [
        (PYTHON, ("    x = 1", "    if y:", "        return x")),
        (PYTHON, ("x = 1", "if y:", "    return x")),
        (PYTHON, ("    if y:", "        x = 1", "        return x")),
        (GO, ("\tx := 1", "\tif y {", "\t\treturn nil", "\t}")),
        (GO, ("x := 1", "if y {", "\treturn nil", "}")),
        (GO, ("x := 1", "if y {", "    return nil", "}")),
        (RUBY, ("  x = 1", "  if y", "    return nil", "  end")),
        (HTML, ("  <section>", "    <p>x</p>", "  </section>")),
    ],
)
def test_a_new_block_that_ends_like_the_lines_below_is_kept(place, reply):
    assert texts(fitted(reply, place, "replace")) == texts(reply)


@pytest.mark.parametrize(("place", "reply"), [
    (PYTHON, ("    if y:", "        return x")), (GO, ("if y {", "\treturn nil", "}")),
])  # fmt: skip
def test_an_added_new_block_is_kept(place, reply):
    assert texts(fitted(reply, place, "after")) == texts(reply)


def test_lines_of_the_region_that_also_follow_it_are_kept():
    """The removed line was between them; found with random edits."""
    region = ("\t\tif a {", "\t\t\tb()", "\t\t\treturn nil", "\t\t}", "\t}", "\tc()")
    place = EditPlace(region=region, before=("\tfor {",), after=("\treturn nil", "}", ""), filetype="go")
    assert fitted(("if a {", "\tb()", "\treturn nil", "}"), place, "replace") == region[:4]


def test_lines_of_the_region_that_are_on_both_sides_are_kept():
    """If the reply indents them by four spaces in a file using two, they are fitted like other lines of the region."""
    region = ("      end", "      sent", "    end", "", "    def summary", "      waiting.size", "    end", "  end")
    place = EditPlace(region=region, before=("          break", "        end"), after=("end",), filetype="ruby")
    reply = (
        "        end",
        "        sent_new",
        "    end",
        "",
        "    def summary",
        "        waiting.size",
        "    end",
        "end",
    )
    assert texts(fitted(reply, place, "replace")) == texts(reply)


@pytest.mark.parametrize(
    ("placement", "reply"),
    [
        ("replace", "    return x"),
        ("replace", "def f():"),
        ("after", "    x = compute(1)"),  # duplicate this line
        ("before", "    x = compute(1)"),
    ],
)
def test_a_reply_is_never_dropped_completely(placement: Placement, reply):
    place = EditPlace(region=("    x = compute(1)",), before=("def f():",), after=("    return x",))
    assert texts(fitted((reply,), place, placement)) == texts((reply,))


def test_lines_are_deleted_by_a_reply_of_those_on_both_sides():
    assert fitted((*PYTHON.before, *PYTHON.after), PYTHON, "replace") == ()


def test_one_line_is_not_dropped_on_both_sides_at_once():
    place = EditPlace(region=("    return cached",), before=("    end",), after=("    end",))
    assert texts(fitted(("    end",), place, "replace")) == ["end"]
    place = EditPlace(region=("    return cached",), before=("    }",), after=("    }",))
    assert texts(fitted(("    }",), place, "replace")) == ["}"]


@pytest.mark.parametrize(
    ("place", "reply", "wanted"),
    [
        (PYTHON, ("    x = 2", "    return x"), ("    x = 2",)),
        (PYTHON, ("def f():", "    if y:", "        x = 2", "    return x"), ("    if y:", "        x = 2")),
        (GO, ("\tif y {", "\t\tx := 2", "\t}", "\treturn nil", "}"), ("\tif y {", "\t\tx := 2", "\t}")),
        (GO, ("if y {", "\tx := 2", "}", "return nil", "}"), ("\tif y {", "\t\tx := 2", "\t}")),
        (RUBY, ("def f", "  x = 2", "  return nil", "end"), ("  x = 2",)),
        (HTML, ("  <p>y</p>", "</section>"), ("  <p>y</p>",)),
    ],
)
def test_repeated_lines_are_dropped(place, reply, wanted):
    assert fitted(reply, place, "replace") == wanted


def test_a_changed_first_line_of_a_block_does_not_make_it_a_different_block():
    place = EditPlace(region=("    for a in b:",), before=("def f():",), after=("        print(a)", "        use(a)"))
    reply = ("    for a in c:", "        print(a)", "        use(a)")
    assert fitted(reply, place, "replace") == reply[:1]


def test_brackets_distinguish_repeated_lines_from_those_of_the_region():
    region = ("\tif x {", "\t\treturn nil", "\t}", "\tlog(x)")
    place = EditPlace(region=region, before=("func f() error {",), after=("\treturn nil", "}"))
    assert fitted(("\tlog(x, y)", "\treturn nil", "}"), place, "replace") == ("\tlog(x, y)",)


@pytest.mark.parametrize("line", ["\f", "\f\f  ", "\xa0", "\u3000"])
def test_a_line_of_unusual_white_space_is_text(line):
    """GNU files use a form feed as a page break."""
    region = ("    a()", "    b()")
    assert "".join(fitted(("a()", line, "c()"), EditPlace(region=region), "replace")).count(line.strip(" ")) == 1
    assert "".join(fitted(("a()", line), EditPlace(region=region), "replace")).count(line.strip(" ")) == 1


def test_a_reply_whose_indentation_cannot_be_restored_is_used_unchanged(monkeypatch):
    """A failure to restore it costs the indentation, not the text."""
    place = EditPlace(region=("    a()", "    b()", "    c()"))
    monkeypatch.setattr(restoring, "matching_lines", lambda old, new: [(2, 0), (1, 1), (0, 2)])
    assert fitted(("a()", "b()", "d()"), place, "replace") == ("a()", "b()", "d()")
