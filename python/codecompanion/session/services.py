"""The services that the engine provides to chats: everything with an effect, created once and shared by all chats."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from codecompanion.adapters.keys.known_secrets import KnownSecrets
from codecompanion.adapters.keys.redact import plain_url
from codecompanion.adapters.registry import AdapterRegistry
from codecompanion.context.policy.policy import Policy
from codecompanion.context.policy.policy_catalog import known_names, load_policy
from codecompanion.context.policy.policy_options import unknown_options, with_known_options
from codecompanion.context.policy.strict import deviations, strict_form
from codecompanion.counting.calibration import FIGURES, Calibration, start_marks
from codecompanion.counting.model_windows import ModelLimits, ResolvedLimits, resolve_limits
from codecompanion.errors import ConfigError
from codecompanion.formats.find_program import worked_in
from codecompanion.model.found_code import SearchOutcome
from codecompanion.model.history import Prices, UsageReported
from codecompanion.model.messages import Usage
from codecompanion.session.accounts.local_models import runs_on_own_server
from codecompanion.session.accounts.usage_check import Doubt, UsageDoubts
from codecompanion.session.stopped_policies import POLICIES_KEY, StoppedPolicy, find_stopped, running_policy
from codecompanion.session.trust.trust import Trust
from codecompanion.settings import Settings
from codecompanion.store.audit import AuditLog
from codecompanion.store.files.checkpoints import CheckpointFiles
from codecompanion.store.files.memory_files import MemoryFiles
from codecompanion.store.log.scratch import Calibration as StoredCalibration
from codecompanion.store.store import Store
from codecompanion.tools.code_lookup import CodeLookup, LookupKind, no_code_lookup
from codecompanion.tools.commands.command_environment import HiddenVariables
from codecompanion.tools.files.open_files import Editor, NoEditor
from codecompanion.tools.memory_interface import NoProjectMemory
from codecompanion.tools.tool import ToolContext
from codecompanion.tools.toolbox import Toolbox
from codecompanion.wire.events import Event, Mistakes, Notice, Severity
from codecompanion.wire.requests import Snapshot
from codecompanion.workspace.files import walk
from codecompanion.workspace.git_config import read_certainly
from codecompanion.workspace.paths import Workspace
from codecompanion.workspace.secret_files import is_secret
from codecompanion.workspace.secret_text import contains_secret, why_secret, without_secrets

if TYPE_CHECKING:
    from codecompanion.session.code.project_indexes import ProjectIndexes
    from codecompanion.session.codebase.gatherer import Gatherer
    from codecompanion.session.editor_context.source import Source
    from codecompanion.session.memory.project_memory import ProjectMemory
    from codecompanion.session.vectors.project_vectors import ProjectVectors
    from codecompanion.tools.sandbox.sandbox import Sandbox

OPTIONS_KEY = "interactions.chat.opts.context_management"
POLICY_KEY = "interactions.chat.opts.policy"
DEFAULT_TOOL_TIMEOUT_S = 60.0
MAX_FAILURES = 50
_LEARNED = ("ratio", "weight", "extra", "above", "below", "framing", "framed")
"""The stored fields of a calibration; the others are derived from the model's name."""


class Keeping(msgspec.Struct, frozen=True):
    """The storage outside the database, and the restrictions on the memory's content.

    `redact` hides API keys; the value of `keys_known` changes when more keys are known.
    """

    checkpoints: CheckpointFiles
    memories: MemoryFiles
    redact: Callable[[str], str]
    remembers: bool = True
    exclusions: tuple[re.Pattern[str], ...] = ()
    keys_known: Callable[[], int] = lambda: 0


class EditorFacts(msgspec.Struct, frozen=True):
    """Facts that the editor reports about the user's machine; "" = unknown.

    `shell` is the value of Neovim's `shell` option.
    """

    nvim: str = ""
    shell: str = ""
    language: str = ""


class Mcp(Protocol):
    """The MCP servers of a host."""

    async def look(self, chat: Any) -> None:
        """Update the servers from the chat's configuration files, because a file or its trust may have changed."""

    async def wait_for(self, chat: Any) -> None:
        """Start the servers the chat can use and wait up to the configured time; report missing ones."""


