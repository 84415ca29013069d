"""Decides whether a usage report can be true for its request (R-505, lesson 58).

Some servers report 50 tokens for 20,000, omit the tool schemas, or count only uncached tokens; a meter that believed
them would never compact. So a report is compared twice with our own count of the same request: with the whole estimate,
within the range of all tokenizers, and, once a report has been trusted, with the sum of the earlier reports and the new
messages. A report outside these ranges is not used, and nothing is learned from it.

If reports outside these ranges change by as much as the requests do, they describe our requests after all: the server
has added its own prompt or dropped part of the history. So a report is trusted if it agrees with the previous one in
this way, or if its cached tokens are exactly the previous report. Figures that lack only the schemas are not trusted.

A report that is too high, but by no more than a server's own prompt explains, is `unconfirmed`: the meter uses it as an
estimate until the next report confirms or contradicts it. A count that is too high at worst compacts early; a count
that is too low never compacts, so low reports are never used.

If two reports of a local server match the requests without their tools, and are far too small for any tokenizer that
counts the tools, the model does not see the tools: its chat template does not support them, and the server drops them.
From then on no tools are sent, and the reports are correct.

Reports that stop rising however much more is sent come from a server that silently drops the beginning of long prompts
(koboldcpp, Ollama, Hunyuan: lesson 30): they are correct, but do not count the whole request.

`UsageDoubts` collects the doubts of all chats by endpoint; each is reported once, and shown in `:checkhealth`.
"""

from __future__ import annotations

import math

import msgspec

# How far below and above the calibrated count a tokenizer may count text, as shares; half of that for an endpoint
# doubted since its first report, because missing schemas are harder to notice in a longer request.
_TEXT_DOWN, _TEXT_UP, _ONCE_DOUBTED = 0.4, 1.5, 0.5
# Providers encode schemas in their own format: recorded costs start at a third of the JSON's tokens.
_SCHEMAS = 0.65
# Images, pages and encrypted or unsent reasoning cost between nothing and this multiple of their size class.
_MAX_NON_TEXT = 3.0
# Minimum tolerance in tokens, because the framing of a short request is larger than the request.
_FLOOR = 128
# Maximum size of the text a provider adds to a prompt, in tokens and as a share of the window.
_MAX_HIDDEN, _MAX_HIDDEN_SHARE = 8_000, 0.5
# The same limit for an unconfirmed report: gateways and logins with their own prompt and tools add 25,000 to 40,000.
_MAX_UNCONFIRMED = 64_000
# Tolerances around the value expected from earlier reports, as shares of new messages, removed messages and the whole.
_NEW_DOWN, _NEW_UP, _TAKEN, _ALL = 0.6, 1.5, 0.3, 0.08
# Bounds of a reported reply, as multiples of our count and in tokens: it may contain hidden parts, which the next
# report shows. The last figure is more than any model writes at once.
_MIN_REPLY, _MAX_REPLY, _UNSEEN_REPLY, _MAX_REPLY_LENGTH = 0.05, 4.0, 4_000, 300_000
# No tokenizer counts as little as this share of a whole request, so such a report lacks something: the tools, if it is
# near the size without them. A second report must then change with the text, because the reports of a server that
# counts only uncached tokens do not.
_TOOLS_LEFT_OUT, _BARE_OFF, _BARE_FLOOR = 0.35, 0.25, 64
# After this many trusted reports in a row, an impossible report does not cast doubt on them.
_PROVED = 3
# Two doubted reports agree if they differ by as much as the requests do; requests that differ by less than `_STEP`
# tokens prove nothing.
_STEP, _STEP_OFF, _STEP_FLOOR = 120, 0.35, 48
# Maximum distance of a cache breakpoint from the end of a prompt, in tokens.
_CACHE_SLACK = 16
# A server that cuts prompts reports between half of its window (Ollama) and all of it, `_FLAT` times in a row, while
# the text grows by at least `_MORE_TEXT` of the window; no window is smaller than `_MIN_WINDOW`.
_CUT_DOWN, _CUT_UP, _FLAT, _MORE_TEXT, _MIN_WINDOW = 0.4, 1.03, 2, 0.25, 1_000


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """Our own count of a request, in the model's tokens (calibrated).

    `non_text`: images, pages, encrypted blocks and reasoning. `hidden`: tokens that the provider is known to add.
    `window`: 0 if unknown, in which case `assumed` is a guess. `cleared`: tokens that the provider reports having left
    out.
    """

    text: float
    schemas: float = 0.0
    non_text: float = 0.0
    hidden: float = 0.0
    window: int = 0
    assumed: int = 0
    cleared: float = 0.0

    @property
    def guess(self) -> float:
        """Return the best estimate of the whole request."""
        return max(0.0, self.text + self.schemas + self.non_text + self.hidden - self.cleared)

    def is_plausible(self, reported: float, doubt: float = 1.0) -> bool:
        """Return whether some tokenizer and provider could count `reported` tokens for this request.

        The errors of the parts are independent; `doubt` scales the lower bounds.
        """
        down = math.hypot(doubt * _TEXT_DOWN * self.text, doubt * _SCHEMAS * self.schemas, self.non_text, self.hidden)
        hidden = self.max_hidden()
        up = math.hypot(_TEXT_UP * self.text, _SCHEMAS * self.schemas, _MAX_NON_TEXT * self.non_text, hidden)
        least = self.guess - down - 0.2 * self.cleared - _FLOOR
        return max(1.0, least) <= reported <= self.guess + self.cleared + up + _FLOOR

    def max_hidden(self) -> float:
        """Return the maximum size of a hidden prompt that is trusted at once: at most half of a known window."""
        return min(_MAX_HIDDEN, _MAX_HIDDEN_SHARE * self.window) if self.window else _MAX_HIDDEN

    def max_unconfirmed(self) -> float:
        """Return the maximum hidden prompt size until the next report: at most half of a known or assumed window."""
        window = self.window or self.assumed
        return min(_MAX_UNCONFIRMED, _MAX_HIDDEN_SHARE * window) if window else _MAX_UNCONFIRMED

    def fits(self, reported: float) -> bool:
        """Return whether this many tokens fit into the window, or True if the window is unknown."""
        return not self.window or reported <= self.window

    def is_without_tools(self, reported: float) -> bool:
        """Return whether a report fits the request without its tool schemas, and is too small with them."""
        bare = msgspec.structs.replace(self, schemas=0.0).guess
        return reported <= _TOOLS_LEFT_OUT * self.guess and abs(reported - bare) <= _BARE_OFF * bare + _BARE_FLOOR

    def lacks_schemas(self, reported: float, expected: float) -> bool:
        """Return whether the tokens missing from a report are roughly those of the tool schemas."""
        return abs(expected - reported - self.schemas) <= 0.25 * self.schemas + _FLOOR < self.schemas


