"""Editor context as text: any content stays in its fence, on its line, and within its budget."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.counting.tokens import estimate_text
from codecompanion.formats.fencing import fenced
from codecompanion.session.editor_context.rendered_items import MIN_TOKENS, render
from codecompanion.wire.requests import EditorItem, EditorText

ROOT = Path("/work/here")
HOSTILE = st.text(st.one_of(st.characters(), st.sampled_from("`\n\x00\x1b\ud800~<>{}#\u202e")), max_size=400)
TEXTS = st.builds(
    EditorText,
    text=HOSTILE,
    title=HOSTILE,
    path=st.one_of(st.just(""), HOSTILE, st.just(f"{ROOT}/src/a.py")),
    first=st.integers(0, 10**9),
    whole=st.booleans(),
    language=HOSTILE,
    unsaved=st.booleans(),
)
ITEMS = st.builds(
    EditorItem,
    written=HOSTILE.map(lambda text: f"#{{{text}}}"),
    name=st.just("x"),
    texts=st.lists(TEXTS, max_size=4).map(tuple),
    nothing=HOSTILE,
    keep=st.sampled_from(["head", "tail"]),
)


def outside_of_fences(content):
    """Return the lines outside fences; every fence is closed."""
    fence, outside = "", []
    for line in content.split("\n"):
        opened = re.match(r"`{3,}", line)
        if fence:
            fence = "" if line == fence else fence
        elif opened:
            fence = opened[0]
        else:
            outside.append(line)
    assert not fence, "a fence is open at the end"
    return outside


@given(ITEMS, st.integers(MIN_TOKENS, 2_000))
def test_content_never_leaves_its_fence_line_or_budget(item, room):
    """Fences, control characters, lone surrogates and long titles are treated as data; the result is valid UTF-8."""
    made = render(item, ROOT, room, estimate_text)
    made.content.encode("utf-8")
    made.mentioned.title.encode("utf-8")
    assert "\n" not in made.mentioned.title
    headings = outside_of_fences(made.content)
    assert len(headings) <= len(item.texts) + 1, "a heading for each text, and a line on what was left out"
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", made.content)
    inside = estimate_text(made.content) - estimate_text("\n".join(headings))
    assert inside <= room + 40 * (len(item.texts) + 1)


@given(HOSTILE)
def test_a_fence_is_longer_than_any_in_the_text(text):
    lines = fenced(text).split("\n")
    assert lines[0] == lines[-1]
    assert all(len(run) < len(lines[0]) for run in re.findall("`{3,}", text))


@pytest.mark.parametrize(("keep", "first"), [("head", "lines 1-"), ("tail", "-500")])
def test_content_that_does_not_fit_is_truncated_and_marked(keep, first):
    """Whole lines are kept, from the correct end, with their real numbers."""
    body = "\n".join(f"line {number}" for number in range(1, 501))
    text = EditorText(body, path=f"{ROOT}/a.py", first=1, whole=True, language="python")
    made = render(EditorItem(written="#{buffer}", name="buffer", texts=(text,), keep=keep), ROOT, 300, estimate_text)
    heading = made.content.split("\n")[0]
    assert first in heading
    assert re.search(r"only the (first|last) \d+ of 500 lines fit:$", heading)
    assert re.fullmatch(r"#\{buffer\} a\.py · cut, \d+ of 500 lines", made.mentioned.title)
    lines = made.content.split("\n")[2:-1]
    start, end = map(int, re.findall(r"lines (\d+)-(\d+)", heading)[0])
    assert lines == body.split("\n")[start - 1 : end]


def test_one_huge_line_is_truncated():
    made = render(
        EditorItem(written="#{x}", name="x", texts=(EditorText("word " * 200_000, title="t"),)),
        ROOT,
        200,
        estimate_text,
    )
    assert 50 < estimate_text(made.content) < 300


def test_of_many_files_whole_ones_are_sent_and_the_rest_named():
    texts = tuple(EditorText("x = 1\n" * 100, path=f"{ROOT}/f{n}.py", first=1, whole=True) for n in range(30))
    made = render(EditorItem(written="#{buffers}", name="buffers", texts=texts), ROOT, 2_000, estimate_text)
    sent = re.findall(r"`(f\d+\.py)`, all 100 lines", made.content)
    assert sent[:2] == ["f0.py", "f1.py"]
    assert "Left out: no room in the context window: " in made.content
    assert made.mentioned.title.startswith("#{buffers} ")
    assert "of 30 files" in made.mentioned.title
