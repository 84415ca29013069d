"""A chat's rules: loaded as tagged messages, and read again when their files change (R-549, lesson 10)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from codecompanion.errors import InputError, StoreError
from codecompanion.model.messages import RULES_TAG, Message, with_changes
from codecompanion.model.view import View
from codecompanion.rules.discovery import repository_of
from codecompanion.rules.groups import MayRead, RulesItem, RulesLoaded, autoload, load_named, reread, rules_text
from codecompanion.session.permits import Permits, read_permits
from codecompanion.session.services import Services
from codecompanion.store.store import durable

_KEPT = (
    "Rules {path} have changed, outside of the repository. The chat keeps the version you allowed; a new chat asks"
    " about the new one."
)


class RuleKeeper:
    """Knows which files the rules of one chat came from."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._items: dict[str, RulesItem] = {}
        self._told: frozenset[str] = frozenset()
        self.held_back: tuple[RulesItem, ...] = ()
        """Files outside of the repository that the user has not been asked about, or has not answered."""

    async def autoload(self, root: Path) -> tuple[list[Message], tuple[str, ...]]:
        """Return the rules every new chat starts with, and what could not be read.

        What a project leads to outside of its repository is read only when the user asked for it as it is now;
        `held_back` are the others (`session.attachments.outside_rules`).
        """
        permits = await asyncio.to_thread(self._permits, root)
        loaded = await asyncio.to_thread(autoload, self._services.settings.rules, root, _allowed_by(permits))
        self._hold_back(loaded, permits)
        return self._messages(loaded.items), loaded.problems

    async def look_outside(self, root: Path) -> None:
        """Find what is held back of a chat that was stored."""
        permits = await asyncio.to_thread(self._permits, root)
        self._hold_back(
            await asyncio.to_thread(autoload, self._services.settings.rules, root, _allowed_by(permits)), permits
        )

    async def read_outside(
        self, asked: Sequence[RulesItem], root: Path, *, remember: bool
    ) -> tuple[list[Message], tuple[str, ...]]:
        """Return the rules that were asked about, as they were then, and what could not be read.

        What they lead to themselves, and what has changed since, is held back in its turn.
        """
        permits = await asyncio.to_thread(self._permits, root)
        has = [item for item in self._items.values() if item.outside]
        allowed = permits.with_answer(_files((*has, *asked)), allowed=True)
        loaded = await asyncio.to_thread(autoload, self._services.settings.rules, root, _allowed_by(allowed))
        if remember:
            await self._keep(root, permits.with_answer(_files(asked), allowed=True))
        known = frozenset(item.real for item in self._items.values())
        self._hold_back(loaded, allowed)
        return self._messages(item for item in loaded.items if item.real not in known), loaded.problems

    async def refuse(self, asked: Sequence[RulesItem], root: Path) -> None:
        """Keep that these files are not to be read as they are."""
        permits = await asyncio.to_thread(self._permits, root)
        self.held_back = ()
        await self._keep(root, permits.with_answer(_files(asked), allowed=False))

    async def add_group(self, group: str, root: Path) -> tuple[list[Message], tuple[str, ...]]:
        """Return the rules of a group the chat does not have yet, and what could not be read.

        Without any there is one sentence: the chat has them all.

        Raises:
            InputError: the group holds nothing at all; says why.
        """
        known = frozenset(item.real for item in self._items.values())
        # What the chat has is read, too: it may include a file that was held back.
        loaded = await asyncio.to_thread(load_named, self._services.settings.rules, group, root)
        fresh = [item for item in loaded.items if item.real not in known]
        if not fresh:
            if loaded.items:
                names = ", ".join(item.path for item in loaded.items)
                return [], (f"Already attached, nothing changed: {names}.",)
            raise InputError(_nothing_found(group, loaded))
        outside = [item for item in fresh if item.outside]
        if outside:
            permits = await asyncio.to_thread(self._permits, root)
            await self._keep(root, permits.with_answer(_files(outside), allowed=True))
            read = frozenset(item.real for item in outside)
            self.held_back = tuple(item for item in self.held_back if item.real not in read)
        return self._messages(fresh), loaded.problems

    async def changed(self, view: View) -> tuple[tuple[Message, ...], tuple[str, ...]]:
        """Return the rule messages whose file has changed, with their new text, and new problems of reading.

        What was allowed of a file outside of the repository is its text at that time: the next chat asks again.
        """
        if not self._items:
            return (), ()
        again = await asyncio.to_thread(reread, tuple(self._items.values()))
        own = tuple(item for item in again.items if not item.outside)
        self._items.update({item.path: item for item in own})
        kept = (_KEPT.format(path=item.path) for item in again.items if item.outside)
        problems = (*again.problems, *kept)
        new_problems = tuple(problem for problem in problems if problem not in self._told)
        self._told = frozenset(problems)
        return self._replacements(view, own), new_problems

    async def resume(self, view: View, root: Path) -> tuple[Message, ...]:
        """Find the files of a restored chat's rules again; return the messages whose text is out of date."""
        labels = {message.path for message in view.messages if message.tag == RULES_TAG}
        if not labels:
            return ()
        rules = self._services.settings.rules
        for group in rules.groups:
            loaded = await asyncio.to_thread(load_named, rules, group, root)
            self._items.update({item.path: item for item in loaded.items if item.path in labels})
        return self._replacements(view, self._items.values())

    async def follow(self, view: View, root: Path) -> None:
        """Watch the files of the rules in the view and no others: an undo brought some back, or took some out."""
        labels = {message.path or "" for message in view.messages if message.tag == RULES_TAG}
        self.forget(self._items.keys() - labels)
        if labels - self._items.keys():
            # What has changed in them is taken in before the next request.
            await self.resume(view, root)

    def forget(self, labels: Iterable[str]) -> None:
        """Stop watching files whose rules were taken out of the chat."""
        for label in labels:
            self._items.pop(label, None)

    def _hold_back(self, loaded: RulesLoaded, permits: Permits) -> None:
        known = frozenset(item.real for item in self._items.values())
        unknown = (item for item in loaded.held_back if item.real not in known)
        self.held_back = tuple(item for item in unknown if permits.state_of(item.real, item.sha256) == "unasked")

    def _permits(self, root: Path) -> Permits:
        return read_permits(self._services.store.load_permits(str(repository_of(root))))

    async def _keep(self, root: Path, permits: Permits) -> None:
        with contextlib.suppress(StoreError):  # the store says so itself; it is asked again then
            await durable(self._services.store.save_permits(str(repository_of(root)), permits.as_text()))

    def _messages(self, items: Iterable[RulesItem]) -> list[Message]:
        made = []
        for item in items:
            self._items[item.path] = item
            text = rules_text(item.path, item.text)
            made.append(
                Message(id=self._services.new_token(), role="user", tag=RULES_TAG, path=item.path, content=text)
            )
        return made

    def _replacements(self, view: View, items: Iterable[RulesItem]) -> tuple[Message, ...]:
        fresh = {item.path: rules_text(item.path, item.text) for item in items if not item.outside}
        return tuple(
            with_changes(message, content=fresh[message.path])
            for message in view.messages
            if message.tag == RULES_TAG and message.path in fresh and message.text != fresh[message.path]
        )


def _nothing_found(group: str, loaded: RulesLoaded) -> str:
    """Return why a group, loaded whole, has nothing."""
    if loaded.problems:
        return " ".join(loaded.problems)
    return f"The rules {group!r} have no file here; expected one of {', '.join(loaded.missing) or 'its files'}."


def _files(items: Iterable[RulesItem]) -> Iterable[tuple[str, str]]:
    return ((item.real, item.sha256) for item in items)


def _allowed_by(permits: Permits) -> MayRead:
    return lambda item: permits.state_of(item.real, item.sha256) == "allowed"