class ExpectedSize(msgspec.Struct, frozen=True, kw_only=True):
    """The size expected from earlier reports and new messages: `known` + `new`. `taken`: tokens removed by an edit."""

    known: float
    new: float
    non_text: float = 0.0
    taken: float = 0.0
    thoughts: float = 0.0
    cleared: float = 0.0

    @property
    def guess(self) -> float:
        """Return the expected size in tokens."""
        return self.known + self.new - self.cleared

    def is_near(self, reported: float) -> bool:
        """Return whether the report is near the expected size; it may be higher unless messages were removed."""
        down = _NEW_DOWN * self.new + self.non_text + self.thoughts + self.cleared + self._tolerance
        return self.guess - down <= reported and (self.taken < _FLOOR or self.reaches(reported))

    def reaches(self, reported: float, hidden: float = 0.0) -> bool:
        """Return whether the request can reach `reported` tokens if the server newly adds `hidden` tokens."""
        up = _NEW_UP * self.new + _MAX_NON_TEXT * self.non_text + self._tolerance
        return reported <= self.guess + up + hidden

    @property
    def _tolerance(self) -> float:
        return _TAKEN * abs(self.taken) + _ALL * self.guess + _FLOOR


class Doubt(msgspec.Struct, frozen=True):
    """A report that is not trusted, with its figure and our own count.

    `cut_to`: the size to which the server seems to truncate prompts, or 0 without such evidence. `unconfirmed`: the
    server may have added its own prompt; the next report shows whether it has, and until then the meter uses this
    report. `without_tools`: how many reports in a row, up to this one, fit the requests without their tools and differ
    from each other as their messages do.
    """

    reported: int
    expected: int
    cut_to: int = 0
    unconfirmed: bool = False
    without_tools: int = 0

    @property
    def too_few(self) -> bool:
        """Return whether the report is lower than our own count."""
        return self.reported < self.expected


