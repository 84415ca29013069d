"""Tracks which models may still be asked for a summary while a request is prepared (R-526, R-529, R-532, lesson 18).

A failed call rules out its model for the whole preparation: the next part, tier or stage would fail as well, and the
user would wait for each. Two replies that were not summaries rule it out only for that tier: the next tier asks for
another summary (R-120). For a model that may not be asked, a failed reply is returned here, so that every strategy
handles it like a failed call.
"""

from __future__ import annotations

from codecompanion.context.work import Env, Failed, Outcome, StageEvent, SummaryReply, Work

Kind = tuple[StageEvent, str]
"""The event of a stage and the id of a tier, which identify summaries that are requested in the same way."""

PAUSED = "the model that writes summaries has failed too often"


class Writers:
    """The summariser and the chat's own model, which may be identical, in one preparation."""

    def __init__(self, env: Env) -> None:
        self._paused = "" if env.asks_models else PAUSED
        self._are_one = not env.has_utility
        self._failed: dict[bool, str] = {}
        self._rejected: dict[tuple[bool, Kind], str] = {}
        self.wrote_none = False
        """Whether a model answered without writing a usable summary."""

    def why_not(self, kind: Kind, *, chat_adapter: bool) -> str:
        """Return the reason not to ask this model, or "" if there is none."""
        return self._paused or self.failure(kind, chat_adapter=chat_adapter)

    def failure(self, kind: Kind, *, chat_adapter: bool = False) -> str:
        """Return how this model failed in this preparation, or "" if it did not."""
        who = self._who(chat_adapter)
        return self._failed.get(who, "") or self._rejected.get((who, kind), "")

    def take_reply(self, reply: SummaryReply, *, chat_adapter: bool) -> None:
        """Record a reply, and the replies beside it."""
        for error in (reply.error, *(other.error for other in reply.beside)):
            if error:
                self._failed.setdefault(self._who(chat_adapter), error)

    def take_outcome(self, outcome: Outcome, kind: Kind, *, chat_adapter: bool, asked: bool) -> None:
        """Record the outcome of the replies; `asked`: whether there were any."""
        why = ""
        if isinstance(outcome, Failed) and outcome.by_writer:
            why = outcome.reason
        elif isinstance(outcome, Work):
            why = outcome.details.summary_detail or outcome.details.failure or ""
        if why:
            self._rejected.setdefault((self._who(chat_adapter), kind), why)
            self.wrote_none = self.wrote_none or (asked and self._who(chat_adapter) not in self._failed)

    def _who(self, chat_adapter: bool) -> bool:
        return chat_adapter and not self._are_one
