"""Provides the tools of a chat: their schemas in a stable order, and validation of the model's calls.

An invalid call gets an error the model can act on: the argument, the given and expected values, and the nearest match
for an unknown name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import msgspec

from codecompanion.errors import ConfigError, ToolInputInvalid
from codecompanion.formats.outside_text import DEEPEST_JSON, NOT_READABLE, is_too_deep
from codecompanion.model.messages import ToolSpec
from codecompanion.settings_sections import ToolSettings
from codecompanion.tools.tool import Tool

OTHER_NAMES = {"insert_edit_into_file": "insert_edit"}
"""Maps codecompanion.nvim's tool names to ours; they are accepted in settings and in calls."""
BUILT_IN = "built in"
"""The source of the tools that come with the plugin."""
ESSENTIAL = ("read_file", "insert_edit", "run_command", "grep_search")
"""Built-in tools offered in a small window, most important first; files can be listed, created and deleted by command.
"""
_ELSEWHERE = {
    **dict.fromkeys(
        ("edit", "edit_file", "multi_edit", "str_replace", "apply_patch", "replace_in_file"), "insert_edit"
    ),
    **dict.fromkeys(("write", "write_file", "write_to_file"), "create_file"),
    **dict.fromkeys(("bash", "shell", "execute_command", "run_shell_command", "run_terminal_cmd"), "run_command"),
    **dict.fromkeys(("grep", "search_files", "ripgrep"), "grep_search"),
    **dict.fromkeys(("glob", "find_files", "list_files", "list_dir"), "file_search"),
    **dict.fromkeys(("read", "view", "cat"), "read_file"),
}
"""Maps other agents' tool names to ours; the arguments differ, so the error for a call only names our tool."""

_SHOWN_CHARS = 80
_MAX_PROBLEMS = 8
MAX_ARGUMENTS_LENGTH = 1_000_000
"""Maximum number of characters in a call's arguments; anything longer is a runaway reply."""