class UsageCheck:
    """Judges the reports of one chat with one model. If not `enabled`, all reports that have a figure are trusted."""

    def __init__(self, *, enabled: bool = True) -> None:
        self._enabled = enabled
        self._last: tuple[float, float] | None = None
        self._believed = 0
        self._always_too_few = self._follows = False
        self._unconfirmed = self._contradicted = False
        self._newest = 0.0
        self._before = self._largest = 0.0, 0.0
        self._flat = self._without_tools = 0
        self._first_without_tools = 0.0, 0.0

    def forget(self) -> None:
        """Start over: another model reports from now on."""
        self._last, self._newest, self._believed = None, 0.0, 0
        self._before = self._largest = 0.0, 0.0
        self._flat = self._without_tools = 0
        self._always_too_few = self._follows = False
        self._unconfirmed = self._contradicted = False

    @property
    def has_proved(self) -> bool:
        """Return whether enough reports in a row were trusted that an impossible one counts as an exception."""
        return self._believed >= _PROVED

    def doubt(
        self, reported: float, request: Request, expected_size: ExpectedSize | None, cached: int = 0
    ) -> Doubt | None:
        """Return the doubt about a report, or None if it is trusted.

        `cached` tokens were read from the provider's cache.

        `expected_size` is None until a report is trusted; it excludes the surplus of an unconfirmed report.
        """
        if self._unconfirmed and not self._believed:
            expected_size = None
        expected = expected_size.guess if expected_size is not None else request.guess
        doubt = Doubt(round(reported), round(expected))
        if reported <= 0:
            return doubt
        cut_to = self._cut_to(reported, request)
        if self._enabled and cut_to:
            return msgspec.structs.replace(doubt, cut_to=cut_to, expected=round(request.guess))
        # A doubted report that still lacks only the schemas does not become correct as new text is added.
        again = self._last is not None and request.lacks_schemas(reported, expected)
        near = expected_size is None or (expected_size.is_near(reported) and not again)
        if self._follows and expected_size is not None and not expected_size.reaches(reported, request.max_hidden()):
            near = False
        strict = _ONCE_DOUBTED if self._always_too_few else 1.0
        if not self._enabled or (near and (self._follows or request.is_plausible(reported, strict))):
            self._believe()
            return None
        whole_before = self._newest > 0 and cached < reported and abs(cached - self._newest) <= _CACHE_SLACK
        agrees = whole_before or self._agrees(reported, request.guess)
        if agrees and self._is_explained(reported, expected, request):
            self._believe()
            # From now on our own total does not apply; only the value expected from the reports does.
            self._follows = True
            return None
        self._without_tools = self._count_without_tools(reported, request)
        doubt = msgspec.structs.replace(
            doubt,
            unconfirmed=self._is_unconfirmed(doubt, request, expected_size),
            without_tools=self._without_tools,
        )
        self._contradicted |= self._unconfirmed and not doubt.unconfirmed
        self._unconfirmed = doubt.unconfirmed
        self._always_too_few |= not self._believed and doubt.too_few
        if not self.has_proved and not (doubt.unconfirmed and self._believed):
            self._believed, self._follows = 0, False
        self._newest = reported
        if self._step(request.guess) >= _STEP:
            self._last = reported, request.guess
        return doubt

    def _count_without_tools(self, reported: float, request: Request) -> int:
        """Return how many reports fit the requests without their tools; requests of similar size count once."""
        if not request.is_without_tools(reported):
            return 0
        if not self._without_tools:
            self._first_without_tools = reported, request.text
            return 1
        said, step = (now - then for now, then in zip((reported, request.text), self._first_without_tools, strict=True))
        if abs(step) < _STEP:
            return self._without_tools
        return self._without_tools + 1 if abs(said - step) <= _STEP_OFF * abs(step) + _STEP_FLOOR else 0

    def _is_unconfirmed(self, doubt: Doubt, request: Request, expected_size: ExpectedSize | None) -> bool:
        """Return whether the server may have added its own prompt, to be confirmed by the next report.

        Allowed once per chat. In the middle of a chat it requires a known or assumed window, to limit the damage.
        """
        has_window = request.window or request.assumed
        if self._contradicted or (expected_size is not None and (not has_window or expected_size.taken >= _FLOOR)):
            return False
        more = doubt.reported - doubt.expected
        plausible = 0 < more <= request.max_unconfirmed() and request.fits(doubt.reported)
        return plausible and (not self._unconfirmed or self._is_too_similar(doubt.reported, request.guess))

    def _cut_to(self, reported: float, request: Request) -> int:
        """Return the largest report if this one stays near it although much more text was sent, otherwise 0.

        Reports that rise with the text, at a lower level, indicate a shortened history, not truncated prompts. Images
        and reasoning are not counted, because some models do not read those of earlier turns.
        """
        text = request.text - request.cleared
        said, step = reported - self._before[0], text - self._before[1]
        self._before = reported, text
        if reported > _CUT_UP * self._largest[0]:
            self._largest, self._flat = (reported, text), 0
            return 0
        follows = abs(said - step) <= _STEP_OFF * abs(step) + _STEP_FLOOR
        near = self._largest[0] >= _MIN_WINDOW and reported >= _CUT_DOWN * self._largest[0]
        self._flat = self._flat + 1 if near and not follows else 0
        much_more = text - self._largest[1] >= _MORE_TEXT * self._largest[0]
        return round(self._largest[0]) if self._flat >= _FLAT and much_more else 0

    def _believe(self) -> None:
        self._last, self._newest, self._believed = None, 0.0, self._believed + 1
        self._unconfirmed, self._without_tools = False, 0

    def _agrees(self, reported: float, guess: float) -> bool:
        """Return whether the report differs from the previous doubted report by as much as the requests do."""
        return self._follows_step(reported, guess) and self._step(guess) >= _STEP

    def _is_too_similar(self, reported: float, guess: float) -> bool:
        """Return whether requests and reports differ too little from the previous ones to prove anything."""
        return self._follows_step(reported, guess) and self._step(guess) < _STEP

    def _step(self, guess: float) -> float:
        return abs(guess - self._last[1]) if self._last is not None else math.inf

    def _follows_step(self, reported: float, guess: float) -> bool:
        if self._last is None:
            return False
        step, said = guess - self._last[1], reported - self._last[0]
        return abs(said - step) <= _STEP_OFF * abs(step) + _STEP_FLOOR

    def _is_explained(self, reported: float, expected: float, request: Request) -> bool:
        """Return whether the difference has a legitimate explanation."""
        if reported > expected:
            return request.fits(reported)
        if self._always_too_few or request.lacks_schemas(reported, expected):
            # Nothing was newly omitted: the missing tokens were never counted, or are just the schemas.
            return False
        return request.is_plausible(reported) or self.has_proved

    def is_reply(self, reported: float, reply: float, *, thinks: bool) -> bool:
        """Return whether a report of `reported` output tokens can be about a reply of `reply` tokens by our own count.

        `thinks`: the reply contains reasoning, whose size only the provider knows; any figure up to the maximum length
        of a reply is then trusted.
        """
        if not self._enabled:
            return True
        most = _MAX_REPLY_LENGTH if thinks else _MAX_REPLY * reply + _UNSEEN_REPLY
        return _MIN_REPLY * reply <= reported <= most


