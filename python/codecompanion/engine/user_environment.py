"""Provides the user's environment: that of the process, plus the variables withheld at start, kept in memory.

Every program of the same user can read a process's environment, so the host is started without values that look like
secrets (`secret_environment.lua`) and receives them in a message. They are never put into `os.environ`, which the
programs that the host starts would inherit.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, MutableMapping

from codecompanion.tools.commands.command_environment import HiddenVariables, hidden_names
from codecompanion.workspace.secret_text import contains_secret


class UserEnvironment(Mapping[str, str]):
    """The user's environment, read like `os.environ`. Values from messages override those of the process."""

    def __init__(self, own: Mapping[str, str] | None = None) -> None:
        """Take `own`, the environment of this process."""
        self._own = os.environ if own is None else own
        self._told: dict[str, str] = {}
        self._gone: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        """Show the number of variables, never a value."""
        return f"UserEnvironment({len(self)} variables, {len(self._told)} from messages)"

    def __getitem__(self, name: str) -> str:
        told = self._told.get(name)
        if told is not None:
            return told
        if name in self._gone:
            raise KeyError(name)
        return self._own[name]

    def __iter__(self) -> Iterator[str]:
        told, gone = self._told, self._gone
        yield from told
        yield from (name for name in self._own if name not in told and name not in gone)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def take(self, changed: Mapping[str, str], gone: Iterable[str] = ()) -> frozenset[str]:
        """Apply the editor's changes; return the names whose values changed."""
        removed = frozenset(gone) - frozenset(changed)
        differ = {name for name, value in changed.items() if self.get(name) != value}
        differ |= {name for name in removed if name in self}
        self._told = {name: value for name, value in {**self._told, **changed}.items() if name not in removed}
        self._gone = (self._gone | removed) - frozenset(changed)
        return frozenset(differ)

    def withheld_names(self) -> list[str]:
        """Return the sorted names of the variables that this process was started without."""
        return sorted(name for name in self._told if name not in self._own)


def withdraw_secrets(own: MutableMapping[str, str]) -> UserEnvironment:
    """Remove values that look like secrets from this process's environment, and return the original environment."""
    known = UserEnvironment(own)
    secrets = {name: own[name] for name in hidden_names(own, HiddenVariables(is_secret=contains_secret))}
    known.take(secrets)
    for name in secrets:
        del own[name]
    return known
