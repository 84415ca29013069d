"""The indentation of a reply: lines of the file keep their bytes, whatever the model and the buffer's options say.

The edits and their lines are random, in files of fourteen languages, formatted as in models' replies, with options that
differ from the file's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from codecompanion.edit_in_place.fit import fitted
from codecompanion.edit_in_place.patch import patched
from codecompanion.wire.requests import EditPlace
from tests.unit.edit_in_place.indented_edits import (
    FILETYPES,
    Case,
    File,
    early_return_case,
    file_of,
    is_determined,
    is_intended,
    is_uniform,
    random_case,
    sample,
    spelled,
    spellings,
)

SEEDS = st.integers(0, 10**9)
CASES = 300


def told(case: Case, got: tuple[str, ...]) -> str:
    parts = {"region": case.place.region, "reply": case.reply, "intended": case.intended, "got": got}
    options = f"{case.file.name}, {case.edit}, {case.spelling}, tabs={case.place.tabs}, width={case.place.width}\n"
    return options + "\n".join(f"---- {name}\n" + "\n".join(map(repr, lines)) for name, lines in parts.items())


def check(file: File, seed: int) -> None:
    case = random_case(file, Random(seed))
    if case is not None and is_determined(case):
        got = fitted(case.reply, case.place, "replace")
        assert is_intended(case, got), told(case, got)


@pytest.mark.parametrize("language", FILETYPES)
@settings(derandomize=True)
@given(seed=SEEDS)
def test_an_edit_is_the_intended_one_however_the_reply_is_indented(language, seed):
    """The examples are fixed: in about 2 of 40,000 random ones, the reply also matches another edit."""
    check(sample(language), seed)


@pytest.mark.parametrize("language", FILETYPES)
@given(seed=SEEDS)
def test_a_reply_without_changes_changes_no_byte(language, seed):
    random, file = Random(seed), sample(language)
    case = random_case(file, random)
    how = random.choice(spellings(file))
    if case is None or "surroundings" in how or ("numbered" in how and len(case.place.region) < 2):
        return
    place = case.place
    reply = tuple(spelled(file, place, place.region, how, random))
    if file.unit == "mixed" and (any(" " * 8 in line for line in place.region) or "dedented" in how):
        return  # a tab, and spaces that look like it; a tab that all lines begin with is less than their level
    if len(reply) > 1 or how in (("as it is",), ("dedented",)):
        got = fitted(reply, place, "replace")
        assert got == place.region, told(Case(file, place, "none", how, place.region, reply), got)


@pytest.mark.parametrize("language", FILETYPES)
@given(seed=SEEDS)
@example(seed=614)
@example(seed=44931)
@example(seed=48046609)
def test_no_text_is_lost_or_moved_to_another_line(language, seed):
    """Two examples of Go and one of Ruby once lost lines that resemble those around the place."""
    case = random_case(sample(language), Random(seed))
    if case is not None and "surroundings" not in case.spelling and len(case.intended) > 1:
        got = fitted(case.reply, case.place, "replace")
        assert [line.strip() for line in got] == [line.strip() for line in case.intended], told(case, got)


@pytest.mark.parametrize("language", FILETYPES)
@given(seed=SEEDS)
def test_an_early_return_like_the_line_below_the_region_is_not_lost(language, seed):
    case = early_return_case(sample(language), Random(seed))
    if case is not None:
        got = fitted(case.reply, case.place, "replace")
        assert [line.strip() for line in got] == [line.strip() for line in case.intended], told(case, got)


@pytest.mark.parametrize("language", FILETYPES)
@given(seed=SEEDS)
def test_only_lines_around_the_place_are_dropped(language, seed):
    case = random_case(sample(language), Random(seed), ("surroundings",))
    if case is not None:
        got, said, before, after = (
            [line.strip() for line in lines if line.strip()]
            for lines in (
                fitted(case.reply, case.place, "replace"), case.reply, case.place.before[-2:], case.place.after[:2],
            )
        )  # fmt: skip
        wholes = [[*before[at:], *got, *after[:end]] for at in range(3) for end in range(3)]
        assert said in wholes, told(case, tuple(got))


@pytest.mark.sweep
def test_few_ambiguous_replies_are_read_the_wrong_way():
    """If a reply is ambiguous (about 1 in 3 random ones), the closest edit is usually right."""
    seen: Counter[str] = Counter()
    for language in FILETYPES:
        for seed in range(CASES):
            case = random_case(sample(language), Random(f"{language} {seed}"))
            if case is not None and not is_determined(case):
                seen["all"] += 1
                seen["other"] += not is_intended(case, fitted(case.reply, case.place, "replace"))
    assert seen["all"] > len(FILETYPES) * CASES / 10
    assert seen["other"] < 0.09 * seen["all"], seen


# ---- files of this machine


def runtime_of_neovim() -> Path | None:
    """Return Neovim's runtime folder, None without a Neovim."""
    nvim = shutil.which("nvim", path=f"{Path(__file__).parents[3] / '.venv' / 'bin'}:{os.environ.get('PATH', '')}")
    if nvim is None:
        return None
    ask = [nvim, "--headless", "--clean", "+lua io.stdout:write(vim.env.VIMRUNTIME)", "+qa"]
    return Path(subprocess.run(ask, capture_output=True, text=True, check=True, timeout=60).stdout)


