"""`/fetch` fails before the second message: the four checks of the table, and the text that reaches the model.

The web server is real and runs on this machine; its faults are in `tests/unit/web/pages.py`.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from codecompanion.errors import InputError
from codecompanion.formats.addresses import Address, why_refused
from codecompanion.session.actions.fetch_page import attach_page
from codecompanion.session.session import Session
from codecompanion.session.state import State
from codecompanion.web import fetching
from codecompanion.web.fetching import Fetcher
from tests.faults.faults import Row
from tests.faults.scene import SECOND, Host, Scene
from tests.faults.wires import WIRES
from tests.unit.web.pages import Site, site


class Fault(NamedTuple):
    """The URL path below the site (or a whole URL), and the text that the model reads, "" = no page is attached."""

    row: Row
    path: str
    reads: str = ""
    limit_s: float = 30.0


def row(name: str, expect: str, says: str = "") -> Row:
    return Row(kind="server", name=name, expect=expect, says=says)


def _port_of_nobody() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


CANNOT = "nothing is attached, the chat goes on"
FAULTS = (
    Fault(
        row("the server is down", CANNOT, "was not fetched: the server cannot be reached."),
        f"http://127.0.0.1:{_port_of_nobody()}/",
    ),
    Fault(
        row("there is no network", CANNOT, "was not fetched: no address was found for this name."),
        "http://no-such-place.invalid/",
    ),
    Fault(row("the page is not there", CANNOT, "the server answered 404"), "/missing"),
    Fault(row("it is redirected to this machine", CANNOT, "127.0.0.2"), "/redirect?http://127.0.0.2/"),
    Fault(
        row("it is redirected to the machine's keys", CANNOT, "169.254.169.254"),
        "/redirect?http://169.254.169.254/latest/meta-data",
    ),
    Fault(row("its body has no end", CANNOT, "larger than 10 MB"), "/endless"),
    Fault(row("it is a bomb of zeros", CANNOT, "larger than 10 MB"), "/bomb"),
    Fault(row("it drips for ever", CANNOT, "took longer than"), "/slow", limit_s=0.4),
    Fault(row("the server dies in the middle of it", CANNOT, "the server closed the connection"), "/dies"),
    Fault(row("its compression is broken", CANNOT, "is not valid gzip"), "/broken_pack"),
    Fault(row("it is redirected in a circle", CANNOT, "redirected more than 5 times"), "/loop"),
    Fault(row("it is no text", CANNOT, "it is application/octet-stream"), "/binary"),
    Fault(row("its charset does not exist", "read as well as it can be"), "/wrong_charset", "hello there, all of you"),
    Fault(row("its charset is another one", "read as well as it can be"), "/lying_charset", "hello there, all of you"),
)


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the URL of a site that is reached without this machine's proxy."""
    monkeypatch.setattr(fetching, "getproxies", dict)
    with site() as found:
        yield found


def all_but_two(found: Address) -> str:
    """Allow only 127.0.0.1, which hosts the site and the other servers of a test."""
    return "" if str(found) == "127.0.0.1" else why_refused(found)


class FetchScene(Scene):
    """A scene in which the user fetches a page before the second message."""

    def __init__(self, fault: Fault, root: Path, address: str) -> None:
        super().__init__(fault.row, WIRES["chat"], root)
        self.fault, self.url = fault, fault.path if "://" in fault.path.partition("?")[0] else address + fault.path

    async def _ask(self, host: Host, session: Session, text: str, *, then: str = "") -> None:
        if text == SECOND:
            before = [message.text for message in session.log.view.messages]
            try:
                await attach_page(session, self.url, make_fetcher=self._fetcher)
            except InputError as error:
                host.reports.append(str(error))  # the answer to the command
                assert [message.text for message in session.log.view.messages] == before
                assert session.state is State.IDLE
        await super()._ask(host, session, text, then=then)

    def _fetcher(self, proxy: str) -> Any:
        return Fetcher(proxy, refuse=all_but_two, time_limit_s=self.fault.limit_s)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.row.name)
async def test_a_chat_survives_a_bad_page(fault: Fault, root: Path, address: str) -> None:
    """An incomplete page is not attached, and nothing is cached that a later `/fetch` would take for the page."""
    scene = FetchScene(fault, root, address)
    await scene.play()
    sent = "".join(text for body in scene.bodies for text in scene.wire.user_texts(body))
    assert fault.reads in sent
    assert bool(fault.reads) == ("/fetch" in sent or scene.url in sent)
    assert "first half of a page" not in sent
    assert len(Site.asked) <= 6
    assert not any("127.0.0.2" in str(headers) for _, headers in Site.asked)
