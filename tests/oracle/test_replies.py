"""Every recorded reply, read by the official SDK and our decoder: text, calls, stop reason and usage agree."""

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
    """Return our reading, or None if it is not a complete reply."""
    try:
        return read_with_ours(reply)
    except AdapterError:
        return None


def sdks(reply: Reply) -> Reading | None:
    """Return the SDK's reading, or None if it raises an error."""
    try:
        return read_with_sdk(reply)
    except Exception:  # an oracle may fail in any way
        return None


@pytest.mark.parametrize("name", SAID)
@pytest.mark.parametrize("family", FAMILIES)
async def test_the_sdk_reads_in_our_fakes_what_we_read(family: Family, name: str) -> None:
    """The fakes and our decoder use the wire format correctly; this is checked on every machine."""
    reply = await of_our_fakes(family, name)
    assert read_with_sdk(reply) == read_with_ours(reply)


@pytest.mark.skipif(not WIRE.is_dir(), reason=f"the recorded traffic in {WIRE} is not on this machine")
@pytest.mark.parametrize("reply", PROVIDERS, ids=lambda reply: f"{reply.family}-{reply.name}")
def test_the_sdk_reads_in_a_recording_what_we_read(reply: Reply) -> None:
    """A recording that one of them cannot read completely cannot be read completely by the other either."""
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
    """Most are complete replies, in all three formats; a filter that finds nothing would make the tests above empty."""
    whole = [reply for reply in PROVIDERS if sdks(reply) is not None]
    assert len(whole) > 200
    assert {(reply.family, reply.streams) for reply in whole} == {(f, s) for f in FAMILIES for s in (True, False)}


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_every_dialect_is_read_by_us(dialect: Dialect) -> None:
    """Its content is written next to it, because no SDK reads all of them."""
    assert is_read(dialect, by_sdk=False)


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_the_sdk_reads_only_some_dialects() -> None:
    """This is why the SDK is not the default transport (architecture.md); it reads its own dialect."""
    read = {dialect.name for dialect in DIALECTS if is_read(dialect, by_sdk=True)}
    assert "OpenAI's own" in read
    assert len(read) < len(DIALECTS)
