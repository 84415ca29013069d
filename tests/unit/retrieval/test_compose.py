"""R-252: no line is repeated, a map fills the remaining room, and the whole text is limited."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.memory.entries import Memory
from codecompanion.memory.labelled_text import render_memories
from codecompanion.model.code import Definition
from codecompanion.model.gathered import QuestionTypes, Snippet, chars_to_tokens
from codecompanion.retrieval.active_file import active_room
from codecompanion.retrieval.architecture import describe_architecture, manifests_of
from codecompanion.retrieval.assembly import ALL_PARTS, HEAD, answer_format, assemble
from codecompanion.retrieval.code_map import render_map
from codecompanion.retrieval.compose import TAKEN_OUT, compose, joined
from codecompanion.retrieval.filler_code import FILLER, demote_repeats
from codecompanion.retrieval.overlap import TOO_LARGE
from codecompanion.retrieval.smart_snippets import whole_file

NONE = QuestionTypes()


def lines(path: str, start: int, end: int, score: float, **fields: object) -> Snippet:
    text = "\n".join(f"{path} {n}" for n in range(start, end + 1))
    return Snippet(path=path, start=start, end=end, text=text, score=score, **fields)  # type: ignore[arg-type]


def no_definitions(path: str) -> tuple[Definition, ...]:
    return ()


def places(snippets: tuple[Snippet, ...]) -> list[tuple[str, int, int]]:
    return [(one.path, one.start, one.end) for one in snippets]


def test_the_block_has_a_fixed_order() -> None:
    """R-252: code, map, architecture, team, memories, then the format; the question follows as typed."""
    beside = [
        Snippet(path="", start=0, end=0, text=source.upper(), source=source)  # type: ignore[arg-type]
        for source in ("memory", "team", "architecture")
    ]
    text = assemble(QuestionTypes(is_debugging=True), ALL_PARTS, "CODE", "MAP", beside)
    order = (HEAD, "CODE", "MAP", "ARCHITECTURE", "TEAM", "MEMORY", "## Format\n\nRefer to code as path:line")
    at = [text.index(part) for part in order]
    assert at == sorted(at)
    assert assemble(NONE, ALL_PARTS, "", " ") == ""
    assert "## Team" not in assemble(NONE, ALL_PARTS, "CODE")
    assert "MAP" not in assemble(NONE, ("code", "format"), "CODE", "MAP")


def test_a_kind_of_question_has_a_line_and_never_more_than_two() -> None:
    """R-212, R-252."""
    assert answer_format(NONE).count(". ") == 0
    everything = QuestionTypes(
        is_implementation=True,
        is_architectural=True,
        is_debugging=True,
        is_code_explanation=True,
        is_feature_request=True,
    )
    assert answer_format(everything).count(". ") == 2


def test_no_line_is_shown_twice() -> None:
    """The better of two overlapping ones stays whole, the other keeps its new lines; those do not count as dropped."""
    found = [lines("a", 1, 40, 0.5), lines("a", 10, 20, 0.8), lines("b", 1, 5, 0.3), lines("a", 12, 18, 0.4)]
    chosen = compose(NONE, found, (), no_definitions, 10_000).selection
    assert places(chosen.snippets) == [("a", 10, 20), ("a", 1, 9), ("a", 21, 40), ("b", 1, 5)]
    assert [one.text.split("\n")[0] for one in chosen.snippets] == ["a 10", "a 1", "a 21", "b 1"]
    assert chosen.dropped == ()


def test_a_large_class_found_by_words_yields_to_the_indexs_results() -> None:
    """It would take the room of better places; without an index it is the only result."""
    methods = [lines("a", n, n + 3, 0.8, kind="method") for n in (10, 20)]
    whole = lines("a", 1, 90, 0.14, kind="class", source="ast")
    chosen = compose(NONE, [*methods, whole], (), no_definitions, 400).selection
    assert places(chosen.snippets) == [("a", 10, 13), ("a", 20, 23)]
    assert [one.why for one in chosen.dropped] == [TOO_LARGE]
    assert places(compose(NONE, [whole], (), no_definitions, 400).selection.snippets) == [("a", 1, 90)]


def test_a_part_of_a_larger_snippet_can_be_excluded() -> None:
    found = [lines("a", 10, 20, 0.8), lines("a", 1, 40, 0.5)]
    chosen = compose(NONE, found, (), no_definitions, 1000, left_out={("a", 21)}).selection
    assert places(chosen.snippets) == [("a", 10, 20), ("a", 1, 9)]
    assert [(one.snippet.start, one.why) for one in chosen.dropped] == [(21, TAKEN_OUT)]


FOUND = st.lists(
    st.builds(
        lambda path, start, size, score, kind, source: lines(
            path, start, start + size, score, kind=kind, source=source
        ),
        st.sampled_from("ab"),
        st.integers(1, 30),
        st.integers(0, 30),
        st.floats(0.1, 0.9),
        kind=st.sampled_from(["class", "method"]),
        source=st.sampled_from(["ast", "search"]),
    ),
    max_size=14,
)


@given(FOUND, st.booleans(), st.integers(0, 600))
def test_every_line_is_unique_and_the_text_fits_its_budget(found: list[Snippet], names: bool, budget: int) -> None:
    """R-247, R-251: headings, fences and notes count towards the budget; only the introduction does not."""
    mentioned = [whole_file("a", "".join(f"a {n}\n" for n in range(1, 61)))] if names else []
    composed = compose(NONE, [*found, *mentioned], (), lambda path: definitions(5), budget)
    shown = [(one.path, n) for one in composed.selection.snippets for n in range(one.start, one.end + 1)]
    assert len(shown) == len(set(shown))
    for one in composed.selection.snippets:
        numbers = range(one.start, one.end + 1)
        assert [line for line in one.text.split("\n") if line[:2] == f"{one.path} "] == [
            f"{one.path} {n}" for n in numbers
        ]
    frame = len(assemble(NONE, ALL_PARTS, "x")) + 100
    assert len(composed.text) <= 4 * budget + frame + 4
    assert composed.selection.total_tokens <= budget


def test_a_users_file_omits_its_snippets() -> None:
    """R-251: there are no duplicates, and nothing is reported as missing."""
    found = [whole_file("a", "one\ntwo\n"), lines("a", 1, 2, 0.9), lines("a", 2, 2, 0.9)]
    chosen = compose(NONE, found, (), no_definitions, 10_000).selection
    assert places(chosen.snippets) == [("a", 1, 2)]
    assert not chosen.was_truncated


def test_a_snippet_too_short_to_be_useful_yields_to_the_map() -> None:
    """Too short means fewer than three lines and 15 tokens, unless the snippet is a definition."""
    found = [
        Snippet(path="a.py", start=1, end=1, text="class Request:", kind="class", name="Request", score=0.5),
        Snippet(path="a.py", start=12, end=12, text="# one comment", score=0.4),
        Snippet(path="a.py", start=20, end=20, text="LIMIT = 5", kind="constant", name="LIMIT", score=0.3),
        Snippet(path="a.py", start=30, end=31, text="x\ny", score=0.3),
        Snippet(path="README.md", start=1, end=1, text="# It", score=0.3, source="common"),
        lines("a.py", 40, 50, 0.2),
    ]
    composed = compose(NONE, found, (), lambda path: definitions(4), 1000, terms=("limit",))
    chosen = composed.selection
    assert places(chosen.snippets) == [("a.py", 20, 20), ("README.md", 1, 1), ("a.py", 40, 50)]
    assert {one.why for one in chosen.dropped} == {FILLER}
    assert len(chosen.dropped) == 3
    assert "def f1(x, y)" in composed.text
    assert "omitted" not in composed.text


def test_a_remainder_that_is_too_short_is_left_out() -> None:
    found = [lines("a", 2, 40, 0.8), lines("a", 1, 60, 0.5, name="f")]
    chosen = compose(NONE, found, (), no_definitions, 1000, terms=("f",)).selection
    assert places(chosen.snippets) == [("a", 2, 40), ("a", 41, 60)]
    assert chosen.dropped == ()


def method(start: int, words: str, score: float, path: str = "a.py") -> Snippet:
    return Snippet(path=path, start=start, end=start + 3, text=f"{SHARED}\n{words}\n\n", score=score, kind="method")


SHARED = "def request(self, url, params, headers, cookies, auth, timeout, extensions, follow_redirects): return self"


def test_similar_pieces_of_a_file_come_after_different_ones() -> None:
    """Methods such as `get`, `options`, `head` and `delete` are similar; pieces of another file are not demoted."""
    repeats = [method(10 * n, f"v{n}", 0.8 - n / 100) for n in range(1, 6)]
    other = lines("a.py", 100, 120, 0.7)
    elsewhere = method(1, "v1", 0.75, "b.py")
    found = demote_repeats([*repeats, other, elsewhere])
    chosen = compose(NONE, found, (), no_definitions, 10_000).selection
    firsts = [(one.path, one.start) for one in chosen.snippets]
    assert len(firsts) == 7
    before = firsts[: firsts.index(("a.py", 100))]
    assert ("b.py", 1) in before
    assert ("a.py", 10) in before
    assert len(before) <= 3


def test_the_active_file_leaves_three_quarters_of_the_budget() -> None:
    """R-214: the file is limited unless it was named; a named file may use the whole budget."""
    text = "".join(f"line {n}\n" for n in range(2000))
    active = Snippet(path="a", start=1, end=2000, text=text, score=1.0, is_selected=True, source="active")
    chosen = compose(NONE, [active, lines("b", 1, 20, 0.5)], (), no_definitions, 200).selection
    assert places(chosen.snippets)[1] == ("b", 1, 20)
    assert chosen.snippets[0].is_cut
    assert chosen.snippets[0].tokens <= 50
    named = compose(NONE, [whole_file("a", text), lines("b", 1, 20, 0.5)], (), no_definitions, 200).selection
    assert [one.path for one in named.snippets] == ["a"]


def test_pieces_excluded_by_the_user_are_dropped_and_reported() -> None:
    """`/context` can exclude single pieces."""
    found = [lines("a", 1, 4, 0.5), lines("b", 1, 4, 0.8)]
    chosen = compose(NONE, found, (), no_definitions, 1000, left_out={("b", 1)}).selection
    assert places(chosen.snippets) == [("a", 1, 4)]
    assert [(one.snippet.path, one.why) for one in chosen.dropped] == [("b", TAKEN_OUT)]


def test_a_snippet_found_by_two_gatherers_is_merged() -> None:
    """R-268: it keeps both scores."""
    one = lines("a", 1, 4, 0.5, scores=(("search", 0.5),))
    other = lines("a", 1, 4, 0.7, name="f", scores=(("points", 40.0),))
    [both] = joined([one], [other])
    assert (both.score, both.name, both.scores) == (pytest.approx(0.75), "f", (("search", 0.5), ("points", 40.0)))


def definitions(count: int) -> list[Definition]:
    return [Definition(f"f{n}", "function", 10 * n, 10 * n + 5, 10 * n, f"def f{n}(x, y)") for n in range(1, count + 1)]


@pytest.mark.parametrize("budget", [600, 4000, 50_000])
def test_memories_are_always_included(budget: int) -> None:
    """R-240, R-241: memories over a quarter of a small budget are shortened to the newest, but not omitted."""
    text = render_memories([Memory("", f"fact {n}", "x" * 60, "project") for n in range(200)])
    memory = Snippet(path="", start=0, end=0, text=text, kind="memory", source="memory")
    composed = compose(NONE, [lines("a.py", 1, 4, 0.5)], (memory,), lambda path: [], budget)
    assert "fact 199" in composed.text
    assert chars_to_tokens(len(composed.text)) <= budget


def test_the_map_shows_the_omitted_files() -> None:
    """The rest of the budget is used for signatures of the best files, with their actual lines."""
    composed = compose(NONE, [lines("a.py", 10, 15, 0.5)], (), lambda path: definitions(4), 1000)
    [code_map] = composed.beside
    assert code_map.source == "map"
    assert code_map.text.split("\n") == ["a.py:", "    20 def f2(x, y)", "    30 def f3(x, y)", "    40 def f4(x, y)"]
    assert code_map.text in composed.text
    assert composed.selection.total_tokens + code_map.tokens <= 1000


def test_a_completely_shown_file_is_not_parsed_for_the_map() -> None:
    """A million characters take most of a second, and the map would use none of it."""
    asked = list[str]()

    def of(path: str) -> list[Definition]:
        asked.append(path)
        return definitions(4)

    compose(NONE, [whole_file("a.py", "x = 1\n" * 90), lines("b.py", 1, 4, 0.5)], (), of, 1000)
    assert asked == ["b.py"]


@pytest.mark.parametrize(
    ("budget", "room"),
    [(0, 0), (1000, 250), (4000, 1000), (8000, 2000), (14_000, 5000), (20_000, 8000), (50_000, 20_000)],
)
def test_the_open_files_share_of_the_budget_grows_with_its_size(budget: int, room: int) -> None:
    """The shares were measured with bench_active_file; files named by the user take precedence."""
    assert active_room(budget, []) == room
    named = whole_file("a", "x" * 4 * budget)
    assert active_room(budget, [named]) == 0


@given(st.integers(0, 400), st.integers(0, 60))
def test_a_map_never_exceeds_its_room(room: int, count: int) -> None:
    text = render_map([("a.py", definitions(count)), ("b.py", definitions(3))], (), room)
    assert len(text) <= 4 * room


def test_methods_are_below_their_class() -> None:
    found = [
        Definition("Box", "class", 1, 9, 1, "class Box"),
        Definition("open", "method", 2, 4, 2, "def open(self)", parent="Box"),
        Definition("x", "variable", 5, 5, 5, "x = 1", parent="Box"),
    ]
    assert render_map([("a.py", found)], (), 200) == "a.py:\n     1 class Box\n     2   def open(self)"


@given(
    st.lists(
        st.builds(lines, st.sampled_from("abc"), st.integers(1, 30), st.integers(30, 60), st.floats(0.1, 0.9)),
        max_size=12,
    ),
    st.integers(0, 3000),
)
def test_the_whole_text_fits(found: list[Snippet], max_tokens: int) -> None:
    """Headings, map and everything else fit, in a 4k window as well as a 1M one."""
    memory = Snippet(path="", start=0, end=0, text="m" * 900, source="memory", kind="memory")
    composed = compose(NONE, found, (memory,), lambda path: definitions(9), 50_000, max_tokens=max_tokens)
    assert not max_tokens or len(composed.text) <= 4 * max_tokens
    assert composed.selection.total_tokens <= composed.selection.budget_tokens


def test_an_empty_result_has_no_text() -> None:
    """R-202: the plain message is sent."""
    assert compose(NONE, (), (), no_definitions, 4000).text == ""
    assert compose(NONE, [whole_file("a", "x" * 9000)], (), no_definitions, 10).text == ""


def test_an_overview_of_the_project_is_listed() -> None:
    """R-240."""
    paths = ["package.json", "src/index.ts", "src/controllers/a.ts", "src/models/b.ts", "src/views/c.tsx", "x\ny/a.md"]
    manifests = dict.fromkeys(paths[:1], '{"dependencies": {"react": "1", "@nestjs/core": "2", "expressive": "3"}}')
    assert manifests_of(paths) == ("package.json",)
    text = describe_architecture(paths, manifests, {"typescript": 4, "markdown": 1}, ["src/index.ts"])
    assert text.split("\n") == [
        "- Size: 6 files",
        "- Languages: typescript (4), markdown (1)",
        "- Built with: npm",
        "- Frameworks and libraries: React, NestJS",
        "- Patterns: Model-View-Controller",
        "- Entry points: src/index.ts",
        "- Folders: src/ (1), src/controllers/ (1), src/models/ (1), src/views/ (1), x\\x0ay/ (1)",
    ]
    assert describe_architecture([], {}, {}, []) == ""
