"""A recorded chat with tools, split into turns: the user's messages, the model's replies, the tool results.

The tools in a recording are another agent's, and their effects cannot be repeated. So each call becomes a `run_command`
whose command contains the recorded arguments and prints the recorded result: our tool round runs unchanged, with texts
of the recorded sizes. Ids are new, because recordings repeat them.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, pairwise, takewhile, zip_longest
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[2]
DEMO = REPO / "tools" / "demo" / "demo_session.jsonl"
"""A recording of 314 messages, part of the package."""
PI = REPO.parent / "shared" / "data" / "transcripts" / "pi" / "before-compaction.jsonl"
"""A recording of one long session with Claude: 975 messages, up to 185,000 tokens at once."""

SCRIPT = '#!/bin/sh\ncat "results/$1.txt"\n[ ! -e "results/$1.failed" ]\n'
MAX_ARGUMENT_CHARS = 100_000
"""Below the kernel's limit of 128 KB for one program argument."""


@dataclass(frozen=True)
class RecordedCall:
    """One call: its number in the session, the name and arguments of the recorded tool, and its result."""

    number: int
    name: str
    arguments: str
    result: str
    failed: bool

    @property
    def id(self) -> str:
        """Return the id of the call in the replay."""
        return f"call_{self.number:04d}"

    @property
    def command(self) -> str:
        """Return the shell command that replaces the call."""
        return f"./replay {self.number} {shlex.quote(f'{self.name} {_as_text(self.arguments)}'[:MAX_ARGUMENT_CHARS])}"


@dataclass(frozen=True)
class RecordedReply:
    """One reply of the model."""

    text: str
    calls: tuple[RecordedCall, ...] = ()


@dataclass(frozen=True)
class RecordedTurn:
    """A user message and the replies until control was back with the user."""

    text: str
    replies: tuple[RecordedReply, ...]


@dataclass(frozen=True)
class RecordedSession:
    """A recording; `rules` is the text of its rule file, or of our own."""

    turns: tuple[RecordedTurn, ...]
    rules: str

    @property
    def replies(self) -> int:
        """Return the minimum number of requests in the session."""
        return sum(len(turn.replies) for turn in self.turns)

    @property
    def calls(self) -> tuple[RecordedCall, ...]:
        """Return all calls in order."""
        return tuple(call for turn in self.turns for reply in turn.replies for call in reply.calls)

    def write_workspace(self, work: Path) -> None:
        """Write the rules, the results and the program that prints them."""
        results = work / "results"
        results.mkdir(parents=True)
        (work / "AGENTS.md").write_text(self.rules, encoding="utf-8")
        program = work / "replay"
        program.write_text(SCRIPT, encoding="utf-8")
        program.chmod(0o755)
        for call in self.calls:
            (results / f"{call.number}.txt").write_text(call.result, encoding="utf-8")
            if call.failed:
                (results / f"{call.number}.failed").touch()


RULES = "# Rules of the project\n\n" + "".join(
    f"{number}. Rule {number}: keep what was promised in paragraph {number}; «{number:03d}» is its mark.\n"
    for number in range(1, 41)
)


def read_recording(path: Path, *, messages: int | None = None) -> RecordedSession:
    """Return the session in a transcript file, or only its first messages."""
    with path.open(encoding="utf-8") as lines:
        read = [json.loads(line) for line in lines][:messages]
    return RecordedSession(tuple(_turns(read)), RULES)


def _turns(messages: Sequence[dict[str, Any]]) -> Iterator[RecordedTurn]:
    """Yield the turns without their attachments (rules, files, images): the chat has its own rules."""
    numbers = count()
    begins = [k for k, message in enumerate(messages) if message["role"] == "user"]
    for first, last in pairwise([*begins, len(messages)]):
        said = messages[first]
        if (said.get("meta") or {}).get("tag") is None and isinstance(said["content"], str):
            yield RecordedTurn(said["content"], tuple(_replies(messages[first + 1 : last], numbers)))


def _replies(messages: Sequence[dict[str, Any]], numbers: Iterator[int]) -> Iterator[RecordedReply]:
    """Yield the replies of a turn with the results of their calls, paired by position; a call may have none."""
    for at, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        results = list(takewhile(lambda later: later["role"] == "tool", messages[at + 1 :]))
        calls = [
            RecordedCall(
                number=next(numbers),
                name=call["function"]["name"],
                arguments=call["function"]["arguments"],
                result=result["content"] if result else "",
                failed=bool(result and (result.get("meta") or {}).get("is_error")),
            )
            for call, result in zip_longest(message.get("tool_calls") or (), results)
        ]
        yield RecordedReply(message["content"] or "", tuple(calls))


def _as_text(arguments: str) -> str:
    """Return the arguments in a form that keeps its length in our call, unlike JSON within JSON."""
    try:
        values = json.loads(arguments)
    except ValueError:
        return arguments
    if not isinstance(values, dict):
        return arguments
    return " ".join(f"{key}={value}" for key, value in values.items())
