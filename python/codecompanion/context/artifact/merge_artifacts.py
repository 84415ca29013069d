"""Merges a newer artifact into an older one, and a model's artifact into the extracted one (R-319, R-322).

The model may improve the wording; paths, evidence and failures stay as they were extracted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from codecompanion.context.artifact.artifact import Artifact, Episode, WorkspaceFact, is_quoted
from codecompanion.context.artifact.render_artifact import DERIVED_BYTES, EPISODE_BYTES
from codecompanion.context.artifact.why_files_matter import summed_uses
from codecompanion.context.ledger.goal import GOAL_BYTES, better_goal, is_usable_goal
from codecompanion.context.ledger.lines import cut_bytes
from codecompanion.context.message_facts.demands import is_strict
from codecompanion.context.message_facts.sentence_similarity import Meaning, is_same_fact, meaning_of, normal
from codecompanion.context.work import Failed
from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE

T = TypeVar("T")
MAX_EPISODES, MAX_ITEMS = 200, 60
"""Maximum number of episodes, and of items in each other list; the oldest are dropped. Far more than is ever rendered.
"""


def merge(older: Artifact, newer: Artifact, closed: Collection[str] = ()) -> Artifact:
    """Return the merged artifact: a newer goal must outrank the older goal, and episodes are replaced by id (R-319).

    A quoted sentence is dropped when a label, a constraint or a newer sentence states the same fact (R-320). Items with
    the same normalised text are duplicates, whatever their source and status; the newest is kept, with its status.
    Hints are pointers, so hints with equal text may point to different calls. `closed`: the text of finished open
    threads.
    """
    episodes = {episode.episode_id: episode for episode in older.completed_episodes}
    for episode in newer.completed_episodes:
        episodes.pop(episode.episode_id, None)
        episodes[episode.episode_id] = episode
    constraints = _most_important(_unique((*older.constraints, *newer.constraints), normal), str)
    turns = {**older.constraint_turn_ids, **newer.constraint_turn_ids}
    threads = (*older.open_threads, *newer.open_threads)
    decisions = (*older.settled_decisions, *newer.settled_decisions)
    facts = (*older.workspace_facts, *newer.workspace_facts)
    stated = (*(d.decision for d in decisions), *(t.item for t in threads), *(f.fact for f in facts if not f.path))
    known = [meaning_of(text) for text in (*constraints, *stated) if not is_quoted(text)]
    done = set(map(normal, closed))
    threads = _unique(_without_repeats(threads, lambda t: t.item, known), lambda t: normal(t.item))
    decisions = _unique(_without_repeats(decisions, lambda d: d.decision, known), lambda d: normal(d.decision))
    facts = _unique(_without_repeats(facts, lambda f: f.fact, known), lambda f: (f.path, normal(f.fact)))
    return Artifact(
        session_objective=better_goal(older.session_objective, newer.session_objective),
        constraints=constraints,
        settled_decisions=decisions[-MAX_ITEMS:],
        completed_episodes=tuple(episodes.values())[-MAX_EPISODES:],
        open_threads=tuple(thread for thread in threads if normal(thread.item) not in done)[-MAX_ITEMS:],
        workspace_facts=_most_important(facts, lambda fact: "" if fact.path else fact.fact),
        page_in_hints=_unique(
            (*older.page_in_hints, *newer.page_in_hints), lambda h: (h.source_turn_ids, normal(h.when))
        )[-MAX_ITEMS:],
        constraint_turn_ids={text: turns[text] for text in constraints if text in turns},
    )


def _without_repeats(items: Sequence[T], words: Callable[[T], str], known: Sequence[Meaning]) -> tuple[T, ...]:
    """Return the items without quoted sentences that repeat a known fact or a newer item."""
    kept: list[T] = []
    said = list(known)
    for item in reversed(items):
        if is_quoted(words(item)):
            says = meaning_of(words(item))
            if any(is_same_fact(says, other) for other in said):
                continue
            said.append(says)
        kept.append(item)
    return tuple(reversed(kept))


def _unique(items: Iterable[T], key: Callable[[T], Hashable]) -> tuple[T, ...]:
    """Return the items without duplicates, each at the position of its last occurrence."""
    found: dict[Hashable, T] = {}
    for item in items:
        found.pop(key(item), None)
        found[key(item)] = item
    return tuple(found.values())


def _most_important(items: Sequence[T], words: Callable[[T], str]) -> tuple[T, ...]:
    """Return at most `MAX_ITEMS` items in order, preferring strict ones, then the newest (R-317)."""
    ranked = sorted(range(len(items)), key=lambda place: (is_strict(words(items[place])), place))[-MAX_ITEMS:]
    return tuple(items[place] for place in sorted(ranked))


def read_artifact(text: str, known_turns: Collection[str]) -> Artifact | Failed:
    """Return the artifact that a model wrote as JSON, or `Failed` if it is not valid or names an unknown turn."""
    try:
        decoded: Any = json.loads(_json_in(text))
        artifact = typed.convert(decoded, Artifact)
    except NOT_READABLE as error:
        # msgspec's ValidationError is also a ValueError.
        return Failed(f"the utility model's summary is not a valid artifact ({error})")
    unknown = sorted(artifact.turn_ids - set(known_turns))
    if unknown:
        return Failed(f"the utility model's summary names turns that do not exist ({', '.join(unknown[:3])})")
    if artifact == Artifact():
        return Failed("the utility model's summary is empty")
    return artifact


def _json_in(text: str) -> str:
    """Return the JSON object in a reply, which may be fenced or follow some words."""
    start, end = text.find("{"), text.rfind("}")
    return text[start : end + 1] if 0 <= start < end else text


def overlay(seen: Artifact, said: Artifact, rules: str) -> Artifact:
    """Return the extracted artifact in the model's words (R-322), without constraints that only repeat `rules`."""
    objective = said.session_objective if is_usable_goal(said.session_objective) else seen.session_objective
    told = normal(rules)
    constraints = [cut_bytes(text, DERIVED_BYTES) for text in said.constraints if normal(text) not in told]
    decisions = [msgspec.structs.replace(d, decision=cut_bytes(d.decision, DERIVED_BYTES),
                                         rationale=cut_bytes(d.rationale, DERIVED_BYTES))
                 for d in said.settled_decisions]  # fmt: skip
    threads = [msgspec.structs.replace(t, item=cut_bytes(t.item, DERIVED_BYTES)) for t in said.open_threads]
    again = {_words(t.item) for t in threads}
    kept_threads = [thread for thread in seen.open_threads if thread.blocking or _words(thread.item) not in again]
    paths = {path for episode in seen.completed_episodes for path in episode.touched_paths}
    facts = [
        WorkspaceFact(fact.path, cut_bytes(fact.fact, DERIVED_BYTES), fact.source_turn_id)
        for fact in said.workspace_facts
        if not fact.path or fact.path in paths
    ]
    model_side = Artifact(
        settled_decisions=tuple(decisions),
        open_threads=tuple(threads),
        workspace_facts=tuple(facts),
    )
    judged = {_words(d.decision) for d in decisions}
    kept_decisions = [decision for decision in seen.settled_decisions if _words(decision.decision) not in judged]
    base = msgspec.structs.replace(seen, open_threads=tuple(kept_threads), settled_decisions=tuple(kept_decisions))
    merged = merge(base, model_side)
    return msgspec.structs.replace(
        merged,
        session_objective=cut_bytes(objective, GOAL_BYTES),
        # The user's own words count as newer than a model's, and win if both state the same fact (lesson 11).
        constraints=merge(Artifact(constraints=tuple(constraints)), seen).constraints,
        completed_episodes=_overlaid_episodes(seen.completed_episodes, said.completed_episodes),
    )


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.casefold()))


