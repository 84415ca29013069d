"""`quote_user_messages`: lets code copy the user's messages into the summary (R-431, lesson 11).

Every removed message that the user typed is quoted in order, a long one as head and tail; quotes of earlier summaries
are carried over. When the room is used up, the oldest quotes become one-line excerpts with the key that `recall` needs
to return the full text, and the oldest excerpts become one line with their number and keys. So no message disappears
silently. Demands outlive questions: an excerpt keeps the demands of its message, and excerpts with demands are the last
to be reduced to a count. Quoted lines start with `>`, so a user's text can never pass for a heading.
"""

from __future__ import annotations

import msgspec

from codecompanion.context.strategy_parameters import QuoteUserMessages
from codecompanion.context.summary_text.fit_quotes import QuoteFacts, fit_quotes
from codecompanion.context.summary_text.place_quotes import put_quotes, section_of_quotes, take_quotes
from codecompanion.context.summary_text.quote_facts import fit_facts
from codecompanion.context.summary_text.quote_lines import render_quotes
from codecompanion.context.work import Env, Outcome, Work

_MIN_ROOM = 60


def quote_user_messages(work: Work, params: QuoteUserMessages, env: Env) -> Outcome:
    """Return the work with the user's messages copied into the summary by code; `details` has the numbers of quotes."""
    facts = env.folds.get(QuoteFacts)
    said = facts.quotes(work.removed, params.max_chars, env.key_of)
    if not said.total or not work.summary or (is_given(work) and not params.also_given):
        return work
    freed = env.measure(work.before).tokens - env.measure((*work.messages, *work.pending)).tokens
    most = max(_MIN_ROOM, (freed - env.count_text(take_quotes(work.summary)[0])) // 2)
    room = min(quote_limit(params, env), most)
    if env.window < params.facts_below:
        more = min(most * 3 // 2, int(params.facts_share * env.window)) - room
        kept = fit_facts(said, room, max(0, more), params.excerpt_chars, env.count_text, facts)
    else:
        kept = fit_quotes(said, room, params.excerpt_chars, env.count_text, facts)
    said_now = work.with_details(
        user_messages_quoted=sum(quote.whole for quote in kept.quotes),
        user_messages_excerpted=sum(not quote.whole for quote in kept.quotes),
        user_messages_left_out=kept.left_out,
    )
    return msgspec.structs.replace(said_now, summary=put_quotes(work.summary, "\n".join(render_quotes(kept))))


def quote_limit(params: QuoteUserMessages, env: Env) -> int:
    """Return the maximum size of the quotes, regardless of the tokens that the compaction frees."""
    return min(int(params.share * env.window), params.max_tokens)


def is_given(work: Work) -> bool:
    """Return whether the summary is a caller's text without a known form, to which nothing is added."""
    return work.details.written_by == "caller" and section_of_quotes(work.summary) is None
