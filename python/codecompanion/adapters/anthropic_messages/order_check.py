"""Checks the order of content blocks for the Messages API, in one pass: no block is checked twice.

Consecutive messages with the same role form one turn, as the provider merges them. Rules: every `tool_use` is answered
in the next turn, which begins with the results, one for each call; ids are unique; the first turn is the user's or
begins with a compaction; there is at most one compaction; a signed compaction precedes everything else; no turn ends
with thinking.
"""

from __future__ import annotations

from typing import Any

from codecompanion.adapters.anthropic_messages.block_check import THINKING_KINDS, BlockFacts
from codecompanion.adapters.anthropic_messages.media import MAX_IMAGES


class OrderCheck:
    """Checks blocks in order. `problems` are sentences; `end_problems` are the errors if no block follows."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.role = ""
        self.first = ""
        """Type of the first block of the turn."""
        self.last = ""
        self.blocks = 0
        self.images = 0
        self.has_calls = False
        self._waiting: frozenset[str] = frozenset()
        """Calls of the last assistant turn that have no result yet."""
        self._answered: frozenset[str] = frozenset()
        self._results_first = True
        self._compactions = 0
        self._ids: list[str] = []
        self._seen: set[str] = set()

    def add(self, role: str, facts: BlockFacts, call: str = "") -> None:
        """Add the next block; `call` is its id on the wire if `facts` was read without an id."""
        if facts.problem:
            self._complain(facts.problem)
        if role == "system":
            return
        if role != self.role:
            self._begin_turn(role, facts)
        call = call or facts.call
        match facts.kind:
            case "tool_result":
                self._take_result(call)
            case "tool_use":
                self._take_call(call)
            case "compaction" if not facts.is_noop:
                self._take_compaction(facts)
            case _ if role == "user":
                self._end_results()
        self.last = facts.kind
        self.blocks += 1
        self.images += facts.images

    def end_problems(self) -> list[str]:
        """Return the errors of a request that ends here."""
        found: list[str] = []
        if not self.blocks:
            found.append("there are no messages")
        if missing := self._waiting - self._answered:
            found.append(f"the call {min(missing)} has no result")
        if self.role == "assistant" and self.last in THINKING_KINDS:
            found.append("the last turn ends with thinking")
        if self.images > MAX_IMAGES:
            found.append(f"there are {self.images} images; the limit is {MAX_IMAGES}")
        return found

    @property
    def awaits_reply_to_results(self) -> bool:
        """Return whether a tool loop is running: the last turn begins with results."""
        return self.role == "user" and self.first == "tool_result"

    def has_id(self, call: str) -> bool:
        """Return whether a call already has this id."""
        return call in self._seen

    def mark(self) -> tuple[Any, ...]:
        """Return the state for `restore`, which discards everything added later."""
        return (
            *(len(self.problems), self.role, self.first, self.last, self.blocks, self.images, self.has_calls),
            *(self._waiting, self._answered, self._results_first, self._compactions, len(self._ids)),
        )

    def restore(self, mark: tuple[Any, ...]) -> None:
        """Restore the state at the mark."""
        problems, self.role, self.first, self.last, self.blocks, self.images, self.has_calls = mark[:7]
        self._waiting, self._answered, self._results_first, self._compactions, ids = mark[7:]
        del self.problems[problems:]
        self._seen.difference_update(self._ids[ids:])
        del self._ids[ids:]

    def _begin_turn(self, role: str, facts: BlockFacts) -> None:
        if role not in ("user", "assistant"):
            self._complain(f"unknown role {role!r}")
        if not self.role and role != "user" and facts.kind != "compaction":
            self._complain("the first message is not from the user")
        if self.role == "assistant" and self.last in THINKING_KINDS:
            self._complain("a turn ends with thinking")
        if self.role == "user":
            self._end_results()
            self._waiting, self._answered = frozenset(), frozenset()
        self.role, self.first, self._results_first = role, facts.kind, True

    def _take_result(self, call: str) -> None:
        if not self._results_first:
            self._complain(f"the result of {call} is not first in its turn")
        elif call in self._answered:
            self._complain(f"the call {call} has two results")
        elif call not in self._waiting:
            self._complain(f"the result of {call} does not follow its call")
        self._answered |= {call}

    def _end_results(self) -> None:
        """End the results section of this turn and report a call without a result."""
        if self._results_first:
            self._results_first = False
            if missing := self._waiting - self._answered:
                self._complain(f"the call {min(missing)} has no result in the next turn")

    def _take_call(self, call: str) -> None:
        if call in self._seen:
            self._complain(f"the id {call} occurs twice")
        self._seen.add(call)
        self._ids.append(call)
        self._waiting |= {call}
        self.has_calls = True

    def _take_compaction(self, facts: BlockFacts) -> None:
        self._compactions += 1
        if self._compactions > 1:
            self._complain("there is more than one compaction")
        if facts.is_signed and self.blocks:
            self._complain("a signed compaction is not the first block")
        if self.role == "assistant" and self.first not in ("compaction", *THINKING_KINDS):
            self._complain("a compaction is not the first block of its turn")

    def _complain(self, problem: str) -> None:
        self.problems.append(f"block {self.blocks}: {problem}")
