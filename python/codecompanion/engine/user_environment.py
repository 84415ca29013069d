"""The user's environment as the host knows it: the process's own, plus variables withheld at start, in memory.

A process's environment can be read by every program of the same user, so the host is started without values that look
like secrets (`secret_environment.lua`) and receives them in a message. None of them is put into `os.environ`: the
programs that the host starts would inherit it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, MutableMapping

from codecompanion.tools.commands.command_environment import HiddenVariables, hidden_names
from codecompanion.workspace.secret_text import holds_secret


class UserEnvironment(Mapping[str, str]):
    """Read like `os.environ`. Values from messages take precedence over those of the process's start."""

    def __init__(self, own: Mapping[str, str] | None = None) -> None:
        """`own`: the environment of this process."""
        self._own = os.environ if own is None else own
        self._told: dict[str, str] = {}
        self._gone: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        """Show the number of variables, never a value."""
        return f"UserEnvironment({len(self)} variables, {len(self._told)} of them told)"

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

    def told_names(self) -> list[str]:
        """Return the names of the variables this process was started without, sorted."""
        return sorted(name for name in self._told if name not in self._own)


def withdraw_secrets(own: MutableMapping[str, str]) -> UserEnvironment:
    """Remove values that look like secrets from this process's environment, and return the original environment."""
    known = UserEnvironment(own)
    secrets = {name: own[name] for name in hidden_names(own, HiddenVariables(is_secret=holds_secret))}
    known.take(secrets)
    for name in secrets:
        del own[name]
    return known
