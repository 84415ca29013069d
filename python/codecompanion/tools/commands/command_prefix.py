"""Checks commands against the prefixes that the user's configuration allows (`allowed_prefixes`). Pure.

Because the user wrote them, prefixes cover any argument except harmful ones; "always" grants use an allow-list instead
(`grant_rules`). `git status` covers `git status --short` and `git status "a b"`, not `git statusx`, and no line in
which the shell does more than start one program. A prefix does not cover later options known to run another program, to
write to any file (`git diff --output=x`) or to destroy work (`git push --force`). The files that a program reads
(`core.fsmonitor` of a hostile repository, a script) cannot be seen in its arguments.
"""

from __future__ import annotations

from codecompanion.tools.commands import risky_programs
from codecompanion.tools.commands.command_line import words

_DANGEROUS = (
    "--exec --exec-batch --output --compress-program --use-compress-program --to-command --checkpoint-action"
    " --info-script --new-volume-script --rsh --rsh-command --rsync-path --upload-pack --receive-pack --extcmd"
    " --open-files-in-pager --pager --pre --hostname-bin --preprocessor --eval --script-shell --node-options"
    " --toolexec --vettool --unzip-command --init-command --command --python-executable --config --config-env"
    " --template --force --force-create --force-with-lease --discard-changes --delete --mirror"
).split()
"""Long options that make a program run another program, write to any file, or destroy work.

Abbreviations of these options match too.
"""

_LETTERS = {
    "git grep": "O",
    "git rebase": "x",
    "git archive": "o",
    "git format-patch": "o",
    "git clone": "cu",
    "git switch": "fC",
    "git branch": "DfMC",
    "git push": "fd",
    "git tag": "fd",
    "git worktree": "fB",
    "sort": "o",
    "tree": "o",
    "tar": "IFC",
    "man": "PH",
    "less": "oO",
    "make": "fCIE",
    "gmake": "fCIE",
    "zip": "T",
    "curl": "oOKD",
    "wget": "Oo",
}
"""Single-letter forms of the dangerous options, which can be joined with others."""

_DANGEROUS_SINGLE = {"go": ("-exec", "-toolexec", "-vettool", "-o", "-overlay", "-modfile")}
"""Dangerous long options that some programs accept with one dash."""

_WRITES_LAST = frozenset("uniq xxd".split())
"""Programs that write to their second operand."""


def covers(prefix: str, command: str) -> bool:
    """Return whether the command begins with all words of `prefix`; it must be a plain command."""
    wanted, given = words(prefix), words(command)
    if wanted is None or given is None or problem_with(prefix):
        return False
    return given[: len(wanted)] == wanted and not _reaches_further(given, given[len(wanted) :])


def _reaches_further(given: tuple[str, ...], added: tuple[str, ...]) -> bool:
    """Return whether the words after the prefix make the program run another one, or write to a path named in them.

    All words of the prefix itself are granted. A false positive costs one keypress.
    """
    program = risky_programs.known_name(given[0])
    letters = _LETTERS.get(program, "") or _LETTERS.get(" ".join((program, *given[1:2])), "")
    if program in _WRITES_LAST and sum(not word.startswith("-") for word in given[1:]) > 1:
        return True
    return any(
        _is_dangerous(word, letters, _DANGEROUS_SINGLE.get(program, ()))
        or (program == "git" and "::" in word)  # the address of a remote helper: ext::sh -c …
        or (program == "git" and given[1:2] == ("push",) and word.startswith(("+", ":", "--prune")))
        or (program in ("make", "gmake") and word.partition("=")[0] in ("SHELL", "MAKEFLAGS", "MAKEFILES", "MAKE"))
        for word in added
    )


def _is_dangerous(word: str, letters: str, single: tuple[str, ...]) -> bool:
    if word.startswith("--"):
        name = word.partition("=")[0]
        return (len(name) > 2 and any(option.startswith(name) for option in _DANGEROUS)) or name[1:] in single
    if not word.startswith("-"):
        return False
    return word.partition("=")[0] in single or any(letter in word for letter in letters)


def problem_with(prefix: str) -> str:
    """Return one sentence explaining why the prefix cannot be allowed, or "" if it can."""
    found = words(prefix)
    if found is None:
        return f"“{prefix.strip()}” is not a plain prefix: it has operators, variables, wildcards or assignments"
    return _problem_of(found)


def _problem_of(found: tuple[str, ...]) -> str:
    said, program = found[0].rpartition("/")[2], risky_programs.known_name(found[0])
    if program in risky_programs.NEVER:
        return f"“{said}” can run any program, whatever follows it"
    if program in risky_programs.WRITERS:
        return f"“{said}” can write to any file, whatever follows it"
    if len(found) > 1 and found[1] in risky_programs.ANYTHING.get(program, ()):
        return f"“{said} {found[1]}” can run any program, whatever follows it"
    if len(found) > 1 and found[1] in risky_programs.WRITING.get(program, ()):
        return f"“{said} {found[1]}” can write to any file, whatever follows it"
    if program in risky_programs.DESTROYERS:
        return f"“{said}” can destroy work permanently, whatever follows it"
    if len(found) > 1 and found[1] in risky_programs.DESTROYING.get(program, ()):
        return f"“{said} {found[1]}” can destroy work permanently, whatever follows it"
    if program not in risky_programs.RUNNERS:
        return ""
    if not _names_what_runs(program, found[1:]):
        return f"“{' '.join(found)}” could run any program; add what to run, such as “{_example(said, program)}”"
    started = _started(program, found)
    if started == ():
        return f"“{' '.join(found)}” could run any program; add what to run"
    return _problem_of(started) if started else ""


def _started(program: str, found: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the command that a command starts, () if it is unspecified, or None if the command does not start one."""
    if program in risky_programs.STARTERS:
        return found[1:]
    if program in ("python", "pypy") and found[1] == "-m":
        return () if found[2] in risky_programs.MODULES else found[2:]
    subcommand, rest = f"{program} {found[1]}", found[2:]
    if subcommand in risky_programs.STARTS:
        if rest and rest[0] not in risky_programs.STARTS[subcommand] and not rest[0].startswith("-"):
            return None
        rest = rest[1:] if rest and not rest[0].startswith("-") else ()
    elif found[1] not in risky_programs.STARTS.get(program, ()):
        return None
    return () if rest[:1] and rest[0].startswith("-") else rest


def _names_what_runs(program: str, rest: tuple[str, ...]) -> bool:
    """Return whether the words after the program say which program or file it runs.

    An option before that name may take the next word (`git -C /x`), and further options could run anything.
    """
    if program in ("python", "pypy") and rest[:1] == ("-m",):
        return len(rest) > 1 and not rest[1].startswith("-")
    return bool(rest) and not rest[0].startswith(("-", "+"))


def _example(said: str, program: str) -> str:
    known = {"git": "status", "make": "test", "npm": "test", "cargo": "test", "go": "test", "uv": "run pytest"}
    return f"{said} {known.get(program, 'build.sh')}"
