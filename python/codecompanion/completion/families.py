"""Families of fill-in-the-middle models: their tokens, and the family of each model (R-258, R-260, R-261).

The table is data, `families.toml`. The family `deepseek` has DeepSeek's published tokens, `deepseek-ascii` the tokens
from the document's source; which set works depends on the server's tokenizer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

import msgspec

from codecompanion.errors import ConfigError
from codecompanion.formats import typed
from codecompanion.formats.package_table import package_table

PLAIN = "plain"
"""Family name for models without fill-in-the-middle support, which only complete a prefix (R-259)."""


class Repository(msgspec.Struct, frozen=True):
    """The tokens before the project name and before each file of the project."""

    name: str
    file: str


class Family(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A family of code models. All tokens are "" for models that cannot fill in the middle.

    `words`: substrings of model names that identify the family. `escaped`: further tokens that must be escaped in text
    from files.
    """

    name: str
    words: tuple[str, ...] = ()
    prefix: str = ""
    suffix: str = ""
    middle: str = ""
    eot: str = ""
    escaped: tuple[str, ...] = ()
    repository: Repository | None = None

    @property
    def fills_in(self) -> bool:
        """Return whether the model sees the text after the cursor."""
        return bool(self.middle)

    @property
    def tokens(self) -> tuple[str, ...]:
        """Return all strings that the model treats as special tokens."""
        repository = (self.repository.name, self.repository.file) if self.repository else ()
        own = (self.prefix, self.suffix, self.middle, self.eot, *repository, *self.escaped)
        return tuple(filter(None, own))


class _Stops(msgspec.Struct, frozen=True):
    fim: tuple[str, ...]
    plain: tuple[str, ...]


class _Table(msgspec.Struct, frozen=True):
    family: tuple[Family, ...]
    stops: _Stops


def families() -> tuple[Family, ...]:
    """Return all families, in the order in which their words are tried."""
    return _table().family


def family_of(model: str) -> Family:
    """Return the family of a model by its name; `PLAIN` if the model cannot fill in the middle (R-261)."""
    name = model.lower()
    found = (family for family in families() if any(word in name for word in family.words))
    return next(found, Family(name=PLAIN))


def family_named(name: str) -> Family:
    """Return the family that has this name or lists it in `words`, such as `codestral` (R-258).

    Raises:
        ConfigError: the family does not exist; the message lists the known families.
    """
    if name == PLAIN:
        return Family(name=PLAIN)
    for family in families():
        if name.lower() in (family.name, *family.words):
            return family
    known = ", ".join(dict.fromkeys((*(name for one in families() for name in (one.name, *one.words)), PLAIN)))
    raise ConfigError("family", f"there is no family {name!r}", known)


def family_with(tokens: Mapping[str, str]) -> Family:
    """Return a user-defined family (R-260) with the tokens `prefix`, `suffix`, `middle` and `eot`.

    Raises:
        ConfigError: a token is missing, or a key is unknown.
    """
    expected = ("prefix", "suffix", "middle", "eot")
    wrong = {*expected} ^ {name for name, token in tokens.items() if token}
    if wrong:
        raise ConfigError("completion.tokens", f"{min(wrong)} is missing or unknown", ", ".join(expected))
    prefix, suffix, middle, eot = (tokens[name] for name in expected)
    return Family(name="own", prefix=prefix, suffix=suffix, middle=middle, eot=eot)


def stops_of(family: Family) -> tuple[str, ...]:
    """Return the stop sequences for replies of this family (R-259)."""
    stops = _table().stops
    return (family.eot, *stops.fim) if family.fills_in else stops.plain


def without_tokens(text: str, family: Family) -> str:
    """Return the text with the family's special tokens broken: the last character of each becomes a space (R-260).

    The length is unchanged and the token stays readable: `<|fim_prefix|>` becomes `<|fim_prefix| `.
    """
    pattern = _tokens_pattern(family.tokens)
    return text if pattern is None else pattern.sub(_broken, text)


def _broken(token: re.Match[str]) -> str:
    return f"{token[0][:-1]} "


@cache
def _tokens_pattern(tokens: tuple[str, ...]) -> re.Pattern[str] | None:
    return re.compile("|".join(map(re.escape, sorted(tokens, key=len, reverse=True)))) if tokens else None


@cache
def _table() -> _Table:
    return typed.convert(package_table("completion/families.toml"), _Table)
