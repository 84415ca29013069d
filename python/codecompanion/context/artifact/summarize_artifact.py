"""S10 `summarize_artifact`: summarises a chat as a typed artifact, extracted by code and carried over (R-313…R-326).

New turns are merged into the artifact of the last summary; a summary that no longer matches the turns is rebuilt from
the whole log. A utility model may improve the wording; without one, or when it fails, the extracted summary is used, so
this step never fails for lack of a model. It neither inserts nor stores the summary.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from codecompanion import prompts
from codecompanion.context.artifact.artifact import EARLIER, Artifact, Consolidated, WorkspaceFact, read_consolidated
from codecompanion.context.artifact.extract_artifact import TurnMessages, extract, split_turns
from codecompanion.context.artifact.merge_artifacts import merge, overlay, read_artifact
from codecompanion.context.artifact.render_artifact import CONSTRAINTS, FILE_BYTES, WARNINGS, budget_bytes, render
from codecompanion.context.ledger.facts import gather
from codecompanion.context.ledger.goal import goal_of_all
from codecompanion.context.ledger.lines import cut_bytes
from codecompanion.context.message_facts.demands import find_demands
from codecompanion.context.selection.select_window import running_turn
from codecompanion.context.strategy_parameters import SummarizeArtifact
from codecompanion.context.summary.judge_reply import accept_reply
from codecompanion.context.summary.summary_run import subject_texts
from codecompanion.context.summary.topic_evidence import History, why_not_about
from codecompanion.context.summary_text.place_quotes import read_quotes
from codecompanion.context.summary_text.recall_keys import without_keys
from codecompanion.context.transcript.format_transcript import format_entry, wrap
from codecompanion.context.work import Env, Failed, Skipped, Steps, SummaryReply, SummaryRequest, Work
from codecompanion.formats.cutting import cut_middle
from codecompanion.formats.regex import regex
from codecompanion.model.cycles import turn_name
from codecompanion.model.messages import RULES_TAG, STARTING_TAGS, SUMMARY_TAG, Message, is_protected, is_system_prompt

ALGORITHM = "artifact_v1"
_SAFETY = 0.9
_ENTRY_CHARS = (3000, 800, 200)
_MIN_ROOM = 500
_EARLIER_LINES = 12
_INSTRUCTIONS = "The user asks for this in particular:\n\n"


class Scope(msgspec.Struct, frozen=True):
    """The sources of a summary: the artifact carried over and the turns it does not include yet (R-319, R-324)."""

    older: Artifact
    turns: tuple[TurnMessages, ...]
    covered: int
    reason: str

    @property
    def frontier(self) -> str:
        """Return the name of the last turn that the new summary covers."""
        return self.turns[-1].turn_id if self.turns else ""


def summarize_artifact(work: Work, params: SummarizeArtifact, env: Env) -> Steps:
    """Return the work with `summary`, `artifact` and, in `details`, the fields of its update event (R-325)."""
    if all(message.tag == SUMMARY_TAG for message in work.removed):
        return Skipped("nothing_to_summarise", "nothing to summarise yet")
    scope = find_scope(work, params, env)
    found = extract(scope.turns, sentences=params.sentences, running=_running(work))
    seen = merge(scope.older, found, closed=_closed(scope.turns))
    limit = budget_bytes(params.size, env.window, env.target)
    written, source, detail = seen, "runtime", None
    if _wants_model(work, params, env, render(seen, limit)):
        known = scope.older.turn_ids | {turn.turn_id for turn in scope.turns}
        prompt = overlay_prompt(scope, found, params, env)
        if prompt:
            reply = yield SummaryRequest(prompt=prompt, subject=work.removed, max_output_tokens=params.overlay_tokens)
            said = _read_reply(reply, known, scope)
        else:
            said = Failed("the utility model's window is too small")
        if isinstance(said, Failed):
            detail = said.reason
        else:
            written, source = overlay(seen, said, _rules(work, env)), "utility"
    consolidated = Consolidated(scope.frontier, scope.covered, written)
    text = render(written, limit)
    said_of_it = work.with_details(
        frontier_turn_id=scope.frontier,
        consolidated_turn_count=scope.covered,
        newly_consolidated_turn_count=len(scope.turns),
        update_reason=scope.reason,
        summary_source=source,
        algorithm=ALGORITHM,
        summary_detail=detail,
    )
    return msgspec.structs.replace(said_of_it, summary=text, artifact=consolidated.as_table())


def _running(work: Work) -> str:
    """Return the name of the turn without a final reply, or "" between turns."""
    cycle = running_turn(work.before)
    return turn_name(cycle) if cycle is not None else ""


def find_scope(work: Work, params: SummarizeArtifact, env: Env) -> Scope:
    """Return the sources of the new summary (R-319, R-324, R-326).

    A compaction starts from turn 1 if it is manual or the last summary does not match the turns. The readable parts of
    a summary are carried over if the log does not contain the turns it covers: either there is no log, or the log
    begins with that summary because the chat was restored from a checkpoint.
    """
    removed = split_turns(message for message in work.removed if message.tag not in STARTING_TAGS)
    last = read_consolidated(env.artifact)
    summary = next((message for message in work.removed if message.tag == SUMMARY_TAG), None)
    logged = env.history() if env.history is not None else ()
    history = split_turns(logged)
    fits = last is not None and summary is not None and _fits(last, removed, history)
    if last is not None and fits and not (env.manual and history):
        # The log has both parts of a turn that was summarised while it ran.
        whole = {turn.turn_id: turn for turn in history}
        turns = tuple(whole.get(turn.turn_id, turn) for turn in removed)
        newer = sum(turn.turn_id != last.frontier_turn_id for turn in turns)
        covered = last.consolidated_turn_count + newer
        return Scope(last.artifact, turns, covered, "manual_request" if env.manual else params.reason)
    reason = "manual_request" if env.manual else params.reason if summary is None else "rebuild"
    if history:
        end = removed[-1].turn_id if removed else last.frontier_turn_id if last else ""
        names = [turn.turn_id for turn in history]
        turns = history[: names.index(end) + 1] if end in names else removed
        restored = next((message for message in logged if message.tag == SUMMARY_TAG), None)
        if restored is None:
            return Scope(Artifact(), turns, len(turns), reason)
        is_first = last is None and not env.manual
        why = "checkpoint_restore" if is_first else reason
        return Scope(artifact_from_text(restored.text), turns, len(turns), why)
    older = artifact_from_text(summary.text) if summary is not None else Artifact()
    return Scope(older, removed, len(removed), reason)


def _fits(last: Consolidated, removed: Sequence[TurnMessages], history: Sequence[TurnMessages]) -> bool:
    """Return whether the turns that the last summary covers are still the first turns (R-324)."""
    if history:
        names = [turn.turn_id for turn in history]
        count = last.consolidated_turn_count
        return 0 < count <= len(names) and names[count - 1] == last.frontier_turn_id
    frontier = _turn_order(last.frontier_turn_id)
    return all(_turn_order(turn.turn_id) > frontier for turn in removed)


_HEADING = regex(r"^#{2,3} (.+)$")
_EVIDENCE = regex(r"(?:turn-\S+: |failed: |recall )")
_SENTENCE = regex(r"(?:turn-\S+: )?(\".+\")")


def artifact_from_text(text: str) -> Artifact:
    """Return the usable parts of a summary that has no artifact.

    The goal, constraints and warnings of an artifact summary keep their roles; from another policy's summary, the user
    quotes are read again. Every other line becomes a fact, up to a maximum.
    """
    said = [quote.text for quote in read_quotes(text).quotes]
    objective, section = "", ""
    constraints, warnings, facts = dict.fromkeys(find_demands(said)), dict[str, None](), dict[str, None]()
    for line in without_keys(text).splitlines():
        heading = _HEADING.match(line)
        if heading:
            section = heading.group(1)
            continue
        item = line.strip().removeprefix("- ").strip()
        sentence = _SENTENCE.fullmatch(item)
        item = sentence[1] if sentence else item
        if not item or item == "(none)" or item.endswith(":"):
            continue
        if section == "Goal" and not objective:
            objective = item
        elif section == CONSTRAINTS:
            constraints[item.strip('"')] = None
        elif section == WARNINGS and not _EVIDENCE.match(item) and not item.startswith(EARLIER):
            warnings[item] = None
        else:
            facts.setdefault(cut_bytes(EARLIER + item.removeprefix(EARLIER), FILE_BYTES))
    earlier = [*reversed(list(facts)[:_EARLIER_LINES]), *warnings]
    return Artifact(
        session_objective=objective or goal_of_all(said),
        constraints=tuple(constraints),
        workspace_facts=tuple(WorkspaceFact("", fact) for fact in earlier),
    )


def _closed(turns: Sequence[TurnMessages]) -> frozenset[str]:
    """Return the text of tasks that a later todo list marks as done."""
    done: set[str] = set()
    for turn in turns:
        for text, is_done in gather(turn.messages).todos:
            (done.add if is_done else done.discard)(cut_bytes(text, 320))
    return frozenset(done)


def _wants_model(work: Work, params: SummarizeArtifact, env: Env, text: str) -> bool:
    """Return whether to ask a utility model: it is available and its summary would be used."""
    if params.overlay == "never" or (params.overlay == "configured" and not env.has_utility):
        return False
    if env.unusable_writer and not params.asks_unusable:
        return False
    if not params.overlay_in_target or env.target <= 0:
        return True
    placed = Message(id="", role="assistant", content=text, tag=SUMMARY_TAG)
    kept = tuple(message for message in work.messages if message.tag != SUMMARY_TAG)
    return env.measure((*kept, *work.pending, placed)).tokens <= env.target


def _read_reply(reply: SummaryReply, known: frozenset[str], scope: Scope) -> Artifact | Failed:
    """Return the artifact that the model wrote, or the reason why it is rejected, for example as off-topic (R-526)."""
    text = accept_reply(reply)
    artifact = text if isinstance(text, Failed) else read_artifact(text, known)
    if isinstance(artifact, Failed):
        return artifact
    messages = tuple(message for turn in scope.turns for message in turn.messages)
    obstacle = why_not_about(artifact.texts, History((*scope.older.texts, *subject_texts(messages))))
    return Failed(f"the utility model's summary was rejected: {obstacle}") if obstacle else artifact


def overlay_prompt(scope: Scope, found: Artifact, params: SummarizeArtifact, env: Env) -> str:
    """Return the prompt for the utility model, within its window; "" if not even the frame fits (lesson 3)."""
    window = env.summariser_window or env.window
    older = msgspec.json.encode(scope.older).decode() if scope.older != Artifact() else "none"
    frame = "\n\n".join(
        (
            prompts.load("summary_artifact"),
            *([_INSTRUCTIONS + env.instructions.strip()] if env.instructions.strip() else []),
            "Turn ids: " + ", ".join(sorted(scope.older.turn_ids | {t.turn_id for t in scope.turns}, key=_turn_order)),
            "Summary so far:\n" + older,
            "Extracted by the program:\n" + msgspec.json.encode(found).decode(),
        )
    )
    room = int((window - params.overlay_tokens) * _SAFETY / env.summariser_ratio) - env.count_text(frame)
    if room < _MIN_ROOM:
        return ""
    entries = [
        (turn.turn_id, message)
        for turn in scope.turns
        for message in turn.messages
        if message.role != "system" and not is_protected(message)
    ]
    for limit in _ENTRY_CHARS:
        texts = [f"[{name}] {cut_middle(format_entry(message), limit)}" for name, message in entries]
        if sum(map(env.count_text, texts)) + 20 <= room:
            return f"{frame}\n\n{wrap(tuple(texts))}"
    return f"{frame}\n\n{wrap(tuple(_newest(texts, room, env)))}"


def _newest(texts: Sequence[str], room: int, env: Env) -> list[str]:
    """Return the newest entries that fit into `room` tokens."""
    kept: list[str] = []
    left = room - 20
    for text in reversed(texts):
        left -= env.count_text(text) + 1
        if left < 0:
            break
        kept.append(text)
    return kept[::-1]


def _turn_order(name: str) -> tuple[int, str]:
    number = name.removeprefix("turn-")
    return (int(number), "") if number.isdecimal() and len(number) < 19 else (0, name)


def _rules(work: Work, env: Env) -> str:
    """Return the text that every prompt contains; a summary does not have to repeat its constraints."""
    own = [m.text for m in work.before if m.tag == RULES_TAG or is_system_prompt(m)]
    return "\n".join((env.prompt_text, *own))
