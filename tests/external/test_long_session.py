"""A recorded session of half a million tokens and 454 tool calls, replayed through each adapter.

The host is killed during a reply and the editor between two turns. By default one of seven cases is played, see
`samples.py`; `tests/nvim/test_replayed_session.py` plays a shorter session through each adapter.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from samples import ALL

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "nvim"))

from harness import Nvim, find_nvim
from recorded_session import PI, RecordedReply, RecordedTurn, read_recording
from replay_verdict import check_replay
from replayed_session import Replay
from session_player import AnthropicVoice, ChatVoice, ResponsesVoice

pytestmark = [
    pytest.mark.slow("half a million recorded tokens in a real Neovim"),
    pytest.mark.thorough("tests/nvim/test_replayed_session.py plays a shorter one"),
    pytest.mark.skipif(not PI.is_file(), reason="the recorded chats of ../shared are not here"),
    pytest.mark.timeout(900),
]
QUESTION = RecordedTurn("One more question: what did we do?", (RecordedReply("We untangled the run modes."),))
SOME = 620
"""The number of messages, enough for the smaller windows to be compacted several times."""
CASES: dict[str, tuple[type, int, int, dict[str, Any]]] = {
    "openai, 200k": (ChatVoice, 200_000, 975, {}),
    "anthropic compacts, 200k": (AnthropicVoice, 200_000, 975, {}),
    "openai_responses compacts, 200k": (ResponsesVoice, 200_000, 975, {}),
    "anthropic, compaction here, 100k": (AnthropicVoice, 100_000, SOME, {"native": False}),
    "openai_responses, compaction here, 100k": (ResponsesVoice, 100_000, SOME, {"native": False}),
    "anthropic pauses, 100k": (AnthropicVoice, 100_000, SOME, {"opts": {"pause_after_compaction": True}}),
    "openai_responses tells the rest, 64k": (ResponsesVoice, 64_000, SOME, {"tells_rest": True}),
}


@pytest.fixture
def nvim_factory(tmp_path: Path) -> Iterator[Any]:
    if find_nvim() is None:
        pytest.skip("no Neovim found: set NVIM_BIN, or run `make setup`")
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(Nvim(options.pop("root", tmp_path), **options))


SAMPLE = ("openai_responses tells the rest, 64k",)


@pytest.mark.parametrize("case", CASES if ALL else SAMPLE)
def test_a_long_session_stays_in_its_window_and_the_meter_is_right(
    nvim_factory: Any, tmp_path: Path, case: str
) -> None:
    voice, window, messages, options = CASES[case]
    session = read_recording(PI, messages=messages)
    with Replay(nvim_factory, tmp_path, session, voice, window=window, **options) as replay:
        replay.play(kill_host_at=14, kill_editor_at=20)
        replay.play_turn(QUESTION)
        assert "We untangled the run modes." in replay.chat.text()
        errors = check_replay(replay)
    print(case, errors)
    before, after, compacted = (errors[name] for name in ("before", "after", "compacted"))
    assert (before["p50"] < 0.05, before["p95"] < 0.5, before["p99"] < 2) == (True, True, True), before
    assert (after["p50"] < 0.05, after["p95"] < 0.3, after["max"] < 1) == (True, True, True), after
    # Few are left since a running loop is cleared first; one comes with a pasted text, nearly all of the next prompt.
    assert (compacted["p50"] < 4, compacted["max"] < 8) == (True, True), compacted
