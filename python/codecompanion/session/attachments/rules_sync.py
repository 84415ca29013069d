"""The rules of a chat: loaded as tagged messages, and read again when their files change (R-549, lesson 10).

Rules of the workspace are loaded once the workspace is trusted (`session.trust`), and removed from the next request
when the user revokes that trust.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

from codecompanion.errors import InputError
from codecompanion.model.messages import RULES_TAG, Message, with_changes
from codecompanion.model.view import View
from codecompanion.rules.groups import MayRead, RulesItem, RulesLoaded, autoload, load_named, reread, rules_text
from codecompanion.session.services import Services
from codecompanion.session.trust.decisions import FileHash
from codecompanion.session.trust.folders import folder_of

_KEPT = "{path} has changed. The chat keeps the version you trusted; :CodeCompanion trust shows the new one."


class RuleKeeper:
    """Tracks the files that the rules of one chat were read from."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._items: dict[str, RulesItem] = {}
        self._given: set[str] = set()
        """Real paths of rules that the chat had or could have had; rules that the user removed are not added again."""
        self._told: frozenset[str] = frozenset()

    async def autoload(self, root: Path) -> tuple[list[Message], tuple[str, ...]]:
        """Return the trusted rules for every new chat, and sentences about files that could not be read."""
        loaded = await asyncio.to_thread(autoload, self._services.settings.rules, root, self._may_read(root))
        return self._messages(item for item in loaded.items if item.real not in self._given), loaded.problems

    async def know(self, root: Path) -> None:
        """Record the rules that a stored chat could have had, so that they are not added again."""
        loaded = await asyncio.to_thread(autoload, self._services.settings.rules, root, self._may_read(root))
        self._given |= {item.real for item in loaded.items}

    async def add_group(self, group: str, root: Path) -> tuple[list[Message], tuple[str, ...]]:
        """Return the rules of a group that the chat lacks, and sentences about files that could not be read.

        The user asked for these rules, so their current content is trusted. If the chat already has all of them, return
        a sentence that names them.

        Raises: InputError: the group is empty; the message says why.
        """
        known = frozenset(item.real for item in self._items.values())
        # Rules that the chat already has are read too: the group may include a file that was held back.
        loaded = await asyncio.to_thread(load_named, self._services.settings.rules, group, root)
        fresh = [item for item in loaded.items if item.real not in known]
        if not fresh:
            if loaded.items:
                names = ", ".join(item.path for item in loaded.items)
                return [], (f"Already attached: {names}.",)
            raise InputError(_nothing_found(group, loaded))
        may_read = self._may_read(root)
        asked = [FileHash(item.real, item.sha256) for item in fresh if item.of_folder and not may_read(item)]
        if asked:
            await self._services.trust.trust_files(folder_of(root), asked)
        return self._messages(fresh), loaded.problems

    async def changed(self, view: View, root: Path) -> tuple[tuple[Message, ...], tuple[str, ...]]:
        """Return the rule messages of changed files with their new text, and new problems.

        New text of a file that is trusted by its content is held back; the chat keeps the trusted text.
        """
        if not self._items:
            return (), ()
        again = await asyncio.to_thread(reread, tuple(self._items.values()))
        may_read = self._may_read(root)
        taken = tuple(item for item in again.items if not item.of_folder or may_read(item))
        kept = (_KEPT.format(path=item.path) for item in again.items if item not in taken and may_read(self._old(item)))
        problems = (*again.problems, *kept)
        self._items.update({item.path: item for item in taken})
        new_problems = tuple(problem for problem in problems if problem not in self._told)
        self._told = frozenset(problems)
        return self._replacements(view, taken), new_problems

    def distrusted(self, view: View, root: Path) -> tuple[Message, ...]:
        """Return the rule messages of files that are no longer trusted."""
        gone = {path for path in self._items if self.is_distrusted(path, root)}
        self._given -= {self._items[path].real for path in gone}  # once trusted again, they are added again
        return tuple(one for one in view.messages if one.tag == RULES_TAG and one.path in gone) if gone else ()

    def is_distrusted(self, label: str, root: Path) -> bool:
        """Return whether a rule file of the chat may no longer be read."""
        item = self._items.get(label)
        return item is not None and item.of_folder and not self._may_read(root)(item)

    async def resume(self, view: View, root: Path) -> tuple[Message, ...]:
        """Find the files of a restored chat's rules again.

        Return the rule messages that are out of date, with the new text.
        """
        labels = {message.path for message in view.messages if message.tag == RULES_TAG}
        if not labels:
            return ()
        rules, may_read, fresh = self._services.settings.rules, self._may_read(root), list[RulesItem]()
        for group in rules.groups:
            loaded = await asyncio.to_thread(load_named, rules, group, root, (), may_read)
            found = [item for item in loaded.items if item.path in labels]
            fresh += found
            # A file that was trusted with other content keeps its text in the chat; the others are `distrusted`.
            held = [item for item in loaded.held_back if item.path in labels and not self._was_trusted(item, root)]
            self._items.update({item.path: item for item in (*held, *found)})
        return self._replacements(view, fresh)

    async def follow(self, view: View, root: Path) -> None:
        """Watch exactly the files of the rules in the view, after an undo has added or removed rules."""
        labels = {message.path or "" for message in view.messages if message.tag == RULES_TAG}
        self.forget(self._items.keys() - labels)
        if labels - self._items.keys():
            # Their changes are applied before the next request.
            await self.resume(view, root)

    def forget(self, labels: Iterable[str]) -> None:
        """Stop watching the files of rules that were removed from the chat."""
        for label in labels:
            self._items.pop(label, None)

    def _may_read(self, root: Path) -> MayRead:
        trust = self._services.trust
        return lambda item: trust.allows(root, Path(item.real), item.sha256)

    def _was_trusted(self, item: RulesItem, root: Path) -> bool:
        folder = str(folder_of(root))
        return any((one.folder, one.path) == (folder, item.real) for one in self._services.trust.decisions().files)

    def _old(self, item: RulesItem) -> RulesItem:
        return self._items[item.path]

    def _messages(self, items: Iterable[RulesItem]) -> list[Message]:
        made = []
        for item in items:
            self._items[item.path] = item
            self._given.add(item.real)
            text = rules_text(item.path, item.text)
            made.append(
                Message(id=self._services.new_token(), role="user", tag=RULES_TAG, path=item.path, content=text)
            )
        return made

    def _replacements(self, view: View, items: Iterable[RulesItem]) -> tuple[Message, ...]:
        fresh = {item.path: rules_text(item.path, item.text) for item in items}
        return tuple(
            with_changes(message, content=fresh[message.path])
            for message in view.messages
            if message.tag == RULES_TAG and message.path in fresh and message.text != fresh[message.path]
        )


def _nothing_found(group: str, loaded: RulesLoaded) -> str:
    """Return why a group yields no rules although it was fully loaded."""
    if loaded.problems:
        return " ".join(loaded.problems)
    return f"The rules {group!r} have no file here; expected one of {', '.join(loaded.missing) or 'its files'}."
