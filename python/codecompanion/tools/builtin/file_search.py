"""`file_search`: finds files by name or glob, sorted, without ignored files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from codecompanion.errors import ToolError
from codecompanion.formats.plural import counted
from codecompanion.formats.regex import regex
from codecompanion.tools.builtin import DEFAULT_PATHS
from codecompanion.tools.builtin.wording import path_below
from codecompanion.tools.files.disk import Check, in_thread
from codecompanion.tools.tool import ApprovalQuestion, ToolContext, ToolOutput

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_BRACES = regex(r"\{([^{}]*,[^{}]*)\}")
_MAX_ALTERNATIVES = 64


def compile_glob(pattern: str, root: Path) -> GitIgnoreSpec:
    """Return a matcher for a glob over paths relative to `root`.

    Raises:
        ToolError: the pattern is not a glob.
    """
    from pathspec import GitIgnoreSpec  # not part of the host's start

    inside = pattern.removeprefix(f"{root.as_posix()}/").removeprefix("./")
    alternatives = _alternatives(inside)
    escaped = [f"\\{one}" if one[:1] in "!#" else one for one in alternatives]
    try:
        spec = GitIgnoreSpec.from_lines(escaped)
    except ValueError as error:
        raise ToolError(f"{pattern!r} is not a valid glob pattern: {error}.") from error
    if all(one.include is None for one in spec.patterns):
        raise ToolError(f"{pattern!r} is not a glob pattern that can match a file.")
    return spec


def matches(spec: GitIgnoreSpec, name: str) -> bool:
    """Return whether one of the globs matches a path relative to their root."""
    return any(one.match_file(name) is not None for one in spec.patterns)


def _alternatives(pattern: str) -> list[str]:
    done, waiting = [], [pattern]
    while waiting:
        one = waiting.pop(0)
        braces = _BRACES.search(one)
        if braces is None:
            done.append(one)
        else:
            waiting += [one[: braces.start()] + choice + one[braces.end() :] for choice in braces[1].split(",")]
        if len(done) + len(waiting) > _MAX_ALTERNATIVES:
            raise ToolError(f"The pattern {pattern[:80]!r} has more than {_MAX_ALTERNATIVES} alternatives in braces.")
    return done


async def run(arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
    """Run one call; raises `ToolError`."""
    return await in_thread(lambda check: _search(arguments, context, check))


def _search(arguments: dict[str, Any], context: ToolContext, check: Check) -> ToolOutput:
    pattern: str = arguments["pattern"]
    root = context.resolve(".")
    spec = compile_glob(pattern, root)
    part = pattern.casefold()
    matching, containing = [], []
    for path in context.walk(root, include_ignored=arguments.get("include_ignored", False)):
        check()
        name = path_below(root, path)
        if matches(spec, name):
            matching.append(name)
        elif part in name.casefold():
            containing.append(name)
    limit = arguments.get("max_results", DEFAULT_PATHS)
    if matching:
        return _listed(matching, limit, "")
    if containing:
        return _listed(containing, limit, f"No file matches {pattern!r}; these paths contain it:\n")
    ignored = "" if arguments.get("include_ignored") else " (ignored files were left out)"
    return ToolOutput(text=f"No file matches {pattern!r}{ignored}.", summary="0 files")


def _listed(names: list[str], limit: int, head: str) -> ToolOutput:
    more = len(names) - limit
    note = f"\n[{counted(more, 'more file')}, {len(names):,} in all; narrow the pattern or raise max_results]"
    text = head + "\n".join(names[:limit]) + (note if more > 0 else "")
    return ToolOutput(text=text.encode("utf-8", "replace").decode(), summary=counted(len(names), "file"))


def title_of(arguments: dict[str, Any]) -> str:
    """Return the title of a call."""
    return f"file_search {arguments['pattern']}"


def question_about(arguments: dict[str, Any], context: ToolContext) -> ApprovalQuestion | None:
    """Return the question for the user, or None if the call may run without approval."""
    return None
