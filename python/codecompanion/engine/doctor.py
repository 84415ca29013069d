"""Collects findings about the Python side for `:checkhealth codecompanion` and `codecompanion doctor`."""

from __future__ import annotations

import asyncio
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping

import msgspec

from codecompanion.context.policy.policy_catalog import policy_names
from codecompanion.engine.doctor_code import examine_code
from codecompanion.engine.finding import Finding
from codecompanion.engine.module_cache import NOT_WRITTEN, ModuleCache, module_cache
from codecompanion.engine.server_card import server_findings
from codecompanion.errors import ConfigError
from codecompanion.formats.model_name import model_name
from codecompanion.session.accounts.usage_check import ADVICE
from codecompanion.session.services import Services
from codecompanion.session.window.unknown_window import assumed_window, unknown_window
from codecompanion.store.audit import FILE as AUDIT_FILE
from codecompanion.store.audit import size_of
from codecompanion.store.damage.salvage import kept_files
from codecompanion.store.sqlite_connection import RESTORE
from codecompanion.store.store import Store
from codecompanion.tools.commands.command_environment import HiddenVariables, hidden_names
from codecompanion.tools.sandbox.escape_check import try_to_escape
from codecompanion.tools.sandbox.sandbox import Sandbox
from codecompanion.workspace.syntax.languages import languages

PACKAGES = (
    "pynvim",
    "httpx2",
    "tiktoken",
    "msgspec",
    "pathspec",
    "tree-sitter",
    "genai-prices",
)
OLDEST_PYTHON = (3, 11)


async def examine_all(services: Services, *, completes: bool) -> list[Finding]:
    """Return all findings about a running host; `completes`: whether completion was requested, whatever its setting."""
    wanted = completes or services.settings.completion.enabled
    host, code = await asyncio.gather(asyncio.to_thread(examine, services), examine_code(services, completes=wanted))
    return [*host, *code]


def examine(services: Services) -> list[Finding]:
    """Return the findings about a running host; reads the store, so call it in a thread."""
    store = services.store
    problems = store.check()
    if store.path is None:
        history = Finding("history", False, "kept in memory only", "Make the data folder writable and restart")
    elif problems:
        history = Finding("history", False, f"{store.path}: {problems[0]}", ":CodeCompanion restart repairs the file")
    else:
        history = Finding("history", True, f"{store.path}")
    chat = services.settings.chat
    model = chat.model or _default_model(services)
    limits = services.limits(chat.adapter, model, services.policy({}).default_window)
    tokens = limits.context_window
    window = Finding("context window", True, f"{model_name(chat.adapter, model or 'default model')}: {tokens:,} tokens")
    if limits.source == "default":
        tell = unknown_window if model else assumed_window  # the option depends on the model
        advice = "" if model else "gd in a chat names the option to set, once its model is known"
        window = Finding("context window", False, tell(services, chat.adapter, model, tokens), advice)
    usage = [
        Finding(f"usage of {endpoint}", False, text, ADVICE) for endpoint, text in services.usage_doubts.sentences()
    ]
    hidden = services.hidden_variables()
    kept = services.audit.folder
    audit = Finding("audit log", False, "nothing is recorded", "Make the data folder writable and restart")
    if kept is not None:
        audit = Finding("audit log", True, f"{kept / AUDIT_FILE} ({size_of(kept):,} bytes); :CodeCompanion audit")
    return [
        *examine_environment(), history, *history_findings(store), window, *server_findings(services), *usage, audit,
        kept_modules(module_cache()), variables_finding(hidden, services.environment),
        own_environment_finding(hidden, os.environ), *sandbox_findings(services.sandbox),
    ]  # fmt: skip


def _default_model(services: Services) -> str:
    """Return the model of new chats, as soon as the endpoint has named it; otherwise ""."""
    try:
        return services.adapters.get(services.settings.chat.adapter).default_model
    except ConfigError:  # reported where the adapter is used
        return services.adapters.settings(services.settings.chat.adapter).model


def history_findings(store: Store) -> list[Finding]:
    """Return findings about the chat history: losses since the host started, and damaged files that were kept."""
    found = [Finding("history", False, text, RESTORE) for text in store.incidents]
    for kept in kept_files(store.path) if store.path else ():
        story = kept.story or "its repair was interrupted and finished at the next start"
        text = f"was damaged: {story}; the damaged file is kept as {kept.path}"
        found.append(Finding("history", False, text, f"{RESTORE}. Delete the file once nothing is missing"))
    return found


