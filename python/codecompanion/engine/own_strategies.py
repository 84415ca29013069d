"""Runs the user's own Python strategies (`interactions.chat.opts.strategies.<name>`) like built-in ones.

A function receives the messages, its parameters and an environment, and returns the messages of the next request, with
shorter or fewer messages. Its result is checked: calls must keep their results, protected messages must be unchanged,
and nothing may be added. If the result is invalid, or the function raises or takes too long, the chat stays unchanged.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import logging
import threading
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from codecompanion.context.strategies import STRATEGIES, Strategy
from codecompanion.context.work import Env, Failed, Outcome, Skipped, Work
from codecompanion.errors import ConfigError
from codecompanion.formats import typed
from codecompanion.model.messages import Message, is_protected, replaced_text, with_changes
from codecompanion.tools.own.loading import format_error, load_function

KEY = "interactions.chat.opts.strategies"
LIMIT_S = 2.0
"""Time limit of a strategy in seconds; everything else in the chat waits for it."""
LOAD_S = 10.0
"""Time limit for importing all strategies, in seconds."""

Tell = Callable[[str], None]
_log = logging.getLogger(__name__)
_own: set[str] = set()
"""Names of the registered strategies; a new configuration replaces them."""


class NoParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of a function that takes none."""


class StrategyEnv(msgspec.Struct, frozen=True):
    """The environment of a user's strategy: context window, target size (0 = none) and request size, in tokens.

    `cycle`: the number of the running turn. `count(text)` returns the token count of a string; `with_text(message,
    text)` returns the message with different text.
    """

    window: int
    target: int
    tokens: int
    cycle: int
    count: Callable[[str], int]

    @staticmethod
    def with_text(message: Message, text: str) -> Message:
        """Return the message with different text; images and documents in it stay."""
        return with_changes(message, content=replaced_text(message, text))


def register_strategies(
    given: Mapping[str, str], tell: Tell = _log.warning, failed: Tell = lambda sentence: None
) -> list[str]:
    """Register the user's functions as strategies, replacing those of an earlier configuration; return the errors.

    If a strategy fails later, `tell` receives a sentence for the chat, and `failed` a sentence with the key for the
    list of problems. Runs the user's code, so call it in a thread, before policies are read.
    """
    for name in _own:
        STRATEGIES.pop(name, None)
    _own.clear()
    mistakes = []
    for name, where in sorted(given.items()):
        try:
            if name in STRATEGIES:
                raise ConfigError(f"{KEY}.{name}", "a built-in strategy has this name", "another name")
            STRATEGIES[name] = _strategy(name, load_function(where, f"{KEY}.{name}"), tell, failed)
            _own.add(name)
        except ConfigError as error:
            mistakes.append(f"{error}. Policies that use it are left out.")
    return mistakes


async def register_in_time(
    given: Mapping[str, str], tell: Tell = _log.warning, failed: Tell = lambda sentence: None
) -> list[str]:
    """Register the strategies in a thread; return an error if that takes longer than `LOAD_S`."""
    try:
        return await asyncio.wait_for(asyncio.to_thread(register_strategies, given, tell, failed), LOAD_S)
    except TimeoutError:
        return [f"{KEY}: loading took longer than {LOAD_S:g} seconds. Policies that use them are left out."]


def _strategy(name: str, function: Callable[..., Any], tell: Tell, failed: Tell) -> Strategy:
    kind, make = _params_of(function, f"{KEY}.{name}")
    broken = False
    told = set[str]()

    def run(work: Work, params: Any, env: Env) -> Outcome:
        outcome = attempt(work, params, env)
        if isinstance(outcome, Failed) and outcome.reason not in told:
            told.add(outcome.reason)
            tell(f"The chat is unchanged: {outcome.reason}.")
            failed(f"{KEY}.{name}: {outcome.reason}. The chat is unchanged.")
        return outcome

    def attempt(work: Work, params: Any, env: Env) -> Outcome:
        nonlocal broken
        if broken:
            return Failed(f"the strategy {name} did not finish last time and is not called again")
        known = StrategyEnv(env.window, env.target, env.measure(work.messages).tokens, env.cycle, env.count_text)
        ended = _within(lambda: function(tuple(work.messages), make(params), known))
        if ended is None:
            broken = True
            return Failed(f"the strategy {name} took longer than {LIMIT_S:g} seconds")
        result, error = ended
        if error is not None:
            return Failed(f"the strategy {name} failed: {format_error(error)}")
        return _taken(name, work, result, env)

    return Strategy("own", kind, run, makes="change")


