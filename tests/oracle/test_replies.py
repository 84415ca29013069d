"""Every recorded reply, read by the official SDK and by us: the same text, calls, stop reason and usage."""

from __future__ import annotations

from dataclasses import replace

import pytest

from codecompanion.errors import AdapterError
from tests.oracle.dialects import DIALECTS, Dialect, is_read
from tests.oracle.reading import Family, Reading, Reply, read_with_ours, read_with_sdk
from tests.oracle.recordings import FAMILIES, SAID, WIRE, of_our_fakes, of_providers

PROVIDERS = of_providers()


_TWO_PASSES = "the SDK reports the sum of the model's two passes; its context is the second"
OTHER_USAGE = {
    "anthropic_compaction_streaming": "the SDK adds the cached tokens of the compaction's pass to the reply's prompt",
    "test_anthropic_advisor_tool_redacted-0": _TWO_PASSES,
    "test_anthropic_advisor_tool_stream-0": _TWO_PASSES,
}
"""Recordings whose usage we deliberately read differently, with the reason; the rest of each reading must be equal."""


def ours(reply: Reply) -> Reading | None:
    """Return our reading, None if it is not a whole reply."""
    try:
        return read_with_ours(reply)
    except AdapterError:
        return None


def sdks(reply: Reply) -> Reading | None:
    """Return the SDK's reading, None if it raises."""
    try:
        return read_with_sdk(reply)
    except Exception:  # an oracle may fail in any way
        return None


@pytest.mark.parametrize("name", SAID)
@pytest.mark.parametrize("family", FAMILIES)
async def test_the_sdk_reads_in_our_fakes_what_we_read(family: Family, name: str) -> None:
    """On every machine: the fakes speak the wire format, and so does our decoder."""
    reply = await of_our_fakes(family, name)
    assert read_with_sdk(reply) == read_with_ours(reply)


@pytest.mark.skipif(not WIRE.is_dir(), reason=f"the recorded traffic in {WIRE} is not on this machine")
@pytest.mark.parametrize("reply", PROVIDERS, ids=lambda reply: f"{reply.family}-{reply.name}")
def test_the_sdk_reads_in_a_recording_what_we_read(reply: Reply) -> None:
    """A recording that one of them does not read whole, the other does not read whole either."""
    theirs, mine = sdks(reply), ours(reply)
    if reply.name in OTHER_USAGE:
        assert theirs is not None
        assert mine is not None
        assert mine != theirs, "no longer an exception"
        assert replace(mine, usage=None) == replace(theirs, usage=None)
    else:
        assert mine == theirs


@pytest.mark.skipif(not WIRE.is_dir(), reason=f"the recorded traffic in {WIRE} is not on this machine")
def test_the_recordings_are_really_read() -> None:
    """Most are whole replies of all three formats; a filter that finds nothing would make the tests above empty."""
    whole = [reply for reply in PROVIDERS if sdks(reply) is not None]
    assert len(whole) > 200
    assert {(reply.family, reply.streams) for reply in whole} == {(f, s) for f in FAMILIES for s in (True, False)}


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_every_dialect_is_read_by_us(dialect: Dialect) -> None:
    """Its content is written down beside it, because no SDK reads all of them."""
    assert is_read(dialect, by_sdk=False)


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_the_sdk_reads_only_some_dialects() -> None:
    """Why the SDK is not the transport of everybody (architecture.md); its own dialect it reads."""
    read = {dialect.name for dialect in DIALECTS if is_read(dialect, by_sdk=True)}
    assert "OpenAI's own" in read
    assert len(read) < len(DIALECTS)