def _overlaid_episodes(seen: Sequence[Episode], said: Sequence[Episode]) -> tuple[Episode, ...]:
    """Return the episodes in the model's words and turn order, with the extracted paths and evidence.

    A turn that the model does not mention keeps its own episode; a turn mentioned twice is used only once.
    """
    by_turn = {turn: episode for episode in seen for turn in episode.source_turn_ids}
    taken: dict[str, Episode] = {}
    for episode in said:
        sources = [by_turn[turn] for turn in episode.source_turn_ids if turn in by_turn]
        whole = {id(source) for source in sources}
        complete = all(set(source.source_turn_ids) <= set(episode.source_turn_ids) for source in sources)
        already = any(turn in taken for turn in episode.source_turn_ids)
        if not whole or not complete or already or not episode.summary.strip():
            continue
        told = Episode(
            episode_id=f"episode-{episode.source_turn_ids[0]}",
            summary=cut_bytes(episode.summary, EPISODE_BYTES),
            touched_paths=tuple(dict.fromkeys(path for source in sources for path in source.touched_paths)),
            verification=tuple(dict.fromkeys(v for source in sources for v in source.verification)),
            source_turn_ids=episode.source_turn_ids,
            file_uses=summed_uses(sources),
        )
        taken.update(dict.fromkeys(episode.source_turn_ids, told))
    chosen = [
        taken.get(episode.source_turn_ids[0], episode) if episode.source_turn_ids else episode for episode in seen
    ]
    return tuple({episode.episode_id: episode for episode in chosen}.values())
