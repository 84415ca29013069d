"""Builds the services of a host from the editor's `hello`: settings, store, adapters, tools (architecture.md)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from codecompanion.adapters import catalog
from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.keys.known_secrets import KnownSecrets
from codecompanion.adapters.registry import AdapterRegistry
from codecompanion.counting import tokens
from codecompanion.counting.model_windows import ModelLimits
from codecompanion.engine.configured import configure, take_settings, with_adapters
from codecompanion.engine.log import register_secrets
from codecompanion.engine.loop import one_sentence
from codecompanion.engine.user_environment import UserEnvironment
from codecompanion.errors import StoreError
from codecompanion.model.messages import Message, Usage
from codecompanion.session.files.editor_client import EditorClient
from codecompanion.session.services import EditorFacts, Services
from codecompanion.session.trust.trust import FILE as TRUST_FILE
from codecompanion.session.trust.trust import Trust
from codecompanion.store.audit import AuditLog
from codecompanion.store.opening import open_memory_store, open_store
from codecompanion.store.store import Store
from codecompanion.tools.builtin import BUILTIN_TOOLS
from codecompanion.tools.commands.command_environment import is_plain_name
from codecompanion.tools.tool_provider import GivenTools
from codecompanion.tools.tool_registry import BUILT_IN
from codecompanion.tools.toolbox import Toolbox
from codecompanion.wire.events import Event, Notice, Severity
from codecompanion.wire.requests import Hello
from codecompanion.workspace.secret_text import hide_secrets

_log = logging.getLogger(__name__)

Tell = Callable[[str], None]
"""Receives a sentence for the user."""


async def build_services(
    request: Hello, emit: Callable[[Event], None], environment: UserEnvironment, editor: EditorClient
) -> tuple[Services, AdapterSettings | None]:
    """Return the services that the settings describe, with errors in `mistakes`, and the adapter of a new chat."""
    known = KnownSecrets()
    environment.take(request.environment)
    given, mistakes = with_adapters(request, environment)
    loaded, adapter_settings, unusable = take_settings(given)
    data_dir = Path(request.data_dir)

    def tell(text: str) -> None:
        emit(Notice(level=Severity.WARN, text=text[:1].upper() + text[1:]))

    def learn(key: str) -> None:
        register_secrets((key,))
        known.learn((key,))

    store = await asyncio.to_thread(_open_store, data_dir, tell)
    adapters = AdapterRegistry(
        adapter_settings,
        read_blob=store.read_blob,
        summarise=_summarise,
        secrets=request.secrets,
        environ=environment,
        on_key=learn,
        logins=data_dir,
    )
    services = Services(
        settings=loaded,
        store=store,
        adapters=adapters,
        tools=Toolbox(
            [GivenTools(BUILT_IN, BUILTIN_TOOLS)], loaded.tools.entries, lambda text: services.report_mistake(text)
        ),
        emit=emit,
        clock=time.time,
        lookup=lambda adapter, model: _limits(adapters, adapter, model),
        price=lambda adapter, model, passes: _price(adapters, adapter, model, passes),
        memory_dir=data_dir / "memories",
        count_text=await _text_counter(loaded.chat.tokenizer, Path(request.cache_dir), tell),
        report_bug=_report_bug,
        mistakes=[*request.mistakes, *mistakes, *unusable],
        editor=editor,
        known_secrets=known,
        environment=environment,
        editor_facts=EditorFacts(request.nvim, request.shell, request.language),
        audit=AuditLog(None if store.path is None else data_dir, hide_in_audit(known), tell),
        trust=Trust(
            data_dir / TRUST_FILE,
            enabled=loaded.trust.enabled,
            folders=loaded.trust.folders,
            neovim=Path(request.state_dir).parent / "trust" if request.state_dir else None,
            report=tell,
        ),
    )
    known.learn_environment(environment, adapters.key_variables(), is_plain_name)
    known.learn(await asyncio.to_thread(adapters.secret_values))
    if loaded.chat.strategies:
        from codecompanion.engine.own_strategies import register_in_time

        services.mistakes += await register_in_time(loaded.chat.strategies, tell, services.report_failure)
    configure(services, request)
    await asyncio.to_thread(services.load_calibrations)
    if request.cache_dir:
        catalog.keep_in(Path(request.cache_dir))
    return services, adapter_settings.get(loaded.chat.adapter)


async def _text_counter(tokenizer: str, cache_dir: Path, tell: Tell) -> tokens.TextCounter:
    """Return the text counter; if its vocabulary must be downloaded, report that instead of waiting."""
    if tokenizer == "exact":
        from codecompanion.store.vocabulary import load_encoder

        encoder = await asyncio.to_thread(load_encoder, cache_dir / "tiktoken", tokens.EXACT_VOCABULARY)
        if encoder is not None:
            return encoder
        name = tokens.EXACT_VOCABULARY
        tell(f"The vocabulary {name} cannot be loaded; token counts are estimated. Run :CodeCompanion install.")
    return tokens.estimate_text


def hide_in_audit(known: KnownSecrets) -> Callable[[str], str]:
    """Return a function that masks configured keys and apparent secrets in the text of audit records."""
    return lambda text: known.hide(hide_secrets(text))


def _open_store(data_dir: Path, tell: Tell) -> Store:
    """Open the store; if the disk cannot be used, report that and continue in memory."""

    def report(problem: StoreError) -> None:
        tell(str(problem))

    try:
        return open_store(data_dir, report=report)
    except StoreError as error:
        # The line may be truncated on screen, so its effect on the user comes first.
        tell(f"Chats will not be saved: {error}")
        return open_memory_store(report=report)


def _price(adapters: AdapterRegistry, adapter: str, model: str, passes: Sequence[Usage]) -> float | None:
    entry = adapters.settings(adapter)
    if entry.price is not None:
        return sum(map(entry.price.usd, passes))
    facts = catalog.lookup(entry.base_url, model)
    return catalog.price_usd(facts, *passes) if facts else None


def _limits(adapters: AdapterRegistry, adapter: str, model: str) -> ModelLimits | None:
    return catalog.limits_of(adapters.settings(adapter).base_url, model)


def _summarise(messages: Sequence[Message], limit: int) -> str:
    from codecompanion.context.ledger.ledger import summarise  # for the offline adapter

    return summarise(messages, limit, tokens.estimate_text)


def _report_bug(error: BaseException) -> str:
    """Log a bug in our code; return the sentence for the user."""
    _log.error("internal error", exc_info=error)
    return one_sentence("the chat", error)
