"""The selection of project context, and its form for each family."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.completion.families import families, family_named
from codecompanion.completion.forms import as_comments, build_project_prompt, line_cost
from codecompanion.completion.near_names import near_names, strongest
from codecompanion.completion.project_knowledge import KnownFile, ProjectFile, ProjectView, choose
from codecompanion.completion.prompt import build_prompt
from codecompanion.completion.prompt_budgets import budgets
from codecompanion.completion.similar_chunks import split_into_chunks
from codecompanion.model.code import Definition


def file(path, text, *recent):
    return ProjectFile(path, split_into_chunks(text), recent)


def function(name, signature, *, kind="function", parent=""):
    return Definition(name, kind, 1, 2, 1, signature, parent)


BLOCK = "def {name}():\n    open_store()\n    read_{name}()\n"


def test_names_weigh_less_with_distance_from_the_cursor():
    weights = near_names("far_name\n" + "\n" * 8 + "near_name\nx = here_name", "after_name\n", "imported_name")
    assert weights["here_name"] > weights["near_name"] > weights["far_name"] > 0
    assert weights["after_name"] < weights["here_name"]
    assert "imported_name" in weights
    lots = near_names(" ".join(f"name_{number}" for number in range(500)), "")
    assert len(strongest(lots)) == budgets().near.max_names


def test_pieces_are_whole_lines_in_order_and_end_at_empty_lines():
    text = "\n".join("" if number % 12 == 11 else f"line_{number}()" for number in range(100))
    chunks = split_into_chunks(text, 11).chunks
    lines = text.split("\n")
    for chunk in chunks:
        assert chunk.text == "\n".join(lines[chunk.start - 11 : chunk.end - 10]).strip("\n")
        assert chunk.end - chunk.start < budgets().chunks.max_lines
    assert [chunk.start for chunk in chunks[1:]] == [chunk.end + 1 for chunk in chunks[:-1]]
    assert chunks[0].start == 11
    assert split_into_chunks("\n\n").chunks == ()


def test_the_piece_that_shares_rare_names_comes_first():
    view = ProjectView(
        (file("b.py", "common()\n" * 5), file("a.py", "open_store()\nkeep_rare()\n")),
        files_with={"common": 90, "open_store": 2},
        total_files=100,
    )
    [chosen] = choose(view, {"common": 1.0, "open_store": 1.0}, "", 70)
    assert chosen == KnownFile("a.py", "open_store()\nkeep_rare()")


def test_recently_edited_code_counts_more():
    files = [file("a.py", "open_store()\none()\n"), file("b.py", "open_store()\ntwo()\n", (1, 1))]
    [chosen] = choose(ProjectView(tuple(files)), {"open_store": 1.0}, "", 60)
    assert chosen.path == "b.py"
    alone = choose(ProjectView((file("c.py", "nothing_shared()\n", (1, 1)),)), {"open_store": 1.0}, "", 100)
    assert [one.path for one in alone] == ["c.py"]


def test_signatures_of_nearby_names_include_the_members_of_types():
    view = ProjectView(
        definitions=(
            ("store.py", function("Store", "class Store", kind="class")),
            ("store.py", function("get", "def get(self, key: str) -> bytes", kind="method", parent="Store")),
            ("store.py", function("_hidden", "def _hidden(self)", kind="method", parent="Store")),
            ("other.py", function("helper", "def helper(x)")),
            *((f"many{number}.py", function("main", "def main()")) for number in range(9)),
        )
    )
    chosen = choose(view, {"Store": 0.9, "helper": 0.5, "main": 1.0}, "", 2_000)
    assert chosen == (
        KnownFile("other.py", "def helper(x)"),
        KnownFile("store.py", "class Store\n    def get(self, key: str) -> bytes"),
    )


def test_code_in_the_window_is_not_repeated():
    text = "def one():\n    open_store()\n    return value_of(one)\n"
    view = ProjectView((file("copy.py", text),), definitions=(("a.py", function("helper", "def helper(x)")),))
    shown = text + "def helper(x):\n    pass\n"
    assert choose(view, {"open_store": 1.0, "helper": 1.0}, shown, 2_000) == ()


@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.sampled_from(["open_store", "other_name", "third_name"])), max_size=12
    ),
    st.integers(0, 900),
    st.integers(0, 3),
)
def test_the_context_is_ordered_deterministic_and_within_its_budget(parts, room, cost):
    files = {f"{name}.py": "" for name, _ in parts}
    for name, word in parts:
        files[f"{name}.py"] += BLOCK.format(name=word)
    view = ProjectView(
        tuple(file(path, text) for path, text in files.items()),
        tuple((path, function("open_store", "def open_store(path: str)")) for path in list(files)[:2]),
    )
    weights = {"open_store": 1.0, "third_name": 0.5}
    chosen = choose(view, weights, "", room, cost)
    shuffled = ProjectView(view.files[::-1], view.definitions, view.files_with, view.total_files)
    assert choose(shuffled, weights, "", room, cost) == chosen
    assert [one.path for one in chosen] == sorted({one.path for one in chosen})
    family = family_named("qwen" if not cost else "starcoder")
    made = build_project_prompt(family, "", "p", "s", path="a.py", project="x", known=chosen)
    alone = build_prompt(family, "", "p", "s")
    extra = 40 if not cost else 0  # the names of the project and of the file itself
    if cost in (0, 2):  # the cost of a Python comment
        assert len(made.prompt) - len(alone.prompt) <= room + extra


KNOWN = (KnownFile("a.py", "def a()\n\n<|fim_middle|>"), KnownFile("b.py", "b = 1"))


def test_qwen_gets_files_of_a_repository():
    """Its repository-level form is the project name, then each file after its marker, the current file last."""
    made = build_project_prompt(
        family_named("qwen"), "import x\n", "p", "s", path="src/c.py", project="demo", known=KNOWN
    )
    assert made.prompt == (
        "<|repo_name|>demo\n<|file_sep|>a.py\ndef a()\n\n<|fim_middle| \n<|file_sep|>b.py\nb = 1\n"
        "<|file_sep|>src/c.py\n<|fim_prefix|>import x\np<|fim_suffix|>s<|fim_middle|>"
    )
    assert (made.imports, made.prefix, made.suffix) == ("import x\n", "p", "s")


@pytest.mark.parametrize("family", [one for one in families() if one.repository is None], ids=lambda one: one.name)
def test_other_families_get_comments(family):
    """No family gets a form unknown to it: each of its own tokens occurs once, and the rest is code."""
    made = build_project_prompt(family, "", "p", "s", path="c.lua", project="demo", known=KNOWN)
    comments = "-- Path: a.py\n-- def a()\n--\n-- <|fim_middle|>\n-- Path: b.py\n-- b = 1\n"
    assert made.prompt == f"{family.prefix}{comments}p{family.suffix}s{family.middle}"


def test_a_model_that_only_continues_gets_comments_too():
    made = build_project_prompt(family_named("plain"), "", "p", "s", path="c.go", project="demo", known=KNOWN[1:])
    assert made.prompt == "// Path: b.py\n// b = 1\np"


def test_with_an_unknown_comment_syntax_there_is_only_the_file():
    family = family_named("starcoder")
    assert line_cost(family, "a.unknown") is None
    assert as_comments(KNOWN, "a.unknown", family) == ""
    assert line_cost(family, "a.py") == 2
    assert line_cost(family_named("qwen"), "a.unknown") == 0


@pytest.mark.parametrize("family", families(), ids=lambda family: family.name)
def test_without_context_it_is_the_documents_prompt(family):
    made = build_project_prompt(family, "i\n", "p", "s", path="a.py", project="demo", known=())
    assert made == build_prompt(family, "i\n", "p", "s")


def test_a_similar_second_piece_comes_after_a_different_one():
    """A name counts less once it was shown, and a chunk more if its names are new."""
    same = "open_store()\nread_rows()\nwrite_rows()\n"
    view = ProjectView((file("a.py", same), file("b.py", same + "\n"), file("c.py", "other_near()\nmore_near()\n")))
    weights = {"open_store": 1.0, "read_rows": 1.0, "write_rows": 1.0, "other_near": 1.0, "more_near": 0.9}
    assert [one.path for one in choose(view, weights, "", 130)] == ["a.py", "c.py"]
    new = ProjectView((file("a.py", "open_store()\nread_rows()\n"), file("b.py", "open_store()\nkeep_rare()\n")))
    [first] = choose(new, {"open_store": 1.0}, "read_rows()\n", 60)
    assert first.path == "b.py"
