"""Describes a local server: its model, and advice on its settings (`:checkhealth`, the list of adapters)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.server_facts import NO_FACTS, ServerFacts
from codecompanion.adapters.speed import NO_SPEED, Speed
from codecompanion.counting.tokens import MessageCounter
from codecompanion.engine.finding import Finding
from codecompanion.session.services import Services
from codecompanion.session.toolbox.chat_tools import ChatTools

LARGE_SHARE = 0.4
"""Share of the context window (0..1); tools that take more leave too little room for a chat about files."""
_BESIDE_TOOLS = 4096
_LARGER = {"/props": "restart the server with -c {0}{1}", "/api/ps": "start Ollama with OLLAMA_CONTEXT_LENGTH={0}"}
"""How to start a server with a larger context window, by the path where it reports the current one."""


def brief_card(facts: ServerFacts) -> str:
    """Return the state of a model's server and whether it supports tools and images, for a row of a list."""
    found = (facts.state, "no tools" if facts.tools is False else "", "images" if facts.images else "")
    return " · ".join(filter(None, found))


def server_findings(services: Services) -> list[Finding]:
    """Return a finding for each local server that has reported anything, without asking any."""
    found = []
    for name in services.adapters.names():
        if services.adapters.is_made(name) and (told := _card_of(services, name)):
            text, advice = told
            found.append(Finding(f"server {name}", not advice, text, advice))
    return found


async def server_cards(services: Services, names: Sequence[str]) -> list[dict[str, str]]:
    """Ask the servers of these adapters, with a short timeout, and return `[{adapter, text, advice}]`."""
    known = [name for name in names if name in services.adapters.names()]
    await asyncio.gather(*(services.adapters.get(name).know_server(_model_of(services, name)) for name in known))
    told = {name: _card_of(services, name) for name in known}
    return [{"adapter": name, "text": card[0], "advice": card[1]} for name, card in told.items() if card]


def _card_of(services: Services, name: str) -> tuple[str, str] | None:
    """Return the description of an adapter's server and the advice about it, or None if it has reported nothing."""
    adapter, model = services.adapters.get(name), _model_of(services, name)
    facts = adapter.facts(model)
    if facts == NO_FACTS:
        return None
    tools = 0 if facts.tools is False else tool_tokens(services, facts.window)
    advice = advise(facts, services.adapters.settings(name), tool_tokens(services, 0))
    return card(facts, model, tools, adapter.speed(model)), advice


def _model_of(services: Services, name: str) -> str:
    chosen = services.settings.chat
    return (chosen.model if name == chosen.adapter else "") or services.adapters.get(name).default_model


def card(facts: ServerFacts, model: str, tools: int, speed: Speed = NO_SPEED) -> str:
    """Return the server's facts and speed in one line; `tools`: the token count of the offered tools."""
    slots = f"{facts.slots} slots" if facts.slots > 1 else ""
    window = f"window of {facts.window:,} tokens" if facts.window else "window unknown until the model is loaded"
    about_tools = "no tools" if facts.tools is False else f"tools take about {tools:,}" if tools else ""
    images = {True: "images", False: "no images"}.get(facts.images) if facts.images is not None else ""
    found = (facts.model or model, facts.state, window, slots, about_tools, images, speed.text, facts.version)
    return " · ".join(filter(None, found))


def advise(facts: ServerFacts, settings: AdapterSettings, tools: int) -> str:
    """Return advice on the server's settings, or "" if there is none; `tools`: the token count of all tools."""
    if facts.tools is False:
        why = facts.refuses_tools or "the model's chat template does not support them"
        return f"No tools are sent: {why}. To use tools, run another model or chat template"
    if settings.context_window > facts.window > 0:
        return f"opts.context_window is {settings.context_window:,}, larger than the server's window: remove it"
    if not facts.window or tools < LARGE_SHARE * facts.window:
        return ""
    wanted = 2 * facts.window
    while wanted < 4 * tools + _BESIDE_TOOLS:
        wanted *= 2
    larger = next((text for path, text in _LARGER.items() if settings.limits_path.endswith(path)), "")
    shared = " --kv-unified" if facts.slots > 1 else ""  # otherwise llama.cpp divides it by the number of slots
    way = larger.format(wanted, shared) if larger else f"give the server a window of {wanted:,} tokens"
    return f"All tools together take {tools:,} tokens of a window of {facts.window:,}: {way}, or offer fewer tools"


def tool_tokens(services: Services, window: int) -> int:
    """Return the token count of the tools that a new chat with this context window offers; 0 counts all tools."""
    if not services.settings.tools.enabled:
        return 0
    count = MessageCounter(services.count_text).tools
    tools = ChatTools(services.tools, lambda: services.settings.tools, tuple, window=lambda: window, count=count)
    return count(tools.offered().specs())