def kept_modules(cache: ModuleCache | None) -> Finding:
    """Return how many modules this host could import from the module cache."""
    if cache is None:
        return Finding("startup cache", True, "off: the Python process is shared, or this is Windows")
    if not cache.why_not:
        return Finding("startup cache", True, f"{len(cache.entries)} Python modules in {cache.path}")
    if cache.why_not == NOT_WRITTEN:
        return Finding(
            "startup cache", True, f"{NOT_WRITTEN}: the plugin writes it while idle, after the first message"
        )
    advice = "Delete the file; only you may own its folder and write to it"
    return Finding("startup cache", False, f"{cache.path}: {cache.why_not}", advice)


def variables_finding(hidden: HiddenVariables, environment: Mapping[str, str]) -> Finding:
    """Return the names of the environment variables hidden from the model's commands, never their values."""
    names = hidden_names(environment, hidden)
    text = f"do not get {', '.join(names)}" if names else "get all environment variables: none contains a secret"
    return Finding("commands", True, text)


def own_environment_finding(hidden: HiddenVariables, own: Mapping[str, str]) -> Finding:
    """Return whether the user's other programs could read a secret in the environment of this process."""
    names = hidden_names(own, msgspec.structs.replace(hidden, keep=()))
    names = [name for name in names if not name.startswith("NVIM")]
    if not names:
        return Finding("keys", True, "in memory only, not in the environment of the Python process")
    text = f"your other programs can read {', '.join(names)} in the environment of the Python process"
    return Finding("keys", False, text, 'Set host = "private": that process starts without them')


def sandbox_findings(sandbox: Sandbox | None) -> list[Finding]:
    """Return the sandbox in use and the result of a fresh escape test."""
    if sandbox is None or sandbox.settings.mode == "off":
        return [Finding("sandbox", False, "switched off: commands run as you", 'Set sandbox = "auto"')]
    if not sandbox.kind:
        consequence = "commands are refused" if sandbox.refuses else "commands run as you"
        text = f"none on this system, {consequence} ({sandbox.why_none()})"
        return [Finding("sandbox", False, text, "On Linux, install bubblewrap")]
    try:
        attempts = try_to_escape(sandbox)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return [Finding("sandbox", False, f"{sandbox.kind}: the escape test could not run: {error}", "")]
    through = [attempt.name for attempt in attempts if attempt.got_through]
    if through:
        return [Finding("sandbox", False, f"{sandbox.kind}: a command could {', '.join(through)}", "Report this")]
    tried = ", ".join(attempt.name for attempt in attempts)
    limits = sandbox.not_stopped()
    found = [Finding("sandbox", True, f"{sandbox.kind}; tested just now: a command could not {tried}")]
    return [*found, Finding("sandbox", True, f"Known limits: {limits}")] if limits else found


def examine_environment() -> list[Finding]:
    """Return the findings that need no running host: Python, packages, programs, policies."""
    version = platform.python_version()
    found = [
        Finding("python", sys.version_info >= OLDEST_PYTHON, f"{version} ({sys.executable})", "Python 3.11 or newer")
    ]
    found += [_package(name) for name in PACKAGES]
    found.append(_grammars())
    found.append(Finding("ripgrep", True, shutil.which("rg") or "not found: the slower built-in search is used"))
    found.append(Finding("policies", True, ", ".join(policy_names())))
    return found


def _grammars() -> Finding:
    """Return whether the grammars for the languages of the code index are installed, without loading any."""
    names = {"tsx": "typescript"}
    known = {language: f"tree_sitter_{names.get(language, language)}" for language in languages()}
    missing = [language for language, module in known.items() if importlib.util.find_spec(module) is None]
    if missing:
        text = f"missing for {', '.join(missing)}: such files are indexed in blocks of lines"
        return Finding("grammars", False, text, "Run :CodeCompanion install")
    return Finding("grammars", True, ", ".join(known))


def _package(name: str) -> Finding:
    try:
        return Finding(name, True, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, False, "not installed", "Run :CodeCompanion install")
