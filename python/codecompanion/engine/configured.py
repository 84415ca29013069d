"""Checks the configuration beyond its types when the host starts: policies, stored files.

An error does not break a chat: only the invalid part is ignored, and its default applies. Errors, with their key paths,
are collected in `Services.mistakes` and shown by every chat and by `:CodeCompanion problems`, because they are too long
for the command line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from codecompanion import settings
from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.entries.resolve import resolve_adapters
from codecompanion.adapters.keys.redact import redact as hide_keys
from codecompanion.adapters.registry import read_settings
from codecompanion.context.policy.strict import is_strict
from codecompanion.engine.log import count_secrets
from codecompanion.engine.log import redact as hide_secrets
from codecompanion.engine.policy_files import read_policy_files
from codecompanion.engine.stop_policies import stop_policies
from codecompanion.errors import ConfigError, InputError
from codecompanion.formats.deferred import Deferred
from codecompanion.session.code.project_indexes import ProjectIndexes, choice_of
from codecompanion.session.gather.chat_gatherer import ProjectGatherer
from codecompanion.session.services import Keeping, Services
from codecompanion.session.toolbox.tool_groups import TOOLS_KEY, unknown_members
from codecompanion.session.trust.trust import sha256_of
from codecompanion.settings import Settings
from codecompanion.settings_sections import HybridSettings
from codecompanion.store.files.checkpoints import CheckpointFiles
from codecompanion.store.files.memory_files import MemoryFiles, compile_exclusions
from codecompanion.tools.builtin import BUILTIN_TOOLS
from codecompanion.tools.commands.command_environment import problem_with_pattern
from codecompanion.wire.events import Notice, Severity
from codecompanion.wire.requests import Hello

if TYPE_CHECKING:
    from codecompanion.session.vectors.project_vectors import ProjectVectors
    from codecompanion.tools.sandbox.sandbox import Sandbox

EXCLUDE_KEY = "interactions.chat.opts.memory.exclude"


def configure(services: Services, request: Hello) -> None:
    """Set up the services that use stored files, and stop invalid policies."""
    services.keeping = _keeping(services, request)
    services.indexes = ProjectIndexes(Path(request.cache_dir), services.emit) if request.cache_dir else None
    services.proxy = request.proxy
    services.pages_dir = Path(request.cache_dir, "pages") if request.cache_dir else None
    services.sandbox = _sandbox(services, request)
    services.vectors = _vectors(services)
    services.gatherer = _gatherer(services)
    _add_own_tools(services)
    _check_patterns(services)
    built_in = [tool.spec.name for tool in BUILTIN_TOOLS]
    services.mistakes += unknown_members(services.settings.tools, built_in, services.settings.mcp.servers)
    files = read_policy_files(request.config_dir, services.settings.chat.policies)
    services.mistakes += files.mistakes
    chat = services.settings.chat
    chat = msgspec.structs.replace(chat, policies={**chat.policies, **files.tables})
    services.settings = msgspec.structs.replace(services.settings, chat=chat)
    stop_policies(services, files, request.wrong_options)
    _check_gathering(services)


def _sandbox(services: Services, request: Hello) -> Sandbox:
    """Return the sandbox for commands, which hides the plugin's own folders from them."""
    data_dir = Path(request.data_dir)
    own = [Path(folder) for folder in (request.data_dir, request.state_dir) if folder]
    from codecompanion.tools.sandbox.sandbox import Sandbox  # not needed at startup

    return Sandbox(services.settings.sandbox, data_dir / "sandbox", own, services.environment)


def _add_own_tools(services: Services) -> None:
    """Add the user's own tools; imported only if there are any."""
    own = services.settings.tools.own
    if own:
        from codecompanion.tools.own.own_tools import OwnTools

        services.tools.add(OwnTools(own, services.report_mistake, services.report_failure))


def _vectors(services: Services) -> ProjectVectors | None:
    """Return the vector search as configured, or None; its code is imported only if configured."""
    embedding = services.settings.context.embedding
    if not embedding.is_set and not embedding.model:
        return None
    from codecompanion.adapters.embeddings.spec import problem_with
    from codecompanion.session.vectors.project_vectors import ProjectVectors

    if problem := problem_with(embedding):
        mistake = ConfigError(f"context.embedding.{problem[0]}", problem[1])
        services.mistakes.append(f"{mistake}. Code is found by keyword search only.")
        return None
    return ProjectVectors(
        embedding,
        services.adapters.read_key,
        lambda text: services.emit(Notice(level=Severity.WARN, text=text)),
        services.emit,
    )


def _gatherer(services: Services) -> ProjectGatherer | None:
    """Return the gatherer of code for questions, or None if there is no folder for an index."""
    indexes = services.indexes
    if indexes is None:
        return None
    return ProjectGatherer(
        lambda: services.settings.context,
        lambda: services.adapters,
        lambda root: indexes.of(root, choice_of(services.settings.context)),
        lambda: services.environment,
        lambda: services.vectors,
        lambda root, path, content, runs: services.trust.allows(root, path, sha256_of(content), runs=runs),
        lambda root: services.trust.is_trusted(root),
    )


