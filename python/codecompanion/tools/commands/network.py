"""Detects command lines that reach the network, by a table of programs and by syntax that hides the program.

A shell can hide a name in many ways; a line whose program cannot be read counts as reaching the network. The result
determines the source of a command's output, whether commands need approval while external text is in the context, and
the questions about the sandbox.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from codecompanion.formats.package_table import package_table
from codecompanion.formats.regex import regex
from codecompanion.tools.commands.command_line import simple_commands
from codecompanion.tools.commands.destructive_commands import loose_commands
from codecompanion.tools.commands.risky_programs import known_name

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
_OVER_SSH_OR_NOT = frozenset(("git", "rsync"))
_NAMES_REPOSITORY = _ASKS_REMOTE | {"clone", "submodule"}
_OF_THIS_MACHINE = r"(?:(?:[\w-]{1,60}\.){0,3}localhost|127\.[\d.]{1,12}|0\.0\.0\.0|\[::1?\])"
_THIS_MACHINE = regex(rf"(?i){_OF_THIS_MACHINE}(?::\d{{1,5}})?")
_ADDRESS_HERE = regex(rf"(?i)({_OF_THIS_MACHINE}(:\d{{1,5}})?)(?:[/?#]\S*)?")
_BACKGROUND = regex(r"[^&>|]&(?![&>\d])")
_SHELL = regex(r"(?:\S*/)?(?:ba|da|z|k)?sh")
_STARTERS = frozenset("sudo time env command exec nice timeout xargs then do else".split())


class Surroundings(msgspec.Struct, frozen=True):
    """The context of a command: names and URLs of the repository's remotes; the command's folder and its parents."""

    remotes: tuple[tuple[str, str], ...] = ()
    folders: tuple[Path, ...] = ()


NOWHERE = Surroundings()


def network_program(command: str) -> str:
    """Return the first program of a command line that reaches the network, or "" if none does.

    Program names count anywhere in the line: `env X=1 timeout 5 curl …`, `sh -c "git push"`. A file named `curl` counts
    too, at the cost of a question. `HIDDEN` means that the program cannot be read from the line.
    """
    found = _first(_WORD.findall(command), "needs", "may")
    return found or (HIDDEN if _HIDES.search(command) or _ADDRESS.search(command) else "")


def printing_program(command: str) -> str:
    """Return the first program of a command line that prints text from elsewhere, or "" if none does."""
    return _first(_WORD.findall(command), "prints")


def only_installs(command: str) -> bool:
    """Return whether a line only installs packages: on success it prints progress but no external text."""
    line = [_started(list(one.words)) for one in simple_commands(command) or ()]
    kinds = [_listed(words[0], words[1:], "installs", at_start=True) if words else "" for words in line]
    return any(kinds) and all(kind or words[:1] in (["cd"], ["mkdir"]) for kind, words in zip(kinds, line, strict=True))


def read_paths(command: str) -> list[str]:
    """Return the arguments of a command line that may name files whose content it prints."""
    found = []
    for words in loose_commands(command):
        while words and words[0] in _STARTERS:
            words = words[1:]
        if words and _listed(words[0], [], "reads"):
            found += [word.lstrip("<") for word in words[1:] if not word.startswith("-")]
    return [word for word in found if word]


def needs_network(command: str, around: Surroundings = NOWHERE) -> bool:
    """Return whether a command of the line is known to need the network; hidden programs do not count."""
    return next(_reaching(command, around), None) is not None


def hosts_of(command: str, environment: Mapping[str, str], around: Surroundings = NOWHERE) -> tuple[str, ...]:
    """Return the hosts that the network programs of a line need, or () if unknown.

    A wrong guess only costs a question, because other hosts are refused.
    """
    if _GIT_OVER_SSH.search(command):
        return ()
    found = dict[str, None]()
    table = package_table("tools/commands/network_programs.toml")
    for name, addresses in _reaching(command, around):
        hosts = _hosts_in(addresses)
        set_by_user = [environment.get(one, "") for one in table["host_variables"].get(name, "").split()]
        usual = [*table["hosts"].get(name, "").split(), *(_hosts_in(set_by_user) or ())]
        if hosts is None or not (usual or hosts):
            return ()
        found |= dict.fromkeys((*usual, *hosts))
    return tuple(found)


def hidden_needs(command: str, around: Surroundings = NOWHERE) -> tuple[tuple[str, str], ...]:
    """Return a (program, path) pair for each program in a line that needs a path hidden by the sandbox."""
    table = package_table("tools/commands/network_programs.toml")["hidden"]
    found = dict[tuple[str, str], None]()
    for words in _commands(command):
        program, *rest = _started(words) or [""]
        name, addresses = known_name(program), rest
        if name == "git":
            addresses = _repositories(rest, around) if _NAMES_REPOSITORY & set(rest) else []
        over_ssh = any(address.startswith("ssh://") or _GIT_OVER_SSH.search(address) for address in addresses)
        if name in table and (over_ssh or name not in _OVER_SSH_OR_NOT):
            found[name, table[name]] = None
    return tuple(found)


def with_companions(hosts: Iterable[str]) -> tuple[str, ...]:
    """Return the hosts, each followed by the other hosts of its registry (`files.pythonhosted.org` for `pypi.org`)."""
    found = dict[str, None]()
    groups = [named.split() for named in package_table("tools/commands/network_programs.toml")["hosts"].values()]
    for host in hosts:
        found |= dict.fromkeys((host, *(one for group in groups if group[0] == host for one in group)))
    return tuple(found)


def is_of_this_machine(host: str) -> bool:
    """Return whether a host is this machine (`localhost:3000`)."""
    return _THIS_MACHINE.fullmatch(host) is not None


def _reaching(command: str, around: Surroundings) -> Iterator[tuple[str, list[str]]]:
    """Yield the program and addresses of each command in a line that needs the network.

    A local repository needs no network, nor does a program installed in the workspace (`npx tsc`). If the line starts a
    background process, an address on this machine is assumed to refer to that process.
    """
    starts_server = _BACKGROUND.search(command) is not None
    for words in _commands(command):
        if not _is_for_network(words):
            continue
        program, *rest = _started(words)
        name, addresses = known_name(program), rest
        if name == "git":
            addresses = _repositories(rest, around)
            if addresses and all(map(_is_on_disk, addresses)):
                continue
        elif _is_installed(name, rest, around) or (name == "rsync" and not any(":" in word for word in rest)):
            continue
        elif (here := [word for word in rest if _is_here(word)]) and starts_server:
            addresses = [word for word in rest if word not in here]
            if not any(_URL.search(word) for word in addresses):
                continue
        yield name, addresses


def _is_installed(name: str, words: list[str], around: Surroundings) -> bool:
    """Return whether the program that a runner such as `npx` would download is installed in the workspace."""
    place = package_table("tools/commands/network_programs.toml")["installed"].get(name)
    wanted = next((word for word in words if not word.startswith("-")), "")
    return bool(place and wanted.isprintable()) and any(
        (folder / place / wanted).is_file() for folder in around.folders if "/" not in wanted and wanted
    )


def _repositories(words: list[str], around: Surroundings) -> list[str]:
    """Return the URLs of the repositories that a git command uses, or [] if unknown."""
    at = next((place for place, word in enumerate(words) if word in _NAMES_REPOSITORY), len(words))
    given, known = [word for word in words[at + 1 :] if not word.startswith("-")], dict(around.remotes)
    addresses = [word for word in given if "://" in word or _GIT_OVER_SSH.match(word)]
    addresses = addresses or [known[word] for word in given if word in known]
    addresses = addresses or [word for word in given if word.startswith((".", "/", "~"))]
    if addresses or words[at : at + 1] == ["clone"]:
        return addresses or given
    return list(known.values()) if _ASKS_REMOTE & set(words) else []


def _is_on_disk(repository: str) -> bool:
    return repository.startswith("file://") or ":" not in repository


def _is_here(word: str) -> bool:
    return _ADDRESS_HERE.fullmatch(word.removeprefix("http://").removeprefix("https://")) is not None


def _hosts_in(words: Iterable[str]) -> list[str] | None:
    """Return the hosts of the http(s) URLs in the words, or None if there is another type of address."""
    found = list[str]()
    for word in words:
        if _GIT_OVER_SSH.search(word):
            return None
        if (here := _ADDRESS_HERE.fullmatch(word)) and here[2]:  # curl needs no scheme
            found.append(here[1].lower())
        for address in _URL.finditer(word.replace(",", " ")):
            try:
                parts = urlsplit(address.group().removeprefix("git+"))
                host, port = parts.hostname, parts.port
            except ValueError:
                return None
            scheme = address[1].lower().removeprefix("git+")
            if scheme not in ("http", "https") or not host:
                return None
            host = f"[{host}]" if ":" in host else _in_ascii(host)
            found.append(host if port in (None, 80, 443) else f"{host}:{port}")
    return found


def _in_ascii(host: str) -> str:
    """Return the form of a host that programs look up (`xn--…`), or the host itself if there is no such form."""
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
    return bool(words and _listed(words[0], [word for word in words[1:] if word[0] != "-"][:2], "needs", at_start=True))


def _started(words: list[str]) -> list[str]:
    """Return the words of the program that a command finally starts: `env X=1 python -m pip` starts pip."""
    words = [word for word in words if "=" not in word or "://" in word]
    while words and words[0] in _STARTERS:
        words = words[1:]
    return words[2:] if words[1:3] == ["-m", "pip"] else words


def _first(words: list[str], *groups: str) -> str:
    found = (_listed(word, words[place + 1 :], *groups) for place, word in enumerate(words))
    return next((name for name in found if name), "")


def _listed(program: str, words: list[str], *groups: str, at_start: bool = False) -> str:
    """Return the program's name if the table lists it, alone or with one of the words that follow, or else "".

    `at_start`: only the first word counts, or the first two (`mod/tidy`).
    """
    table, exact = _programs(*groups), program.rpartition("/")[2].lower().removesuffix(".exe")
    name = exact if exact in table else known_name(program)
    pairs = [f"{first}/{second}" for first, second in pairwise(words)]
    counted = {*words[:1], *pairs[:1]} if at_start else {*words, *pairs}
    return name if name in table and (not table[name] or not table[name].isdisjoint(counted)) else ""


@cache
def _programs(*groups: str) -> dict[str, frozenset[str]]:
    """Return each program's words, one of which must follow the program for it to count; if empty, it always counts."""
    tables = [package_table("tools/commands/network_programs.toml")[group] for group in groups]
    found = dict[str, frozenset[str]]()
    for table in tables:
        for name, words in table["with"].items():
            found[name] = found.get(name, frozenset()) | frozenset(words.split())
    return found | {name: frozenset() for table in tables for name in table["any"].split()}
