"""Detects secrets in text: keys of known formats, private keys, assigned passwords.

`secret_files.py` detects secrets by file name; this module by content. It is pure, and linear in the text's length.
Every pattern is data with its source (`secret_text.toml`). Source code and prose are sent without the secret values;
any other file that contains a secret is withheld as a whole, because its other lines may contain undetected secrets.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import cache

import msgspec

from codecompanion.formats import typed
from codecompanion.formats.package_table import package_table
from codecompanion.formats.regex import LazyPattern, regex
from codecompanion.workspace.secret_values import (
    is_mixed,
    is_mixed_case,
    is_password,
    is_placeholder,
    is_random,
    strength_of,
)

HIDDEN = "[hidden]"
MAX_CHARS = 1_000_000
"""Maximum number of characters to search; in longer text, only the beginning and the end are searched."""
_END_CHARS = 200_000
_MAX_FOUND = 2_000
_KEPT_CHARS = 1_000
_KEPT_TEXTS = 4_000
"""Number of longer strings whose secrets are cached by hash, because each question reads the same files."""
_INDEXED = 2
"""Length of the prefix by which keys are indexed, in characters."""
_MAX_IN_RUN = 16
"""Maximum number of names examined in one unbroken run of characters (`a=b=c=`), in which all values end together."""
_MAX_VALUE = 600
_MIN_DISTINCT = 6
_MIN_CHOSEN = 8
"""Minimum length of a password in a sentence; shorter candidates are mostly words with a number."""
_PRIVATE_KEYS = frozenset({"PEM private key", "PuTTY private key", "OpenVPN static key"})
_LETTERS = regex(r"[a-z]{2,}")
_NAME_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")


class FoundSecret(msgspec.Struct, frozen=True, order=True):
    """The position of a secret, in characters, and its type, such as "GitHub token"."""

    start: int
    end: int
    kind: str


class _Key(msgspec.Struct, frozen=True):
    name: str
    begins: str
    rest: str
    source: str
    random: bool = False


class _Shape(msgspec.Struct, frozen=True, rename={"place": "in"}):
    name: str
    needs: str
    pattern: str
    source: str
    place: str = ""
    judge: str = ""


class _Rules(msgspec.Struct, frozen=True):
    beginnings: tuple[str, ...]
    by_letters: dict[str, tuple[tuple[str, _Key, re.Pattern[str]], ...]]
    shapes: tuple[tuple[_Shape, tuple[str, ...], re.Pattern[str]], ...]
    words_of_needs: dict[str, str]
    code: frozenset[str]
    unquoted: frozenset[str]
    prose: frozenset[str]
    code_names: frozenset[str]


@cache
def _rules() -> _Rules:
    table = package_table("workspace/secret_text.toml")
    keys = typed.convert(table["keys"], tuple[_Key, ...])
    by_beginning = dict[str, tuple[_Key, re.Pattern[str]]]()
    for key in keys:
        pattern = _lazy(key.rest)
        by_beginning |= dict.fromkeys(key.begins.split(), (key, pattern))
    by_letters = dict[str, tuple[tuple[str, _Key, re.Pattern[str]], ...]]()
    for beginning, (key, pattern) in sorted(by_beginning.items(), key=lambda one: -len(one[0])):
        first = beginning[:_INDEXED]
        by_letters[first] = (*by_letters.get(first, ()), (beginning, key, pattern))
    shapes = typed.convert(table["shapes"], tuple[_Shape, ...])
    needs = {one: tuple(one.needs.split("|")) if one.needs != "|" else ("|",) for one in shapes}
    files = {name: frozenset(text.split()) for name, text in table["files"].items()}
    return _Rules(
        beginnings=tuple(by_beginning),
        by_letters=by_letters,
        shapes=tuple((one, needs[one], _lazy(one.pattern)) for one in shapes),
        words_of_needs={
            need: max(_LETTERS.findall(need), key=len, default="") for every in needs.values() for need in every
        },
        **files,
    )


def _lazy(pattern: str) -> re.Pattern[str]:
    return LazyPattern(pattern, 0)  # type: ignore[return-value]


# ---- interface


def find_secrets(text: str, path: str = "") -> tuple[FoundSecret, ...]:
    """Return the secrets in a string in order, without nested ones; `path` shows the type of the file."""
    if len(text) > MAX_CHARS:
        ahead, end = text[: MAX_CHARS - _END_CHARS], len(text) - _END_CHARS
        later = (FoundSecret(one.start + end, one.end + end, one.kind) for one in find_secrets(text[end:], path))
        return (*find_secrets(ahead, path), *later)
    kind = _kind_of(path, text)
    if len(text) < _KEPT_CHARS:
        return _find(text, kind)
    key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest(), kind
    known = _found.get(key)
    if known is None:
        known = _find(text, kind)
        if len(_found) >= _KEPT_TEXTS:
            _found.clear()
        _found[key] = known
    return known


def contains_secret(text: str) -> bool:
    """Return whether a string without a file name, such as the value of a variable, contains a secret."""
    return bool(find_secrets(text))


def hide_secrets(text: str, path: str = "") -> str:
    """Return the text with the value of every secret replaced by `[hidden]`; line breaks are kept."""
    return _without(text, find_secrets(text, path))


def _without(text: str, found: tuple[FoundSecret, ...]) -> str:
    if not found:
        return text
    parts, end = list[str](), 0
    for one in found:
        value = text[one.start : one.end]
        parts += (text[end : one.start], *(["\n".join([HIDDEN] * (value.count("\n") + 1))]))
        end = one.end
    return "".join((*parts, text[end:]))


def is_withheld(path: str) -> bool:
    """Return whether a file with this name is withheld as a whole if it contains a secret, as data files are."""
    return _kind_of(path, "") == "data"


def without_secrets(text: str, path: str) -> tuple[str, str]:
    """Return a file's text as it may be sent without asking, and the reason to withhold the whole file, or ""."""
    if is_withheld(path):
        return text, why_secret(text, path)
    return hide_secrets(text, path), ""


