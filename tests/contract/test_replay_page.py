"""`replay --html FILE` on the command line; the page is opened in a real browser in both colour schemes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser import BROWSER, DESK, PHONE, WHY_NOT, browser
from tests.contract.command_line import REPO, run

SESSION = str(REPO / "tools" / "demo" / "demo_session.jsonl")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "replay.html"
    status, out, err = run("replay", "--window", "64k", "--policy", "codecompanion", "--policy", "adaptive",
                           "--html", str(path), SESSION)  # fmt: skip
    assert (status, err) == (0, "")
    assert out.startswith("policy ")
    return path


def test_the_printed_output_is_the_same_with_a_page(page: Path) -> None:
    _, plain, _ = run("replay", "--window", "64k", "--policy", "codecompanion", "--policy", "adaptive", SESSION)
    text = page.read_text()
    for row in plain.splitlines()[1:4]:
        for figure in row.split()[1:4]:
            assert figure in text
    assert f"replay --policy codecompanion --policy adaptive --window 64000 --cache 5m --html {page}" in text


def test_an_unwritable_page_is_named(tmp_path: Path) -> None:
    nowhere = tmp_path / "no" / "page.html"
    status, out, err = run("replay", "--policy", "adaptive", "--html", str(nowhere), SESSION)
    assert (status, out) == (2, "")
    assert err == f"codecompanion: --html {nowhere}: No such file or directory; expected a writable file\n"


@pytest.mark.skipif(not BROWSER, reason=WHY_NOT)
async def test_a_browser_shows_it_in_both_colour_schemes_and_on_a_phone(page: Path) -> None:
    """There is no error and no request except for the page itself.

    Nothing is wider than the window, and charts are distinguishable.
    """
    async with browser() as tab:
        papers = set()
        for dark in (False, True):
            for size in (DESK, PHONE):
                await tab.open(page, dark=dark, size=size)
                assert tab.errors == []
                assert tab.requests == [page.as_uri()]
                assert await tab.ask("document.documentElement.scrollWidth <= innerWidth")
                assert await tab.ask("document.querySelectorAll('figure svg').length") == 3
                heights = "[...document.querySelectorAll('figure svg')].map(one => one.getBoundingClientRect().height)"
                assert min(await tab.ask(heights)) > 100
            papers.add(await tab.ask("getComputedStyle(document.body).backgroundColor"))
        assert len(papers) == 2
        names = await tab.names()
        assert ("image", "adaptive: tokens of each request") in names
        assert ("rowheader", "adaptive") in names
        assert ("columnheader", "relative cost") in names
