"""The question about files that a repository's rules lead to outside of it (R-549): a block in the chat that waits.

Nothing waits for the answer: until it comes the files are not read, and the chat goes on without them. "Always" and
"no" are kept for the repository by path and content of each file; what was not answered is asked in the next chat.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from codecompanion.formats.cutting import cut
from codecompanion.formats.plural import counted
from codecompanion.rules.groups import RulesItem
from codecompanion.session.chat import Chat
from codecompanion.wire.events import ApprovalRequested, Severity
from codecompanion.wire.requests import Approve

_BEGINNING_CHARS = 60


def ask_about_outside_rules(chat: Chat) -> None:
    """Ask about the files that were held back."""
    held = chat.context.rules.held_back
    if not held:
        return
    root = chat.services.root(chat.snapshot)

    async def take(given: Approve) -> None:
        await _take(chat, held, root, given)

    count = counted(len(held), "file")
    question = ApprovalRequested(
        chat=chat.chat_id,
        call_id=f"rules-{chat.services.new_token()}",
        name="rules",
        title=f"read {count} from outside of the repository?",
        body="\n".join(map(_line, held)),
        kind="rules",
    )
    chat.desk.offer(question, take)


def settle_outside_rules(chat: Chat) -> None:
    """Take the question away once all it is about was read on another way (`/rules`)."""
    for question in chat.desk.offers:
        if question.kind == "rules" and not chat.context.rules.held_back:
            chat.desk.withdraw(question.call_id)


async def _take(chat: Chat, held: Sequence[RulesItem], root: Path, given: Approve) -> None:
    rules = chat.context.rules
    if given.decision == "cancel":
        return  # closed without an answer: the next chat asks
    if given.decision == "reject":
        await rules.refuse(held, root)
        names = ", ".join(item.path for item in held)
        text = f"Not read: {names}. It is not asked again until the file changes; /rules reads it."
        chat.notice(Severity.INFO, text)
        return
    messages, problems = await rules.read_outside(held, root, remember=given.decision == "always")
    for problem in problems:
        chat.notice(Severity.WARN, problem)
    await chat.attach(*messages)
    ask_about_outside_rules(chat)  # what these files lead to, or a file that has changed since it was shown


def _line(item: RulesItem) -> str:
    beginning = " ".join(item.text[: 4 * _BEGINNING_CHARS].split())
    return f"{item.path} · {item.size_bytes:,} bytes · {cut(beginning, _BEGINNING_CHARS) or 'empty'}"