def hide_keys(text: str) -> str:
    """Return the text without private keys and provider-specific keys, which no one prints on purpose."""
    lowered = text.lower() if text.isascii() else _lowered(text)
    found = [*_keys(text), *_ends_of_keys(text), *_shapes(text, lowered, "code", only=_PRIVATE_KEYS)]
    return _without(text, _apart(sorted(found)))


def why_secret(text: str, path: str = "") -> str:
    """Describe the first secret, as in "GitHub token on line 3"; "" if there is none."""
    found = find_secrets(text, path)
    if not found:
        return ""
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return f"{found[0].kind} on line {text.count(chr(10), 0, found[0].start) + 1}{more}"


# ---- detection

_found: dict[tuple[bytes, str], tuple[FoundSecret, ...]] = {}


def _find(text: str, kind: str) -> tuple[FoundSecret, ...]:
    lowered = text.lower() if text.isascii() else _lowered(text)
    found = sorted((*_keys(text), *_ends_of_keys(text), *_shapes(text, lowered, kind), *_assigned(text, lowered, kind)))
    return _apart(found[:_MAX_FOUND])


def _kind_of(path: str, text: str) -> str:
    """Return "code", "shell" (where unquoted values count), "prose" or "data"; text without a file name is prose."""
    rules, name = _rules(), path.rpartition("/")[2].lower()
    extension = name.rpartition(".")[2] if "." in name[1:] else ""
    if extension in rules.unquoted:
        return "shell"
    if extension in rules.code:
        return "code"
    if name in rules.code_names or name.startswith(("dockerfile", "containerfile")) or text.startswith("#!"):
        return "shell"
    return "prose" if not path or extension in rules.prose else "data"


def _lowered(text: str) -> str:
    """Return the text in lower case at the same length, although one capital letter (İ) would become two characters."""
    return text.replace("\u0130", "I").lower()


def _apart(found: list[FoundSecret]) -> tuple[FoundSecret, ...]:
    """Return the secrets without nested ones, and with overlapping ones merged."""
    apart = list[FoundSecret]()
    for one in found:
        if apart and one.start < apart[-1].end:
            if one.end > apart[-1].end:
                apart[-1] = FoundSecret(apart[-1].start, one.end, apart[-1].kind)
        else:
            apart.append(one)
    return tuple(apart)


