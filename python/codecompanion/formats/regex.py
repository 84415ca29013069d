"""Compiles regular expressions on first use.

The package has more than two hundred at module level, of which a turn uses a few dozen; compiling all took a quarter of
the host's start-up time. `tests/unit/test_patterns.py` compiles each, so that an error in one is found there.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class LazyPattern:
    """Stands in for a compiled pattern. The first use of a method caches it here, so later uses have no overhead."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def compiled(self) -> re.Pattern[Any]:
        """Return the compiled pattern."""
        return re.compile(self.pattern, self._flags)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(self.compiled(), name)
        setattr(self, name, found)
        return found


def regex(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern like that of `re.compile`, compiled on first use."""
    return cast("re.Pattern[AnyStr]", LazyPattern(text, flags))