def _check_gathering(services: Services) -> None:
    """Report options set under `context.hybrid` that no configured policy's pipeline reads (R-228)."""
    chat, context = services.settings.chat, services.settings.context
    changed = _changed(settings.load({}).context.hybrid, context.hybrid)
    if context.pipeline == "document" or not changed:
        return
    policies = (services.policy({}, name) for name in {chat.policy, *chat.adapter_policies.values()})
    if any(policy.gathers and is_strict(policy) for policy in policies):
        return
    for name in changed:
        mistake = ConfigError(f"context.hybrid.{name}", "has no effect under pipeline ranked")
        services.mistakes.append(f'{mistake}. It applies only with context.pipeline = "document".')


def _changed(default: HybridSettings, given: HybridSettings) -> list[str]:
    """Return the paths of the options that differ from the default."""
    before, now = (dict(_leaves(msgspec.to_builtins(one))) for one in (default, given))
    return [name for name, value in now.items() if value != before[name]]


def _leaves(table: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value


def _check_patterns(services: Services) -> None:
    """Ignore command prefixes that cannot be allowed, and patterns that cannot match an environment variable."""
    tools = services.settings.tools
    entries = dict(tools.entries)
    for option, problem_of, consequence in _PATTERNS:
        for name, tool in entries.items():
            patterns: tuple[str, ...] = getattr(tool, option)
            problems = [problem_of(pattern) for pattern in patterns]
            for number, problem in enumerate(problems, 1):
                if problem:
                    mistake = ConfigError(f"{TOOLS_KEY}.{name}.opts.{option}[{number}]", problem)
                    services.mistakes.append(f"{mistake}. {consequence}")
            good = tuple(pattern for pattern, problem in zip(patterns, problems, strict=True) if not problem)
            entries[name] = msgspec.structs.replace(tool, **{option: good})
    tools = msgspec.structs.replace(tools, entries=entries)
    services.settings = msgspec.structs.replace(services.settings, tools=tools)


_PATTERNS = (
    (
        "allowed_prefixes",
        Deferred("codecompanion.tools.commands.command_prefix", "problem_with"),
        "Such commands still need approval.",
    ),
    ("keep_variables", problem_with_pattern, "It is ignored."),
    ("hide_variables", problem_with_pattern, "It is ignored."),
)


def _keeping(services: Services, request: Hello) -> Keeping:
    """Return the storage of checkpoints and memories; an invalid exclusion pattern disables the memory."""
    data_dir = Path(request.data_dir)
    state_dir = Path(request.state_dir) if request.state_dir else data_dir
    memory, exclusions = services.settings.chat.memory, tuple[re.Pattern[str], ...]()
    remembers = memory.enabled
    try:
        exclusions = compile_exclusions(memory.exclude, EXCLUDE_KEY)
    except InputError as error:
        remembers = False
        services.mistakes.append(f"{error}. Nothing is remembered until this is fixed.")
    files, memories = CheckpointFiles(state_dir), MemoryFiles(services.memory_dir, state_dir)
    return Keeping(files, memories, lambda text: hide_keys(hide_secrets(text)), remembers, exclusions, count_secrets)


def with_adapters(request: Hello, environ: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """Return the settings with the adapters that the user's entries describe, and the errors in the entries."""
    resolved = resolve_adapters(request.adapters, proxy=request.proxy, environ=environ)
    given = dict(request.settings)
    limits: dict[str, Any] = {model: {"context_window": tokens} for model, tokens in resolved.windows.items()}
    for model, said in dict(given.get("models") or {}).items():
        limits[model] = {**limits.get(model, {}), **said} if isinstance(said, Mapping) else said
    given["models"] = limits
    given["adapters"] = {**resolved.adapters, **dict(given.get("adapters") or {})}
    return given, resolved.mistakes


def take_settings(given: Mapping[str, Any]) -> tuple[Settings, dict[str, AdapterSettings], list[str]]:
    """Return the settings in force, the adapters they describe, and a sentence for each part that cannot be used.

    The editor has already checked them; this prevents an unknown part from stopping the host.
    """
    try:
        loaded = settings.load(given)
        return loaded, read_settings(loaded.adapters), []
    except ConfigError:
        pass  # found again below, together with the others
    kept: dict[str, Any] = {}
    mistakes = []
    for path, value in _parts(given):
        tried = _with(kept, path, value)
        try:
            read_settings(settings.load(tried).adapters)
            kept = tried
        except ConfigError as error:
            mistakes.append(f"{error}. The default is used instead.")
    loaded = settings.load(kept)
    return loaded, read_settings(loaded.adapters), mistakes


def _parts(given: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the settings in the smallest parts that can be left out; parts that others refer to come first."""
    for section, value in sorted(given.items()):
        if not isinstance(value, Mapping):
            yield (section,), value
            continue
        for name, inner in sorted(value.items()):
            if (section, name) in (("tools", "entries"), ("rules", "groups")) and isinstance(inner, Mapping):
                yield from (((section, name, entry), field) for entry, field in sorted(inner.items()))
            else:
                yield (section, name), inner


def _with(table: Mapping[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    name, *rest = path
    return {**table, name: _with(table.get(name, {}), tuple(rest), value) if rest else value}