_BEFORE_KEY = regex(r"[=/]")
_RUN = regex(r"(?<![A-Za-z0-9_])[A-Za-z0-9][\w.~$/+=%-]{11,}")
_PREFIXED = regex(
    r"(?<!sha256[=:-])(?<!sha384[=:-])(?<!sha512[=:-])(?!sha\d|md5|pk_|pub)"
    r"(?:[a-z][a-z0-9]{1,11}[_-]){1,3}(?=[A-Za-z0-9]{0,40}[A-Z])([A-Za-z0-9]{30,200})(?![\w/+=-])"
)
"""Matches a word, a separator, and random characters: the format of keys from unlisted providers."""
_MIN_PREFIXED_BITS = 4.0


def _keys(text: str) -> Iterator[FoundSecret]:
    """Yield the keys whose format identifies their provider."""
    rules = _rules()
    for start in _starts_of_keys(text):
        # The first letters rule out nearly all runs; only the rest are compared with all prefixes.
        letters = text[start : start + _INDEXED]
        may_begin = letters in rules.by_letters or letters[:1] in rules.by_letters
        if not may_begin or not text.startswith(rules.beginnings, start):
            if (match := _PREFIXED.match(text, start)) and is_mixed_case(match[1], _MIN_PREFIXED_BITS):
                yield FoundSecret(start, match.end(), "key with a prefix")
            continue
        longer = rules.by_letters.get(letters, ())
        for beginning, key, pattern in (*longer, *rules.by_letters.get(letters[:1], ())):
            if text.startswith(beginning, start) and (match := pattern.match(text, start + len(beginning))):
                value = match[0]
                if (
                    len(set(value)) >= _MIN_DISTINCT
                    and not is_placeholder(value)
                    and (not key.random or is_random(value))
                ):
                    yield FoundSecret(start, match.end(), key.name)
                    break


def _starts_of_keys(text: str) -> Iterator[int]:
    """Yield the positions where a key may start: at a run of key characters, after `NAME=`, or in the path of a URL."""
    for run in _RUN.finditer(text):
        start = run.start()
        yield start + (text[start - 1 : start] == "\\" and text[start] in "nrt")
        yield from (sign.end() for sign in _BEFORE_KEY.finditer(text, start, run.end()))


def _shapes(text: str, lowered: str, kind: str, only: frozenset[str] = frozenset()) -> Iterator[FoundSecret]:
    """Yield the secrets that are recognised by the text around them."""
    rules, known = _rules(), dict[str, bool]()
    words = lowered if only else "\n".join(set(_LETTERS.findall(lowered)))
    for shape, needs, pattern in rules.shapes:
        if (shape.place == "data" and kind != "data") or (shape.place == "lines" and kind not in ("data", "prose")):
            continue
        if only and shape.name not in only:
            continue
        for need in needs:
            if need not in known:
                known[need] = rules.words_of_needs[need] in words and need in lowered
        if not any(known[need] for need in needs):
            continue
        for match in pattern.finditer(text):
            value = "value" if "value" in pattern.groupindex else 1
            if match[value] and _fits_match(shape.judge, match):
                yield FoundSecret(match.start(value), match.end(value), shape.name)


def _fits_match(judge: str, match: re.Match[str]) -> bool:
    """Return whether the match of a shape is a secret, judging by its column names, if any, or else by its value."""
    groups = match.groupdict()
    return _has_secret_cell(groups["columns"], groups["value"]) if "columns" in groups else _fits(judge, match[1])


_CELL = regex(r"""\s*(?:'((?:[^'\n]|'')*)'|"([^"\n]*)"|([^,|\t\n()]*))\s*(?:[,|\t)]|$)""")
_ROW_END = regex(r"\n|\)\s{0,4},\s{0,4}\(")
_MAX_ROWS = 50


