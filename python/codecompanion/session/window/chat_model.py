"""Keeps the model of a chat and its dependent state: limits, policy, tools, system prompt, counting (R-501…R-507).

This module has only state and figures. `context.pipeline` makes the decisions, and the other modules of this package,
each built with a `ChatModel`, carry them out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from codecompanion import prompts
from codecompanion.adapters.base import Adapter, ChatRequest, RetryScheduled
from codecompanion.adapters.server_facts import own_cache_lifetime_s
from codecompanion.context.editing.cache_state import find_cache_state
from codecompanion.context.policy.policy import Policy, Stage
from codecompanion.context.policy.policy_options import option_names
from codecompanion.context.policy.strict import SUFFIX
from codecompanion.context.shaping.prompt_shape import TERSE, Fragment, join_fragments
from codecompanion.context.thresholds import Room, threshold_tokens
from codecompanion.context.work import CacheState, Measure, Messages
from codecompanion.counting.calibration import Calibration
from codecompanion.counting.model_windows import ResolvedLimits
from codecompanion.counting.tokens import MessageCounter
from codecompanion.model.messages import Message, ToolSpec
from codecompanion.session.accounts.local_models import runs_on_own_server
from codecompanion.session.accounts.meter import ContextMeter
from codecompanion.session.compaction.automatic_outcomes import CompactionJudge
from codecompanion.session.history.chat_log import ChatLog
from codecompanion.session.services import Services
from codecompanion.session.stopped_policies import StoppedPolicy, default_policy
from codecompanion.session.toolbox.chat_tools import ChatTools
from codecompanion.session.window.environment_block import environment_fragment
from codecompanion.tools.tool_registry import ToolRegistry
from codecompanion.wire.events import Notice, Retrying, Severity

if TYPE_CHECKING:
    from codecompanion.adapters.prompt_slots import Loss
    from codecompanion.session.accounts.lost_server_cache import ReadAgain

SHARE_FOR_PROMPT = 0.05
"""Share of the context window (0..1) above which the short system prompt replaces the full one."""


class ChatModel:
    """The adapter and model of one chat. `limits` is set by the first `WindowWatch.resolve`."""

    limits: ResolvedLimits

    def __init__(self, services: Services, log: ChatLog) -> None:
        self.services, self.log, self.chat_id = services, log, log.chat_id
        self.adapter_name = self.model = ""
        self.overrides: Mapping[str, Any] = {}
        self.wrong_overrides: Mapping[str, str] = {}
        """Errors in values that functions in the configuration returned, by option (R-347)."""
        self.stopped_here: tuple[str, StoppedPolicy] | None = None
        """The policy stopped in this chat by these errors, or None."""
        self.chosen_policy = ""
        """The policy chosen in this chat; "" follows the configuration."""
        self.purpose = ""
        """The purpose of a chat without a chat buffer (`requests.OpenChat`), or "" for any other chat."""
        self.policy = services.policy({})
        self.environment: Fragment | None = None
        """The part of the system prompt that describes the environment, or None if it is not sent."""
        self._environment_root: Path | None = None
        self._read_again: tuple[tuple[str, str], ReadAgain] | None = None
        self.edits_in_place = False
        """Whether this turn is an edit in place: the reply has a fixed form, and no tools are offered."""
        self.tools = ChatTools(
            services.tools,
            lambda: services.settings.tools,
            lambda: log.tools,
            window=lambda: self.meter.window,
            count=lambda specs: self.meter.counter.tools(specs),
        )
        self.meter = ContextMeter(
            MessageCounter(services.count_text), Calibration(), checks_usage=services.checks_usage
        )
        self.system_message = self._system_message()
        self.specs = self._offered_tools()
        self.meter.set_fixed_part(self.system_message, self.specs)

    def find_policy(self, name: str, adapter_name: str) -> Policy:
        """Return the policy that runs when the chat wants `name` ("" = as configured); set `stopped_here`.

        Raises:
            ConfigError: the policy does not exist, or an option has an invalid value.
        """
        policy, default = self.services.policy(self.overrides, name, adapter_name), default_policy()
        known = option_names(policy)
        wrong = next((option for option in self.wrong_overrides if option in known), "")
        if not wrong or policy.name.removesuffix(SUFFIX) == default:
            self.stopped_here = None
            return policy
        self.stopped_here = policy.name, StoppedPolicy(default, wrong, self.wrong_overrides[wrong])
        return self.services.policy(self.overrides, default, adapter_name)

    def adapter(self) -> Adapter:
        """Return the chat's adapter."""
        return self.services.adapters.get(self.adapter_name)

    @property
    def named(self) -> tuple[str, str]:
        """Return the names of the adapter and the model."""
        return self.adapter_name, self.model

    @property
    def writer(self) -> tuple[str, str]:
        """Return the names of the adapter and the model that write summaries."""
        wanted, adapters = self.policy.summary_adapter, self.services.adapters
        if not wanted.name or wanted.name not in adapters.names():
            return self.named
        return wanted.name, wanted.model or adapters.get(wanted.name).default_model

    # ---- what goes with every request

    def fragments(self) -> tuple[Fragment, ...]:
        """Return the parts of the system prompt: agent, tool groups, style (R-344, R-348, K16), environment."""
        chat = self.services.settings.chat
        last = () if self.environment is None else (self.environment,)  # last, because it differs between chats
        if self.purpose:
            text = prompts.load(f"purpose_{self.purpose}")
            purpose = Fragment("system_prompt", "system prompt", full=text, compact=text, source="built_in")
            return (purpose, *(last if self.purpose == "command_line" else ()))
        own = chat.system_prompt is not None
        agent = Fragment(
            key="system_prompt",
            label="system prompt",
            full=chat.full_system_prompt(prompts.load("system")),
            compact=chat.full_system_prompt(prompts.load("system_compact")),
            source="configuration" if own else "built_in",
        )
        style = chat.response_style or self.policy.response_style
        if self.edits_in_place:
            return (agent, Fragment("edit_in_place", "edit format", full=prompts.load("edit_in_place")))
        groups = () if self.lacks_tools else self.tools.fragments()
        return (agent, *groups, *((TERSE,) if style == "terse" else ()), *last)

    def _system_message(self) -> Message:
        """Return the system prompt, or its short form if the window is too small for the full one."""
        fragments = self.fragments()
        is_short = 0 < SHARE_FOR_PROMPT * self.meter.window < self.meter.counter.text(fragments[0].full)
        return Message(id="system", role="system", content=join_fragments(fragments, compact=is_short))

    def serve(self, purpose: str) -> None:
        """Restrict the chat to one kind of request, with its own system prompt and without tools."""
        if purpose:
            self.purpose, self.specs = purpose, ()
            self.system_message = self._system_message()
            self.meter.set_fixed_part(self.system_message, self.specs)

    async def read_environment(self, root: Path) -> None:
        """Update the environment block: at once if the folder changed, else only if the prompt cache is lost anyway."""
        services = self.services
        if not services.settings.chat.tell_environment:
            return
        if root == self._environment_root and self._is_cached():
            return
        facts, now = services.editor_facts, services.clock()
        self.environment = await asyncio.to_thread(environment_fragment, root, facts, now)
        self._environment_root = root
        self.compose_prompt()

    def _is_cached(self) -> bool:
        """Return whether the provider's cache may still contain the last system prompt."""
        return self.cache_state().warm_tokens > 0

    def cache_state(self) -> CacheState:
        """Return the estimated part of the next request that is in the prompt cache, and the price of a cache read."""
        services, view, lifetime_s = self.services, self.log.view, self.adapter().cache_lifetime_s
        is_switched = any(self.log.last_asked) and self.log.last_asked != self.named  # each model has its own cache
        if not runs_on_own_server(services.adapters, *self.named):
            return find_cache_state(view.messages, services.clock(), lifetime_s, view.tokens, is_lost=is_switched)
        in_loop = bool(view.messages) and view.messages[-1].role == "tool"
        return find_cache_state(
            view.messages,
            services.clock(),
            own_cache_lifetime_s(services.adapters.settings(self.adapter_name).limits_path),
            view.tokens,
            is_own=True,
            is_lost=is_switched or bool(self.prompt_loss()) or self.read_again.expects_loss(in_loop=in_loop),
            reads_per_s=self.adapter().speed(self.model).reads,
        )

    def prompt_loss(self) -> Loss:
        """Return why the chat is no longer in the server's cache, or "" if it may still be cached."""
        return self.adapter().prompt_loss(self.model, self.chat_id)

    @property
    def read_again(self) -> ReadAgain:
        """Return the record of the model's cache misses."""
        if self._read_again is None or self._read_again[0] != self.named:
            from codecompanion.session.accounts.lost_server_cache import ReadAgain  # not needed at startup

            self._read_again = self.named, ReadAgain()
        return self._read_again[1]

    def compose_prompt(self) -> None:
        """Rebuild the system prompt for the current policy (K16)."""
        system = self._system_message()
        if system != self.system_message:
            self.system_message = system
            self.meter.set_fixed_part(system, self.specs)

    @property
    def may_have_tools(self) -> bool:
        """Return whether the next request may offer tools at all."""
        return self.wants_tools and not self.lacks_tools

    @property
    def wants_tools(self) -> bool:
        """Return whether the next request should offer tools if its model supports them."""
        return self.services.settings.tools.enabled and not self.edits_in_place and not self.purpose

    @property
    def lacks_tools(self) -> str:
        """Return why the model would not see tools, as a clause without a full stop; "" if no reason is known."""
        if not self.adapter_name:
            return ""
        facts = self.adapter().facts(self.model)
        if facts.refuses_tools:
            return facts.refuses_tools
        if facts.tools is False:
            return f"the chat template of {facts.model or self.model or self.adapter_name} does not support them"
        if facts.tools is None and self.services.usage_doubts.hides_tools(self.endpoint, self.model):
            return f"token counts show that {self.model or self.adapter_name} does not see them"
        return ""

    @property
    def held_back(self) -> tuple[str, ...]:
        """Return the tools that are not sent because the context window is small."""
        return self.tools.held_back if self.may_have_tools else ()

    @property
    def endpoint(self) -> str:
        """Return the adapter and its URL as one name."""
        return self.services.endpoint(self.adapter_name)

    def _offered_tools(self) -> tuple[ToolSpec, ...]:
        return () if self.edits_in_place else self.specs_for_messages(self.tools.offered())

    def specs_for_messages(self, registry: ToolRegistry | None = None) -> tuple[ToolSpec, ...]:
        """Return the specs of the tools in `registry` (None = all) that are offered in a request for a user message."""
        if not self.services.settings.tools.enabled or self.purpose or self.lacks_tools:
            return ()
        tools = self.tools.all() if registry is None else registry
        return tools.specs(something_removed=self.log.has_removed)

    def offer_tools(self) -> bool:
        """Update the offered tools; return whether they changed.

        Recall tools are added as soon as messages have been removed, when the prompt cache is lost anyway. Tools also
        change when the context window turns out to be smaller or larger, and when a provider offers different tools.
        """
        self.compose_prompt()  # chosen tool groups add text to the system prompt
        specs = self._offered_tools()
        is_new = self.specs != specs
        if is_new:
            self.specs = specs
            self.meter.set_fixed_part(self.system_message, specs)
        return is_new

    def drop_unseen_tools(self) -> bool:
        """Stop offering tools if the model turns out not to see them; return whether that is the case."""
        if self.lacks_tools:
            self.offer_tools()
        return bool(self.lacks_tools)

    @property
    def offers_recall(self) -> bool:
        """Return whether the model can recall removed messages, now or once some have been removed."""
        return self.may_have_tools and any(name in self.tools.offered().names() for name in self.tools.always)

    @property
    def recall_tokens(self) -> int:
        """Return the number of tokens that offering the recall tools will add, or 0 if they are already offered."""
        services = self.services
        if self.log.has_removed or self.purpose or not services.settings.tools.enabled or self.lacks_tools:
            return 0
        offered = self.tools.offered().specs(something_removed=True)
        more = self.meter.counter.tools(offered) - self.meter.counter.tools(self.specs)
        return round(self.meter.calibration.ratio * more)

    def request_of(
        self, messages: Messages, system: Message, specs: tuple[ToolSpec, ...], upper: int, compact_at: int
    ) -> ChatRequest:
        """Return an unshaped request with these messages, with room left for the reply (R-507)."""
        most = self.limits.max_output_tokens
        if most:
            # At most the rest of the context window (lesson 2).
            most = max(1, min(most, self.limits.context_window - upper))
        return ChatRequest(
            messages=(system, *messages),
            tools=specs,
            model=self.model,
            max_output_tokens=most,
            chat_id=self.chat_id,
            compact_at=compact_at,
        )

    # ---- sizes

    @property
    def room(self) -> Room:
        """Return the model's context window, reply reserve and fixed part; triggers are calculated from these."""
        limits = self.limits
        fixed = self.meter.measure(()).tokens
        return Room(window=limits.context_window, reserve=limits.reply_reserve, fixed=fixed)

    def measured(self) -> Measure:
        """Return the current size of the next request."""
        return self.meter.measure(self.log.view.messages)

    def thresholds(self) -> list[int]:
        """Return the size at which each stage starts, in tokens of the whole request; 0 = the stage is off."""
        return [self.threshold(stage) for stage in self.policy.stages]

    def threshold(self, stage: Stage) -> int:
        """Return the size at which a stage starts, in tokens of the whole request; 0 = the stage is off."""
        if not self.policy.enabled:
            return 0
        return threshold_tokens(stage.trigger, self.room) or 0

    @property
    def compacts_automatically(self) -> bool:
        """Return whether the configuration allows compactions that the user did not request."""
        stages = self.policy.stages
        return self.policy.enabled and any(stage.summarises and stage.trigger.is_on for stage in stages)

    def compaction_judge(self) -> CompactionJudge:
        """Return the current figures used to judge an automatic compaction."""
        return CompactionJudge(self.policy, self.room, self.log.view.cycle, self.meter.measure(()).tokens)

    def tell_wait(self, silence: asyncio.Timeout, limit_s: float, event: RetryScheduled) -> None:
        """Show that a request is waiting for a local server, and extend its timeout by the wait."""
        silence.reschedule(asyncio.get_running_loop().time() + event.wait_ms / 1000 + limit_s)
        self.services.emit(Retrying(chat=self.chat_id, **msgspec.structs.asdict(event)))

    def notice(self, level: Severity, text: str, *, while_paused: bool = False, until_compacted: bool = False) -> None:
        """Show the user one sentence; see `Notice` for when it is removed."""
        told = Notice(
            chat=self.chat_id, level=level, text=text, while_paused=while_paused, until_compacted=until_compacted
        )
        self.services.emit(told)
