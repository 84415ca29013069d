"""Every pair of adapter switches at every turn boundary of recorded chats: all requests are valid (R-542).

The recordings are a customer's thirteen turns with tools whose ids repeat (tau-airline), a dialogue with unanswered
messages and consecutive replies (aider), one long tool loop in which every round is a boundary (openhands), and a
coding session of 180,000 tokens (pi), in which old results are cleared and the history is compacted, by us and by the
providers. By default, a sample of the pairs is used, with one provider of each kind, and the long session crosses each
pair once, with its tool loops and texts truncated; `EXTERNAL=all` uses all providers, the full session, and every pair
at each of its boundaries (20 minutes). The invariants of a request are in `tests/adapters/switch_chat.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest
from samples import ALL, sampled

from tests.adapters.switch_chat import SwitchingChat, When, open_chat, round_trip
from tests.adapters.switch_provider import KINDS
from tests.adapters.switch_story import Story, read_story

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "transcripts"
pytestmark = [
    pytest.mark.slow("whole recorded sessions change the provider at every turn"),
    pytest.mark.skipif(not DATA.is_dir(), reason=f"the recorded transcripts in {DATA} are not on this machine"),
]

FILES = {
    "aider": "aider/2024-08-06_084710.jsonl",
    "tau": "tau-airline/task46_trial3.jsonl",
    "openhands": "openhands/ponylang__ponyc-4588.jsonl",
    "pi": "pi/before-compaction.jsonl",
}
ONE_OF_EACH = ("openai", "mistral", "gemini", "responses", "anthropic", "responses@localhost", "anthropic@localhost")
PROVIDERS = (*KINDS, *(f"{name}@localhost" for name in KINDS if KINDS[name].seals)) if ALL else ONE_OF_EACH
PAIRS = list(permutations(PROVIDERS, 2))
SAMPLE = sampled(PAIRS, 9)
"""Nine of 42 pairs: each of the seven providers is both the first and the second of a pair."""


def story_of(name: str, **fields: int) -> Story:
    """Return a newly read recorded story."""
    return read_story(DATA / FILES[name], **fields)


def cut_short(story: Story, steps: int) -> Story:
    """Return the story with at most `steps` replies per turn, the last of which has no calls."""
    return tuple(
        replace(turn, steps=(*turn.steps[:steps], replace(turn.steps[-1], calls=())))
        if len(turn.steps) > steps
        else turn
        for turn in story
    )


@pytest.fixture(scope="module")
def counts() -> Iterator[Counter[str]]:
    """Count chats, requests, switches and edits, and print the counts at the end (`pytest -s`)."""
    counted: Counter[str] = Counter()
    yield counted
    print("\n" + ", ".join(f"{number:,} {what}" for what, number in counted.items()))


async def play(
    root: Path, counts: Counter[str], route: Sequence[str], story: Story, when: When, **fields: int
) -> SwitchingChat:
    """Return the chat after the story has been played without a problem."""
    async with open_chat(root, route, story, when, **fields) as chat:
        await chat.play(story)
        assert chat.problems() == []
    counts.update(chats=1, requests=chat.requests, switches=chat.switches, edits=chat.edits)
    counts.update(compactions=len(chat.compactions), lessons=chat.lessons)
    return chat


@pytest.mark.parametrize("name", ["tau", "aider"])
@pytest.mark.parametrize(("first", "other"), SAMPLE)
async def test_every_turn_of_a_dialogue_may_go_to_the_other(
    tmp_path: Path, counts: Counter[str], first: str, other: str, name: str
) -> None:
    """Each of the two providers starts once, so that every boundary is crossed in both directions."""
    story = story_of(name)
    chat = await play(tmp_path, counts, (first, other), story, "turns")
    assert chat.switches == len(story) - 1 >= 9


@pytest.mark.parametrize(("first", "other"), SAMPLE)
async def test_every_round_of_a_tool_loop_may_go_to_the_other(
    tmp_path: Path, counts: Counter[str], first: str, other: str
) -> None:
    """In one turn of 49 replies, each provider continues with the other's calls and reasoning."""
    chat = await play(tmp_path, counts, (first, other), story_of("openhands"), "tools")
    assert chat.switches >= 40


@pytest.mark.timeout(600)
async def test_a_long_session_crosses_every_pair(tmp_path: Path, counts: Counter[str]) -> None:
    """At full size (180,000 tokens in windows of 200,000) it includes edits.

    It also includes our own and native compactions, and their undo.
    """
    story = story_of("pi") if ALL else cut_short(story_of("pi", longest=4_000), 4)
    chat = await play(tmp_path, counts, round_trip(ONE_OF_EACH), story, "turns")
    assert chat.switches == len(story) - 1 >= len(ONE_OF_EACH) * (len(ONE_OF_EACH) - 1)
    if ALL:
        assert chat.edits > 5
        assert chat.compactions


@pytest.mark.parametrize("window", [200_000, 24_000])
@pytest.mark.parametrize(("first", "other"), PAIRS if ALL else [("responses", "anthropic")])
async def test_every_turn_of_a_long_session_may_go_to_the_other(
    tmp_path: Path, counts: Counter[str], first: str, other: str, window: int
) -> None:
    """The windows may be too small for the session; our edits and compactions make it fit."""
    story = cut_short(story_of("pi", longest=400), 3)
    chat = await play(tmp_path, counts, (first, other), story, "turns", window=window)
    assert chat.switches == len(story) - 1 >= 50