def _has_secret_cell(columns: str, rows: str) -> bool:
    """Return whether any row has a secret in a column whose name indicates secrets."""
    strengths = [strength_of(name) for name in _cells(columns)]
    if not any(strengths):
        return False
    return any(
        strength and _is_secret_value(strength, cell, is_quoted=True, kind="data")
        for row in _ROW_END.split(rows, _MAX_ROWS)[:_MAX_ROWS]
        for strength, cell in zip(strengths, _cells(row.strip(" (")), strict=False)
    )


def _cells(row: str) -> list[str]:
    return [match[match.lastindex or 0].strip("` ") for match in _CELL.finditer(row)]


def _fits(judge: str, value: str) -> bool:
    """Return whether a value has the form that the shape requires."""
    match judge:
        case "chosen":
            return is_password(value) and len(value) >= _MIN_CHOSEN
        case "mixed":
            return is_mixed_case(value)
        case "cookie":
            return any(is_random(part.rpartition("=")[2]) for part in value.split(";"))
        case "password" | "address" | "query" | "connection":
            return is_password(value) or (judge != "query" and is_random(value))
        case "token" | "header" | "base64":
            return is_random(value) or (judge == "base64" and not is_placeholder(value) and is_random(value, 2.5))
        case "random":
            return is_random(value)
        case "any":
            return any(len(part) > 5 and not is_placeholder(part) for part in value.split())
        case "logins":
            return "," in value and any(is_password(part.strip('" ')) for part in value.split("\n", 1)[0].split(","))
    return True


_END_OF_KEY = regex(r"-----END[ A-Z0-9_]{0,40}PRIVATE KEY")
_BEFORE_END = regex(r"""[A-Za-z0-9+/=\s"'\\,]{32,12000}""")


def _ends_of_keys(text: str) -> Iterator[FoundSecret]:
    """Yield the text before the last line of a private key, whose first line may be cut off."""
    if "PRIVATE KEY" in text:
        for end in _END_OF_KEY.finditer(text):
            if before := _BEFORE_END.match(text[max(0, end.start() - 12_000) : end.start()][::-1]):
                yield FoundSecret(end.start() - before.end(), end.start(), "PEM private key")


_KINDS = {"password": "password", "token": "key or token", "key": "key or token"}
_WORD = regex(
    r"pass(?:word|wd|phrase|code|wort)?|pwd|bindpw|senha|wachtwoord|kennwort|creds|psk|secret|token|key|auth|credential|salt|cookie|session|jwt|webhook|signature"
    r"|bearer|requirepass|dsn|_pat\b|master"
)
_SIGN = regex(
    r"""["'`\])]{0,3}[ \t]{0,8}(?::[ \t]{0,2}[&\w.<>\[\]'|?* ]{1,30}(?==))?[ \t]{0,12}"""
    r"""(?:=>|:=|\?=|\|\|=?|\?\?=?|:-|or\b|={1,3}|:|,|\(|[ ](?=["']))[ \t]{0,8}"""
    r"""(?:(?:String(?:::from)?|SecretStr|Buffer\.from|bytes|(?:base64\.)?b64decode|atob)\()?"""
    r"""(?:(?:[brufBRUF@$]|rb|br)(?=["']))?"""
)
_OPENING = regex(r"""(?:[\[({]\s{0,40}|[A-Za-z_][\w.]{0,40}\(\s{0,40}(?:[^()"'\n]{0,80})|default\s?=\s?|"(?=\\"))""")
"""Matches text allowed before a quoted value: a bracket with its line break, a call, an outer quote."""
_BESIDE = regex(
    r"""["']?,?\s{1,40}["']?value["']?\s{0,4}[:=]\s{0,4}["']?([^\s"',}]{6,400})"""
    r"""|["']\s{0,4},\s{0,40}"value"\s{0,4}:\s{0,4}"([^"\n]{6,400})\""""
    r"""|"\s{0,4}:\s{0,4}\{[^{}]{0,300}"value"\s{0,4}:\s{0,4}"([^"\n]{6,400})\""""
    r"""|["']?:[ \t]*(?:[|>][+-]?[ \t]*)?\n[ \t]+(?:-[ \t]+)?(?:\w{3,20}:[ \t]*)?"""
    r"""["']?([^\s"':]{8,400})["']?[ \t]*(?=\n|$)"""
)
"""Matches a value in a separate field or line: `name: X` and `value: …`, `X: {"value": …}`, a list below `X:`."""
_QUOTED = regex(r"""(?:"([^"\n]{4,600})"|'([^'\n]{4,600})'|`([^`\n]{4,600})`|\\"([^"\\\n]{4,600})\\")""")
_RUN_END = regex(r"""[\s"'`,;)(}{\]\[<>&|]|$""")
_UNQUOTED = regex(r"""([^\s"'`,;)(}{\]\[<>&|]{4,600})(?=[\s"'`,;}\])&]|$)""")
_SPACED = regex(
    r"""(?m)^[+-]?[ \t]*(?:(?:(?:[\w-]{1,20}[ \t]){1,3}set|set|setenv|env|export|let|\$env:)[ \t]+"""
    r"""(?:-\w{1,3}[ \t]+)?)?([A-Za-z_][\w.-]{2,60})"""
    r"""[ \t]+["']?([^\s"'=:(){};,]{6,600})["']?[ \t]*$""",
    re.IGNORECASE,
)


