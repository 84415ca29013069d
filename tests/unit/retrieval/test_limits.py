"""The limits of retrieval: each case is exactly at a limit, so that no limit can change unnoticed."""

from __future__ import annotations

import pytest

from codecompanion.model.code import Definition, ParsedFile
from codecompanion.model.gathered import QuestionTypes, Snippet, chars_to_tokens
from codecompanion.retrieval.active_file import active_pieces
from codecompanion.retrieval.code_map import render_map
from codecompanion.retrieval.compose import compose
from codecompanion.retrieval.elements import find_elements_with
from codecompanion.retrieval.file_chunks import chunk_file
from codecompanion.retrieval.filler_code import demote_repeats
from codecompanion.retrieval.ranking.evidence import ChunkHit, DefinitionHit, Evidence
from codecompanion.retrieval.ranking.join import RankedFile, find_seeds
from codecompanion.retrieval.ranking.places import best_places
from codecompanion.retrieval.ranking.question import read_question
from codecompanion.retrieval.ranking.tables import ranking
from codecompanion.retrieval.rendering import frame_chars
from codecompanion.retrieval.selection import select_snippets
from codecompanion.retrieval.smart_snippets import extract_smart_snippets, whole_file

NONE = QuestionTypes()


def snippet(path: str, tokens: int, score: float, start: int = 1, **fields: object) -> Snippet:
    text = "\n".join([f"{path} says a thing"] * 3).ljust(4 * tokens, "x")[: 4 * tokens]
    return Snippet(path=path, start=start, end=start + 2, text=text, score=score, **fields)  # type: ignore[arg-type]


def defined(path: str) -> tuple[Definition, ...]:
    return (Definition(f"of_{path[0]}", "function", 1, 9, 1, f"def of_{path[0]}()"),)


def test_the_users_choices_come_first_whatever_their_score() -> None:
    """R-251."""
    chosen = snippet("mine", 50, 0.1, is_selected=True)
    found = select_snippets([snippet("best", 60, 0.9), chosen], 100)
    assert [one.path for one in found.snippets] == ["mine"]


@pytest.mark.parametrize(("words", "kept"), [(49, True), (50, False)])
def test_a_snippet_must_score_more_than_a_fifth(words: int, kept: bool) -> None:
    """R-243: 0.1 + 5 × 1 / words is 0.2 at fifty of them."""
    text = "function go() {" + " w" * (words - 5) + " hit }"
    assert len(text.split()) == words
    [found] = extract_smart_snippets("a.js", text, ["hit"])
    assert (found.kind == "function") is kept


def test_files_that_fill_the_budget_leave_half_of_it_for_the_rest() -> None:
    """R-213, R-248: the budget grows by their size, up to the available room."""
    named = snippet("named.py", 2000, 1.0, is_selected=True, source="mention")
    takes = named.tokens + chars_to_tokens(frame_chars(named))

    def budget(most: int) -> int:
        return compose(NONE, [named], (), lambda path: (), 1000, named_tokens=most).selection.budget_tokens

    assert budget(10_000) == takes + 500
    assert (budget(2100), budget(0)) == (2100, 1000)


@pytest.mark.parametrize(("tokens", "goes"), [(240, True), (300, False)])
def test_additions_to_the_code_take_at_most_a_quarter(tokens: int, goes: bool) -> None:
    beside = Snippet(path="", start=0, end=0, text="m" * 4 * tokens, kind="memory", source="memory")
    composed = compose(NONE, [snippet("a", 50, 0.5)], [beside], lambda path: (), 1000, max_tokens=1000)
    assert (composed.beside != ()) is goes
    assert composed.selection.snippets != ()


def test_excluded_code_is_not_on_the_map_either() -> None:
    found = [snippet("a.py", 30, 0.8, start=20), snippet("b.py", 30, 0.7, start=20)]
    assert "def of_b()" in compose(NONE, found, (), defined, 2000).text
    without = compose(NONE, found, (), defined, 2000, left_out={("b.py", 20)}).text
    assert "def of_a()" in without
    assert "def of_b()" not in without


@pytest.mark.parametrize(("words", "demoted"), [(11, False), (12, True)])
def test_short_pieces_are_similar_by_chance(words: int, demoted: bool) -> None:
    text = " ".join(f"w{number}" for number in range(words))
    pair = [Snippet(path="a", start=n, end=n, text=text, score=0.5, source="search") for n in (1, 9)]
    assert [one.score < 0.5 for one in demote_repeats(pair)] == [False, demoted]


def test_of_a_large_open_file_the_lines_around_the_cursor_are_sent() -> None:
    """R-214: this applies if no definition contains the cursor."""
    whole = whole_file("a.txt", "".join(f"line {number:3}\n" for number in range(1, 201)))
    [around] = active_pieces(whole, (), (), 100, 50)
    assert around.start < 100 < around.end
    assert abs((100 - around.start) - (around.end - 100)) <= 1
    assert around.tokens <= 50
    [head] = active_pieces(whole, (), (), 0, 50)
    assert head.start == 1


def test_in_a_file_without_a_grammar_twenty_lines_are_elements() -> None:
    found = find_elements_with("a.txt", "hit\n" * 50, ParsedFile(), ["hit"])
    assert [one.start for one in found] == list(range(1, 21))


def test_a_map_has_a_minimum_and_a_maximum_size() -> None:
    many = [
        (f"{letter}.py", [Definition("f", "function", n, n, n, "d" * 100) for n in range(24)]) for letter in "abcdef"
    ]
    assert render_map(many, (), 59) == ""
    assert render_map(many, (), 60) != ""
    assert 1000 < chars_to_tokens(len(render_map(many, (), 100_000))) <= 1200


@pytest.mark.parametrize(("lines", "symbols"), [(4, {""}), (5, {"", "TABLE"})])
def test_a_table_of_five_lines_is_a_separate_piece(lines: int, symbols: set[str]) -> None:
    """Smaller ones stay with the lines around them."""
    text = ["import os", "TABLE = {", *(f"  {n}: one," for n in range(lines - 2)), "}", "use(TABLE)"]
    table = Definition("TABLE", "constant", 2, 1 + lines, 2, "TABLE = {")
    chunks = chunk_file("a.py", "\n".join(text), ParsedFile("python", (table,), (), (), is_parsed=True))
    assert {one.symbol for one in chunks} == symbols


def test_page_rank_needs_fifteen_files() -> None:
    chunks = tuple(ChunkHit(n, f"{n:02}.py", 1, 9, bm25=100.0 - n) for n in range(40))
    seeds = find_seeds(read_question("parse things"), Evidence(chunks=chunks), ranking())
    assert list(seeds) == [f"{n:02}.py" for n in range(15)]


@pytest.mark.parametrize(("lines", "is_place"), [(200, True), (201, False)])
def test_a_named_definition_without_a_chunk_is_a_place_unless_huge(lines: int, is_place: bool) -> None:
    definition = DefinitionHit("a.py", "to_str", 1, lines, "to_str")
    question = read_question("where is to_str")
    places = best_places(question, [RankedFile("a.py", 0.9)], [], [definition], 3)
    assert [one.symbol for one in places] == (["to_str"] if is_place else [])
