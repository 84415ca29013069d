"""Names an unknown context window and the option that sets it, for chats, `gd` and `:checkhealth` (R-506)."""

from __future__ import annotations

from codecompanion.session.services import Services


def unknown_window(services: Services, adapter: str, model: str, tokens: int) -> str:
    """Return two sentences: the window that is assumed, and the option to set."""
    return (
        f"{assumed_window(services, adapter, model, tokens)}"
        f" Set it in opts or setup(): {window_setting(adapter, model, '<its tokens>')}"
    )


def assumed_window(services: Services, adapter: str, model: str, tokens: int) -> str:
    """Return a sentence on the assumed window; an endpoint may report its size once it has loaded the model."""
    registry = services.adapters
    may_report = adapter in registry.names() and bool(registry.settings(adapter).limits_path)
    until = f" until {adapter} reports it" if may_report else ""
    return f"The window of {model or adapter} is unknown: {tokens:,} tokens are assumed{until}."


def window_setting(adapter: str, model: str, tokens: int | str) -> str:
    """Return the configuration line that sets the window to `tokens`, which is never a guess."""
    if not model:
        return f"adapters = {{ http = {{ {_lua_key(adapter)} = {{ opts = {{ context_window = {tokens} }} }} }} }}"
    return f"models = {{ {_lua_key(model)} = {{ context_window = {tokens} }} }}"


def _lua_key(name: str) -> str:
    """Return the name as a Lua table key, always quoted, because a bare name could be a Lua keyword."""
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'["{escaped}"]'
