"""`context`: prepare the next request of a transcript once and print the result (`:help codecompanion-cli`).

A stable contract, used by external tests. `--jobs` prints one answer per line, in order; the answer to an unreadable
job is `{"error": …}`, and the exit status is then 2.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Iterable
from typing import Any, TextIO

import msgspec

from codecompanion.adapters.base import Adapter
from codecompanion.cli import progress
from codecompanion.cli.arguments import read_input, read_transcript, source_of, token_count
from codecompanion.cli.commands.context_answer import write_answer
from codecompanion.cli.jobs import JOBS_HELP, print_answer
from codecompanion.context.editing.cache_state import find_cache_state
from codecompanion.context.ledger.ledger import summarise
from codecompanion.context.pipeline import compact, prepare
from codecompanion.context.policy.policy import Policy, SummaryAdapter
from codecompanion.context.policy.policy_catalog import load_policy
from codecompanion.context.policy.policy_options import with_options
from codecompanion.context.policy.strict import strict
from codecompanion.context.shape_request import NO_PARTS, shape
from codecompanion.context.stage_report import Ask, drive
from codecompanion.context.work import Env, Measure, Messages, SummaryReply
from codecompanion.counting.token_sizes import parse_tokens
from codecompanion.counting.tokens import MessageCounter
from codecompanion.errors import CodeCompanionError, InputError
from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.model.cycles import current_cycle
from codecompanion.model.messages import is_typed_by_user, with_changes
from codecompanion.model.transcript_format import Transcript, decode_line, read_objects, split_lines
from codecompanion.model.view import View, with_messages
from codecompanion.session.compaction.summarise import ask_summary, summary_request
from codecompanion.session.history.titles import title_of

NO_WINDOW_LIMIT = 1 << 40
"""Context window of a summariser that is not a model, large enough for any text."""

SUMMARY_SILENCE_S = 120.0

A_JOB = '{"messages": […], "options": {…}}'


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of one preparation. `set` contains dotted keys below `context_management`."""

    policy: str = "codecompanion"
    strict: bool = False
    window: int | None = None
    manual: bool = False
    count: str = ""
    set: dict[str, Any] = {}
    summary: str | None = None
    summary_error: str | None = None
    adapter: str | None = None


