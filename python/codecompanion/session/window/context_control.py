"""Carries out the decisions about a chat's next request (R-501…R-533).

`context.pipeline` makes the decisions; the base class `ChatModel` has the model. Each module does one thing:
`window_watch` finds the size of the context window, `request_shaper` makes the request that is sent, `native_side`
handles compaction by the provider, `pause` tracks the stages that an undo paused, `plans` prepares the policy's next
steps, `fit_check` decides whether a request fits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from msgspec import UNSET

from codecompanion.adapters.base import ChatRequest
from codecompanion.context.compaction_notes import without_a_model
from codecompanion.context.stage_report import Preparation, Prepared
from codecompanion.context.work import StageEvent
from codecompanion.errors import ConfigError, ContextOverflow, EncryptedRefused, RequestRejected, StoreError
from codecompanion.model.messages import Usage
from codecompanion.session.accounts.usage_check import sentence
from codecompanion.session.compaction.announcer import Announcer
from codecompanion.session.compaction.automatic_outcomes import CompactionWatch
from codecompanion.session.compaction.compaction import Compactor, Summariser
from codecompanion.session.compaction.compaction_record import CompactionRecord, failure
from codecompanion.session.compaction.effects import EffectRunner
from codecompanion.session.compaction.summary_sources import SummarySources
from codecompanion.session.history.chat_log import ChatLog
from codecompanion.session.services import OPTIONS_KEY, Services
from codecompanion.session.window.chat_env import ChatEnv
from codecompanion.session.window.chat_model import ChatModel
from codecompanion.session.window.fit_check import Fitting
from codecompanion.session.window.native import forget_foreign_blocks
from codecompanion.session.window.native_side import NativeSide
from codecompanion.session.window.pause import Pause
from codecompanion.session.window.plans import Plans
from codecompanion.session.window.request_shaper import RequestShaper
from codecompanion.session.window.unseen_tools import UnseenTools
from codecompanion.session.window.window_watch import WindowWatch
from codecompanion.wire.events import Meter, Severity

RECOVERED_SHARE = 0.8
"""Maximum size of a retry after the provider refused a request as too long: a share (0..1) of the refused size or the
prompt limit.
"""

NEAR_WINDOW = 0.85
"""Share (0..1) of the prompt limit from which a refusal of unknown cause counts as "too long"."""
_SIZE_STATUSES = frozenset({200, 400, 413, 422})


Outcome = Literal["changed", "skipped", "failed"]


class ContextControl(ChatModel):
    """Manages the context of one chat."""

    def __init__(self, services: Services, log: ChatLog, on_compacting: Callable[[bool], None]) -> None:
        super().__init__(services, log)
        self._on_compacting = on_compacting
        self._refusal, self._has_told_failure = "", False
        """Why a provider refused the last summary request ("" if it did not), and whether the user has seen the reason.
        """
        self._listed_failure = ""
        """The failure of the user's functions that is currently listed, "" = none."""
        self.effects = EffectRunner(
            self.chat_id,
            log,
            services.store,
            services.keeping,
            services.emit,
            services.clock,
            services.new_token,
            every_messages=lambda: services.settings.chat.checkpoint_every_messages,
        )
        self.sources = SummarySources(log)
        self.watch = CompactionWatch(
            lambda text, until_compacted: self.notice(Severity.WARN, text, until_compacted=until_compacted)
        )
        self.window = WindowWatch(self)
        self.shaper = RequestShaper(self, ChatEnv(self, self.sources, self.effects, self.watch))
        self.pause = Pause(self, self.shaper.env)
        self.native = NativeSide(self, self.watch, self.pause, self.effects, self.new_record)
        self.plans = Plans(self, self.shaper, self.watch, self.native, self.pause)
        self.unseen_tools = UnseenTools(self)
        self.fitting = Fitting(self, self.shaper, self.native, self.pause, self.plans)

    def use_model(self, adapter_name: str, model: str) -> None:
        """Switch to another adapter and model, and update limits, meter and the next decision (lesson 4).

        Raises:
            ConfigError: the adapter does not exist.
        """
        adapter = self.services.adapters.get(adapter_name)
        self.policy = self.find_policy(self.chosen_policy, adapter_name)
        self.adapter_name, self.model = adapter_name, model or adapter.default_model
        self.window.resolve()
        self.meter.switch_model(
            self.services.calibration(adapter_name, self.model),
            readable_reasoning_returns=adapter.returns_readable_reasoning,
        )
        self.compose_prompt()

    def use_overrides(self, overrides: Mapping[str, Any], wrong: Sequence[str] = ()) -> None:
        """Apply the chat's own settings on top of the policy (triggers that are functions in the configuration).

        An invalid value stops the policy that reads it in this chat, unless that is the default policy (R-347).
        `wrong`: sentences from the editor about functions that returned no usable value.

        Raises:
            ConfigError: an option does not exist or has an invalid value; the other options are applied.
        """
        refused: ConfigError | None = None
        told = {sentence.partition(":")[0].removeprefix(f"{OPTIONS_KEY}."): sentence for sentence in wrong}
        self.overrides = {}
        for name, value in overrides.items():
            taken = {**self.overrides, name: value}
            try:
                self.services.policy(taken, self.chosen_policy, self.adapter_name)
                self.overrides = taken
            except ConfigError as error:
                refused = refused or error
                told[error.key.removeprefix(f"{OPTIONS_KEY}.")] = str(error)
        self.wrong_overrides = told
        before = self.stopped_here
        self.policy = self.find_policy(self.chosen_policy, self.adapter_name)
        sentence = str(refused or "")
        if self.stopped_here:
            name, stopped = self.stopped_here
            sentence = f"{stopped.problem}. Policy {name} is stopped; {stopped.instead} is used instead."
        self.services.report_failure(sentence, self._listed_failure)
        self._listed_failure = sentence
        if self.stopped_here and self.stopped_here != before:
            if not refused:
                self.notice(Severity.WARN, sentence)
            else:
                raise ConfigError(refused.key, sentence.removeprefix(f"{refused.key}: "))
        if refused:
            raise refused

    def use_policy(self, name: str) -> None:
        """Use another policy, starting with the next request; "" = as configured.

        Raises:
            ConfigError: the policy does not exist; the current one stays in use.
        """
        self.policy = self.find_policy(name, self.adapter_name)
        self.chosen_policy = name
        self.watch.reset()
        self.compose_prompt()
        if self.adapter_name:
            self.window.resolve()

    def tell_ignored_settings(self) -> None:
        """Warn about settings that the current policy ignores because they belong to another policy."""
        ignored, policy = self.services.ignored_settings(self.policy), self.policy.name
        if not ignored or self.services.stopped_policy(self.chosen_policy, self.adapter_name) is not None:
            return
        if "strict" in ignored:
            self.notice(
                Severity.WARN, f"Policy {policy} does not follow a document: context_management.strict has no effect."
            )
        if names := ", ".join(name for name in ignored if name != "strict"):
            self.notice(Severity.WARN, f"Policy {policy} does not use these settings: {names}.")

    def request(self) -> ChatRequest:
        """Return the shaped request for the current view (R-338)."""
        return self.shaper.request_of(self.shaper.take(), self.native.ask())

    async def compact(self, instructions: str) -> bool:
        """Compact the chat, through the provider if possible (R-540); return whether the view changed.

        If not, the user sees why.

        A compaction that succeeds or has nothing to do ends a pause (R-545), because the user requested it.
        """
        outcome = await self._compact(instructions)
        if outcome != "failed":
            await self.pause.end()
        return outcome == "changed"

    async def _compact(self, instructions: str) -> Outcome:
        await self.native.drop_foreign_blocks()
        if self.native.compacts_on_demand:
            if not self.native.has_something_to_compact:
                self.notice(Severity.INFO, "Nothing was compacted: nothing to summarise yet.")
                return "skipped"
            compaction = await self.native.compact("manual", instructions)
            if compaction.done:
                return "changed"
            if self.native.compacts_on_demand and not self.is_about_size(compaction.error):
                return "failed"
            # The provider turned out not to support compaction, so we compact.
        # Summarise the original messages; content that only the provider can read would be lost.
        await forget_foreign_blocks(self.log, "")
        await self.sources.read(self.policy, due=True)
        try:
            prepared = await self.run(self.plans.compaction(instructions))
        except StoreError:
            if self._has_told_failure:
                return "failed"
            raise
        if self._refusal and not prepared.changed:
            # Lesson 48: content that the provider refuses must not prevent the chat from being made smaller.
            refusal, without = self._refusal, await self.run(self.plans.without_model())
            if without.changed:  # otherwise only the failure is reported
                self.notice(Severity.WARN, without_a_model(refusal), until_compacted=True)
                return "changed"
            return "failed"
        return self._outcome(prepared)

    def _outcome(self, prepared: Prepared) -> Outcome:
        """Return the outcome of a manual compaction.

        If it changed nothing, tell the user why, unless that was already reported.
        """
        if prepared.changed:
            return "changed"
        failed = [report for report in prepared.reports if report.outcome == "failed"]
        if failed:
            if not any(report.asked for report in failed):
                self.notice(Severity.WARN, failure(failed[-1].stage.card, failed[-1].detail), until_compacted=True)
            return "failed"
        why = dict.fromkeys(report.detail for report in prepared.reports if report.outcome == "skipped")
        if why:
            self.notice(Severity.INFO, f"Nothing was compacted: {'; '.join(why)}.")
        return "skipped"

    async def recover(self, overflow: ContextOverflow, attempt: int = 1) -> bool:
        """Shrink the request that the provider refused (R-535); return whether it is now strictly smaller.

        The size and window named in the refusal are learned first. The provider's own compaction is discarded, and the
        messages it replaced are summarised from the log.
        """
        self.learn_size(overflow)
        if await self.fitting.impossible(self.log.view):
            return False
        refused = self.measured().tokens
        await forget_foreign_blocks(self.log, "")
        target = int(RECOVERED_SHARE * min(refused, self.limits.prompt_tokens))
        wanted = self.policy.recovery
        if wanted.share:
            target = min(target, int(wanted.share * self.limits.context_window))
        from codecompanion.session.compaction.recovery_record import RecoveryRecord  # not needed at startup

        record = RecoveryRecord(self._announcer(), self.log, wanted.emits, attempt, refused, target)
        await record.begin()
        prepared = await self.run(self.plans.recovery(target))
        self.watch.take_recovery(prepared, self.compaction_judge())
        smaller = self.measured().tokens
        await record.end(prepared.reports, smaller)
        if smaller < refused:
            await self.shaper.log_request()
        return smaller < refused

    def learn_size(self, refusal: BaseException) -> None:
        """Learn the true size of the request and of the context window from a refusal."""
        if not isinstance(refusal, ContextOverflow):
            return
        if refusal.prompt_tokens:
            self.meter.take_provider_count(refusal.prompt_tokens, self.log.view)
        # A window filled by system prompt and tools alone would be unusable, so the figure must mean something else.
        if self.meter.by_estimate(()).lower < refusal.limit_tokens < self.limits.context_window:
            self.window.learn(refusal.limit_tokens)

    def is_about_size(self, error: BaseException | None) -> bool:
        """Return whether a refusal says, or very likely means, that the request is too long."""
        return isinstance(error, ContextOverflow) or self._looks_too_long(error)

    async def recover_suspected(self, error: RequestRejected) -> bool:
        """Shrink a request that was refused for an unknown reason near the window limit; return whether it is smaller.

        Servers report "too long" in many ways (R-451); a request far below the limit was refused for another reason.
        """
        if not self._looks_too_long(error) or not await self.recover(ContextOverflow(str(error))):
            return False
        self.notice(Severity.INFO, f"{error} The request nearly filled the window; retrying once with a shorter one.")
        return True

    def _looks_too_long(self, error: BaseException | None) -> bool:
        if not isinstance(error, RequestRejected) or isinstance(error, EncryptedRefused):
            return False
        near = NEAR_WINDOW * self.limits.prompt_tokens
        return error.status in _SIZE_STATUSES and self.shaper.current().measure.upper >= near

    def learn(self, usage: Usage, estimated: int, *, compacted: bool, cleared: int = 0) -> None:
        """Calibrate the meter with the reported usage of the newest reply; `cleared`: tokens that the provider cleared.

        After the provider's own compaction, the usage may cover only the remaining messages. An impossible figure is
        ignored and reported once.
        """
        doubt = None
        if compacted:
            self.meter.anchor_after_compaction(usage, estimated, self.log.view)
        else:
            with self.shaper.as_sent(self.log.view.messages[-1]) as view:
                doubt = self.meter.learn(usage, estimated, view, cleared=cleared)
            if doubt is not None and doubt.without_tools and self.unseen_tools.may_be:
                if doubt.without_tools > 1:
                    sent = estimated - self.unseen_tools.drop()
                    self.learn(usage, sent, compacted=False, cleared=cleared)
                return  # the second report decides
            if doubt is not None and self.services.doubt_usage(self.adapter_name, doubt):
                self.notice(Severity.WARN, f"{self.adapter_name} {sentence(doubt)}.")
        if doubt is None:
            self.native.watch(usage, compacted=compacted)

    def new_record(self) -> CompactionRecord:
        """Return a record for a compaction that may follow."""
        return CompactionRecord(self.services, self.log, self._on_compacting)

    async def run(self, preparation: Preparation) -> Prepared:
        """Run a preparation: ask the summariser, commit the changes of each stage, inform the user.

        Raises:
            StoreError: a change could not be stored; the view is as before.
        """
        compactor = Compactor(
            services=self.services,
            log=self.log,
            summariser=self._summariser,
            new_record=self.new_record,
            effects=self.effects,
            announcer=self._announcer(),
            as_sent=self._as_sent,
        )
        try:
            prepared = await compactor.run(preparation, self.policy)
        finally:
            self._refusal, self._has_told_failure = compactor.refusal, compactor.has_told
        self.plans.see_writer(prepared)
        return prepared

    def _as_sent(self) -> ChatRequest:
        """Return the chat as it would be sent now, up to the newest reply or result."""
        from codecompanion.context.selection.select_window import first_pending  # not needed at startup

        messages = self.log.view.messages
        return self.shaper.request_of(self.shaper.of(messages[: first_pending(messages)]), 0)

    def _announcer(self) -> Announcer:
        return Announcer(
            chat_id=self.chat_id,
            policy=self.policy,
            room=self.room,
            exact=self.meter.count(self.log.view).exact,
            limit_source=self.limits.source,
            emit=self.services.emit,
        )

    def _summariser(self, use_chat_adapter: bool) -> Summariser:
        """Return the summariser (R-504, R-529); raises `ConfigError` if its adapter does not exist."""
        wanted = self.policy.summary_adapter
        if use_chat_adapter or not wanted.name:
            return Summariser(self.adapter(), self.model)
        adapter = self.services.adapters.get(wanted.name)
        return Summariser(adapter, wanted.model or adapter.default_model)

    def meter_event(self) -> Meter:
        """Return the meter event, with the size of the request as it would be sent (R-302)."""
        shaped, window = self.shaper.current(), self.limits.context_window
        tokens, left_out = shaped.measure.tokens, shaped.raw.tokens - shaped.measure.tokens
        found = self.services.stopped_policy(self.chosen_policy, self.adapter_name) or self.stopped_here
        name, stopped = found or (UNSET, None)
        return Meter(
            chat=self.chat_id,
            tokens=tokens,
            window=window,
            ratio=tokens / window,
            exact=shaped.measure.upper == tokens,
            assumed=self.window.is_a_guess,
            edit_at=self._next_limit("context_edited", left_out),
            compact_at=self._next_limit("context_compacted", left_out),
            paused=self.pause.is_on,
            stopped=name,
            stopped_by=stopped.key if stopped else UNSET,
            no_tools=(self.lacks_tools if self.wants_tools else "") or UNSET,
            held_back=self.held_back or UNSET,
        )

    def request_limits(self) -> dict[str, int]:
        """Return the active limits of an unshaped request, as logged with it (R-360)."""
        limits = {
            "window": self.limits.context_window,
            "edit": self._next_limit("context_edited", 0),
            "compaction": self._next_limit("context_compacted", 0),
        }
        return {name: tokens for name, tokens in limits.items() if tokens}

    def _next_limit(self, event: StageEvent, left_out: int) -> int:
        """Return the meter reading at which the first stage of this event starts, or 0 if there is no such stage.

        Stages that always run have no limit. Most triggers apply to the request before shaping (R-304), so the tokens
        that shaping leaves out are subtracted.
        """
        stages = [(stage.trigger, self.threshold(stage)) for stage in self.policy.stages if stage.event == event]
        found = [(trigger, at) for trigger, at in stages if at > self.room.fixed]
        marks = [at if trigger.measure == "sent" else at - left_out for trigger, at in found]
        return max(1, min(marks)) if marks else 0
