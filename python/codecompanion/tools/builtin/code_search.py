"""`code_search`: searches the project's index for code related to a question, a name or a string.

The same search gathers code for questions; with this tool, the model can find the code that was not gathered. If the
results do not fit, the longest are truncated first.
"""

from __future__ import annotations

from typing import Any

from codecompanion.formats.plural import counted
from codecompanion.formats.text_files import printable
from codecompanion.model.found_code import FoundCode
from codecompanion.tools.builtin.wording import is_secret, one_line, shown_path
from codecompanion.tools.tool import ApprovalQuestion, ToolContext, ToolOutput

PLACES = 8
LINES = 40
MAX_LINES_OF_A_PLACE = 60
MAX_CHARS = 16_000


async def run(arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
    """Run one call; raises `ToolError`."""
    kind = arguments.get("kind", "any")
    below = ""
    if "path" in arguments:
        below = shown_path(context.resolve(arguments["path"]), context)
        below = "" if below == "." else below
    unsaved = {
        shown_path(context.resolve(path), context): file.text
        for path, file in context.opened.files.items()
        if file.modified and file.text is not None and _is_inside(path, context)
        if not is_secret(context.resolve(path), context)
    }
    limit = LINES if kind in ("reference", "text") else PLACES
    outcome = await context.look_up_code(arguments["query"], kind, below, limit, unsaved)
    if not outcome.results:
        hint = "; files that are not indexed yet were searched as text" if outcome.is_partial else ""
        return ToolOutput(
            text=f"Nothing found{hint}. grep_search accepts regular expressions.", summary="nothing found"
        )
    paths = len({result.path for result in outcome.results})
    summary = f"{counted(len(outcome.results), 'place')} in {counted(paths, 'file')}"
    notes = ["[The index is incomplete: files not in it were searched as text.]"] if outcome.is_partial else []
    text = _lines(outcome.results) if kind in ("reference", "text") else _places(outcome.results)
    return ToolOutput(text="\n".join([text, *notes]), summary=summary)


def _is_inside(path: str, context: ToolContext) -> bool:
    root = context.root.resolve().as_posix()
    return path.startswith(root.rstrip("/") + "/")


def _lines(results: tuple[FoundCode, ...]) -> str:
    """Return one line for each result, below its path."""
    parts, path = list[str](), ""
    for result in results:
        if result.path != path:
            path = result.path
            parts.append(path)
        within = f"  [in {result.symbol}]" if result.symbol else ""
        parts.append(f"{result.start:6}: {printable(one_line(result.text, 200))}{within}")
    return "\n".join(parts)


def _places(results: tuple[FoundCode, ...]) -> str:
    """Return the path, lines, name and code of each search result, within the size limit of a tool result."""
    share = max(MAX_CHARS // len(results), 200)
    parts = list[str]()
    for result in results:
        name = f" {result.kind} {result.symbol}" if result.symbol else ""
        lines = printable(result.text).split("\n")
        shown, left = list[str](), share
        for line in lines[:MAX_LINES_OF_A_PLACE]:
            left -= len(line) + 1
            if left < 0 and shown:
                break
            shown.append(line[:share])
        more = len(lines) - len(shown)
        cut = f"\n[{counted(more, 'more line')}; read_file shows them]" if more else ""
        parts.append(f"{result.path}:{result.start}-{result.end}{name}\n" + "\n".join(shown) + cut)
    return "\n\n".join(parts)


def title_of(arguments: dict[str, Any]) -> str:
    """Return the title of a call."""
    kind = f" {arguments['kind']}" if "kind" in arguments else ""
    where = f" in {arguments['path']}" if "path" in arguments else ""
    return f"code_search{kind} {one_line(arguments['query'])}{where}"


def question_about(arguments: dict[str, Any], context: ToolContext) -> ApprovalQuestion | None:
    """Return the question for the user, or None if the call may run without approval."""
    del arguments, context
    return None