def check_files(paths: list[Path], filetype: str, cases: int) -> Counter[str]:
    """Edit some of these files at random; return the number of edits, and of those with an unintended result."""
    seen: Counter[str] = Counter()
    for path in Random(filetype).sample(paths, min(40, len(paths))):
        text = path.read_text(encoding="utf-8", errors="replace")
        file = file_of(path.name, text.rstrip("\n"), filetype)
        for seed in range(cases if is_uniform(file) and "\r" not in text and len(file.lines) > 9 else 0):
            case = random_case(file, Random(f"{path.name} {seed}"))
            if case is not None and is_determined(case):
                seen["edits"] += 1
                seen["other"] += not is_intended(case, fitted(case.reply, case.place, "replace"))
    return seen


@pytest.mark.sweep
@pytest.mark.parametrize(("folder", "suffix", "filetype"), [
    ("python", "py", "python"), ("neovim", "lua", "lua"), ("neovim", "vim", "vim"), ("/usr/include", "h", "c"),
])  # fmt: skip
def test_files_of_this_machine_are_edited_as_intended(folder, suffix, filetype):
    root = {"python": Path(os.__file__).parent, "neovim": runtime_of_neovim()}.get(folder, Path(folder))
    if root is None or not root.is_dir():
        pytest.skip(f"no {folder} on this machine")
    paths = [path for path in sorted(root.rglob(f"*.{suffix}")) if "site-packages" not in path.parts[len(root.parts) :]]
    seen = check_files(paths, filetype, 10)
    assert seen["other"] <= 0.005 * seen["edits"], seen


# ---- single cases


def fit(region: str, reply: str, **more) -> list[str]:
    place = EditPlace(region=tuple(region.split("\n")), **more)
    return list(fitted(tuple(reply.split("\n")), place, "replace"))


def test_two_spaces_stay_two_spaces_in_a_buffer_without_expandtab():
    region = "function f()\n  local a = 1\n  if a then\n    g(a)\n  end\nend"
    reply = region.replace("a = 1", "a = 2")
    assert fit(region, reply, tabs=True, width=8) == reply.split("\n")


@pytest.mark.parametrize(("tabs", "width"), [(True, 8), (False, 2), (False, 4)])
def test_surrounding_lines_determine_the_indentation_before_the_options(tabs, width):
    around = ("func f() {", "\tif x {", "\t\tg()", "\t}", "}", "")
    got = fit("x := 1", "func h() {\n    if x {\n        g()\n    }\n}", before=around, tabs=tabs, width=width)
    assert got == ["func h() {", "\tif x {", "\t\tg()", "\t}", "}"]
    around = ("def f():", "  if x:", "    g()", "")
    got = fit("x = 1", "def h():\n\tif x:\n\t\tg()", before=around, tabs=tabs, width=width)
    assert got == ["def h():", "  if x:", "    g()"]


@pytest.mark.parametrize(("tabs", "lead"), [(True, "\t"), (False, "   ")])
def test_the_options_decide_if_nothing_else_does(tabs, lead):
    other = "    " if tabs else "\t"
    assert fit("", f"a {{\n{other}b\n}}", tabs=tabs, width=3) == ["a {", lead + "b", "}"]


def test_a_new_line_in_spaces_among_kept_tabs_gets_tabs():
    region = "func f() {\n\tif x {\n\t\tg()\n\t}\n}"
    reply = "func f() {\n\tif x {\n\t\tg()\n        h()\n\t}\n}"
    assert fit(region, reply) == ["func f() {", "\tif x {", "\t\tg()", "\t\th()", "\t}", "}"]


def test_alignment_and_trailing_white_space_of_kept_lines_stay():
    region = "\tcall(a,\n\t     b)  \n\tx = 1\n\ty = 2\t"
    reply = "call(a,\n     b)\nx = 3\ny = 2"
    assert fit(region, reply) == ["\tcall(a,", "\t     b)  ", "\tx = 3", "\ty = 2\t"]


