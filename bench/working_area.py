"""The working area of a measurement: fresh folders, stored chats that are created once, number of repetitions."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.histories import messages
from bench.plugins import Side
from codecompanion.model.messages import Message


@dataclass
class Room:
    """Shared by all measurements of a bench run. `quick`: only check that each works, with at most two repetitions."""

    folder: Path
    quick: bool = False
    _made: dict[Any, Any] = field(default_factory=dict)
    _number: Any = field(default_factory=itertools.count)

    def times(self, number: int) -> range:
        """Return the range of repetitions: `number`, or at most two in a quick run."""
        return range(min(number, 2) if self.quick else number)

    def fresh(self, name: str) -> Path:
        """Return a new folder."""
        folder = self.folder / f"{name}-{next(self._number)}"
        folder.mkdir()
        return folder

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return the value under this key, created on first use."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def history(self, number: int, chars: int = 600) -> list[Message]:
        """Return a history of messages; each history is created once."""
        made: list[Message] = self.once(("history", number, chars), lambda: messages(number, chars))
        return made

    def chat(self, side: Side, root: Path, number: int, chars: int = 600) -> str:
        """Put a stored chat of `number` messages below `root`; return its name for opening, or "" for a new chat."""
        if not number:
            return ""

        def store() -> tuple[Path, str]:
            source = self.fresh("stored")
            return source, side.store(source, self.history(number, chars))

        source, chat = self.once((side.name, number, chars), store)
        shutil.copytree(source, root, dirs_exist_ok=True)
        return str(chat)

    def forget(self, root: Path) -> None:
        """Remove a folder whose editor has ended."""
        shutil.rmtree(root, ignore_errors=True)