class Job(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of `--jobs`. Missing or null options are taken from the command line."""

    messages: list[Any]
    options: dict[str, Any] | None = None


def add_parser(commands: Any) -> None:
    """Add the subcommand to the command line."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "context", help="prepare the next request of a transcript and print it as JSON"
    )
    parser.add_argument("--policy", default="codecompanion", help="the policy (default: codecompanion)")
    parser.add_argument("--strict", action="store_true", help="follow the policy's document, without our additions")
    parser.add_argument("--window", type=token_count, metavar="N|Nk", help="context window (default: the policy's)")
    parser.add_argument("--manual", action="store_true", help="compact now, as /compact does")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=JSON", help="a context_management option")
    parser.add_argument("--summary", help="the summariser's scripted reply")
    parser.add_argument("--summary-error", metavar="MSG", help="make the summariser fail with this text")
    parser.add_argument("--adapter", metavar="NAME", help="the adapter that writes the summary")
    parser.add_argument("--count", choices=["chars4"], default="", help="count one token per 4 characters")
    parser.add_argument("--jobs", action="store_true", help=JOBS_HELP)
    parser.add_argument("file", nargs="?", default="-", metavar="FILE|-", help="transcript (default: standard input)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: TextIO) -> int:
    """Run the subcommand and return the exit status. Bad input raises before anything is printed."""
    options = Options(
        policy=arguments.policy,
        strict=arguments.strict,
        window=arguments.window,
        manual=arguments.manual,
        count=arguments.count,
        set=dict(_setting(text) for text in arguments.set),
        summary=arguments.summary,
        summary_error=arguments.summary_error,
        adapter=arguments.adapter,
    )
    if arguments.jobs:
        return _run_jobs(read_input(arguments.file, "jobs in JSON Lines"), source_of(arguments.file), options, out)
    _check(options)  # before waiting for standard input
    answer = prepare_transcript(read_transcript(arguments.file), options)
    print_answer(answer, out)
    for event in answer["events"]:
        if event["type"] == "request_too_large":
            print(f"codecompanion context: {event['detail']}", file=sys.stderr)
    return 0


def _policy(options: Options) -> Policy:
    policy = load_policy(options.policy)
    if options.strict:
        policy = strict(policy, "strict")
    return with_options(policy, options.set, "context_management")


def _check(options: Options) -> None:
    """Raise an error if no transcript can be prepared with these options."""
    _policy(options)
    if options.window is not None and options.window < 1:
        raise InputError(f"window is {options.window}; expected 1 or more tokens")


def _run_jobs(lines: Iterable[bytes], source: str, defaults: Options, out: TextIO) -> int:
    status = number = 0
    for number, (line, where) in enumerate(split_lines(lines, source), 1):
        progress.step(f"codecompanion context: job {number}")
        try:
            job = _job(line, where)
            options = _options(job, defaults, where)
            answer = prepare_transcript(read_objects(job.messages, f"{where}: messages"), options)
        except CodeCompanionError as error:
            answer, status = {"error": f"{error}" if where in str(error) else f"{where}: {error}"}, 2
            print(answer["error"], file=sys.stderr)
        print_answer(answer, out)
    if number == 0:
        raise InputError(f"{source}: no jobs in it; expected at least one, {A_JOB} per line")
    return status


def _job(line: bytes, where: str) -> Job:
    value = decode_line(line, where, A_JOB)
    try:
        return typed.convert(value, Job)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: {error}; expected {A_JOB}") from error


def _options(job: Job, defaults: Options, where: str) -> Options:
    given = {name: value for name, value in (job.options or {}).items() if value is not None}
    if isinstance(given.get("window"), str):
        try:
            given["window"] = parse_tokens(given["window"])
        except ValueError as error:
            raise InputError(f"{where}: options.window: {error}") from error
    if isinstance(given.get("set"), dict):
        given["set"] = {**defaults.set, **given["set"]}
    try:
        return typed.convert({**msgspec.structs.asdict(defaults), **given}, Options)
    except msgspec.ValidationError as error:
        names = ", ".join(Options.__struct_fields__)
        raise InputError(f"{where}: options: {error}; expected {names}") from error


def _setting(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise InputError(f"--set {text}: expected KEY=JSON, such as editing.trigger=0.5")
    try:
        return key, json.loads(value)
    except NOT_READABLE:
        return key, value  # a bare word: --set editing.trigger=85%


def prepare_transcript(transcript: Transcript, options: Options) -> dict[str, Any]:
    """Return the answer for one transcript: the documented JSON object.

    Raises:
        ConfigError: the policy or an option is invalid.
        InputError: the window or the counter is invalid.
    """
    return prepare_with_policy(transcript, _policy(options), options)


def prepare_with_policy(transcript: Transcript, policy: Policy, options: Options) -> dict[str, Any]:
    """Return the answer for one transcript and a policy with its settings; raises `InputError`."""
    window = policy.default_window if options.window is None else options.window
    if window < 1:
        raise InputError(f"window is {window}; expected 1 or more tokens")
    counter = _counter(options.count)
    messages = tuple(with_changes(message, tokens=counter.message(message)) for message in transcript.messages)
    view = with_messages(View(cycle=current_cycle(messages)), messages)
    asks_a_model = bool(options.adapter or policy.summary_adapter.name)
    env = _env(options, window, counter, messages, asks_a_model=asks_a_model)
    make = compact if options.manual else prepare
    sent = (lambda messages: shape(messages, NO_PARTS, policy, env).measure) if policy.shape else None
    planned = make(view, policy, msgspec.structs.replace(env, sent=sent))
    prepared, asked = drive(planned, _answerer(options, policy.summary_adapter))
    shaped = shape(prepared.messages, NO_PARTS, policy, env)
    return write_answer(transcript, policy, options.policy, env, prepared, shaped, asked)


def _counter(name: str) -> MessageCounter:
    if name == "":
        return MessageCounter()
    if name == "chars4":
        return MessageCounter.chars4()
    raise InputError(f"count is {name!r}; expected chars4 or nothing")


def _env(options: Options, window: int, counter: MessageCounter, chat: Messages, *, asks_a_model: bool) -> Env:
    def measure(messages: Messages) -> Measure:
        total = sum(map(counter.message, messages))
        return Measure(total, total)

    made: list[str] = []

    def new_id(purpose: str) -> str:
        made.append(purpose)
        return f"{purpose}-{len(made)}"

    return Env(
        window=window,
        measure=measure,
        count=counter.message,
        count_text=counter.text,
        cycle=current_cycle(chat),
        manual=options.manual,
        summariser_window=0 if asks_a_model else NO_WINDOW_LIMIT,
        has_summary=options.summary is not None,
        new_id=new_id,
        title=next((title_of(message.text) for message in chat if is_typed_by_user(message)), ""),
        cache=find_cache_state(chat, chat[-1].ts if chat else 0.0),
    )


def _answerer(options: Options, configured: SummaryAdapter) -> Callable[[Ask], SummaryReply]:
    """Return the summariser: the scripted reply, `--adapter`, `compaction.adapter`, or the offline summariser."""
    if options.summary_error is not None:
        return lambda ask: SummaryReply(error=options.summary_error or "the summariser failed")
    if options.summary is not None:
        return lambda ask: SummaryReply(text=options.summary or "", source="caller")
    wanted = configured if options.adapter is None else SummaryAdapter(options.adapter)
    if wanted.name:
        adapter = _adapter(wanted.name)
        model = wanted.model or adapter.default_model
        return lambda ask: asyncio.run(
            ask_summary(adapter, summary_request(model, ask.request), silence_s=SUMMARY_SILENCE_S)
        )
    return _offline_summary


def _offline_summary(ask: Ask) -> SummaryReply:
    counter = MessageCounter()
    text = summarise(ask.request.subject, ask.request.max_output_tokens, counter.text)
    return SummaryReply(text=text, source="code")


def _adapter(name: str) -> Adapter:
    from codecompanion.cli.adapters import make_registry  # the SDK is not needed for anything else here

    return make_registry().get(name)