def test_the_text_of_a_here_document_keeps_its_indentation():
    region = "    if a; then\n        cat <<END\nusage:\n  -n\nEND\n        b\n    fi"
    reply = "if a; then\n    cat <<END\nusage:\n  -n\n  -m\nEND\n    c\nfi"
    assert fit(region, reply) == [
        "    if a; then", "        cat <<END", "usage:", "  -n", "  -m", "END", "        c", "    fi",
    ]  # fmt: skip


def test_recipes_of_a_makefile_have_tabs_and_its_conditions_spaces():
    region = "ifeq ($(A),1)\n  B = 1\nendif\nall: x\n\tcc -o x \\\n\t  x.c\n\ntest:\n\t./x"
    reply = (
        "ifeq ($(A),1)\n  B = 1\n  C = 1\nendif\nall: x\n    cc -o x \\\n      x.c\n    strip x\n\ntest:\n    ./x -v"
    )
    assert fit(region, reply, filetype="make") == [
        "ifeq ($(A),1)", "  B = 1", "  C = 1", "endif", "all: x", "\tcc -o x \\", "\t  x.c", "\tstrip x", "", "test:",
        "\t./x -v",
    ]  # fmt: skip


@pytest.mark.parametrize("reply", [
    "    if x:\n        a()\n        b()",  # as it is
    "if x:\n    a()\n    b()",  # dedented
    "if x:\n\ta()\n\tb()",  # dedented, with tabs
    "if x:\n        a()\n        b()",  # the first line lost
])  # fmt: skip
def test_wrapped_lines_are_indented(reply):
    around = ("def f():", "    pass", "")
    assert fit("    a()\n    b()", reply, before=around) == ["    if x:", "        a()", "        b()"]


@pytest.mark.parametrize("reply", ["    a()\n    b()", "a()\nb()"])
def test_unwrapped_lines_are_dedented(reply):
    assert fit("    if x:\n        a()\n        b()", reply) == ["    a()", "    b()"]


def test_text_at_the_left_edge_does_not_move_the_lines_below_it():
    region = "    a();\n    b();"
    assert fit(region, "#ifdef X\n    a();\n#endif\n    b();") == ["#ifdef X", "    a();", "#endif", "    b();"]


def test_two_trailing_spaces_that_break_a_line_of_markdown_are_kept():
    assert fit("one\ntwo", "one  \ntwo", filetype="markdown") == ["one  ", "two"]
    assert fit("one  \ntwo", "one\n2", filetype="markdown") == ["one  ", "2"]


def test_a_large_reply_of_equal_lines_is_fitted_quickly():
    region = ("    0,", "    1,") * 10_000
    reply = tuple(line.strip() for line in region)
    assert fitted(reply, EditPlace(region=region), "replace") == region
    assert len(fitted(reply[::-1][1:], EditPlace(region=region), "replace")) == 19_999


INDENTED = ("def f():", "  if x:", "    y()")


@pytest.mark.parametrize(
    ("instruction", "is_kept"),
    [
        ("use tabs", True),
        ("convert the indentation to 4 spaces", True),
        ("re-indent this", True),
        ("format it", True),
        ("align the comments", True),
        ("rename the tab page", True),  # nothing but white space differs: then one word is enough
        ("fix the bug", False),
        ("", False),
    ],
)
def test_only_white_space_changes_if_the_instruction_is_about_it(instruction, is_kept):
    reply = tuple(line.replace("  ", "\t") for line in INDENTED)
    place = EditPlace(region=INDENTED, tabs=True)
    assert fitted(reply, place, "replace", instruction) == (reply if is_kept else INDENTED)


@pytest.mark.parametrize(
    ("instruction", "is_kept"), [("use tabs and call z", True), ("add a tab to the page", False), ("call z", False)]
)
def test_other_indentation_is_kept_with_other_text_only_on_request(instruction, is_kept):
    reply = (*(line.replace("  ", "\t") for line in INDENTED), "\t\tz()")
    wanted = reply if is_kept else (*INDENTED, "    z()")
    assert fitted(reply, EditPlace(region=INDENTED), "replace", instruction) == wanted


@pytest.mark.parametrize("lead", ["", "\t"])
def test_a_diff_with_other_indentation_is_fitted(lead):
    """The old lines of the diff show how the indentation was changed."""
    inner = lead + ("\t" if lead else "    ")
    diff = (f" {lead}if x:", f"-{inner}a()  ", f"+{inner}b()", f"+{inner}if y:", f"+{inner}{inner[len(lead) :]}c()")
    region = ("def f():", "    if x:", "        a()", "    return x")
    assert patched(diff, EditPlace(region=region)) == (
        *region[:2], "        b()", "        if y:", "            c()", region[3],
    )  # fmt: skip
