"""How much of the information an agent needs next survives a compaction, with and without a model (R-526).

    python -m bench.bench_compaction [--policy P …] [--writer none|good|unrelated …] [--share 0.92] [FILE|DIR …]

A recorded session is cut every `--every` calls once it has 16,000 tokens. There it fills `--share` of its window and is
compacted manually (`/compact`). Of the files and identifiers that the next `--next` calls use and that were known, the
table shows the share still visible, in the summary and in the whole view. `freed` is the share of the chat that was
removed, `words` the share of the user's messages that are kept whole or have their own recall key, `done` the share of
cuts where a compaction happened.

With `--edits` the policy has edited the chat as it grew; its ledger reads the `placeholders`, or the `originals` as in
a chat.

Three writers, none of them a model: `none` refuses every request, and the chat is compacted without one; `good` writes
the requested form from the messages, with about as many names as real models; `unrelated` writes that form about
something else. The view after `good` should not contain less than the one after `none`, and `unrelated` should change
nothing.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from bench.bench_summary import DEFAULT, cuts, mean, wanted
from codecompanion.context.ledger import facts as ledger_facts
from codecompanion.context.pipeline import compact, last_tier, prepare
from codecompanion.context.policy.policy import Policy
from codecompanion.context.policy.policy_catalog import load_policy, policy_names
from codecompanion.context.shape_request import NO_PARTS, shape
from codecompanion.context.stage_report import Ask, drive
from codecompanion.context.summary_text.sections import load_schema, schema_names
from codecompanion.context.work import Env, Measure, Messages, SummaryReply
from codecompanion.counting.model_windows import reply_reserve
from codecompanion.counting.tokens import MessageCounter, estimate_text
from codecompanion.model.cycles import assign_cycles, current_cycle
from codecompanion.model.messages import SUMMARY_TAG, Message, with_changes
from codecompanion.model.transcript_format import read_bytes
from codecompanion.model.view import View, with_messages

Writer = Callable[[Ask], SummaryReply]
SMALLEST = 16_000
"""Tokens of the shortest chat that is compacted."""
COLUMNS = ("done", "freed", "tokens", "summary_files", "summary_names", "files", "names", "words")
RECIPE = (
    "The user bakes a bread of rye and wheat; the dough rises for two hours. ",
    "Flour, water, salt and a starter of three days.",
    "The oven was heated to 230 degrees, then the loaf went in.",
)


def refuses(ask: Ask) -> SummaryReply:
    """Answer like a provider that refuses every request."""
    return SummaryReply(error="no model", refused=True)


def writes_well(ask: Ask) -> SummaryReply:
    """Write the chat's requests, newest files, errors and current work in the requested form."""
    subject = ask.request.subject
    asked = [message.text for message in subject if message.role == "user" and message.tag is None]
    told = [message.text for message in subject if message.role == "assistant" and message.text.strip()]
    gathered = ledger_facts.gather(subject)
    paths = [path for message in subject for path in paths_of(message)]
    newest = list(dict.fromkeys(reversed(paths)))[:12]
    bodies = (
        " ".join(short(text, 400) for text in asked[-4:]) or "The user wants the work of this chat finished.",
        short(told[-1], 600) if told else "None",
        "\n".join(f"- `{path}`: used in this chat" for path in newest) or "None",
        "\n".join(f"- {short(error.text, 160)}" for error in gathered.errors[-3:]) or "None",
        short(told[-2], 400) if len(told) > 1 else "None",
        "\n".join(f"- {short(text, 200)}" for text in asked) or "None",
        "None",
        short(told[-1], 400) if told else "None",
        "None",
    )
    return SummaryReply(text=in_form(ask, bodies))


def writes_about_something_else(ask: Ask) -> SummaryReply:
    """Write the requested form about baking bread."""
    return SummaryReply(text=in_form(ask, (RECIPE[0] * 4, *RECIPE[1:], *["None"] * 6)))


WRITERS: dict[str, Writer] = {"none": refuses, "good": writes_well, "unrelated": writes_about_something_else}


def in_form(ask: Ask, bodies: Sequence[str]) -> str:
    """Return the bodies below the headings that the prompt requests, else as paragraphs."""
    for name in schema_names():
        form = load_schema(name)
        if len(form.section) == len(bodies) and form.section[3].title in ask.request.prompt:
            return "\n\n".join(f"{form.heading(number)}\n{body}" for number, body in enumerate(bodies, 1))
    return "\n\n".join(body for body in bodies if body != "None")


def short(text: str, size: int) -> str:
    """Return the start of the text on one line."""
    return " ".join(text.split())[:size]


def paths_of(message: Message) -> Iterator[str]:
    """Yield the paths in a message's calls."""
    for call in message.tool_calls:
        for _, value in ledger_facts.strings_in(ledger_facts.read_arguments(call.arguments)):
            yield from ledger_facts.PATH.findall(value)


