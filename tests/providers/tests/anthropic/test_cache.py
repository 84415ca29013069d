"""The fake Messages server caches prompts as the provider's page describes, with a clock that tests advance."""

from __future__ import annotations

from typing import Any

from tests.providers.anthropic.models import HAIKU
from tests.providers.anthropic.prompt import prompt_of
from tests.providers.anthropic.server import AnthropicServer
from tests.providers.tests.anthropic.bodies import (
    COMPACT,
    LONG,
    MARK,
    THRESHOLD,
    TOOL,
    Body,
    ask,
    assistant,
    body,
    edits,
    text,
    user,
)

PAGE = "x" * 3600
"""1,000 tokens by the server's count, and four for the block."""
HOUR: Body = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}


def page(**more: Any) -> Body:
    return text(PAGE, **more)


class Account:
    """A server that receives repeated requests."""

    def __init__(self) -> None:
        self.server = AnthropicServer()

    def use(self, *messages: Body, betas: tuple[str, ...] = (), **fields: Any) -> tuple[int, int, int]:
        """Return (fresh, written, read) tokens of a request."""
        request = body(*messages, **fields)
        _, message = ask(request, *betas, server=self.server)
        usage = message["usage"]
        counts = (usage["input_tokens"], usage["cache_creation_input_tokens"], usage["cache_read_input_tokens"])
        if "context_management" not in fields:
            assert sum(counts) == prompt_of(request).tokens
        return counts


def test_a_marked_prefix_is_written_once_and_read_afterwards() -> None:
    """Text after the last breakpoint is fresh; without a breakpoint nothing is cached."""
    account = Account()
    assert account.use(user(page(), page(**MARK), text())) == (5, 2008, 0)
    assert account.use(user(page(), page(**MARK), text("ho"))) == (5, 0, 2008)
    assert account.use(user(page(), page(), text())) == (2013, 0, 0)
    assert account.use(user(page(), text("changed"), page(**MARK)))[2] == 0


def test_a_growing_conversation_reads_the_last_requests_prefix() -> None:
    """The breakpoint moves to the end of the conversation."""
    account = Account()
    assert account.use(user(page(), page(**MARK))) == (0, 2008, 0)
    longer = [user(page(), page()), assistant(text("So")), user(page(**MARK))]
    assert account.use(*longer) == (0, 1009, 2008)


def test_the_lookback_is_twenty_blocks() -> None:
    """The count includes the breakpoint's own block."""
    for added, read in ((19, 2008), (20, 0)):
        account = Account()
        account.use(user(page(), page(**MARK)))
        blocks = [text() for _ in range(added - 1)]
        assert account.use(user(page(), page(), *blocks, text(**MARK)))[2] == read


def test_a_short_prefix_is_not_cached() -> None:
    """The minimum is 1,024 tokens, including tools and system prompt."""
    account = Account()
    assert account.use(user(page(**MARK))) == (1004, 0, 0)
    assert account.use(user(page(**MARK)), system="x" * 360)[1] == 1108
    assert account.use(user(text(**MARK)), tools=[{**TOOL, "description": PAGE}])[1] > 1346


def test_the_cache_expires_after_five_minutes_without_use_or_after_an_hour() -> None:
    """Reading renews the lifetime."""
    account = Account()
    short, long = user(page(), page(**MARK)), user(text("1h"), page(), page(**HOUR))
    account.use(short)
    account.use(long)
    for _ in range(3):
        account.server.clock.advance(299)
        assert account.use(short)[2] == 2008
    account.server.clock.advance(300)
    assert account.use(short)[2] == 0
    assert account.use(long)[2] > 2008
    account.server.clock.advance(3600)
    assert account.use(long)[2] == 0


def test_the_prefix_is_tools_then_system_then_messages() -> None:
    """A change of the tools invalidates the whole prefix, a change of the messages only the messages."""
    account = Account()
    fields: Body = {"tools": [TOOL], "system": [page(), page(**MARK)]}
    written = account.use(user(page(**MARK)), **fields)[1]
    assert account.use(user(page(**MARK)), **fields)[2] == written
    system = account.use(user(text("ho"), page(**MARK)), **fields)[2]
    assert 2008 < system < written
    assert account.use(user(page(**MARK)), **{**fields, "tools": [{**TOOL, "description": "d"}]})[2] == 0
    assert account.use(user(page(**MARK)), **fields, tool_choice={"type": "none"})[2] == system
    assert account.use(user(page(**MARK)), **fields, model=HAIKU.id)[2] == 0


def test_a_marker_for_the_whole_request_caches_all_of_it() -> None:
    """The marker is `cache_control` at the top level."""
    account = Account()
    assert account.use(user(page(), page()), **MARK) == (0, 2008, 0)
    assert account.use(user(page(), page()), assistant(text("So")), user(text()), **MARK) == (0, 10, 2008)


def test_lifetimes_are_reported_separately() -> None:
    """The counts in `cache_creation` add up to the written tokens."""
    _, message = ask(body(user(page(**MARK)), system=[page(), page(**HOUR)]))
    assert message["usage"]["cache_creation"] == {"ephemeral_1h_input_tokens": 2008, "ephemeral_5m_input_tokens": 1004}
    assert message["usage"]["cache_creation_input_tokens"] == 3012


def test_a_compaction_reads_the_cache_and_the_reply_keeps_the_system_prompt() -> None:
    """This works if a breakpoint ends the system prompt."""
    account = Account()
    system = [page(), page(**MARK)]
    account.use(user(text(LONG, **MARK)), system=system)
    request = body(user(text(LONG)), user(text(**MARK)), system=system, **edits(COMPACT))
    _, message = ask(request, THRESHOLD, server=account.server)
    compaction, said = message["usage"]["iterations"]
    assert compaction["cache_read_input_tokens"] > 57_000
    assert said["cache_read_input_tokens"] == 2008
    assert message["usage"]["cache_read_input_tokens"] == 2008