class Services(msgspec.Struct):
    """Everything that the engine provides to a chat.

    `emit` sends an event to the editor, `clock` returns seconds since the epoch, `lookup(adapter, model)` returns model
    windows (None = unknown), `price(adapter, model, passes)` returns the cost of calls in US dollars (None = unknown),
    `report_bug` logs a bug and returns the sentence for the user. `keeping`: where checkpoints and memories are stored,
    None = they are not stored. `calibrations`: the learned calibration for each (endpoint, model). Tools ask `editor`
    about open files. `mistakes`: sentences about configuration mistakes, which each chat shows when it is opened.
    `usage_doubts`: the endpoints whose usage reports cannot be true; without `checks_usage`, every report is trusted.
    `environment` is the user's environment, including secrets.
    """

    settings: Settings
    store: Store
    adapters: AdapterRegistry
    tools: Toolbox
    emit: Callable[[Event], None]
    clock: Callable[[], float]
    lookup: Callable[[str, str], ModelLimits | None]
    price: Callable[[str, str, Sequence[Usage]], float | None]
    memory_dir: Path
    count_text: Callable[[str], int]
    report_bug: Callable[[BaseException], str]
    trust: Trust = msgspec.field(default_factory=Trust)
    """Decides which files of a folder may be run or may instruct the model; none until the user trusts them."""
    calibrations: dict[tuple[str, str], Calibration] = msgspec.field(default_factory=dict)
    keeping: Keeping | None = None
    mistakes: list[str] = msgspec.field(default_factory=list)
    failures: list[str] = msgspec.field(default_factory=list)
    """Messages about failures of the user's own tools and strategies, newest last."""
    stopped: dict[str, StoppedPolicy] = msgspec.field(default_factory=dict)
    """Stopped policies by name: their definition or one of their options is invalid."""
    open_file_notice: Literal["not sent", "due", "shown"] = "not sent"
    """The notice about the open file: whether a model has received its name, and whether the user knows that."""
    unusable_writers: set[tuple[str, str]] = msgspec.field(default_factory=set)
    """The (adapter, model) pairs on the user's own servers that produced no usable summary when last asked."""
    usage_doubts: UsageDoubts = msgspec.field(default_factory=UsageDoubts)
    checks_usage: bool = True
    new_token: Callable[[], str] = msgspec.field(default=lambda: secrets.token_hex(6))
    editor: Editor = msgspec.field(default_factory=NoEditor)
    known_secrets: KnownSecrets = msgspec.field(default_factory=KnownSecrets)
    environment: Mapping[str, str] = msgspec.field(default_factory=lambda: os.environ)
    gatherer: Gatherer | None = None
    """Gathers code for a question (R-201), None = code is not gathered."""
    indexes: ProjectIndexes | None = None
    """The code indexes of the projects, None = no folder is available for them."""
    mcp: Mcp | None = None
    """The MCP servers, or None if there are none."""
    vectors: ProjectVectors | None = None
    """Computes and compares vectors of code, None = search uses words only."""
    context_sources: dict[str, Source] = msgspec.field(default_factory=dict)
    """Additional sources of editor context items that the host provides (`by_host`), by name."""
    editor_facts: EditorFacts = msgspec.field(default_factory=EditorFacts)
    """The facts about the editor that the model may see."""
    proxy: str = ""
    """The configured proxy, "" = the system's."""
    sandbox: Sandbox | None = None
    """The sandbox for commands, None = they run without one."""
    pages_dir: Path | None = None
    """The cache folder for fetched pages, None = no cache."""
    summary_thinking: dict[str, int] = msgspec.field(default_factory=dict)
    """The most tokens that each model has spent on thinking before a summary (R-433)."""
    audit: AuditLog = msgspec.field(default_factory=lambda: AuditLog(None, str, lambda sentence: None))
    """The audit log; by default it stores nothing."""
    told_guesses: set[tuple[str, str]] = msgspec.field(default_factory=set)
    """The (adapter, model) pairs whose guessed context window was reported to the user (R-506)."""

    def __repr__(self) -> str:
        return "Services()"  # must not show the environment

    def report_mistake(self, sentence: str) -> None:
        """Report a configuration mistake found after startup and add it to the list; each mistake is reported once."""
        if sentence not in self.mistakes:
            self.mistakes.append(sentence)
            self.emit(Notice(level=Severity.WARN, text=sentence))
            self._emit_mistakes()

    def report_failure(self, sentence: str, before: str = "") -> None:
        """List a failure of the user's own code in place of the earlier failure `before`; the caller reports it.

        If `sentence` is "", the code works again, and `before` is only removed.
        """
        failures = [one for one in self.failures if one != before or one == sentence]
        failures += [sentence] if sentence and sentence not in failures else []
        if failures != self.failures:
            self.failures = failures[-MAX_FAILURES:]
            self._emit_mistakes()

    def _emit_mistakes(self) -> None:
        self.emit(Mistakes(mistakes=tuple(self.mistakes), failures=tuple(self.failures)))

    def policy(self, overrides: Mapping[str, Any], name: str = "", adapter_name: str = "") -> Policy:
        """Return the policy of a chat: the chosen policy, else its adapter's, else the configured one (K1).

        The user's settings and the chat's overrides are applied if the policy has these options; the others may be
        meant for another policy (`ignored_settings` lists them). A stopped policy is replaced.

        Raises:
            ConfigError: the policy does not exist, or an option is invalid.
        """
        policy = running_policy(self.settings, self.stopped, self._wanted_policy(name, adapter_name))
        policy = with_known_options(policy, self.settings.chat.context_management, OPTIONS_KEY)
        return with_known_options(policy, overrides, OPTIONS_KEY)

    def _wanted_policy(self, name: str, adapter_name: str) -> str:
        chat = self.settings.chat
        return name or chat.adapter_policies.get(adapter_name) or chat.policy

    def stopped_policy(self, name: str, adapter_name: str) -> tuple[str, StoppedPolicy] | None:
        """Return the name and details of the chat's wanted policy if it is stopped, else None."""
        found = find_stopped(self.settings, self.stopped, self._wanted_policy(name, adapter_name))
        return (found, self.stopped[found]) if found else None

    def ignored_settings(self, policy: Policy) -> tuple[str, ...]:
        """Return the settings in `context_management` that the policy does not have."""
        return unknown_options(policy, self.settings.chat.context_management)

    def policies(self) -> tuple[Policy, ...]:
        """Return the policies that a chat may use.

        A policy that deviates from its document is followed by its strict form.
        """
        policies: list[Policy] = []
        for name in known_names(self.settings.chat.policies):
            policy = load_policy(name, self.settings.chat.policies, POLICIES_KEY)
            policies += [policy, strict_form(policy)] if deviations(policy) and not policy.ours else [policy]
        return tuple(policies)

    def limits(self, adapter_name: str, model: str, default_window: int) -> ResolvedLimits:
        """Return the window and reply reserve in force for a model (K4, R-506)."""
        entry = self.adapters.settings(adapter_name)
        return resolve_limits(
            model,
            chosen_window=self.settings.chat.context_window,
            user_table=self.settings.models,
            adapter_limits=ModelLimits(entry.context_window, entry.max_output_tokens),
            endpoint_limits=self._endpoint_limits(adapter_name, model),
            lookup=lambda name: self.lookup(adapter_name, name),
            default_window=default_window,
        )

    def passes_reported(self, adapter: str, model: str, about: str, passes: Sequence[Usage]) -> UsageReported:
        """Return the usage event for calls that produce no reply in the chat, by default compactions."""
        reported = UsageReported(
            message_id=about,
            adapter=adapter,
            model=model,
            usage=Usage(),
            estimated_prompt_tokens=0,
            other_passes=tuple(passes),
        )
        return self.priced(reported)

    def priced(self, reported: UsageReported) -> UsageReported:
        """Return the report with its cost at current prices."""
        adapter, model, usage = reported.adapter, reported.model, reported.usage
        if self.is_included(adapter):
            return msgspec.structs.replace(reported, cost_usd=0.0, included=True)
        passes = reported.other_passes if usage == Usage() else (usage, *reported.other_passes)
        largest = max((one.prompt_tokens for one in passes), default=0)
        cost = self.price(adapter, model, passes)
        if cost is None and passes and runs_on_own_server(self.adapters, adapter, model):
            return msgspec.structs.replace(reported, cost_usd=0.0, included=True, local=True)
        prices = None if cost is None else self.prices(adapter, model, largest)
        return msgspec.structs.replace(reported, cost_usd=cost, prices=prices)

    def prices(self, adapter: str, model: str, prompt_tokens: int) -> Prices | None:
        """Return the list prices for a prompt of this size (some models charge more for long prompts).

        None = unknown, or covered by a subscription.
        """
        if self.is_included(adapter):
            return None
        size = max(1, prompt_tokens)
        prompts = (Usage(size), Usage(cache_read_tokens=size), Usage(cache_write_tokens=size))
        plain, read, write = (self.price(adapter, model, (usage,)) for usage in prompts)
        whole = self.price(adapter, model, (Usage(size, 1_000_000),))
        if plain is None or read is None or write is None or whole is None:
            return None
        per_million = 1_000_000 / size
        return Prices(
            round(plain * per_million, 6), round(whole - plain, 6), round(read * per_million, 6),
            round(write * per_million, 6),
        )  # fmt: skip

    def is_included(self, adapter: str) -> bool:
        """Return whether a subscription covers the requests of an adapter."""
        return adapter in self.adapters.names() and self.adapters.settings(adapter).included

    def _endpoint_limits(self, adapter_name: str, model: str) -> ModelLimits:
        try:
            return self.adapters.get(adapter_name).limits(model) or ModelLimits()
        except ConfigError:  # reported where the adapter is used
            return ModelLimits()

    def endpoint(self, adapter_name: str) -> str:
        """Return adapter and URL as one name, because facts about one server do not apply to another (lesson 58)."""
        known = adapter_name in self.adapters.names()
        address = plain_url(self.adapters.settings(adapter_name).base_url) if known else ""
        return f"{adapter_name} {address}".rstrip()

    def calibration(self, adapter_name: str, model: str) -> Calibration:
        """Return the learned calibration of the model at this endpoint, else the initial one."""
        return self.calibrations.get((self.endpoint(adapter_name), model)) or Calibration.for_model(model)

    def keep_calibration(self, adapter_name: str, model: str, learned: Calibration) -> None:
        """Store the learned calibration, so that it survives the chat and the host."""
        endpoint = self.endpoint(adapter_name)
        if self.calibrations.get((endpoint, model)) != learned:
            self.calibrations[endpoint, model] = learned
            figures = {name: getattr(learned, name) for name in _LEARNED}
            self.store.save_calibration(StoredCalibration(endpoint, model, figures=FIGURES, **figures))

    def load_calibrations(self) -> None:
        """Load the calibrations of earlier hosts; outdated or impossible figures are skipped."""
        for stored in self.store.load_calibration():
            figures = {name: getattr(stored, name) for name in _LEARNED}
            learned = Calibration(marks=start_marks(stored.model), **figures)
            if stored.figures == FIGURES and learned.is_sound:
                self.calibrations[stored.adapter, stored.model] = learned

    def doubt_usage(self, adapter_name: str, doubt: Doubt) -> bool:
        """Record that a usage report of this endpoint cannot be true; return whether the user must be informed."""
        return self.checks_usage and self.usage_doubts.note(self.endpoint(adapter_name), doubt)

    def root(self, snapshot: Snapshot) -> Path:
        """Return the workspace: the configured folder, else the editor's working folder."""
        root = Path(self.settings.workspace.root or snapshot.cwd or ".").expanduser()
        worked_in(root)
        return root

    def tool_context(
        self, snapshot: Snapshot, timeout_s: float = DEFAULT_TOOL_TIMEOUT_S, root: Path | None = None
    ) -> ToolContext:
        """Return the context of a tool call with this timeout; `root` is the workspace, if already known."""
        workspace = Workspace(root or self.root(snapshot))
        memory = self.memory_of(workspace.root)
        return ToolContext(
            root=workspace.root,
            resolve=workspace.resolve,
            memory_dir=self.memory_dir if memory is None else memory.folder,
            memory=memory or NoProjectMemory(),
            snapshot=snapshot,
            read_stored=lambda sha256: self.store.read_blob(sha256).decode("utf-8", "surrogatepass"),
            timeout_s=timeout_s,
            walk=walk,
            is_secret=is_secret,
            why_secret=why_secret,
            without_secrets=without_secrets,
            read_git_config=read_certainly,
            environment=self.environment,
            hidden=self.hidden_variables(),
            editor=self.editor,
            sandbox=self.sandbox,
            look_up_code=no_code_lookup
            if self.indexes is None
            else self._look_up_code_of(self.indexes, workspace.root),
        )

    def memory_of(self, root: Path) -> ProjectMemory | None:
        """Return the memory of the project that a workspace belongs to, or None if no memory is kept."""
        kept, own = self.keeping, self.settings.context.memories
        if kept is None:
            return None
        from codecompanion.session.memory.project_memory import ProjectMemory  # not needed at startup

        return ProjectMemory(kept.memories, kept.exclusions, own, self.trust, root)

    def _look_up_code_of(self, indexes: ProjectIndexes, root: Path) -> CodeLookup:
        """Return the function that searches the code of a folder; nothing is opened or imported before it is called."""

        async def look_up(
            query: str, kind: LookupKind, below: str, limit: int, unsaved: Mapping[str, str]
        ) -> SearchOutcome:
            from codecompanion.session.code.project_indexes import choice_of
            from codecompanion.session.code.search_code import look_up_code

            index = await indexes.of(root, choice_of(self.settings.context))
            return await look_up_code(index, query, kind, below, limit, unsaved)

        return look_up

    def hidden_variables(self) -> HiddenVariables:
        """Return the rules for environment variables hidden from commands."""
        command = self.settings.tools.entries.get("run_command")
        return HiddenVariables(
            of_adapters=self.adapters.key_variables(),
            values=self.adapters.sent_values(),
            keep=command.keep_variables if command else (),
            hide=command.hide_variables if command else (),
            is_secret=contains_secret,
        )