class ToolRegistry:
    """The enabled tools, by name, in the order given.

    Raises:
        ConfigError: a setting names a tool that does not exist, or two tools have the same name.
    """

    def __init__(
        self, tools: Iterable[Tool | tuple[str, Tool]], settings: Mapping[str, ToolSettings] | None = None
    ) -> None:
        """Add the tools; each tool that is not built in is given as a pair with the name of its source."""
        known: dict[str, Tool] = {}
        self.settings: dict[str, ToolSettings] = {}
        self.sources: dict[str, str] = {}
        for one in tools:
            source, tool = one if isinstance(one, tuple) else (BUILT_IN, one)
            if tool.spec.name in known:
                raise ConfigError(f"interactions.chat.tools.{tool.spec.name}", "two tools have this name")
            known[tool.spec.name], self.sources[tool.spec.name] = tool, source
            if tool.settings is not None:
                self.settings[tool.spec.name] = tool.settings
        for name, setting in (settings or {}).items():
            ours = OTHER_NAMES.get(name, name)
            if ours not in known:
                raise ConfigError(f"interactions.chat.tools.{name}", "there is no such tool", ", ".join(known))
            self.settings[ours] = setting
        self._tools = {
            name: tool for name, tool in known.items() if name not in self.settings or self.settings[name].enabled
        }

    def specs(self, *, something_removed: bool = False) -> tuple[ToolSpec, ...]:
        """Return the specs for the model, always in the same order (the prompt cache depends on it).

        `something_removed`: text was removed from the chat, so the tool that recalls it is also offered, after all
        others, which therefore stay in the cache.
        """
        always = [tool.spec for tool in self._tools.values() if not tool.only_when_removed]
        later = [tool.spec for tool in self._tools.values() if tool.only_when_removed]
        return (*always, *(later if something_removed else ()))

    def get(self, name: str) -> Tool:
        """Return the tool.

        Raises:
            ToolInputInvalid: the tool does not exist; the message names the nearest match and lists all tools.
        """
        tool = self._tools.get(OTHER_NAMES.get(name, name))
        if tool is None:
            elsewhere = _ELSEWHERE.get(name.casefold().replace("-", "_"), "")
            nearest = (
                [elsewhere] if elsewhere in self._tools else get_close_matches(name[:_SHOWN_CHARS], self._tools, n=1)
            )
            hint = f" Did you mean {nearest[0]}?" if nearest else ""
            names = ", ".join(self._tools) or "none"
            raise ToolInputInvalid(f"There is no tool named {name[:_SHOWN_CHARS]!r}.{hint} The tools are: {names}.")
        return tool

    def names(self) -> tuple[str, ...]:
        """Return the names of the tools, in their order."""
        return tuple(self._tools)

    def for_small_window(self, most: int, count: Callable[[Sequence[ToolSpec]], int]) -> ToolRegistry:
        """Return the most important built-in tools for coding in their short form, and all other tools unchanged.

        Built-in tools are added in the order of `ESSENTIAL`, up to a total of `most` tokens as counted by `count`; the
        first tool is always included.
        """
        needed: list[Tool] = []
        for name in ESSENTIAL:
            tool = self._tools.get(name)
            if tool is None or tool.short is None or self.sources[name] != BUILT_IN:
                continue
            short = msgspec.structs.replace(tool, spec=tool.short)
            if needed and count([one.spec for one in (*needed, short)]) > most:
                break
            needed.append(short)
        shorter = {tool.spec.name: tool for tool in needed}
        kept = self.only([name for name in self._tools if name in shorter or self.sources[name] != BUILT_IN])
        kept._tools = {name: shorter.get(name, tool) for name, tool in kept._tools.items()}
        return kept

    def only(self, offered: Collection[str]) -> ToolRegistry:
        """Return only the offered tools: tools that a request did not offer can be neither called nor suggested."""
        some = ToolRegistry(())
        some.settings, some.sources = self.settings, self.sources
        some._tools = {name: tool for name, tool in self._tools.items() if name in offered}
        return some

    def timeout_s(self, name: str, default: float) -> float:
        """Return the tool's time limit in seconds."""
        setting = self.settings.get(OTHER_NAMES.get(name, name))
        return setting.timeout_s if setting else default

    def validate(self, name: str, arguments_json: str) -> dict[str, Any]:
        """Return the arguments of a call, checked against the tool's schema; an empty string means no arguments.

        An optional argument that is `null` counts as omitted, and a whole float counts as an integer; nothing else is
        converted.

        Raises:
            ToolInputInvalid: unknown tool, malformed JSON, or invalid arguments; the message explains how to fix them.
        """
        from codecompanion.tools import check_arguments  # not needed at startup

        tool = self.get(name)
        if len(arguments_json) > MAX_ARGUMENTS_LENGTH:
            raise ToolInputInvalid(
                f"The arguments of {name} are longer than {MAX_ARGUMENTS_LENGTH:,} characters. Nothing was done. Write"
                " smaller pieces."
            )
        if is_too_deep(arguments_json):
            raise ToolInputInvalid(
                f"The arguments of {name} are nested deeper than {DEEPEST_JSON} levels, or contain an overlong number."
                " Nothing was done. Call the tool again with one flat JSON object."
            )
        try:
            given = msgspec.json.decode(arguments_json) if arguments_json.strip() else {}
        except NOT_READABLE as error:
            raise ToolInputInvalid(
                f"The arguments of {name} are not valid JSON: {error}. They end with"
                f" {arguments_json[-_SHOWN_CHARS:]!r}. Call the tool again with one JSON object."
            ) from error
        if not isinstance(given, dict):
            raise ToolInputInvalid(
                f"The arguments of {name} must be one JSON object, not {check_arguments.shown(given)}."
            )
        problems = check_arguments.problems(given, tool.spec.parameters)
        if problems:
            told = "; ".join(problems[:_MAX_PROBLEMS])
            more = f"; and {len(problems) - _MAX_PROBLEMS} more" if len(problems) > _MAX_PROBLEMS else ""
            raise ToolInputInvalid(f"Wrong arguments for {name}: {told}{more}.")
        arguments: dict[str, Any] = check_arguments.cleaned(given, tool.spec.parameters)
        return arguments
