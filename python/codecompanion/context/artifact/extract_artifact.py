"""Builds the durable summary without a model (R-318…R-320).

The goal and the constraints come from the user's words; decisions, constraints and next steps from labelled lines in
the model's replies; paths and evidence from tool calls. Plain sentences that state such facts are quoted, unless a
label states the same fact.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from codecompanion.context.artifact.artifact import (
    Artifact,
    Decision,
    Episode,
    OpenThread,
    PageInHint,
    Verification,
    WorkspaceFact,
    quoted,
)
from codecompanion.context.artifact.render_artifact import DERIVED_BYTES, EPISODE_BYTES, VERIFICATION_BYTES
from codecompanion.context.artifact.why_files_matter import importance
from codecompanion.context.ledger.facts import Facts, gather, paths_in
from codecompanion.context.ledger.goal import GOAL_BYTES, goal_of_all, is_usable_goal
from codecompanion.context.ledger.lines import cut_bytes
from codecompanion.context.message_facts.calls import describe_call
from codecompanion.context.message_facts.demands import find_demands, is_strict
from codecompanion.context.message_facts.plain_sentences import Sentence, Speaker, facts_of_sentences
from codecompanion.context.message_facts.sentence_similarity import is_same_fact, meaning_of, normal
from codecompanion.formats.regex import regex
from codecompanion.model.cycles import turn_name
from codecompanion.model.messages import SUMMARY_TAG, Message, ToolCall, is_system_prompt, is_typed_by_user
from codecompanion.placeholders import CANCELLED_BY_USER, INTERRUPTED, NOT_ANSWERED

SENTENCE_BYTES = DERIVED_BYTES - 24
"""Maximum size of a quoted sentence, which leaves room for the turn on its line."""
FAILED_TOOL_BYTES, MAX_FAILED_TOOLS, MAX_NOTES, MAX_PATHS = 64, 6, 3, 12
_STOPPED = {CANCELLED_BY_USER: "cancelled by the user", NOT_ANSWERED: "not answered", INTERRUPTED: "interrupted"}
_LARGE_CHARS, _MAX_CALLS = 2000, 4
_LABELS = regex(
    r"^[ \t]*(?:[-*>#+]+[ \t]*|\d+[.)][ \t]*)?(?:\*\*|__)?"
    r"(decisions?|decided|constraints?|next(?: steps?)?|todo|blocked(?: by| on)?|blockers?|deferred|warnings?|critical)"
    r"(?:\*\*|__)?[ \t]*:(?:\*\*|__)?[ \t]*(\S.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_ASKS_USER = regex(r"\b(?:your|you|the user)\b", re.IGNORECASE)
_RATIONALE = regex(r"(?<!\s)\s+(?:because|since|so that)\s+", re.IGNORECASE)
_FENCE = regex(r"```.*?(?:```|\Z)", re.DOTALL)


class TurnMessages(msgspec.Struct, frozen=True):
    """The messages of one turn (R-002: a cycle is a turn)."""

    turn_id: str
    messages: tuple[Message, ...]


def split_turns(messages: Iterable[Message]) -> tuple[TurnMessages, ...]:
    """Return the messages grouped by turn, in order, without summaries and the system prompt."""
    found: dict[str, list[Message]] = {}
    name = ""
    for message in messages:
        if message.tag == SUMMARY_TAG or is_system_prompt(message):
            continue
        name = turn_name(message.cycle) if message.cycle is not None else name or turn_name(1)
        found.setdefault(name, []).append(message)
    return tuple(TurnMessages(name, tuple(group)) for name, group in found.items())


def extract(turns: Sequence[TurnMessages], *, sentences: bool = True, running: str = "") -> Artifact:
    """Return the artifact extracted from the turns; `merge_artifacts.merge` merges it into an older one.

    `sentences`: use plain sentences as well as labelled lines. `running`: the unfinished turn, whose missing reply is
    not an open thread.
    """
    parts = [_extract_turn(turn, sentences=sentences, running=running) for turn in turns]
    return Artifact(
        session_objective=goal_of_all(text for turn in turns for text in _typed(turn)),
        constraints=tuple(dict.fromkeys(text for part in parts for text in part.constraints)),
        settled_decisions=tuple(item for part in parts for item in part.settled_decisions),
        completed_episodes=tuple(item for part in parts for item in part.completed_episodes),
        open_threads=tuple(item for part in parts for item in part.open_threads),
        workspace_facts=tuple(item for part in parts for item in part.workspace_facts),
        page_in_hints=tuple(item for part in parts for item in part.page_in_hints),
        constraint_turn_ids={text: turn for part in parts for text, turn in part.constraint_turn_ids.items()},
    )


def _typed(turn: TurnMessages) -> list[str]:
    return [message.text for message in turn.messages if is_typed_by_user(message)]


def _extract_turn(turn: TurnMessages, *, sentences: bool, running: str) -> Artifact:
    facts, name = gather(turn.messages), turn.turn_id
    typed = _typed(turn)
    labelled = [
        (label.lower(), _plain(text))
        for message in turn.messages
        if message.role == "assistant"
        for label, text in _LABELS.findall(_FENCE.sub("", message.text))
    ]
    ended, status = (True, "running") if turn.turn_id == running else _ending(turn.messages)
    said = _sentences(turn, [*(text for _, text in labelled), *find_demands(typed)]) if sentences else ()
    demands = _demands(typed, said)
    threads = [_labelled_thread(label, text, name) for label, text in labelled if label.startswith(_THREAD_LABELS)]
    threads += [_quoted_thread(one, by, name) for by, one in said if one.kind in ("blocker", "deferred", "next")]
    todos = [cut_bytes(text, DERIVED_BYTES) for text, done in facts.todos if not done]
    threads += [OpenThread(text, source_turn_id=name) for text in todos]
    if not ended:
        asked = next((text for text in reversed(typed) if is_usable_goal(text)), typed[-1] if typed else "the turn")
        unfinished = cut_bytes(f"{asked} ({status})", DERIVED_BYTES)
        threads.append(OpenThread(unfinished, blocking=True, owner="shared", source_turn_id=name))
    return Artifact(
        constraints=tuple(dict.fromkeys((*demands, *_texts(labelled, "constraint")))),
        settled_decisions=(
            *(_decision(text, name) for text in _texts(labelled, "deci")),
            *(Decision(text, source_turn_id=name) for text in _quoted(said, "decision")),
        ),
        completed_episodes=(_episode(turn, facts, typed, ended=ended, status=status),),
        open_threads=tuple(dict.fromkeys(threads)),
        workspace_facts=tuple(
            WorkspaceFact("", text, name)
            for text in (*_texts(labelled, "warning"), *_texts(labelled, "critical"), *_quoted(said, "warning"))
        ),
        page_in_hints=_hints(turn),
        constraint_turn_ids=dict.fromkeys(demands, name) if sentences else {},
    )


_THREAD_LABELS = ("next", "todo", "block", "deferred")


def _texts(labelled: Sequence[tuple[str, str]], label: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(cut_bytes(text, DERIVED_BYTES) for name, text in labelled if name.startswith(label)))


def _plain(text: str) -> str:
    return text.strip().strip('*_"').strip()


def _sentences(turn: TurnMessages, stated: Sequence[str]) -> tuple[tuple[Speaker, Sentence], ...]:
    """Return the sentences of a turn that state facts, with their speakers, without the assistant's repeats (R-320).

    `stated`: labelled lines and user demands, which take precedence.
    """
    spoken = [message for message in turn.messages if message.role == "assistant" and message.text.strip()]
    known = [meaning_of(text) for text in stated]
    found: list[tuple[Speaker, Sentence]] = []
    for message in turn.messages:
        if message.role != "assistant" and not is_typed_by_user(message):
            continue
        by: Speaker = "assistant" if message.role == "assistant" else "user"
        text = _LABELS.sub("", message.text) if by == "assistant" else message.text
        for one in facts_of_sentences(text, by, is_last=bool(spoken) and message is spoken[-1]):
            says = meaning_of(one.text)
            if by == "user" or not any(is_same_fact(says, other) for other in known):
                found.append((by, one))
                known.append(says)
    return tuple(found)


def _demands(typed: Sequence[str], said: Sequence[tuple[Speaker, Sentence]]) -> tuple[str, ...]:
    """Return the user's prohibitions, demands and rules, and other constraint sentences, verbatim.

    A sentence in which the user decides something is not also a demand, unless it is strict (lesson 11).
    """
    other = {normal(one.text) for by, one in said if by == "user" and one.kind != "constraint"}
    told = [text for text in find_demands(typed) if is_strict(text) or normal(text) not in other]
    told += [one.text for _, one in said if one.kind == "constraint"]
    return tuple({normal(text): cut_bytes(text, GOAL_BYTES) for text in told}.values())


def _quoted(said: Sequence[tuple[Speaker, Sentence]], kind: str) -> tuple[str, ...]:
    return tuple(_quotation(one) for by, one in said if one.kind == kind and not _is_demand(one, by))


def _quotation(one: Sentence) -> str:
    return quoted(cut_bytes(one.text, SENTENCE_BYTES))


def _is_demand(one: Sentence, by: Speaker) -> bool:
    """Return whether the sentence is already one of the constraints."""
    return by == "user" and is_strict(one.text) and bool(find_demands([one.text]))


def _quoted_thread(one: Sentence, by: Speaker, turn_id: str) -> OpenThread:
    if one.kind == "blocker":
        waits_on_user = by == "assistant" and _ASKS_USER.search(one.text) is not None
        return OpenThread(_quotation(one), "blocked", True, "user" if waits_on_user else "shared", turn_id)
    status: Literal["deferred", "pending"] = "deferred" if one.kind == "deferred" else "pending"
    return OpenThread(_quotation(one), status, owner="agent" if by == "assistant" else "shared", source_turn_id=turn_id)


def _decision(text: str, turn_id: str) -> Decision:
    decided, *why = _RATIONALE.split(text, maxsplit=1)
    return Decision(decided.rstrip(" ,"), why[0] if why else "", source_turn_id=turn_id)


def _labelled_thread(label: str, text: str, turn_id: str) -> OpenThread:
    item = cut_bytes(text, DERIVED_BYTES)
    waits_on_user = _ASKS_USER.search(text) is not None
    if label.startswith("block"):
        return OpenThread(item, "blocked", True, "user" if waits_on_user else "shared", turn_id)
    return OpenThread(item, "deferred" if label.startswith("deferred") else "pending", source_turn_id=turn_id)


def _ending(messages: Sequence[Message]) -> tuple[bool, str]:
    """Return whether the turn completed, and its final status in words."""
    last = next((message for message in reversed(messages) if message.role != "user" or message.tag is None), None)
    if last is None or last.role == "user":
        return False, "not answered"
    if last.role == "tool" or last.tool_calls:
        return False, "stopped in the middle of its tool calls"
    return (False, "the reply was cut off") if last.cut else (True, "completed")


def _episode(turn: TurnMessages, facts: Facts, typed: Sequence[str], *, ended: bool, status: str) -> Episode:
    name = turn.turn_id
    asked, answered = typed[-1] if typed else "", facts.statements[-1] if facts.statements else ""
    outcomes = [(describe_call(call), bool(failed)) for call, failed in facts.recent_calls]
    failures = sum(failed for _, failed in outcomes)
    mended = {text: place for place, (text, failed) in enumerate(outcomes) if not failed}
    failed_now = dict.fromkeys(
        text for place, (text, failed) in enumerate(outcomes) if failed and mended.get(text, -1) < place
    )
    calls = f" [{len(outcomes) - failures} tool calls succeeded, {failures} failed]" if outcomes else ""
    room = EPISODE_BYTES - len(calls) - 40
    said = cut_bytes(asked, room // 3) + (f" → {cut_bytes(answered, room // 2)}" if answered.strip() else "")
    evidence = [Verification("tool_result", calls.strip(" []"), failures == 0)] if calls else []
    evidence += [
        Verification("tool_result", cut_bytes(text, FAILED_TOOL_BYTES), False)
        for text in list(failed_now)[-MAX_FAILED_TOOLS:]
    ]
    evidence += [Verification("runtime_note", note, False) for note in _notes(turn.messages)]
    evidence.append(Verification("turn_status", status, ended))
    uses = _file_uses(facts, typed)
    return Episode(f"episode-{name}", said + calls, _touched(facts), tuple(evidence), (name,), uses)


def _file_uses(facts: Facts, typed: Sequence[str]) -> dict[str, dict[str, int]]:
    """Return how many times the turn used each file, and which files the user named (R-314)."""
    uses: dict[str, dict[str, int]] = {
        fact.path: {action: times for action, times in fact.actions.items() if action not in ("seen", "searched")}
        for fact in facts.files.values()
    }
    for mention in dict.fromkeys(path for text in typed for path in paths_in(text) if path in uses):
        whole = [path for path in uses if path.endswith(f"/{mention}") and uses[path]]
        uses[whole[0] if len(whole) == 1 and not uses[mention] else mention]["named"] = 1
    used = {path: actions for path, actions in uses.items() if actions}
    return dict(sorted(used.items(), key=lambda item: importance(item[1]), reverse=True)[:MAX_PATHS])


def _touched(facts: Facts) -> tuple[str, ...]:
    """Return the paths that tool calls touched: changed files first, then read files."""
    weights = {"edited": 3, "created": 3, "deleted": 3, "read": 2, "used": 1, "ran": 1}
    rated = [
        (max((weights.get(action, 0) for action in fact.actions), default=0), fact) for fact in facts.files.values()
    ]
    ranked = sorted((item for item in rated if item[0]), key=lambda item: (-item[0], -item[1].last, item[1].path))
    return tuple(fact.path for _, fact in ranked[:MAX_PATHS])


def _notes(messages: Sequence[Message]) -> tuple[str, ...]:
    """Return the runtime notes that replace the tool results of cancelled, unanswered and interrupted calls."""
    calls = _calls_by_id(messages)
    notes = []
    for message in messages:
        if message.role == "tool" and message.text in _STOPPED:
            call = calls.get(message.tool_call_id or "")
            stopped = _STOPPED[message.text]
            notes.append(cut_bytes(f"{stopped}: {describe_call(call) if call else 'a tool call'}", VERIFICATION_BYTES))
    return tuple(dict.fromkeys(notes))[-MAX_NOTES:]


def _hints(turn: TurnMessages) -> tuple[PageInHint, ...]:
    """Return pointers to the large results of the turn."""
    calls = _calls_by_id(turn.messages)
    large = [
        calls[message.tool_call_id]
        for message in turn.messages
        if message.role == "tool" and message.tool_call_id in calls and len(message.text) >= _LARGE_CHARS
    ][-_MAX_CALLS:]
    if not large:
        return ()
    shown = "; ".join(describe_call(call) for call in large)
    return (
        PageInHint(
            when=cut_bytes(f"for the full output of {shown}", VERIFICATION_BYTES),
            match_kinds=("tool_result",),
            tool_names=tuple(dict.fromkeys(call.name for call in large)),
            call_ids=tuple(call.id for call in large),
            source_turn_ids=(turn.turn_id,),
        ),
    )


def _calls_by_id(messages: Sequence[Message]) -> dict[str, ToolCall]:
    return {call.id: call for message in messages for call in message.tool_calls}
