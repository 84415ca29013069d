"""A recorded session with tools, replayed through each adapter against its strict server.

The session is shipped with the package and uses a window that it outgrows; `tests/external` has a session of 480,000
tokens.
"""

from __future__ import annotations

import pytest

from recorded_session import DEMO, RecordedReply, RecordedTurn, read_recording
from replay_verdict import check_replay
from replayed_session import Replay
from session_player import VOICES, ChatVoice, ResponsesVoice

pytestmark = pytest.mark.slow("a recorded session of 87 replies in a real Neovim")

WINDOW = 64_000
QUESTION = RecordedTurn("One more question: where was the error?", (RecordedReply("It was in the berths."),))


@pytest.mark.parametrize(
    "voice",
    [
        pytest.param(voice, marks=[] if voice is ChatVoice else [pytest.mark.thorough("the same in another format")])
        for voice in VOICES
    ],
    ids=lambda voice: voice.adapter,
)
def test_a_session_is_edited_and_compacted_as_specified_and_the_meter_is_right(nvim_factory, tmp_path, voice):
    """The session has 87 replies and 203 calls and is compacted by the provider or the plugin.

    The host is killed during it.
    """
    session = read_recording(DEMO)
    with Replay(nvim_factory, tmp_path, session, voice, window=WINDOW) as replay:
        replay.play(kill_host_at=10)
        replay.play_turn(QUESTION)
        assert "It was in the berths." in replay.chat.text()
        # As Responses items the session stays below 85 % by clearing alone.
        errors = check_replay(replay, compacts=voice is not ResponsesVoice)
    # The prompts of this session are short: one tool result is most of some, and may be off by a tenth.
    before, after, compacted = (errors[name] for name in ("before", "after", "compacted"))
    assert (before["p50"] < 0.2, before["p95"] < 2, before["max"] < 8) == (True, True, True), before
    assert (after["p50"] < 0.1, after["p95"] < 1) == (True, True), after
    # The rest of a turn compacted half-way was reported together with the removed part.
    assert compacted["max"] < 8, compacted
