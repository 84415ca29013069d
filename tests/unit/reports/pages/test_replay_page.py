"""`replay --html`: the page has the table's figures, and no file name or policy breaks out of its place."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.reports.pages.html import escaped
from codecompanion.reports.pages.replay_page import Replayed, Session, replay_page
from codecompanion.reports.pages.size_svg import HEIGHT, WIDTH, Point, scale_of, size_svg
from codecompanion.reports.replay import Figures

NASTY = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [
            "</title><script>alert(1)</script>",
            '"><img src=x onerror=alert(1)>',
            "]]>",
            "--!>",
            "&lt;b&gt;",
            "\x00\ud800\u202e",
        ]
    ),
)


class Seen(HTMLParser):
    """Collects elements and text of a page, and asserts that every element is closed."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.text: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.update(name for name, _ in attrs)
        if tag not in ("meta", "link", "path", "line", "rect", "img", "br", "hr"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(page: str) -> Seen:
    seen = Seen()
    seen.feed(page)
    seen.close()
    assert not seen.open
    return seen


def figures(tokens: int, **more: int) -> Figures:
    return Figures(requests=1, prompt_tokens=tokens, peak=tokens, compared_requests=1, compared_cost=tokens, **more)


def replayed(*, names: tuple[str, ...] = ("a.jsonl",), label: str = "adaptive", requests: int = 40) -> Replayed:
    unmanaged = tuple(figures(2_000 * at, overflows=int(at > 30)) for at in range(1, requests + 1))
    managed = tuple(
        figures(1_000 * at, edits=int(at == 9), faults=int(at == 12), text_edits=1) for at in range(1, requests + 1)
    )
    sessions = [Session(name, (unmanaged, managed)) for name in names]
    totals = [sum(walk * len(names), Figures()) for walk in (unmanaged, managed)]
    return Replayed(("(none)", label), sessions, totals, 60_000, "5m", f"codecompanion replay {names[0]}", "1.2.3")


def test_the_page_has_every_figure_chart_mark_and_author() -> None:
    page = replay_page(replayed(names=("a.jsonl", "b.jsonl")))
    seen = read(page)
    text = " ".join("".join(seen.text).split())
    assert seen.tags.count("figure") == 4
    for part in (
        "no management",
        "adaptive",
        "1,640,000",
        "80,000",
        "0.500",
        "2 of 80",
        "codecompanion replay a.jsonl",
        "1.2.3",
    ):
        assert part in text, part
    assert page.count('class="edit"') == 2 + 1  # one for each chart of the policy, one in the legend
    assert page.count('class="fault"') == 2 + 1
    assert "edits: 1, compactions: 0, faults: 1." in text


def test_the_page_loads_nothing() -> None:
    page = replay_page(replayed())
    assert not re.search(r"https?:|//|src=|@import|url\((?!#)", page.replace("<!doctype html>", ""))
    assert "script" not in read(page).tags
    assert "default-src &#x27;none&#x27;" in page


@given(NASTY, NASTY)
def test_names_stay_names(name: str, label: str) -> None:
    """For any file or policy name, the elements are the same and the name is shown."""
    plain, nasty = read(replay_page(replayed())), read(replay_page(replayed(names=(name,), label=label)))
    assert nasty.tags == plain.tags
    assert nasty.attributes == plain.attributes


@given(st.text())
def test_escaped_text_is_valid_and_can_be_written(text: str) -> None:
    done = escaped(text)
    assert not set(done) & set("<>\"'")
    done.encode()
    ElementTree.fromstring(f'<a b="{done}">{done}</a>')  # noqa: S314 - our own output


POINTS = st.lists(
    st.builds(Point, st.integers(0, 2_000_000), st.integers(0, 2), st.integers(0, 1), st.integers(0, 3)), max_size=700
)


@given(POINTS, POINTS, st.integers(1, 1_000_000))
def test_every_chart_is_valid_and_inside_its_frame(points: list[Point], unmanaged: list[Point], window: int) -> None:
    scale = scale_of([points], unmanaged, window)
    root = ElementTree.fromstring(size_svg("p", points, unmanaged, scale, key="k"))  # noqa: S314 - our own output
    assert root.attrib["viewBox"] == f"0 0 {WIDTH} {HEIGHT}"
    for shape in root.iter("path"):
        if shape.attrib["class"] in ("edit", "compaction", "fault"):
            x, y = re.findall(r"-?[\d.]+", shape.attrib["d"])[:2]
            assert 0 <= float(x) <= WIDTH
            assert 0 <= float(y) <= HEIGHT
    assert all(scale.y(point.tokens) >= 0 for point in points)


@pytest.mark.parametrize("requests", [1, 2, 5_000])
def test_one_request_and_thousands_are_drawn(requests: int) -> None:
    points = [Point(1_000 + at, edits=at % 2) for at in range(requests)]
    drawn = size_svg("p", points, (), scale_of([points], points, 128_000), key="k")
    assert 'class="sent"' in drawn
    assert len(drawn) < 40_000
