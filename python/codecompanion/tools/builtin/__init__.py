"""Defines the tools that come with the plugin, as the model sees them.

A tool's module is imported when it is first called: every request contains the specs, but most chats call few tools.
"""

from typing import Any

from codecompanion.formats.deferred import Deferred
from codecompanion.model.messages import ToolSpec
from codecompanion.tools.builtin.wording import PATH, parameters
from codecompanion.tools.tool import Tool


def _deferred(module: str, name: str) -> Deferred:
    return Deferred(f"codecompanion.tools.builtin.{module}", name)


def _tool(spec: ToolSpec, **rest: Any) -> Tool:
    """Return the tool; the module with its name provides `run`, `title_of` and `question_about`."""
    run, title, question = (_deferred(spec.name, name) for name in ("run", "title_of", "question_about"))
    return Tool(spec=spec, run=run, title=title, question=question, **rest)


_TEXT, _NUMBER = {"type": "string"}, {"type": "integer"}
"""Argument schemas for the short form of a tool, which is offered in small context windows."""

_READ_FILE = ToolSpec(
    "read_file",
    "Read a text file of the workspace, or a range of its lines. Each line is preceded by its number and a tab, which"
    " are not part of the file. For a long file, read the part you need: grep_search gives line numbers. A path"
    ' "stored:…" from an earlier, shortened result reads the rest of that result.',
    parameters(
        {
            "path": {
                "type": "string",
                "minLength": 1,
                "description": 'Path relative to the workspace, or "stored:…" from an earlier result.',
            },
            "start_line": {"type": "integer", "minimum": 1, "description": "First line, counted from 1. Default: 1."},
            "end_line": {"type": "integer", "minimum": 1, "description": "Last line, included. Default: the end."},
            "start_column": {
                "type": "integer",
                "minimum": 1,
                "description": "For very long lines only: first character to read of each line, counted from 1.",
            },
            "end_column": {"type": "integer", "minimum": 1, "description": "Last character of each line, included."},
        },
        "path",
    ),
)
_READ_FILE_SHORT = ToolSpec(
    "read_file",
    "Read a text file, or some of its lines. Line numbers are not part of the file.",
    parameters({"path": _TEXT, "start_line": _NUMBER, "end_line": _NUMBER}, "path"),
)
READ_FILE = _tool(_READ_FILE, looks_at="path", why_asked=_deferred("read_file", "why_asked"), short=_READ_FILE_SHORT)

DEFAULT_PATHS = 200

_FILE_SEARCH = ToolSpec(
    "file_search",
    "Find files of the workspace by glob pattern. `*` stays within a folder, `**` crosses folders, {a,b} is either. A"
    " pattern without `/` matches the file name in any folder; a folder's path lists everything in it. Files that the"
    " project ignores (.gitignore) are left out. Returns paths relative to the workspace, sorted.",
    parameters(
        {
            "pattern": {
                "type": "string",
                "minLength": 1,
                "description": "For example `*.lua`, `src/**/test_*.py`, `Makefile` or `docs/`.",
            },
            "max_results": {
                "type": "integer",
                "minimum": 1,
                "maximum": 5000,
                "description": f"At most this many paths. Default: {DEFAULT_PATHS}.",
            },
            "include_ignored": {
                "type": "boolean",
                "description": "Also list ignored files, such as those in node_modules. Default: false.",
            },
        },
        "pattern",
    ),
)
FILE_SEARCH = _tool(_FILE_SEARCH)

DEFAULT_LINES = 100

MAX_FILE_BYTES = 20_000_000

_GREP_SEARCH = ToolSpec(
    "grep_search",
    "Search the text files of the workspace for lines that contain a text or match a regular expression. Returns the"
    " matching lines by file, with line numbers. Files that the project ignores (.gitignore), binary files and files"
    f" over {MAX_FILE_BYTES // 1_000_000} MB are left out.",
    parameters(
        {
            "query": {"type": "string", "minLength": 1, "description": "The text or regular expression to find."},
            "is_regex": {"type": "boolean", "description": "Whether query is a regular expression. Default: false."},
            "ignore_case": {"type": "boolean", "description": "Whether to ignore case. Default: false."},
            "path": {
                "type": "string",
                "minLength": 1,
                "description": "Folder or file to search, relative to the workspace. Default: all of it.",
            },
            "include": {
                "type": "string",
                "minLength": 1,
                "description": "Only files that match this glob, such as `*.py`.",
            },
            "max_results": {
                "type": "integer",
                "minimum": 1,
                "maximum": 2000,
                "description": f"At most this many lines. Default: {DEFAULT_LINES}.",
            },
            "include_ignored": {"type": "boolean", "description": "Also search ignored files. Default: false."},
        },
        "query",
    ),
)
_GREP_SEARCH_SHORT = ToolSpec(
    "grep_search",
    "Find lines in the files of the workspace.",
    parameters({"query": _TEXT, "is_regex": {"type": "boolean"}, "path": _TEXT}, "query"),
)
GREP_SEARCH = _tool(_GREP_SEARCH, looks_at="unsaved", short=_GREP_SEARCH_SHORT)