def compacted(
    messages: Messages, policy: Policy, window: int, writer: Writer, edits: str = ""
) -> tuple[Messages, bool]:
    """Return the view after `/compact` as in a request, and whether anything was compacted.

    With `edits` the policy has edited the chat as it grew; `originals` has the messages before editing.
    """
    counter = MessageCounter()

    def measure(measured: Messages) -> Measure:
        total = counter.count_messages(measured)
        return Measure(total, total)

    made = 0

    def new_id(purpose: str) -> str:
        nonlocal made
        made += 1
        return f"{purpose}-{made}"

    keys = {message.id: f"r{number}" for number, message in enumerate(messages, 1)}
    env = Env(
        window=window, reserve=reply_reserve(window), measure=measure, count=counter.message,
        count_text=counter.text, cycle=current_cycle(messages), manual=True, summariser_window=1 << 40,
        new_id=new_id, now=1.0, key_of=lambda message_id: keys.get(message_id, ""), history=lambda: messages,
    )  # fmt: skip
    found = messages
    if edits:
        messages = edited(messages, policy, env)
        originals = {message.id: message for message in found} if edits == "originals" else {}
        env = msgspec.structs.replace(env, original=lambda message: originals.get(message.id, message))
    view = with_messages(View(cycle=env.cycle), messages)
    prepared, _ = drive(compact(view, policy, env), writer)
    if writer is refuses and not prepared.changed:
        prepared, _ = drive(last_tier(view, policy, env), writer)
    sent = shape(prepared.messages, NO_PARTS, policy, env).messages if policy.shape else prepared.messages
    return sent, any(report.event == "context_compacted" for report in prepared.changed)


def edited(messages: Messages, policy: Policy, env: Env) -> Messages:
    """Return the messages after a policy that edits them before every tenth reply, and compacts nothing."""
    sent, replies = list[Message](), 0
    for message in messages:
        replies += message.role == "assistant"
        if message.role == "assistant" and replies % 10 == 0:
            now = with_messages(View(cycle=current_cycle(sent)), sent)
            env = msgspec.structs.replace(env, cycle=now.cycle, manual=False)
            prepared, _ = drive(prepare(now, policy, env, automatic_summaries=False, fitting=False), refuses)
            sent = list(prepared.messages)
        sent.append(message)
    return tuple(sent)


def text_of(messages: Messages) -> str:
    """Return all text of the messages that a model reads."""
    return "\n".join(
        [part for message in messages for part in (message.text, *(c.arguments for c in message.tool_calls))]
    )


def shares(text: str, known: dict[str, set[str]], prefix: str = "") -> dict[str, float]:
    """Return the share of each kind of name that occurs in the text."""
    held = {
        "files": {found.rsplit("/", 1)[-1] for found in ledger_facts.PATH.findall(text)},
        "names": set(ledger_facts.NAME.findall(text)),
    }
    return {prefix + kind: len(names & held[kind]) / len(names) for kind, names in known.items() if names}


def kept_words(before: Messages, after: str) -> float:
    """Return the share of the user's messages that the text contains whole, or names by their own key."""
    single = set(re.findall(r"(?<!to )(?<!–)\br\d+\b(?! to r|–r)", after))
    plain = " ".join(after.split())
    asked = [
        (f"r{number}", " ".join(message.text.split()))
        for number, message in enumerate(before, 1)
        if message.role == "user" and message.tag is None and message.text.strip()
    ]
    return sum(key in single or text in plain for key, text in asked) / len(asked) if asked else 1.0


def read(path: Path) -> Messages:
    """Return the messages of a transcript, each with an id and its size."""
    counter = MessageCounter()
    found = read_bytes(path.read_bytes().split(b"\n"), str(path)).messages
    named = [with_changes(message, id=f"m{number}") for number, message in enumerate(found)]
    return tuple(with_changes(message, tokens=counter.message(message)) for message in assign_cycles(named))


def measure(messages: Messages, policy: Policy, writer: Writer, options: argparse.Namespace) -> list[dict[str, float]]:
    """Return one row for each place at which the session is compacted."""
    rows = []
    for cut in cuts(messages, options.next, options.every):
        before = messages[:cut]
        size = sum(message.tokens for message in before)
        if size < SMALLEST:
            continue
        past = text_of(before)
        needed = zip(("files", "names"), wanted(messages[cut:], options.next), strict=True)
        known = {kind: {name for name in names if name in past} for kind, names in needed}
        view, done = compacted(before, policy, round(size / options.share), writer, options.edits)
        after = text_of(view)
        tokens = estimate_text(after)
        row = {"done": float(done), "freed": 1 - tokens / estimate_text(past), "tokens": float(tokens)}
        summary = text_of(tuple(message for message in view if message.tag == SUMMARY_TAG))
        rows.append(
            row | shares(after, known) | shares(summary, known, "summary_") | {"words": kept_words(before, after)}
        )
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, default=[DEFAULT])
    parser.add_argument("--policy", action="append", default=[])
    parser.add_argument("--writer", action="append", default=[], choices=sorted(WRITERS))
    parser.add_argument("--share", type=float, default=0.92, help="of the window, when the chat is compacted")
    parser.add_argument("--next", type=int, default=40, help="calls after the compaction that count")
    parser.add_argument("--every", type=int, default=40, help="calls between two compactions")
    parser.add_argument("--edits", choices=("", "placeholders", "originals"), default="", help="see above")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    files = [
        path for given in options.paths for path in (sorted(given.rglob("*.jsonl")) if given.is_dir() else [given])
    ]
    sessions = [read(path) for path in files]
    table: list[dict[str, object]] = []
    for name in options.policy or policy_names():
        for writer in options.writer or WRITERS:
            found = [row for one in sessions for row in measure(one, load_policy(name), WRITERS[writer], options)]
            figures = {column: round(mean(found, column), 3) for column in COLUMNS}
            table.append({"policy": name, "writer": writer, "cuts": len(found), **figures})
    if options.json:
        print(json.dumps(table))
        return
    print(f"{'policy':22}{'writer':11}{'cuts':>6}" + "".join(f"{column:>15}" for column in COLUMNS))
    for line in table:
        figures_of_line = "".join(f"{line[column]:15.5g}" for column in COLUMNS)
        print(f"{line['policy']:22}{line['writer']:11}{line['cuts']:6}{figures_of_line}")


if __name__ == "__main__":
    main()
