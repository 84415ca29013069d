"""Tracks the sources in a chat's view that restrict its grants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from codecompanion.model.fold import Fold
from codecompanion.model.messages import Message, Source
from codecompanion.model.provenance import (
    COMMAND,
    FILE,
    SourcesSoFar,
    described,
    is_untrusted,
    made_of,
    named,
    of_tool,
    read_sources,
    union,
)
from codecompanion.session.history.chat_log import ChatLog
from codecompanion.tools.tool import Narrowed

NOW_IN_THE_CHAT = "the chat now has text from {source}"
MAX_NAMED = 3
"""Maximum number of sources listed by name; a single source above the limit is named rather than counted."""
TRUST_IT = " (:CodeCompanion trust)"


class Narrowing:
    """Tracks the sources in one chat's view; reads only new messages, or all of them after a change of the view."""

    def __init__(self, log: ChatLog, root: Callable[[], Path], trusts: Callable[[str], bool]) -> None:
        """Initialise the tracker; `trusts` returns whether the user trusts a folder."""
        self._log, self._root, self._trusts = log, root, trusts
        self._fold = Fold[Message, SourcesSoFar](SourcesSoFar(), read_sources)
        self._turn, self._of_turn = "", tuple[Source, ...]()
        self.has_changed_files = False
        """Whether the chat has changed a file since text that restricts its grants first arrived."""

    def sources(self) -> tuple[Source, ...]:
        """Return the sources in the view that restrict grants."""
        root = str(self._root())
        found = self._fold.of(self._log.view.messages).live
        return tuple(source for source in found if is_untrusted(source, self._trusts, root))

    def narrows(self, source: Source) -> bool:
        """Return whether text from the source restricts the grants of this chat."""
        return is_untrusted(source, self._trusts, str(self._root()))

    def of_turn(self, turn_id: str) -> tuple[Source, ...]:
        """Return the sources that restrict grants now, plus those read earlier in the turn, which count until it ends.

        A folder that the user has trusted since is left out.
        """
        earlier = self._of_turn if turn_id == self._turn else ()
        found = union(self.sources(), (source for source in earlier if self.narrows(source)))
        self._turn, self._of_turn = turn_id, self._named(found)
        return found

    def because(self) -> str:
        """Return why grants are restricted in the current turn, or "" if they are not."""
        return self._told(self.of_turn(self._turn))

    def narrowed(self, turn_id: str) -> Narrowed:
        """Return how grants are restricted for calls of the turn."""
        sources = self.of_turn(turn_id)
        self.has_changed_files = self.has_changed_files and bool(sources)
        servers = {source.name for source in sources} if all(one.kind == "server" for one in sources) else set()
        return Narrowed(
            because=self._told(sources),
            only_server=servers.pop() if len(servers) == 1 else "",
            has_changed_files=self.has_changed_files,
        )

    def of_messages(self, messages: Sequence[Message]) -> tuple[Source, ...]:
        """Return the restricting sources of these messages, including those of cleared text."""
        root = str(self._root())
        found = made_of(messages, frozenset(message.id for message in messages))
        return self.kept(tuple(source for source in found if is_untrusted(source, self._trusts, root)))

    def kept(self, sources: Sequence[Source]) -> tuple[Source, ...]:
        """Return the sources as stored with the chat, with the folder's path added to file sources."""
        root = str(self._root())
        return tuple(named("file", source.name or root) if source.kind == "file" else source for source in sources)

    def to_log(self, tool: str, sources: tuple[Source, ...]) -> tuple[Source, ...]:
        """Return a result's sources for the log: an untrusted folder's path, and no sources the tool implies."""
        if not self._trusts(str(self._root())):
            sources = self._named(sources)
        return () if sources == (of_tool(tool),) else sources

    def _named(self, sources: tuple[Source, ...]) -> tuple[Source, ...]:
        """Return the sources with the folder's path added, because a chat's workspace may change."""
        root = str(self._root())
        return tuple(named("file", root) if one in (FILE, COMMAND) else one for one in sources)

    def _told(self, sources: tuple[Source, ...]) -> str:
        if not sources:
            return ""
        said = tuple(dict.fromkeys(self._described(source) for source in sources))
        names = [*said[:MAX_NAMED], f"{len(said) - MAX_NAMED} more"] if len(said) > MAX_NAMED + 1 else list(said)
        listed = " and ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else names[0]
        told = NOW_IN_THE_CHAT.format(source=listed)
        of_folder = all(one.kind in ("file", "command") and one.name in ("", str(self._root())) for one in sources)
        return f"{told}{TRUST_IT}" if of_folder else told

    def _described(self, source: Source) -> str:
        if source.kind == "file" or source == COMMAND:
            folder = source.name or named("file", str(self._root())).name
            from codecompanion.formats.short_path import short_path  # not needed at startup

            return f"the untrusted folder {short_path(Path(folder))}"
        return described(source)