_CODE_SEARCH = ToolSpec(
    "code_search",
    "Find code of the project by meaning or name: the best places for a question or words, or where a name is"
    " defined or used. Returns paths, line numbers and the code.",
    parameters(
        {
            "query": {"type": "string", "minLength": 1, "description": "A question, words, or a name."},
            "path": {"type": "string", "minLength": 1, "description": "Only this folder or file."},
            "kind": {
                "type": "string",
                "enum": ["definition", "reference", "text"],
                "description": "Kind of match; without it, the query is a question.",
            },
        },
        "query",
    ),
)
CODE_SEARCH = _tool(_CODE_SEARCH, looks_at="unsaved")

SEVERITIES = ("error", "warning", "information", "hint")

_GET_DIAGNOSTICS = ToolSpec(
    "get_diagnostics",
    "List the problems that linters and language servers currently report for files open in the editor. They may need a"
    " moment after a change.",
    parameters(
        {
            "path": {"type": "string", "minLength": 1, "description": "Only this file. Default: all open files."},
            "severity": {
                "type": "string",
                "enum": list(SEVERITIES),
                "description": "Only this severity or worse. Default: all.",
            },
        }
    ),
)
GET_DIAGNOSTICS = _tool(_GET_DIAGNOSTICS)

_INSERT_EDIT = ToolSpec(
    "insert_edit",
    "Change an existing text file: replace old_text with new_text. old_text must occur in the file exactly once, with"
    " its exact indentation; quote enough lines around the change to make it unique. To insert, quote the line before"
    " or after and repeat it in new_text; to delete, leave new_text empty. Read the file first. The file's line endings"
    " and encoding are kept.",
    parameters(
        {
            "path": PATH,
            "old_text": {"type": "string", "description": "The text to replace, without line numbers."},
            "new_text": {"type": "string", "description": "The text to put in its place."},
            "replace_all": {
                "type": "boolean",
                "description": "Replace every occurrence instead of exactly one. Default: false.",
            },
        },
        "path",
        "old_text",
        "new_text",
    ),
)
_INSERT_EDIT_SHORT = ToolSpec(
    "insert_edit",
    "Change a file: replace old_text, which must occur exactly once, with new_text. Read the file first.",
    parameters({"path": _TEXT, "old_text": _TEXT, "new_text": _TEXT}, "path", "old_text", "new_text"),
)
INSERT_EDIT = _tool(_INSERT_EDIT, effect="write", looks_at="path", short=_INSERT_EDIT_SHORT)

_CREATE_FILE = ToolSpec(
    "create_file",
    "Create a text file with the given content, and missing folders. Fails if the file exists, unless overwrite is"
    " true. To change part of a file, use insert_edit.",
    parameters(
        {
            "path": PATH,
            "content": {"type": "string", "description": "The file's whole content."},
            "overwrite": {"type": "boolean", "description": "Replace the file if it exists. Default: false."},
        },
        "path",
        "content",
    ),
)
CREATE_FILE = _tool(_CREATE_FILE, effect="write", looks_at="path")

_DELETE_FILE = ToolSpec(
    "delete_file", "Delete one file of the workspace. Folders are not deleted.", parameters({"path": PATH}, "path")
)
DELETE_FILE = _tool(_DELETE_FILE, effect="write", looks_at="path")

