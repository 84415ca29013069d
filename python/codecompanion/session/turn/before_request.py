"""Prepares a request before it is sent: step 7 of "From Enter to the bytes" (`doc/dev/architecture.md`; R-518)."""

from __future__ import annotations

import msgspec

from codecompanion.context.shape_request import levels_of
from codecompanion.context.stage_report import Prepared
from codecompanion.errors import ContextOverflow
from codecompanion.session.actions.follow_trust import follow_trust
from codecompanion.session.chat.chat import Chat
from codecompanion.session.state import Stop
from codecompanion.session.toolbox.tool_groups import TOOLS_KEY
from codecompanion.session.turn.paused_and_full import PausedAndFull
from codecompanion.session.window.context_control import ContextControl


async def prepare_request(chat: Chat, asking: PausedAndFull, *, is_continued: bool) -> Stop | None:
    """Prepare the request; return a `Stop` if the user declines to make it fit (R-545), or None to continue.

    `is_continued`: the provider wants its paused reply returned unchanged, so nothing is summarised.

    Raises:
        ContextOverflow: the request does not fit the window, and nothing more can be removed.
        CodeCompanionError: something could not be stored; the view is as before.
    """
    await chat.control.window.know_server()
    chat.control.window.tell_no_tools()
    await _have_tools(chat)
    await chat.reread_rules()
    await follow_trust(chat)
    await chat.control.read_environment(chat.root())
    chat.effects.boundary()
    wanted = None if is_continued else chat.take_compaction_request()
    if wanted is not None:
        await chat.control.compact(wanted)
    summaries, anyway = wanted is None and not is_continued, asking.allowed
    await _manage(chat.control, summaries=summaries, anyway=anyway)
    declined = None if anyway or is_continued else await asking.before_request()
    if asking.allowed and not anyway:
        await _manage(chat.control, summaries=summaries, anyway=True)
    return declined


async def _have_tools(chat: Chat) -> None:
    """Wait for the tools that the request may offer, unless no tools are sent."""
    if not chat.control.may_have_tools:
        return
    await chat.control.tools.settle()
    await chat.know_servers()
    if chat.services.mcp is not None:
        await chat.services.mcp.wait_for(chat)
    for key, name in chat.control.tools.missing():
        chat.services.report_mistake(f"{TOOLS_KEY}.{key}: there is no tool {name} here.")
    chat.control.offer_tools()
    chat.context.show_tools()  # shows which of the chosen tools exist


async def _manage(control: ContextControl, *, summaries: bool, anyway: bool) -> None:
    """Make the request fit the context window: steps 7.6 to 7.16.

    While compaction is paused, the caller handles a request that does not fit, unless `anyway`.
    """
    prepared_for = control.named
    await control.window.confirm_window()
    await control.native.drop_foreign_blocks()
    await control.fitting.ask_when_close()
    await _must_be_possible(control)
    await control.shaper.read_facts()
    if summaries:
        await control.native.compact_again()
    prepared = await _run_policy(control, summaries=summaries, anyway=anyway)
    control.watch.take(prepared, control.compaction_judge())
    is_asked = control.pause.is_on and not anyway  # the user decides if the request does not fit
    if not is_asked and control.native.compact_at and control.measured().tokens > control.limits.context_window:
        # One tool result can jump from below the threshold past the window; shrink before the provider refuses.
        await control.recover(ContextOverflow("the request is larger than the window"))
    if not is_asked and prepared_for == control.named:  # otherwise it is prepared again for the other model
        await _must_fit(control)
    await control.shaper.announce(compacted=bool(prepared.changed))


async def _run_policy(control: ContextControl, *, summaries: bool, anyway: bool) -> Prepared:
    """Run the policy; run it again without a model if the recall tools it adds do not fit."""
    level = levels_of(control.policy, control.shaper.env(), control.log.view.messages).trigger
    await control.sources.read(control.policy, due=control.measured().tokens > level)
    control.offer_tools()  # messages may have been removed since
    prepared = await control.run(control.plans.request(summaries=summaries, anyway=anyway))
    if not control.offer_tools() or control.fitting.fits:
        return prepared
    again = await control.run(control.plans.request(summaries=False, anyway=anyway))
    return msgspec.structs.replace(again, reports=(*prepared.reports, *again.reports))


async def _must_be_possible(control: ContextControl) -> None:
    """Raise an error, before anything is compacted, if no compaction can make the request fit."""
    refusal = await control.fitting.impossible(control.log.view)
    if refusal is not None:
        await control.shaper.give_up(refusal.why, refusal.tokens)
        raise ContextOverflow(refusal.why)


async def _must_fit(control: ContextControl) -> None:
    try:
        await control.fitting.must_fit()
    except ContextOverflow as error:
        await control.shaper.give_up(str(error))
        raise
