"""Code from earlier questions that the model still sees is referred to and not sent again."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.model.gathered import Gathered, Snippet
from codecompanion.model.messages import Message
from codecompanion.retrieval.assembly import ALL_PARTS, assemble
from codecompanion.retrieval.compose import Composed, compose
from codecompanion.retrieval.shown_lines import Above, seen_in
from codecompanion.retrieval.smart_snippets import whole_file
from codecompanion.retrieval.snippets_in_view import MAX_CHARS, STILL_ABOVE, name_seen, split_seen
from codecompanion.session.codebase.gathered_message import gathered_message
from tests.unit.retrieval.test_compose import NONE, definitions, lines, no_definitions, places


def sent(composed: Composed) -> Message:
    message = gathered_message(
        Gathered(question="q", selection=composed.selection, beside=composed.beside, text=composed.text), "m"
    )
    assert message is not None
    return message


def shown(*found: Snippet) -> Above:
    return seen_in([sent(compose(NONE, found, (), no_definitions, 10_000))])


def test_a_piece_still_in_view_is_referred_to_and_not_sent_again() -> None:
    one, other = lines("src/a.py", 10, 40, 0.8, name="f"), lines("src/b.py", 1, 20, 0.5)
    composed = compose(NONE, [one, other], (), no_definitions, 10_000, above=shown(one))
    assert places(composed.selection.snippets) == [("src/b.py", 1, 20)]
    assert places(composed.selection.above) == [("src/a.py", 10, 40)]
    assert "src/a.py 10\n" not in composed.text
    assert f"{STILL_ABOVE}src/a.py:10-40." in composed.text
    pieces = sent(composed).gathered
    assert [(piece.path, piece.is_above) for piece in pieces] == [("src/b.py", False), ("src/a.py", True)]


def test_the_freed_budget_is_used_by_later_pieces() -> None:
    found = [lines(name, 1, 30, 0.9 - n / 10) for n, name in enumerate("abcde")]
    first = compose(NONE, found, (), no_definitions, 130)
    assert places(first.selection.snippets) == [("a", 1, 30), ("b", 1, 30)]
    second = compose(NONE, found, (), no_definitions, 130, above=seen_in([sent(first)]))
    assert places(second.selection.snippets) == [("c", 1, 30), ("d", 1, 30)]
    assert places(second.selection.above) == [("a", 1, 30), ("b", 1, 30)]
    assert [one.snippet.path for one in second.selection.dropped] == ["e"]


@pytest.mark.parametrize("text", ["changed", "moved"])
def test_changed_or_moved_pieces_are_sent_again_whole(text: str) -> None:
    before = lines("a", 10, 40, 0.8)
    now = lines("a", 11, 41, 0.8) if text == "moved" else before
    body = before.text if text == "moved" else before.text.replace("a 20\n", "a twenty\n")
    now = msgspec.structs.replace(now, text=body)
    composed = compose(NONE, [now], (), no_definitions, 10_000, above=shown(before))
    assert composed.selection.snippets == (now,)
    assert composed.selection.above == ()


def test_the_newest_of_two_versions_counts() -> None:
    """Changed and changed back: the model saw the other one last."""
    one = lines("a", 1, 20, 0.8)
    other = msgspec.structs.replace(one, text=one.text.upper())
    messages = [sent(compose(NONE, [version], (), no_definitions, 10_000)) for version in (one, other)]
    assert split_seen(one, seen_in(messages)) == ([one], [])
    assert split_seen(other, seen_in(messages)) == ([], [other])
    assert split_seen(one, seen_in(messages[:1])) == ([], [one])


def test_of_a_larger_piece_only_new_lines_are_sent() -> None:
    method, whole = lines("a", 20, 60, 0.8), lines("a", 1, 90, 0.5)
    composed = compose(NONE, [whole], (), no_definitions, 10_000, above=shown(method))
    assert places(composed.selection.snippets) == [("a", 1, 19), ("a", 61, 90)]
    assert places(composed.selection.above) == [("a", 20, 60)]


def test_a_piece_with_little_to_save_is_sent_whole() -> None:
    few, whole = lines("a", 20, 22, 0.8), lines("a", 1, 90, 0.5)
    assert split_seen(whole, shown(few)) == ([whole], [])


def test_a_named_file_in_view_frees_its_budget_and_a_truncated_one_continues() -> None:
    """R-213, R-248."""
    text = "".join(f"line {n} of a file\n" for n in range(1, 201))
    whole = whole_file("a", text)
    first = compose(NONE, [whole], (), no_definitions, 400)
    [cut] = first.selection.snippets
    assert cut.is_cut
    second = compose(NONE, [whole], (), no_definitions, 400, above=seen_in([sent(first)]))
    [rest] = second.selection.snippets
    assert (rest.start, rest.is_cut) == (cut.end + 1, True)
    assert f"{STILL_ABOVE}a:1-{cut.end}." in second.text
    all_of_it = compose(NONE, [whole], (), no_definitions, 4000)
    again = compose(NONE, [whole, lines("b", 1, 9, 0.5)], (), no_definitions, 400, above=seen_in([sent(all_of_it)]))
    assert places(again.selection.snippets) == [("b", 1, 9)]
    assert again.selection.budget_tokens == 400
    assert f"{STILL_ABOVE}a:1-200." in again.text, "larger than the budget, and named all the same"


def test_of_a_changed_named_file_the_change_is_sent_with_its_context() -> None:
    text = "".join(f"line {n} of a file\n" for n in range(1, 201))
    above = seen_in([sent(compose(NONE, [whole_file("a", text)], (), no_definitions, 4000))])
    changed = whole_file("a", text.replace("line 100 ", "line one hundred "))
    new, seen = split_seen(changed, above)
    assert places(tuple(new)) == [("a", 97, 103)]
    assert places(tuple(seen)) == [("a", 1, 96), ("a", 104, 200)]
    moved = whole_file("a", "first\n" + text)
    assert split_seen(moved, above) == ([moved], []), "its numbers are others now"


def test_parts_of_a_named_file_already_in_view_are_not_sent_again() -> None:
    """Parts of a few characters are sent again, because a heading takes more."""
    whole = whole_file("a", "".join(f"a {n}\n" for n in range(1, 201)))
    above = shown(lines("a", 20, 60, 0.8), lines("a", 80, 82, 0.8), lines("a", 100, 160, 0.8))
    new, seen = split_seen(whole, above)
    assert places(tuple(new)) == [("a", 1, 19), ("a", 61, 99), ("a", 161, 200)]
    assert places(tuple(seen)) == [("a", 20, 60), ("a", 100, 160)]


def test_a_truncated_file_continues_after_the_lines_in_view_and_a_pin_in_it_is_not_sent_twice() -> None:
    """R-213: `@core.py` is sent a second time, with one pin in view and another in the lines that are sent now."""
    whole = whole_file("a", "".join(f"line {n} of a file\n" for n in range(1, 401)))
    numbered = whole.text.split("\n")
    pins = [pin_of(numbered, 150, 160), pin_of(numbered, 210, 215)]
    first = compose(NONE, [whole, pins[0]], (), no_definitions, 700)
    above = seen_in([sent(first)])
    assert {*range(150, 161)} < set(above.lines["a"]), "the pin, although the file is cut before it"
    assert not {*range(140, 150)} & set(above.lines["a"])
    second = compose(NONE, [whole, *pins], (), no_definitions, 10_000, above=above)
    sent_now = [n for one in second.selection.snippets for n in range(one.start, one.end + 1)]
    assert len(sent_now) == len(set(sent_now))
    assert set(sent_now).isdisjoint(above.lines["a"])
    assert {*sent_now, *above.lines["a"]} == set(range(1, 401))


def pin_of(numbered: list[str], start: int, end: int) -> Snippet:
    text = "\n".join(numbered[start - 1 : end])
    return Snippet(path="a", start=start, end=end, text=text, score=1.0, is_selected=True, source="pinned", name="f")


TURN = st.tuples(
    st.booleans(),  # the file is named
    st.lists(st.tuples(st.integers(1, 110), st.integers(0, 40), st.booleans()), max_size=4),  # pieces, pins
    st.sets(st.integers(1, 120), max_size=3),  # lines that are changed before it
    st.sampled_from([60, 200, 500, 5000]),
)


@given(st.lists(TURN, min_size=2, max_size=5))
def test_in_a_chat_no_unchanged_line_is_sent_twice_and_nothing_promised_is_missing(turns: list) -> None:  # type: ignore[type-arg]
    """The chat has a named file, its pins and its pieces, at any budget, with edits between the questions."""
    now, messages = [f"{n} a line of this file" for n in range(1, 121)], list[Message]()
    for number, (is_named, pieces, changed, budget) in enumerate(turns):
        for line in changed:
            now[line - 1] = f"{line} changed before turn {number}"
        above = seen_in(messages)
        known = above.lines.get("a", {})
        cut = [(start, min(start + size, 120), is_pin) for start, size, is_pin in pieces]
        found = [pin_of(now, start, end) for start, end, is_pin in cut if is_pin]
        found += [
            Snippet(path="a", start=start, end=end, text="\n".join(now[start - 1 : end]), score=0.5, kind="method")
            for start, end, is_pin in cut
            if not is_pin
        ]
        whole = [whole_file("a", "\n".join(now) + "\n")] if is_named else []
        composed = compose(NONE, [*whole, *found], (), no_definitions, budget, above=above)
        if not composed.text:
            continue
        shown_now = [n for one in composed.selection.snippets for n in range(one.start, one.end + 1)]
        assert len(shown_now) == len(set(shown_now)), "no line twice in a block"
        if is_named:
            is_changed = {n for n, line in known.items() if line != now[n - 1]}
            again = {n for n in shown_now if known.get(n) == now[n - 1]}
            far = sorted(n for n in again if not any(abs(n - other) <= 3 for other in is_changed))
            assert not any({n, n + 1, n + 2, n + 3} <= set(far) for n in far), f"{far} are sent again"
        messages.append(sent(composed))
        after = seen_in(messages).lines.get("a", {})
        if is_named and budget == 5000:
            assert [after.get(n) for n in range(1, 121)] == now, "all of it is there, as it is"
        for one in composed.selection.above:
            assert all(after.get(n) == now[n - 1] for n in range(one.start, one.end + 1))


def test_a_repeated_question_does_not_get_worse_code_each_time() -> None:
    """Code in view leaves room, and barely relevant code must not fill it."""
    found = [lines(name, 1, 30, 0.9 - n / 10) for n, name in enumerate("abcd")]
    found += [lines(f"poor{n}", 1, 30, 0.14) for n in range(9)]
    messages, sizes = list[Message](), list[list[str]]()
    for _ in range(4):
        composed = compose(NONE, found, (), no_definitions, 130, above=seen_in(messages))
        sizes.append([one.path for one in composed.selection.snippets])
        messages.append(sent(composed))
    assert sizes == [["a", "b"], ["c", "d"], [], []]
    assert "omitted" not in composed.text, "not for lack of room"
    fresh = compose(NONE, found[4:], (), no_definitions, 130)
    assert fresh.selection.snippets, "where nothing better is known they go"


def test_a_new_question_beside_a_file_in_view_gets_the_same_as_with_the_file() -> None:
    """R-217: it gets at least half of the budget."""
    whole = whole_file("a", "".join(f"line {n} of a file\n" for n in range(1, 201)))
    above = seen_in([sent(compose(NONE, [whole], (), no_definitions, 4000))])
    found = [whole, lines("best", 1, 5, 0.9), *(lines(f"poor{n}", 1, 30, 0.14) for n in range(40))]
    again = compose(NONE, found, (), no_definitions, 1000, above=above)
    assert 380 < again.selection.total_tokens <= 500


def test_memories_and_map_are_not_repeated() -> None:
    """R-240, R-241: the same text is sent once."""
    memory = Snippet(path="", start=0, end=0, text="prefer tests", source="memory", kind="memory")
    one, other = lines("a.py", 10, 15, 0.5), lines("a.py", 20, 25, 0.5)

    def ask(found: Snippet, above: Above, count: int = 4) -> Composed:
        return compose(NONE, [found], (memory,), lambda path: definitions(count), 1000, above=above)

    first = ask(one, Above())
    assert "    20 def f2(x, y)" in first.text
    second = ask(other, seen_in([sent(first)]), count=5)
    assert "prefer tests" not in second.text
    assert f"{STILL_ABOVE}memories." in second.text
    assert [one.text for one in second.beside] == ["a.py:\n    10 def f1(x, y)\n    50 def f5(x, y)"]
    assert [one.source for one in second.selection.above] == ["memory"]
    changed = msgspec.structs.replace(memory, text="prefer types")
    again = compose(NONE, [one], (changed,), no_definitions, 1000, above=seen_in([sent(first)]))
    assert "prefer types" in again.text


def test_the_reference_is_short_for_any_amount_in_view() -> None:
    """It must not take the room it saves; adjacent lines are one range."""
    runs = [lines("a", 30, 40, 0.5), lines("b", 1, 2, 0.5), lines("a", 1, 9, 0.5), lines("a", 10, 12, 0.5)]
    assert name_seen(runs) == f"{STILL_ABOVE}a:1-12, 30-40; b:1-2."
    many = [lines(f"src/some/folder/file{n}.py", 1, 2, 0.5) for n in range(300)]
    assert len(name_seen(many)) < MAX_CHARS + 40
    assert name_seen(many).endswith(" more files.")
    assert name_seen([]) == ""


STARTS = ("x ", "```", "", "### File: a.py ", "#### lines 1-2 ")


def file_lines(path: str, start: int, end: int, score: float, kind: str, name: str) -> Snippet:
    """Return the lines of a file; their text does not depend on the piece that they belong to."""
    text = "\n".join("" if n % 4 == 0 else f"{STARTS[n * len(path) % 5]}{n}" for n in range(start, end + 1))
    return Snippet(path=path, start=start, end=end, text=text, score=score, kind=kind, name=name)


FOUND = st.lists(
    st.builds(
        lambda path, start, size, score, kind, name: file_lines(path, start, start + size, score, kind, name),
        st.sampled_from(["a.py", "b`\n.py", "## Code"]),
        st.integers(1, 30),
        st.integers(0, 30),
        st.floats(0.1, 0.9),
        st.sampled_from(["class", "method"]),
        st.sampled_from(["", "f", "`x"]),
    ),
    max_size=10,
)


@given(FOUND, st.booleans(), st.integers(0, 900))
def test_the_text_read_from_a_message_equals_the_sent_one(found: list[Snippet], names: bool, budget: int) -> None:
    """This is true for any fences, headings and paths in the code, and for truncated files.

    The text still fits its budget.
    """
    named = [whole_file("n.py", "".join(f"n {n} ```\n" for n in range(1, 61)))] if names else []
    composed = compose(NONE, [*found, *named], (), lambda path: definitions(3), budget)
    if not composed.text:
        return
    above = seen_in([sent(composed)])
    was = {(one.path, n) for one in composed.selection.snippets for n in range(one.start, one.end + 1)}
    assert {(path, n) for path, known in above.lines.items() for n in known} == was
    assert not [one for one in composed.selection.snippets if not one.is_cut and split_seen(one, above) != ([], [one])]
    again = compose(NONE, [*found, *named], (), lambda path: definitions(3), budget, above=above)
    places_above = [(one.path, n) for one in again.selection.above for n in range(one.start, one.end + 1)]
    assert was.issuperset(places_above)
    assert len(places_above) == len(set(places_above))
    assert again.text or budget < 50, "it comes to an end whatever its names take"
    assert len(again.text) <= 4 * budget + len(assemble(NONE, ALL_PARTS, "x")) + 104


def test_a_truncated_or_foreign_message_reveals_only_its_visible_text() -> None:
    message = sent(compose(NONE, [lines("a", 1, 20, 0.5), lines("b", 1, 20, 0.4)], (), no_definitions, 10_000))
    short = msgspec.structs.replace(message, content=message.text[: message.text.index("b 12")])
    assert set(seen_in([short]).lines) == {"a"}
    assert seen_in([msgspec.structs.replace(message, content="Other words.")]).lines == {}
    assert seen_in([msgspec.structs.replace(message, content=message.text.replace("## Code", "## Core"))]).lines == {}
