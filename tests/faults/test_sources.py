"""Faults in a message's context: the four checks of the table for files, mentions and gathered code.

The fault occurs with the second message; its effect is the same in every wire format, so only one format is played.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from codecompanion.session.attachments.read_attachment import read_attachment
from codecompanion.session.message_context import resolve_mentions
from codecompanion.session.session import Session
from codecompanion.session.state import State
from codecompanion.wire.requests import Attach, EditorItem
from tests.faults.faults import Row
from tests.faults.scene import FIRST, Host, Scene
from tests.faults.wires import WIRES
from tests.unit.session.fakes import submit

HUGE = "a line of a long file, with some words in it\n" * 70_000
SECRET = "the-secret-of-another-folder"
Strike = Callable[[Path], None]


class Fault(NamedTuple):
    """The fault of the attached live file `x.txt`, the second message's mentions, and the text that the model reads."""

    row: Row
    strikes: Strike = lambda root: None
    items: tuple[EditorItem, ...] = ()
    reads: str = ""


def row(name: str, expect: str, says: str = "", **more: Any) -> Row:
    return Row(kind="stream", name=name, expect=expect, says=says, **more)


def replaced(change: Callable[[Path], Any]) -> Strike:
    def strike(root: Path) -> None:
        (root / "x.txt").unlink()
        change(root / "x.txt")

    return strike


def by_host(argument: str) -> EditorItem:
    return EditorItem(f"#{{file:{argument}}}", "file", argument, comes="by_host")


BACK: dict[str, Any] = {"returned": True, "answered": False}
FAULTS = (
    Fault(
        row("a live file is deleted", "the model is told"),
        replaced(lambda path: None),
        reads="deleted or moved",
    ),
    Fault(
        row("a live file is 3 MB now", "the model is told to read it, the user why", says="has changed too much"),
        replaced(lambda path: path.write_text(HUGE)),
        reads="in too many places to show here",
    ),
    Fault(
        row("a live file is no text any more", "the model is told"),
        replaced(lambda path: path.write_bytes(bytes(range(256)))),
        reads="binary",
    ),
    Fault(row("a live file is a folder now", "the model is told"), replaced(Path.mkdir), reads="x.txt"),
    Fault(
        row("a live file is a link to itself", "the model is told"),
        replaced(lambda path: path.symlink_to(path)),
        reads="x.txt",
    ),
    Fault(
        row("a live file is a link out of the project", "what lies there is not sent"),
        replaced(lambda path: path.symlink_to(path.parent.parent / "secret.txt")),
        reads="it now links to a file",
    ),
    Fault(
        row(
            "a mentioned file is not there",
            "back in the input",
            says="Not sent: #{file:gone.txt}: There is no file",
            **BACK,
        ),
        items=(by_host("gone.txt"),),
    ),
    Fault(
        row("a mentioned file is no text", "back in the input", says="Not sent: #{file:binary.txt}: ", **BACK),
        items=(by_host("binary.txt"),),
    ),
    Fault(
        row("a mentioned file is 3 MB", "its beginning is sent, and says so"),
        lambda root: (root / "huge.txt").write_text(HUGE) and None,
        (by_host("huge.txt"),),
        "lines fit",
    ),
    Fault(
        row(
            "one of two that are mentioned cannot be had",
            "nothing is sent",
            says="Not sent: #{file:gone.txt}: ",
            **BACK,
        ),
        items=(by_host("big.txt"), by_host("gone.txt")),
    ),
    Fault(
        row("the editor does not say what it promised", "sent; the model reads that it did not come"),
        items=(EditorItem("#{lsp}", "lsp", comes="later"),),
        reads="the editor did not answer in time",
    ),
    Fault(
        row("nobody knows the item", "back in the input", says="Not sent: #{odd}: it is not available here", **BACK),
        items=(EditorItem("#{odd}", "odd", comes="by_host"),),
    ),
)


class SourceScene(Scene):
    """A scene whose first message has a live file attached, and whose second message meets the fault."""

    def __init__(self, fault: Fault, root: Path) -> None:
        super().__init__(fault.row, WIRES["chat"], root)
        self.fault = fault

    async def _ask(self, host: Host, session: Session, text: str, *, then: str = "") -> None:
        work = self.root / "work"
        if text == FIRST:
            (work / "x.txt").write_text("as it was attached\n")
            wanted = Attach(chat="chat-1", kind="file", path="x.txt", live=True)
            await session.attach(await read_attachment(host.services, wanted, work))
        if text != self.second:
            return await super()._ask(host, session, text, then=then)
        self.fault.strikes(work)
        self._numbers += 1
        session.submit(msgspec.structs.replace(submit(text, self._numbers), items=self.fault.items))
        await host.until(lambda: session.state is State.IDLE and session.task is None)
        return None


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.row.name)
async def test_a_chat_survives_faults_in_its_context(fault: Fault, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model reads the row's expected text, and nothing from elsewhere."""
    monkeypatch.setattr(resolve_mentions, "LATE_LIMIT_S", 0.05)
    (root / "secret.txt").write_text(SECRET)
    scene = SourceScene(fault, root)
    await scene.play()
    sent = "".join(text for body in scene.bodies for text in scene.wire.user_texts(body))
    assert fault.reads in sent
    assert SECRET not in sent
