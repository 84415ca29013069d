"""Promises about a replayed session, for any compactor: one function per promise, which raises if it is broken.

Everything is compared with the server's counts and received requests, not with the plugin's own reports.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from codecompanion.counting.tokens import estimate_text
from codecompanion.model.history import LogEvent, MessageAdded, RequestSent
from codecompanion.model.invariants import violations
from codecompanion.model.view import View, apply
from codecompanion.placeholders import TOOL_RESULT_CLEARED
from replayed_session import Asked, Replay, percentiles
from session_player import Seen

EDIT_AT, COMPACT_AT, KEPT_CYCLES = 0.65, 0.85, 3
DOUBT = 0.01
"""Triggers use the best estimate, which deviates from the server's count by at most this fraction."""


def check_replay(replay: Replay, *, compacts: bool = True) -> dict[str, dict[str, float]]:
    """Check all promises; return the meter's errors in per cent.

    `compacts`: editing alone is not enough for the session.
    """
    requests, log = replay.requests(), replay.chat.log()
    check_requests_are_valid(replay)
    check_rules_are_untouched(replay)
    check_no_word_is_lost(replay, log)
    check_edits(replay, requests)
    check_nothing_was_left_to_clear(replay, requests, log)
    assert bool(check_compactions(replay, requests)) == compacts
    return check_meter(requests)


def check_requests_are_valid(replay: Replay) -> None:
    """Check that no request was refused and nothing failed."""
    assert [refusal.message for refusal in replay.server.refusals] == []
    assert [event for event in replay.trace() if event["type"] == "compaction_failed"] == []
    assert violations(replay.chat.view().messages) == []
    assert replay.chat.nvim.messages() == ""


def check_rules_are_untouched(replay: Replay) -> None:
    """Check that the rule file is in every request exactly once, with identical bytes (lesson 10)."""
    sent = {seen.rules for seen in replay.chat_requests()}
    assert len(sent) == 1, f"{len(sent)} forms of the rules were sent"
    (texts,) = sent
    assert len(texts) == 1, f"the rules were sent {len(texts)} times in one request"
    assert replay.session.rules.strip() in texts[0]


def check_no_word_is_lost(replay: Replay, log: Sequence[LogEvent]) -> None:
    """Check that the user's words are stored, and in every request until the summariser has read them."""
    added = [event.payload.message for event in log if isinstance(event.payload, MessageAdded)]
    stored = [message.text for message in added if message.role == "user" and not message.tag]
    assert stored == replay.player.typed
    read = [
        one for one in replay.player.seen if one.purpose == "summary" or one.compacts or one.purpose == "compaction"
    ]
    gone = frozenset[int]()
    for earlier, later in pairwise(replay.chat_requests()):
        newly = later.missing - earlier.missing - gone
        gone |= newly
        if newly:
            assert any(not newly & one.missing for one in _between(replay, earlier, later)), f"{newly} was never read"
    assert bool(gone) <= bool(read)


def _between(replay: Replay, earlier: Seen, later: Seen) -> Sequence[Seen]:
    """Return the requests from `earlier` up to `later` (exclusive), which could have contained the removed text."""
    all_seen = replay.player.seen
    places = {id(seen): place for place, seen in enumerate(all_seen)}
    return all_seen[places[id(earlier)] : places[id(later)]]


def check_edits(replay: Replay, requests: Sequence[Asked]) -> None:
    """Check that editing happens at 65 % and not before, and that the server counts the savings (R-501, R-508).

    There may be two edits before a request: old results, then those of the running turn; the request shows the final
    result.
    """
    edit_at, done = EDIT_AT * replay.window, 0
    for asked in requests:
        edits = asked.told("context_edited")
        done += len(edits)
        for edit in edits:
            assert edit["tokens_before"] >= (1 - DOUBT) * edit_at, f"edited at {edit['tokens_before']} of {edit_at}"
            assert asked.seen.tokens < edit["tokens_before"] or asked.told("compacted")
        if edits and not asked.told("compacted"):
            assert abs(asked.seen.tokens - edits[-1]["tokens_after"]) <= 0.02 * asked.seen.tokens
    assert done, "nothing was edited"


def check_nothing_was_left_to_clear(replay: Replay, requests: Sequence[Asked], log: Sequence[LogEvent]) -> None:
    """Check that a request above 65 % has no old result that could have been cleared."""
    view, left = View(), list(requests)
    for event in log:
        if isinstance(event.payload, RequestSent) and event.payload.purpose == "chat":
            asked = left.pop(0)
            old = [
                message
                for message in view.messages
                if message.role == "tool"
                and (message.cycle or 0) <= view.cycle - KEPT_CYCLES
                and len(message.text) > len(TOOL_RESULT_CLEARED)
                # Clearing one that is hardly longer than the placeholder would free nothing.
                and estimate_text(message.text) > 2 * estimate_text(TOOL_RESULT_CLEARED)
            ]
            if asked.seen.tokens > (1 + DOUBT) * EDIT_AT * replay.window:
                assert not old, f"request {asked.number} ({asked.seen.tokens} tokens) still held {len(old)} old results"
        view = apply(view, event)
    assert left == []


def check_compactions(replay: Replay, requests: Sequence[Asked]) -> int:
    """Check that the right side compacts at 85 %, and that the next request is much smaller by the server's count.

    Return the number of compactions.
    """
    compact_at, done, ours = COMPACT_AT * replay.window, 0, 0
    for asked in requests:
        assert len(asked.compactions) == asked.seen.compacts, f"request {asked.number}"
        assert asked.seen.tokens < (1 + DOUBT) * compact_at or asked.seen.compacts, f"request {asked.number}"
    for asked, following in pairwise(requests):
        for compacted in (*asked.compactions, *following.told("compacted")):
            # A request that one result made larger than the window is beyond what a provider would compact.
            least = replay.window if compacted["trigger"] == "reactive" else (1 - DOUBT) * compact_at
            assert compacted["tokens_before"] >= least
            assert compacted["tokens_after"] < 0.5 * compacted["tokens_before"]
            assert following.seen.tokens - following.seen.tail_tokens < 0.5 * compacted["tokens_before"]
            done += 1
            ours += compacted["trigger"] == "reactive" or not replay.native
    assert bool(ours) == any(seen.purpose == "summary" for seen in replay.player.seen)
    return done
    assert all(seen.tokens <= replay.window for seen in replay.player.seen)


def check_meter(requests: Sequence[Asked]) -> dict[str, dict[str, float]]:
    """Return the meter's error in per cent of the server's later count.

    before: right before each request except the first, which has no report yet. after: right after each reply, if the
    next request only added to it. compacted: before the first request after a compaction.
    """
    after, compacted = list[float](), list[float]()
    for one, following in pairwise(requests):
        if one.compactions or following.told("compacted"):
            compacted.append(following.error)
        elif one.meter_after is not None and not following.told("context_edited"):
            counted = following.seen.tokens - following.seen.tail_tokens
            after.append(abs(one.meter_after - counted) / following.seen.tokens)
    errors = {"before": [one.error for one in requests[1:]], "after": after, "compacted": compacted}
    return {name: percentiles(values) for name, values in errors.items()}
