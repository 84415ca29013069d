"""A chat's context management: policy, limits, meter and guard of the model it talks to (R-501…R-533).

Owns what follows from adapter and model; decides nothing itself: `context.pipeline` does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from codecompanion.adapters.base import Adapter, ChatRequest
from codecompanion.context.editing.cache_state import find_cache_state
from codecompanion.context.pipeline import compact, last_tier, prepare, recover
from codecompanion.context.policy.budget import Room, threshold_tokens
from codecompanion.context.policy.schema import Stage, StageEvent
from codecompanion.context.report import Preparation, Prepared
from codecompanion.context.shaping.shape import levels_of
from codecompanion.context.work import Env, Measure, Messages
from codecompanion.counting.calibration import Calibration
from codecompanion.counting.model_windows import ResolvedLimits
from codecompanion.counting.tokens import MessageCounter
from codecompanion.errors import ContextOverflow, OpaqueRefused, RequestRejected
from codecompanion.model.history import View
from codecompanion.model.messages import ToolSpec, Usage
from codecompanion.session.accounts.meter import ContextMeter
from codecompanion.session.accounts.usage_check import sentence
from codecompanion.session.compaction.announcer import Announcer
from codecompanion.session.compaction.compaction import Compactor, Summariser
from codecompanion.session.compaction.effects import EffectRunner
from codecompanion.session.compaction.record import CompactionRecord
from codecompanion.session.compaction.recovery_record import RecoveryRecord
from codecompanion.session.compaction.summary_sources import SummarySources
from codecompanion.session.compaction.watch import CompactionWatch, Standing
from codecompanion.session.history.chat_log import ChatLog
from codecompanion.session.services import Services
from codecompanion.session.window.fitting import Fitting
from codecompanion.session.window.native import forget_foreign_blocks
from codecompanion.session.window.native_side import NativeSide
from codecompanion.session.window.pause import Pause
from codecompanion.session.window.request_shaper import RequestShaper
from codecompanion.session.window.too_large import Refusal
from codecompanion.session.window.window_watch import WindowWatch
from codecompanion.wire.events import Meter, Notice, Severity

_log = logging.getLogger(__name__)
RECOVERED_SHARE = 0.8
"""A request that was refused as too long is sent again with at most this share of its size, or of the window."""

NEAR_WINDOW = 0.85
"""From this share of what the window leaves for a prompt on, a refusal without a known reason is put down to size."""
_SIZE_STATUSES = frozenset({200, 400, 413, 422})


Outcome = Literal["changed", "skipped", "failed"]


class ContextControl:
    """Everything about one chat's context window."""

    def __init__(self, services: Services, chat_id: str, log: ChatLog, on_compacting: Callable[[bool], None]) -> None:
        self.services, self._chat_id, self.log = services, chat_id, log
        self._on_compacting = on_compacting
        self.watch = CompactionWatch(self.notice)
        self.window = WindowWatch(self)
        self.fitting = Fitting(self)
        self.native = NativeSide(self)
        self.pause = Pause(self)
        self._summary_refused = False
        """Whether a provider refused the last request for a summary, for whatever reason it gave."""
        self.adapter_name = self.model = ""
        self._overrides: Mapping[str, Any] = {}
        self._chosen_policy = ""
        self.policy = services.policy({})
        self.effects = EffectRunner(
            chat_id,
            log,
            services.store,
            services.keeping,
            services.emit,
            services.clock,
            services.new_token,
            every_messages=self._checkpoint_every,
        )
        self.specs = self._offered_tools()
        self.shaper = RequestShaper(self)
        self.system_message = self.shaper.system_message()
        self.sources = SummarySources(log)
        self.meter = ContextMeter(
            MessageCounter(services.count_text), Calibration(), checks_usage=services.checks_usage
        )
        self.meter.set_fixed_part(self.system_message, self.specs)

    def use_model(self, adapter_name: str, model: str) -> None:
        """Talk to another adapter and model: limits, meter and the next decision follow (lesson 4).

        Raises:
            ConfigError: there is no such adapter.
        """
        adapter = self.services.adapters.get(adapter_name)
        self.policy = self.services.policy(self._overrides, self._chosen_policy, adapter_name)
        self.adapter_name, self.model = adapter_name, model or adapter.default_model
        self.window.resolve()
        self.meter.switch_model(
            self.services.calibration(adapter_name, self.model),
            readable_reasoning_returns=adapter.returns_readable_reasoning,
        )
        self._compose_prompt()

    def _compose_prompt(self) -> None:
        """Take in what the policy in force says of the system prompt (K16)."""
        system = self.shaper.system_message()
        if system != self.system_message:
            self.system_message = system
            self.meter.set_fixed_part(system, self.specs)

    def _offered_tools(self) -> tuple[ToolSpec, ...]:
        services = self.services
        if not services.settings.tools.enabled:
            return ()
        return services.tools.specs(something_removed=self.log.has_removed)

    def offer_recall(self) -> bool:
        """Offer what brings removed messages back as soon as there are any; the prompt cache is lost then anyway.

        Returns whether it was not offered before.
        """
        specs = self._offered_tools()
        is_new = self.specs != specs
        if is_new:
            self.specs = specs
            self.meter.set_fixed_part(self.system_message, specs)
        return is_new

    @property
    def recall_tokens(self) -> int:
        """Return what brings removed messages back will take once it is offered, 0 = it is."""
        services = self.services
        if self.log.has_removed or not services.settings.tools.enabled:
            return 0
        offered = services.tools.specs(something_removed=True)
        more = self.meter.counter.tools(offered) - self.meter.counter.tools(self.specs)
        return round(self.meter.calibration.ratio * more)

    def use_overrides(self, overrides: Mapping[str, Any]) -> None:
        """Lay the chat's own settings over the policy (triggers that are functions in the configuration).

        Raises:
            ConfigError: an option does not exist or does not fit; the policy stays as it was.
        """
        self.policy = self.services.policy(overrides, self._chosen_policy, self.adapter_name)
        self._overrides = overrides

    @property
    def chosen_policy(self) -> str:
        """Return the policy the chat chose, "" when it follows the configuration."""
        return self._chosen_policy

    def use_policy(self, name: str) -> None:
        """Manage the context by another policy from the next request on; "" = as configured.

        Raises:
            ConfigError: there is no such policy; the one in force stays.
        """
        self.policy = self.services.policy(self._overrides, name, self.adapter_name)
        self._chosen_policy = name
        self.reset_guard()
        self._compose_prompt()
        if self.adapter_name:
            self.window.resolve()

    def tell_ignored_settings(self) -> None:
        """Say which settings mean nothing to the policy in force, if any: they were made for another one."""
        ignored = self.services.ignored_settings(self.policy)
        if ignored:
            names = ", ".join(ignored)
            self.notice(Severity.WARN, f"Policy {self.policy.name} has no option {names}: these settings are not used.")

    def reset_guard(self) -> None:
        """Forget failures: the view was cleared or the model changed."""
        self.watch.reset()

    @property
    def limits(self) -> ResolvedLimits:
        """Return window and reply reserve of the model in use."""
        return self.window.limits

    def adapter(self) -> Adapter:
        """Return the chat's adapter."""
        return self.services.adapters.get(self.adapter_name)

    @property
    def compacts_automatically(self) -> bool:
        """Return whether the configuration allows compactions nobody asked for."""
        stages = self.policy.stages
        return self.policy.enabled and any(stage.summarises and stage.trigger.at is not None for stage in stages)

    def request(self, messages: Messages | None = None) -> ChatRequest:
        """Return the request made of the view, shaped (R-338), with room left for the reply (R-507).

        With `messages` it is made of those as they are.
        """
        system, specs, most = self.system_message, self.specs, self.limits.max_output_tokens
        upper = self.measured().upper
        if messages is None:
            shaped = self.shaper.take()
            messages, system, specs, upper = shaped.messages, shaped.system, shaped.specs, shaped.measure.upper
        if most:
            # What is left of the window, when that is less (lesson 2).
            most = max(1, min(most, self.limits.context_window - upper))
        return ChatRequest(
            messages=(system, *messages),
            tools=specs,
            model=self.model,
            max_output_tokens=most,
            chat_id=self._chat_id,
            compact_at=self.native.ask(),
        )

    def plan_request(self, *, summaries: bool = True, view: View | None = None, anyway: bool = False) -> Preparation:
        """Return the preparation of the next request, not run yet (R-518); without `summaries` no model is asked.

        Of another `view` than the chat's when one is given; as that is only a try, what brings removed messages back is
        counted before it is offered. `anyway`: it is made to fit although that is paused, by all that needs no model.
        """
        view = view or self.log.view
        rested = self.watch.compactions.allows(view.cycle, self.meter.measure(view.messages).tokens)
        automatic = summaries and rested and not self.native.compact_at and not anyway
        env = self._sparing(msgspec.structs.replace(self.env(), cycle=max(1, view.cycle)))
        if view is not self.log.view:
            env = msgspec.structs.replace(env, reserve=env.reserve + self.recall_tokens)
        return prepare(
            view,
            self.policy,
            env,
            automatic_summaries=automatic,
            fitting=not self.native.compact_at and (anyway or not self.pause.is_on),
            resting=frozenset() if anyway else self.pause.resting,
        )

    def _sparing(self, env: Env) -> Env:
        """Return the environment of what the user did not ask for: whoever rests is not asked (R-532)."""
        asks = self.watch.allows_asking(self.log.view.cycle, self.measured().tokens)
        return msgspec.structs.replace(env, asks_models=asks)

    def plan_compaction(self, instructions: str = "") -> Preparation:
        """Return a compaction at any token count, not run yet (R-533)."""
        return compact(self.log.view, self.policy, self._env(instructions, manual=True))

    async def prepare(self, *, summaries: bool = True, anyway: bool = False) -> Prepared:
        """Prepare the next request and commit what that changed.

        While compaction is paused one that does not fit is left to the caller, unless it shall be made to fit `anyway`.

        Raises:
            ContextOverflow: it does not fit the window, and nothing more can be taken out.
        """
        prepared_for = self.adapter_name, self.model
        await self.window.make_sure()
        await self.native.drop_foreign_blocks()
        await self.fitting.ask_when_close()
        await self.shaper.read_facts()
        if summaries:
            await self.native.compact_again()
        level = levels_of(self.policy, self.env(), self.log.view.messages).trigger
        await self.sources.read(self.policy, due=self.measured().tokens > level)
        prepared = await self._planned(summaries=summaries, anyway=anyway)
        self.watch.take(prepared, self.standing())
        asks = self.pause.is_on and not anyway  # then what does not fit is the user's to decide: `Pause.excess`
        if not asks and self.native.compact_at and self.measured().tokens > self.limits.context_window:
            # One result can lead from below the threshold beyond the window: refused before the provider compacts.
            await self.recover(ContextOverflow("the request is larger than the window"))
        if not asks and prepared_for == (self.adapter_name, self.model):  # else prepared again, for the other window
            await self._must_fit()
        await self.shaper.announce(compacted=any(report.outcome == "changed" for report in prepared.reports))
        return prepared

    async def _must_fit(self) -> None:
        try:
            await self.fitting.must_fit()
        except ContextOverflow as error:
            await self.shaper.give_up(str(error))
            raise

    async def _planned(self, *, summaries: bool, anyway: bool) -> Prepared:
        """Run the policy, and once more without a model where what brings removed messages back takes room, too."""
        self.offer_recall()  # something may have been removed since
        prepared = await self._run(self.plan_request(summaries=summaries, anyway=anyway))
        if not self.offer_recall() or self.fitting.fits:
            return prepared
        again = await self._run(self.plan_request(summaries=False, anyway=anyway))
        return msgspec.structs.replace(again, reports=(*prepared.reports, *again.reports))

    async def tell_refused(self, refusal: Refusal) -> None:
        """Log under the policy's name for it that a message cannot be sent, if it has one (R-335)."""
        await self.shaper.give_up(refusal.why, refusal.tokens)

    async def compact(self, instructions: str) -> bool:
        """Compact, by the provider where it can (R-540); return whether the view changed. The user is told if not.

        Where it succeeds, or has nothing to do, the chat is managed again by itself (R-545): the user has said so.
        """
        outcome = await self._compact(instructions)
        if outcome != "failed":
            await self.pause.end()
        return outcome == "changed"

    async def _compact(self, instructions: str) -> Outcome:
        await self.native.drop_foreign_blocks()
        if self.native.compacts_on_demand:
            if not self.native.has_something_to_compact:
                self.notice(Severity.INFO, "Nothing was compacted: there is nothing to summarise yet.")
                return "skipped"
            compaction = await self.native.compact("manual", instructions)
            if compaction.done:
                return "changed"
            if self.native.compacts_on_demand and not self.is_about_size(compaction.error):
                return "failed"
            # It has turned out that the provider cannot; then it is ours to do.
        # A summary of ours is about the messages themselves: what only the provider can read would be lost.
        await forget_foreign_blocks(self.log, "")
        await self.sources.read(self.policy, due=True)
        prepared = await self._run(self.plan_compaction(instructions))
        if self._summary_refused and not any(report.outcome == "changed" for report in prepared.reports):
            # Lesson 48: what the provider does not take must not keep the chat from getting smaller.
            prepared = await self._run(last_tier(self.log.view, self.policy, self._env("", manual=True)))
        for report in prepared.reports:
            if report.outcome == "skipped":
                self.notice(Severity.INFO, f"Nothing was compacted: {report.detail}.")
        outcomes = {report.outcome for report in prepared.reports}
        return "changed" if "changed" in outcomes else "failed" if "failed" in outcomes else "skipped"

    async def recover(self, overflow: ContextOverflow, attempt: int = 1) -> bool:
        """Make the request smaller that the provider refused (R-535); return whether it is strictly smaller now.

        What the refusal tells of the true size and window is learned first. A provider's own compaction no longer
        counts: what it stood for is summarised from the log.
        """
        self.learn_size(overflow)
        refused = self.measured().tokens
        await forget_foreign_blocks(self.log, "")
        target = int(RECOVERED_SHARE * min(refused, self.limits.prompt_tokens))
        wanted = self.policy.recovery
        if wanted.share:
            target = min(target, int(wanted.share * self.limits.context_window))
        record = RecoveryRecord(self._announcer(), self.log, wanted.emits, attempt, refused, target)
        await record.begin()
        env = self._sparing(self._env("", manual=True))
        prepared = await self._run(recover(self.log.view, self.policy, env, target))
        self.watch.take_recovery(prepared, self.standing())
        smaller = self.measured().tokens
        await record.end(prepared.reports, smaller)
        if smaller < refused:
            await self.shaper.log_request()
        return smaller < refused

    def learn_size(self, refusal: BaseException) -> None:
        """Take in what a refusal tells of the true size of the request and of the window."""
        if not isinstance(refusal, ContextOverflow):
            return
        if refusal.prompt_tokens:
            self.meter.take_provider_count(refusal.prompt_tokens, self.log.view)
        # In a window that system prompt and tools alone fill nothing could ever be sent: that figure is something else.
        if self.meter.by_estimate(()).lower < refusal.limit_tokens < self.limits.context_window:
            self.window.learn(refusal.limit_tokens)

    def is_about_size(self, error: BaseException | None) -> bool:
        """Return whether a refusal says, or most likely means, that the request is too long."""
        return isinstance(error, ContextOverflow) or self._looks_too_long(error)

    async def recover_suspected(self, error: RequestRejected) -> bool:
        """Make a request smaller that was refused in words nobody knows, when it was near the window; return whether.

        Servers say "too long" in many ways (R-451); a request far from the window was refused for another reason.
        """
        if not self._looks_too_long(error) or not await self.recover(ContextOverflow(str(error))):
            return False
        self.notice(Severity.INFO, f"{error} It was close to the window: a shorter request is sent once.")
        return True

    def _looks_too_long(self, error: BaseException | None) -> bool:
        if not isinstance(error, RequestRejected) or isinstance(error, OpaqueRefused):
            return False
        near = NEAR_WINDOW * self.limits.prompt_tokens
        return error.status in _SIZE_STATUSES and self.shaper.current().measure.upper >= near

    def learn(self, usage: Usage, estimated: int, *, compacted: bool, cleared: int = 0) -> None:
        """Take in what the provider counted for the reply that now ends the view; it had `cleared` so much of it.

        After its own compaction that may be only what it had left. What cannot be true is not used, and told once.
        """
        doubt = None
        if compacted:
            self.meter.anchor_after_compaction(usage, estimated, self.log.view)
        else:
            with self.shaper.as_sent(self.log.view.messages[-1]) as view:
                doubt = self.meter.learn(usage, estimated, view, cleared=cleared)
            if doubt is not None and self.services.doubt_usage(self.adapter_name, doubt):
                self.notice(Severity.WARN, f"{self.adapter_name} {sentence(doubt)}.")
        if doubt is None:
            self.native.watch(usage, compacted=compacted)

    def new_record(self) -> CompactionRecord:
        """Return the record of a compaction that may come."""
        return CompactionRecord(
            chat_id=self._chat_id,
            log=self.log,
            emit=self.services.emit,
            clock=self.services.clock,
            new_id=self.services.new_token,
            on_compacting=self._on_compacting,
        )

    async def _run(self, preparation: Preparation) -> Prepared:
        compactor = Compactor(
            chat_id=self._chat_id,
            log=self.log,
            emit=self.services.emit,
            new_id=self.services.new_token,
            timeout_s=self.services.settings.chat.compaction_timeout_s,
            summariser=self._summariser,
            new_record=self.new_record,
            passes_reported=self.services.passes_reported,
            effects=self.effects,
            announcer=self._announcer(),
            thinking=self.services.summary_thinking,
        )
        try:
            prepared = await compactor.run(preparation, self.policy)
        finally:
            self._summary_refused = compactor.was_refused
        self.watch.see_writer(prepared)
        return prepared

    def _announcer(self) -> Announcer:
        return Announcer(
            chat_id=self._chat_id,
            policy=self.policy,
            room=self.room,
            exact=self.meter.count(self.log.view).exact,
            limit_source=self.limits.source,
            emit=self.services.emit,
        )

    def _checkpoint_every(self) -> int:
        """Return how often a checkpoint is due: the user's wish, else the policy's (R-464)."""
        wish = self.services.settings.chat.checkpoint_every_messages
        return self.policy.checkpoint_every_messages if wish is None else wish

    def env(self) -> Env:
        """Return what is known of the next request besides its messages."""
        return self._env("", manual=False)

    def _env(self, instructions: str, *, manual: bool) -> Env:
        view, services = self.log.view, self.services
        window, ratio = self._summariser_size()
        return Env(
            window=self.limits.context_window,
            reserve=self.limits.reply_reserve,
            measure=self.meter.measure,
            count=self.meter.counter.message,
            count_text=self.meter.counter.text,
            cycle=max(1, view.cycle),
            manual=manual,
            instructions=instructions,
            summariser_window=window,
            summariser_ratio=ratio,
            new_id=lambda purpose: services.new_token(),
            now=services.clock(),
            artifact=self.sources.artifact,
            history=self.sources.history,
            has_utility=bool(self.policy.summary_adapter.name),
            prompt_text=self.system_message.text,
            key_of=lambda message_id: self.log.keys.get(message_id, ""),
            last_flush=self.effects.last_flush,
            writer_is_proven=self.watch.writer_is_proven,
            cache=find_cache_state(view.messages, services.clock(), self.adapter().cache_lifetime_s, view.tokens),
            sent=self.shaper.measure if self.shaper.shapes else None,
        )

    def _summariser(self, use_chat_adapter: bool) -> Summariser:
        """Return who writes the summary (R-504, R-529); raises `ConfigError` for a name that does not resolve."""
        wanted = self.policy.summary_adapter
        if use_chat_adapter or not wanted.name:
            return Summariser(self.adapter(), self.model)
        adapter = self.services.adapters.get(wanted.name)
        return Summariser(adapter, wanted.model or adapter.default_model)

    def _summariser_size(self) -> tuple[int, float]:
        """Return the summariser's window, and how far its tokens exceed the estimate (lesson 3)."""
        wanted = self.policy.summary_adapter
        if not wanted.name or wanted.name not in self.services.adapters.names():
            return self.limits.context_window, self.meter.calibration.ratio * (1 + self.meter.calibration.margin)
        model = wanted.model or self.services.adapters.get(wanted.name).default_model
        limits = self.services.limits(wanted.name, model, self.policy.default_window)
        calibration = self.services.calibration(wanted.name, model)
        return limits.context_window, calibration.ratio * (1 + calibration.margin)

    def standing(self) -> Standing:
        """Return what an automatic compaction is judged by now."""
        return Standing(self.policy, self.room, self.log.view.cycle, self.meter.measure(()).tokens)

    def meter_event(self) -> Meter:
        """Return the meter as the editor shows it: the request as it would be sent (R-302)."""
        shaped, window = self.shaper.current(), self.limits.context_window
        tokens, left_out = shaped.measure.tokens, shaped.raw.tokens - shaped.measure.tokens
        return Meter(
            chat=self._chat_id,
            tokens=tokens,
            window=window,
            ratio=tokens / window,
            exact=shaped.measure.upper == tokens,
            assumed=self.limits.source == "default",
            edit_at=self._next_limit("context_edited", left_out),
            compact_at=self._next_limit("context_compacted", left_out),
            paused=self.pause.is_on,
        )

    def _next_limit(self, event: StageEvent, left_out: int) -> int:
        """Return where the first stage of that kind starts, 0 when none does; one that always looks has no limit.

        Triggers see the request before it was shaped (R-304): the mark is where the meter stands when they fire.
        """
        limits = [self._threshold(stage) for stage in self.policy.stages if stage.event == event]
        first = min((at for at in limits if at > self.room.fixed), default=0)
        return max(1, first - left_out) if first else 0

    def thresholds(self) -> list[int]:
        """Return where each stage starts, in tokens of the whole request; 0 = it is off."""
        return [self._threshold(stage) for stage in self.policy.stages]

    def _threshold(self, stage: Stage) -> int:
        if not self.policy.enabled:
            return 0
        return threshold_tokens(stage.trigger, self.room) or 0

    @property
    def room(self) -> Room:
        """Return what triggers are fractions of, for the model in use."""
        limits = self.limits
        fixed = self.meter.measure(()).tokens
        return Room(window=limits.context_window, reserve=limits.reply_reserve, fixed=fixed)

    def measured(self) -> Measure:
        """Return the size of the next request as it stands."""
        return self.meter.measure(self.log.view.messages)

    def notice(self, level: Severity, text: str, *, while_paused: bool = False) -> None:
        """Tell the user something in one sentence; what holds only `while_paused` is taken away afterwards."""
        self.services.emit(Notice(chat=self._chat_id, level=level, text=text, while_paused=while_paused))
