"""Detect command lines that reach the network (issue 20): a table of programs, and any syntax that hides the program.

A shell can hide a name in many ways; a line whose program cannot be read counts as reaching the network. The result
decides the source of a command's output, the questions while text from outside is in the context, and those of the
sandbox.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from urllib.parse import urlsplit

from codecompanion.formats.package_table import package_table
from codecompanion.formats.regex import regex
from codecompanion.tools.commands.command_line import simple_commands
from codecompanion.tools.commands.destroyers import loose_commands
from codecompanion.tools.commands.programs import known_name

HIDDEN = "hidden"
"""Placeholder for a program that the command line does not show."""

_WORD = regex(r"[\w.+-]+")
_HIDES = regex(
    r"/dev/(?:tcp|udp)/"
    r"|(?:^|[;&|(`\n{])[ \t]{0,9}(?:\w{1,30}=[^\s;&|]{0,60}[ \t]{1,9}){0,4}(?:[\"']?\$|[^\s\"'`;&|]{0,60}[\"'\\`])"
    r"|\b(?:eval|base64\s{1,9}(?:-d|-D|--decode)|xxd\s{1,9}-r)\b"
    r"|\b(?:python|pypy|node|deno|ruby|perl|php|lua|Rscript|osascript|pwsh|powershell)[\w.]{0,9}\b[^;&|\n]{0,99}?"
    r"\s(?:-\w{0,9}[cerREpn]\w{0,9}|--eval|--print|-Command|-)(?:\s|$|[\"'])"
    r"|\b(?:(?:ba|da|z|k|fi)?sh|python[\d.]{0,9}|node|ruby|perl|php|lua)\s{0,9}(?:<|$|[;&|])"
)
_ADDRESS = regex(r"\b(?:https?|ftps?|wss?|ssh|git)://")


_URL = regex(r"(?i)\b([a-z][a-z0-9+.-]{1,20})://[^\s\"'`<>|;&()]{1,2000}")
_GIT_OVER_SSH = regex(r"(?:^|\s)[\w.-]{1,64}@[\w.-]{1,253}:")
_ASKS_REMOTE = frozenset("fetch pull push ls-remote".split())
_THIS_MACHINE = regex(r"(?i)localhost|(?:.{1,200}\.)?localhost|127\.[\d.]{1,12}|0\.0\.0\.0|::1?")
_SHELL = regex(r"(?:\S*/)?(?:ba|da|z|k)?sh")
_STARTERS = frozenset("sudo time env command exec nice timeout xargs then do else".split())


def network_program(command: str) -> str:
    """Return the first program of a command line that reaches the network, "" if none does.

    Words count anywhere in the line: `env X=1 timeout 5 curl …`, `sh -c "git push"`. A file named `curl` counts too,
    which costs a question. `HIDDEN` means that the program cannot be read from the line.
    """
    found = _first(_WORD.findall(command), "needs", "may")
    return found or (HIDDEN if _HIDES.search(command) or _ADDRESS.search(command) else "")


def printing_program(command: str) -> str:
    """Return the first program of a command line that prints text from elsewhere, "" if none does."""
    return _first(_WORD.findall(command), "prints")


def read_paths(command: str) -> list[str]:
    """Return the words of a command line that may be files printed by its programs."""
    found = []
    for words in loose_commands(command):
        while words and words[0] in _STARTERS:
            words = words[1:]
        if words and _listed(words[0], [], "reads"):
            found += [word.lstrip("<") for word in words[1:] if not word.startswith("-")]
    return [word for word in found if word]


def needs_network(command: str) -> bool:
    """Return whether a command of the line is known to need the network; hidden programs do not count."""
    return any(_is_for_network(words) for words in _commands(command))


def hosts_of(command: str, environment: Mapping[str, str], remotes: Iterable[str]) -> tuple[str, ...]:
    """Return the hosts that the network programs of a line need, () if unknown.

    `remotes` are the addresses of the repository's remotes. A wrong guess costs a question, because other hosts are
    refused.
    """
    if _GIT_OVER_SSH.search(command):
        return ()
    found = dict[str, None]()
    for words in _commands(command):
        if not _is_for_network(words):
            continue
        program, *rest = _started(words)
        name, hosts = known_name(program), _hosts_in(" ".join(rest))
        if name == "git" and not hosts and _ASKS_REMOTE & set(rest):
            hosts = _hosts_in(" ".join(remotes))
        table = package_table("tools/commands/network_programs.toml")
        set_by_user = " ".join(environment.get(one, "") for one in table["host_variables"].get(name, "").split())
        usual = [*table["hosts"].get(name, "").split(), *(_hosts_in(set_by_user.replace(",", " ")) or ())]
        if hosts is None or not (usual or hosts):
            return ()
        found |= dict.fromkeys((*usual, *hosts))
    return tuple(found)


def _hosts_in(text: str) -> list[str] | None:
    """Return the hosts of the http(s) addresses in a text, or None if it has other addresses or one of this machine."""
    found = list[str]()
    for address in _URL.finditer(text):
        try:
            parts = urlsplit(address.group().removeprefix("git+"))
            host, port = parts.hostname, parts.port
        except ValueError:
            return None
        scheme = address[1].lower().removeprefix("git+")
        if scheme not in ("http", "https") or not host or _THIS_MACHINE.fullmatch(host):
            return None
        host = f"[{host}]" if ":" in host else _in_ascii(host)
        found.append(host if port in (None, 80, 443) else f"{host}:{port}")
    return None if _GIT_OVER_SSH.search(text) else found


def _in_ascii(host: str) -> str:
    """Return a host as programs ask for it (`xn--…`); one that has no such form is reached by nobody."""
    with contextlib.suppress(UnicodeError):
        return host if host.isascii() else host.encode("idna").decode()
    return host


def _commands(command: str) -> Iterator[list[str]]:
    """Yield the words of each command of a line, including commands passed to a shell (`sh -c "npm ci"`).

    Quoted text is one word if the line can be parsed reliably: a commit message that mentions `npm install` needs no
    network.
    """
    line = simple_commands(command)
    if line is None:
        yield from loose_commands(command)
        return
    for one in line:
        yield list(one.words)
        for at, word in enumerate(one.words[:-1]):
            if _SHELL.fullmatch(word) and one.words[at + 1].startswith("-") and one.words[at + 1].endswith("c"):
                yield from loose_commands(" ".join(one.words[at + 2 :]))


def _is_for_network(words: list[str]) -> bool:
    words = _started(words)
    return bool(words and _listed(words[0], [word for word in words[1:] if word[0] != "-"][:1], "needs"))


def _started(words: list[str]) -> list[str]:
    """Return the words of the program that a command finally starts: `env X=1 python -m pip` starts pip."""
    words = [word for word in words if "=" not in word or "://" in word]
    while words and words[0] in _STARTERS:
        words = words[1:]
    return words[2:] if words[1:3] == ["-m", "pip"] else words


def _first(words: list[str], *groups: str) -> str:
    found = (_listed(word, words[place + 1 :], *groups) for place, word in enumerate(words))
    return next((name for name in found if name), "")


def _listed(program: str, words: list[str], *groups: str) -> str:
    """Return the name of a program in the table if it counts with the words after it, else ""."""
    table, exact = _programs(*groups), program.rpartition("/")[2].lower().removesuffix(".exe")
    name = exact if exact in table else known_name(program)
    return name if name in table and (not table[name] or not table[name].isdisjoint(words)) else ""


@cache
def _programs(*groups: str) -> dict[str, frozenset[str]]:
    """Return the words that must follow a program's name for it to count; empty means that it always counts."""
    tables = [package_table("tools/commands/network_programs.toml")[group] for group in groups]
    found = dict[str, frozenset[str]]()
    for table in tables:
        for name, words in table["with"].items():
            found[name] = found.get(name, frozenset()) | frozenset(words.split())
    return found | {name: frozenset() for table in tables for name in table["any"].split()}