def _params_of(function: Callable[..., Any], key: str) -> tuple[type[msgspec.Struct], Callable[[msgspec.Struct], Any]]:
    """Return the struct for a policy's table, and a function that converts it to the function's own parameters."""
    try:
        hints = typing.get_type_hints(function)
        names = list(inspect.signature(function).parameters)
    except Exception as error:
        raise ConfigError(key, f"the type hints cannot be read: {type(error).__name__}: {error}") from error
    if len(names) != 3:
        raise ConfigError(key, f"the function has {len(names)} parameters", "three: messages, params, env")
    kind = hints.get(names[1])
    if kind is None or kind is dict or typing.get_origin(kind) is dict:
        return NoParams, lambda params: {}
    if not dataclasses.is_dataclass(kind) or not isinstance(kind, type):
        raise ConfigError(key, f"`{names[1]}` is not a dataclass", "a dataclass with the parameters and their defaults")
    fields = typing.get_type_hints(kind)
    made: list[Any] = []
    for field in dataclasses.fields(kind):
        if field.default is dataclasses.MISSING:
            raise ConfigError(key, f"the parameter {field.name} has no plain default value", "one")
        made.append((field.name, fields[field.name], field.default))
    try:
        struct = msgspec.defstruct("Params", made, frozen=True, forbid_unknown_fields=True)
        typed.convert({}, struct)
    except (TypeError, msgspec.ValidationError) as error:
        raise ConfigError(key, f"its parameters cannot be read from a table: {error}") from error
    return struct, lambda params: kind(**msgspec.structs.asdict(params))


def _within(work: Callable[[], Any]) -> tuple[Any, BaseException | None] | None:
    """Run the work and return its result or exception, or None on a timeout; its thread is then abandoned."""
    ended: list[tuple[Any, BaseException | None]] = []

    def body() -> None:
        try:
            ended.append((work(), None))
        except BaseException as error:
            ended.append((None, error))

    thread = threading.Thread(target=body, name="strategy of the user", daemon=True)
    thread.start()
    thread.join(LIMIT_S)
    return ended[0] if ended else None


def _taken(name: str, work: Work, result: Any, env: Env) -> Outcome:
    """Return the work with the function's result, or why it is invalid; the pipeline also checks tool pairing."""
    if result is None:
        return Skipped("nothing_to_do", f"{name} changed nothing")
    messages, _ = result if isinstance(result, tuple) and len(result) == 2 and _is_list(result[0]) else (result, None)
    if not _is_list(messages):
        return Failed(f"the strategy {name} returned a {type(result).__name__}; expected a list of messages or None")
    before = {message.id: message for message in work.messages}
    order = {id: place for place, id in enumerate(before)}
    made, cleared, last = list[Message](), list[Message](), -1
    for message in messages:
        was = before.get(message.id)
        if was is None or order[message.id] <= last:
            return Failed(f"the strategy {name} added a message or reordered the messages")
        last = order[message.id]
        if message == was:
            made.append(was)
            continue
        kept = with_changes(was, content=message.content, edited=True)
        if is_protected(was) or was.tool_calls != message.tool_calls:
            return Failed(f"the strategy {name} changed a message that must stay unchanged")
        made.append(env.recounted(kept))
        cleared.append(was)
    there = {message.id for message in made}
    removed = tuple(message for message in work.messages if message.id not in there)
    if any(is_protected(message) for message in removed):
        return Failed(f"the strategy {name} removed a message that must stay")
    if not cleared and not removed:
        return Skipped("nothing_to_do", f"{name} changed nothing")
    return msgspec.structs.replace(
        work, messages=tuple(made), cleared=(*work.cleared, *cleared), removed=(*work.removed, *removed)
    )


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(m, Message) for m in value)