class UsageDoubts:
    """Endpoints (adapter name and address) whose reports cannot be true, and models that do not see tools."""

    def __init__(self) -> None:
        self._told: dict[str, Doubt] = {}
        self._toolless: set[tuple[str, str]] = set()
        self._sees_tools: set[tuple[str, str]] = set()

    def hides_tools(self, endpoint: str, model: str) -> bool:
        """Return whether reports have shown that the model does not see the tools that are sent."""
        return (endpoint, model) in self._toolless

    def note_toolless(self, endpoint: str, model: str) -> None:
        """Record that the model does not see tools, unless it is known to see them."""
        if (endpoint, model) not in self._sees_tools:
            self._toolless.add((endpoint, model))

    def note_sees_tools(self, endpoint: str, model: str) -> None:
        """Record that the model sees tools, because it called one or reports fell when none were sent."""
        self._sees_tools.add((endpoint, model))
        self._toolless.discard((endpoint, model))

    def sees_tools(self, endpoint: str, model: str) -> bool:
        """Return whether the model is known to see tools."""
        return (endpoint, model) in self._sees_tools

    def try_tools(self, endpoint: str, model: str) -> None:
        """Send tools to the model again, because the user has chosen some."""
        self._toolless.discard((endpoint, model))

    def note(self, endpoint: str, doubt: Doubt) -> bool:
        """Record the newest doubt about an endpoint.

        Return whether it is the first doubt or the first detected truncation.

        An unconfirmed report is not recorded, because it may be true.
        """
        if doubt.unconfirmed:
            return False
        before = self._told.get(endpoint)
        if before is not None and before.cut_to and not doubt.cut_to:
            return False
        self._told[endpoint] = doubt
        return before is None or (doubt.cut_to > 0 and before.cut_to == 0)

    def sentences(self) -> list[tuple[str, str]]:
        """Return (endpoint, description of the doubt) for the doubted endpoints."""
        return [(endpoint, sentence(doubt)) for endpoint, doubt in self._told.items()]


def sentence(doubt: Doubt) -> str:
    """Return a description of the doubt, to be shown after the endpoint's name."""
    if doubt.cut_to:
        cut = f"seems to truncate prompts to {doubt.cut_to:,} tokens"
        return f"{cut}: set context_window to that (about {doubt.expected:,} were sent)"
    kind = "too few" if doubt.too_few else "too many"
    said = f"reports {kind} tokens ({doubt.reported:,} instead of about {doubt.expected:,})"
    return f"{said}; the plugin's own count is used instead (ctx~)"


ADVICE = "Safe to ignore, unless the server truncates long prompts: then raise its context size"