_RUN_COMMAND = ToolSpec(
    "run_command",
    "Run a shell command (sh -c) in the workspace and return its exit code and output (standard output and error"
    " together). There is no terminal and no input: commands must not ask questions, open editors or need a password."
    " Background processes are stopped when the command ends. It may run in a sandbox: writes only in the"
    " workspace and /tmp, no keys, no network.",
    parameters(
        {
            "command": {"type": "string", "minLength": 1, "description": "The command line for the shell."},
            "cwd": {
                "type": "string",
                "description": "Folder, relative to the workspace. Default: its root.",
            },
            "timeout_s": {
                "type": "number",
                "exclusiveMinimum": 0,
                "description": "Stop the command after this many seconds.",
            },
            "needs": {
                "type": "string",
                "enum": ["network", "outside"],
                "description": "Ask the user for network access, or to run outside the sandbox.",
            },
            "hosts": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Hosts it needs, such as pypi.org.",
            },
            "reason": {"type": "string", "description": "Tells the user why."},
        },
        "command",
    ),
)
_RUN_COMMAND_SHORT = ToolSpec(
    "run_command",
    "Run a shell command in the workspace and return its output. It gets no input.",
    parameters({"command": _TEXT}, "command"),
)
RUN_COMMAND = _tool(_RUN_COMMAND, effect="execute", keeps_time=True, short=_RUN_COMMAND_SHORT)

MEMORY_ROOT = "/memories"
MEMORY_SHARED = "all-projects"
"""The folder in `/memories` with the notes for all projects; the rest belongs to the project."""
MEMORY_ARGUMENTS = {
    "view": ("path",),
    "search": ("query",),
    "create": ("path", "file_text"),
    "str_replace": ("path", "old_str", "new_str"),
    "insert": ("path", "insert_line", "insert_text"),
    "delete": ("path",),
    "rename": ("old_path", "new_path"),
}

_MEMORY = ToolSpec(
    "memory",
    "Notes and summaries of earlier chats, kept across chats as files under /memories (this project) and"
    " /memories/all-projects. Search before a task; note facts that later chats need, no secrets. Commands: search"
    " (query), view (path, view_range), create (path, file_text), str_replace (path, old_str, new_str), insert (path,"
    " insert_line, insert_text), delete (path), rename (old_path, new_path).",
    parameters(
        {
            "command": {"type": "string", "enum": list(MEMORY_ARGUMENTS), "description": "What to do."},
            "query": {"type": "string", "description": "search: words."},
            "path": {"type": "string", "description": "Such as /memories/style.md."},
            "view_range": {
                "type": "array",
                "items": {"type": "integer"},
                "minItems": 2,
                "maxItems": 2,
                "description": "view, optional: first and last line, from 1; -1 is the end.",
            },
            "file_text": {"type": "string", "description": "create: the content."},
            "old_str": {"type": "string", "description": "str_replace: text that occurs exactly once."},
            "new_str": {"type": "string", "description": "str_replace: its replacement."},
            "insert_line": {
                "type": "integer",
                "minimum": 0,
                "description": "insert: after this line; 0 is the start.",
            },
            "insert_text": {"type": "string", "description": "insert: the lines to insert."},
            "old_path": {"type": "string", "description": "rename: from."},
            "new_path": {"type": "string", "description": "rename: to."},
        },
        "command",
    ),
)
MEMORY = _tool(_MEMORY, effect="write")

RECALL_NAME = "recall"

_RECALL = ToolSpec(
    RECALL_NAME,
    "Find content that was removed from this conversation to save context: cleared tool results, summarised messages,"
    " earlier attachments. It is kept word for word. `query` lists matches, each with a short key; `key` reads one of"
    " them, long ones in parts. Use it instead of calling a tool again for the same result.",
    parameters(
        {
            "query": {
                "type": "string",
                "description": "A question, words, names or paths; empty lists the newest.",
            },
            "key": {"type": "string", "minLength": 1, "description": "A key from the list, such as r57."},
            "part": {"type": "integer", "minimum": 1, "description": "With key: which part to read. Default: 1."},
        }
    ),
)
RECALL = _tool(_RECALL, only_when_removed=True)

BUILTIN_TOOLS: tuple[Tool, ...] = (
    READ_FILE,
    FILE_SEARCH,
    GREP_SEARCH,
    CODE_SEARCH,
    GET_DIAGNOSTICS,
    INSERT_EDIT,
    CREATE_FILE,
    DELETE_FILE,
    RUN_COMMAND,
    MEMORY,
    RECALL,
)
"""The built-in tools in the order offered to the model, which never changes within a chat (prompt cache).

`recall` comes last: it is offered only after something has been removed from the chat.
"""