def _assigned(text: str, lowered: str, kind: str) -> Iterator[FoundSecret]:
    """Yield the values assigned to names that indicate secrets."""
    done, run_end, in_run = -1, -1, 0
    for word in _WORD.finditer(lowered):
        if word.end() <= done:
            continue
        start, done = _name_at(text, word.start(), word.end())
        strength = strength_of(text[start:done])
        if not strength:
            continue
        beside = _BESIDE.match(text, done)
        if beside and (group := beside.lastindex or 0) and (group < 4 or kind == "data"):
            if _is_secret_value(strength, beside[group], is_quoted=True, kind=kind):
                yield FoundSecret(beside.start(group), beside.end(group), _KINDS[strength])
            continue
        sign = _SIGN.match(text, done)
        if sign is None:
            continue
        if sign.end() >= run_end:
            end = _RUN_END.search(text, sign.end())
            run_end, in_run = end.start() if end else len(text), 0
        if run_end - sign.end() > _MAX_VALUE:
            continue
        in_run += 1
        if in_run > _MAX_IN_RUN:
            continue
        opening = _OPENING.match(text, sign.end())
        quoted = _QUOTED.match(text, sign.end()) or (_QUOTED.match(text, opening.end()) if opening else None)
        value = quoted or (None if kind == "code" else _UNQUOTED.match(text, sign.end()))
        between = sign[0].strip(" \t\"'")
        if quoted is None and kind == "code" and sign[0] == "=" and "_" in text[start:done]:
            value = _UNQUOTED.match(text, sign.end())  # `TOKEN=…` inside a string
        if value is None or (quoted is None and between not in ("=", ":", ":=", "=>", "?=")):
            continue
        name = text[start:done]
        if between in (",", "") and (name.islower() and name.isalpha() if between else name.lower() == "pass"):
            continue
        group = value.lastindex or 0
        if _is_secret_value(strength, value[group], is_quoted=quoted is not None, kind=kind):
            yield FoundSecret(value.start(group), value.end(group), _KINDS[strength])
    if kind in ("data", "shell"):
        for match in _SPACED.finditer(text):
            strength = strength_of(match[1])
            if strength and _is_secret_value(strength, match[2], is_quoted=False, kind=kind):
                yield FoundSecret(match.start(2), match.end(2), _KINDS[strength])


def _name_at(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the start and end of the name that contains these characters."""
    first, last = max(0, start - 60), min(len(text), end + 60)
    while start > first and text[start - 1] in _NAME_LETTERS:
        start -= 1
    while end < last and text[end] in _NAME_LETTERS:
        end += 1
    return start, end


def _is_secret_value(strength: str, value: str, *, is_quoted: bool, kind: str) -> bool:
    value = value.strip().rstrip("\\")
    if strength == "key":
        return is_mixed_case(value)
    if strength == "password":
        if not is_password(value):
            return False
        return is_quoted or kind in ("data", "shell") or is_mixed(value)
    return is_random(value)
