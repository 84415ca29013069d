"""The table of faults between a user and an answer, and their outcomes.

Each row is one fault, in the formats where it makes sense. Every row ensures four things (`test_faults.py`): the chat
is usable afterwards, nothing shown as sent is lost, each message was sent exactly once, and the user sees one sentence
whose important half comes first, or nothing. The file is long because it is one table.
"""

from __future__ import annotations

import zlib

from tests.faults.faults import Call, Refuses, Row, Says, Sends, WireName
from tests.patience import PATIENCE_S
from tests.summaries import nine_sections

# A row is a few full lines, not one for each of its words.
# fmt: off

LONG = "There is much to say about what comes next, and none of it is short. " * 12
REFUSED = "it was refused, so nobody has worked on it"
SMALLER = "what was refused was not worked on, and the next one is another, smaller request"


# ---- status: the endpoint refuses

OVERFLOWS = {
    "in OpenAI's words": Refuses(
        400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
        "context_length_exceeded",
    ),
    "in vLLM's words": Refuses(
        400, "This model's maximum context length is 8192 tokens. However, you requested 9001 tokens (8001 in the"
        " messages, 1000 in the completion). Please reduce the length of the messages or completion.",
    ),
    "in llama.cpp's words": Refuses(
        400, "the request exceeds the available context size, try increasing it", "exceed_context_size_error",
    ),
    "in Anthropic's words": Refuses(400, "prompt is too long: 9001 tokens > 8192 maximum"),
    "in Kimi's words": Refuses(400, "Invalid request: Your request exceeded model token limit: 8192"),
    "in Zhipu's words": Refuses(400, "Prompt 超长", "1261"),
    "as 413": Refuses(413, "Request Entity Too Large"),
    "as a web page of 413": Refuses(413, body=b"<html><title>413 Request Entity Too Large</title></html>"),
    "as 422": Refuses(422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192."),
}

PLAN_LIMIT = "subscription_sharing_usage_limit_exceeded"
PLAN_LIMITS = {
    "in an error": Refuses(429, "Limit.", PLAN_LIMIT),
    "before the stream": Refuses(429, body=b'{"detail": {"code": "%s"}}' % PLAN_LIMIT.encode()),
    "in words": Refuses(403, body=b'{"detail": "Refused: %s."}' % PLAN_LIMIT.encode()),
}

STATUS = (
    *(
        Row(
            kind="status", name=f"too long, {how}", answers=(refusal,), past_words=2_000, arrives=2, because=SMALLER,
            says="is 8,192 tokens, not 100,000" if "8192" in refusal.message else "",
            expect="compacted, and sent again in a smaller request; the card says so, and a named window is learned",
        )
        for how, refusal in OVERFLOWS.items()
    ),
    Row(
        kind="status", name="400 for a reason of its own", answers=(Refuses(400, "Invalid value: 'tools'."),),
        answered=False, says="refused the request (400)", expect="told with the provider's words; not tried again",
    ),
    Row(
        kind="status", name="400 for an unknown model", answered=False,
        answers=(Refuses(400, "The model `test-model` does not exist", "model_not_found"),),
        says="the endpoint does not know the model", expect="told as what it is, with the key that chooses another",
    ),
    Row(
        kind="status", name="401", answers=(Refuses(401, "Incorrect API key provided: sk-te****."),), answered=False,
        says="the key in TEST_KEY was refused (401)", expect="told where the key came from; read again the next time",
    ),
    Row(
        kind="status", name="402, no credit", answers=(Refuses(402, "Insufficient Balance"),), answered=False,
        says="the account has no credit left (402)", expect="told; trying again does not help",
    ),
    Row(
        kind="status", name="403", answers=(Refuses(403, "Your region is not supported."),), answered=False,
        says="access was denied (403)", expect="told with the provider's words; not tried again",
    ),
    Row(
        kind="status", name="404 for an unknown model", answered=False,
        answers=(Refuses(404, "The model `test-model` does not exist", "model_not_found"),),
        says="the endpoint does not know the model", expect="told as what it is, with the key that chooses another",
    ),
    Row(
        kind="status", name="404 for a wrong address", answers=(Refuses(404, "Not Found"),), answered=False,
        says="nothing found at http://127.0.0.1", expect="told with the address and the settings to check",
    ),
    Row(
        kind="status", name="408", answers=(Refuses(408, "Request Timeout"),), answered=False,
        says="the provider did not answer in time (408)",
        expect="told; gateways say it of requests that are worked on",
    ),
    Row(
        kind="status", name="504", answers=(Refuses(504, "Gateway Timeout"),), answered=False,
        says="the provider did not answer in time (504)",
        expect="told; the server behind the gateway may be at work",
    ),
    Row(
        kind="status", name="409", answers=(Refuses(409, "Conflict"),), arrives=2, because=REFUSED,
        expect="asked once more, and answered",
    ),
    *(
        Row(
            kind="status", name=f"429, {how}", answers=(Refuses(429, "Slow down", headers={"retry-after": wish}),),
            arrives=2, because=REFUSED, expect="waited for as long as makes sense, then answered",
        )
        for how, wish in {
            "retry-after 2": "2",
            "retry-after -5": "-5",
            "retry-after NaN": "NaN",
            "retry-after a word": "soon",
            "retry-after in the past": "Wed, 21 Oct 2015 07:28:00 GMT",
            "retry-after 1e309": "1e309",
        }.items()
    ),
    Row(
        kind="status", name="429, retry-after an hour", answered=False,
        answers=(Refuses(429, "Slow down", headers={"retry-after": "3600"}),), says="too many requests (429)",
        expect="not waited for; the user is told how long and decides",
    ),
    Row(
        kind="status", name="429, no credit", answered=False,
        answers=(Refuses(429, "You exceeded your current quota", "insufficient_quota"),),
        says="the account has no credit left (429)", expect="told; trying again does not help",
    ),
    *(
        Row(
            kind="status", name=f"a plan's limit, {how}", answered=False, answers=(refusal,), wires=("plan",),
            says="the usage limit of your ChatGPT plan", expect="told once, with the page; never asked again by itself",
        )
        for how, refusal in PLAN_LIMITS.items()
    ),
    Row(
        kind="status", name="a plan's use cannot be looked up, once", arrives=2, because=REFUSED, wires=("plan",),
        answers=(Refuses(503, "Later.", "subscription_sharing_usage_unavailable"),), expect="asked again, and answered",
    ),
    Row(
        kind="status", name="a plan that may not be used", answered=False, wires=("plan",),
        answers=(Refuses(403, "No.", "subscription_sharing_user_not_eligible"),),
        says="OpenAI does not let this account use its ChatGPT plan", expect="told, with the page that says more",
    ),
    Row(
        kind="status", name="a plan's token is refused, once", arrives=2, because=REFUSED, wires=("plan",),
        answers=(Refuses(401, "Expired."),), expect="renewed, and answered",
    ),
    Row(
        kind="status", name="a plan's token is refused again and again", answered=False, arrives=2, because=REFUSED,
        wires=("plan",), answers=(Refuses(401, "No."),) * 2, says="OpenAI refused the token it has just issued (401)",
        expect="renewed once, then told how to log in again; the login stays",
    ),
    Row(
        kind="stream", name="a plan's reply cut in the text", wires=("plan",), kept=True, answered=False,
        answers=(Says("Much to say about this.", ends_at="in the text"),), says="the connection was lost",
        expect="what came is kept, and marked as cut",
    ),
    *(
        Row(
            kind="status", name=f"200 with {what} as MiniMax says it", answered=False, wires=("chat",),
            answers=(
                Sends(b'{"base_resp": {"status_code": %d, "status_msg": "%s"}}' % (code, words), "application/json"),
            ),
            says=says, expect="told as what it is, not as an empty reply; not tried again",
        )
        for what, code, words, says in (
            ("a wrong key", 1004, b"login fail", "the key in"),
            ("no credit", 1008, b"insufficient balance", "the account has no credit left"),
            ("a wrong model", 2013, b"invalid params, unknown model", "the endpoint does not know the model"),
        )
    ),
    Row(
        kind="status", name="400 of a content filter", answered=False,
        answers=(Refuses(400, "The response was filtered due to our content management policy.", "content_filter"),),
        says="a content filter refused the request (400)", expect="told as what it is; not tried again",
    ),
    Row(
        kind="status", name="301 to another address", answered=False,
        answers=(Refuses(301, headers={"Location": "https://elsewhere.test/v1"}, body=b""),),
        says="the endpoint redirects to https://elsewhere.test/v1", expect="not followed; told, with what to set",
    ),
    Row(
        kind="status", name="no server at all", away=True, answered=False, arrives=0,
        because="it never reached anybody", says="no connection to http://127.0.0.1",
        expect="told after three tries more, with what to check",
    ),
    *(
        Row(
            kind="status", name=f"{status} once", answers=(Refuses(status, "Oops"),), arrives=2, because=REFUSED,
            expect="tried again, and answered",
        )
        for status in (500, 502, 503, 529)
    ),
    Row(
        kind="status", name="500 again and again", answers=(Refuses(500, "Oops"),) * 9, answered=False, arrives=4,
        because=REFUSED, says="the provider failed (500)", expect="told after three tries more",
    ),
    Row(
        kind="status", name="502 as a web page", answered=False, arrives=4, because=REFUSED,
        answers=(Refuses(502, body=b"<html><title>502 Bad Gateway</title></html>"),) * 9,
        says="the provider failed (502)", expect="told in a sentence without the page",
    ),
)

# ---- stream: more data than any reply has (tests/attacks/test_bytes.py has the whole list)

PACKED = {
    "gzip": zlib.compress(bytes(60_000_000), wbits=31),
    "deflate": zlib.compress(bytes(60_000_000)),
    "br": b"?" * 1_000,
    "zstd": b"?" * 1_000,
}
TOO_MUCH = (
    *(
        Row(
            kind="stream", name=f"a bomb of zeros in {coding}", answered=False,
            answers=(Sends(packed, headers={"Content-Encoding": coding}),),
            says="compressed by a factor of more than 200" if len(packed) > 1_000 else "it is encoded as",
            expect="ended at the limit, told, and not asked for again",
        )
        for coding, packed in PACKED.items()
    ),
    *(
        Row(
            kind="status", name=f"400 with a bomb of zeros in {coding}", answered=False,
            answers=(Refuses(400, headers={"Content-Encoding": coding}, body=packed),),
            says="the provider refused the request (400)", expect="told by its status; the body is read to its limit",
        )
        for coding, packed in PACKED.items()
    ),
    Row(
        kind="stream", name="600 tool calls in one reply", answered=False, wires=("chat", "messages"),
        answers=(Says(calls=tuple(Call("read_file", '{"path": "x.txt"}', f"c{k}") for k in range(600))),),
        says="the reply has more than 500 tool calls", expect="none of them runs",
    ),
    Row(
        kind="stream", name="a part of the reply has lists without end", answered=False, kept=True,
        answers=(Says(LONG, insert=b'data: {"usage": [' + b"[]," * 500_000 + b"[]]}\n\n"),),
        says="a part of the reply has more than 400,000", expect="told; what arrived before is kept",
    ),
)

# ---- stream: the reply breaks

STREAM = (
    Row(
        kind="stream", name="cut before its first byte", answers=(Says("Hello", ends_at="before the first byte"),),
        answered=False, says="the connection ended before the reply began", expect="told; the user asks again",
    ),
    Row(
        kind="stream", name="cut in the text", answers=(Says(LONG, ends_at="in the text"),), answered=False, kept=True,
        says="the connection was lost", expect="what arrived is kept and marked as cut",
    ),
    Row(
        kind="stream", name="ended in the text without its end marker", answered=False, kept=True,
        answers=(Says(LONG, ends_at="in the text", quietly=True),), says="the reply was incomplete",
        expect="never taken for a whole reply (lesson 39)",
    ),
    Row(
        kind="stream", name="cut in a tool call", answered=False,
        answers=(Says(calls=(Call("read_file", '{"path": "big.txt", "start": 1}'),), ends_at="in a call"),),
        says="the connection was lost", expect="the call never runs",
    ),
    Row(
        kind="stream", name="[DONE] without a finish_reason", answers=(Says("You said it all.", unmarked=True),),
        wires=("chat",), expect="the reply is complete when its parts are",
    ),
    Row(
        kind="stream", name="an error event in the text", answers=(Says(LONG, error="The engine is on fire"),),
        answered=False, kept=True, says="the provider", expect="told with the provider's words; what arrived is kept",
    ),
    Row(
        kind="stream", name="an error event before the text", answers=(Says("", error="Overloaded, try later"),),
        wires=("chat", "messages"), arrives=2, because=REFUSED, expect="asked again, and answered",
    ),
    Row(
        kind="stream", name="cut in the thinking", answers=(Says(LONG, thinking=LONG, ends_at="in the text"),),
        answered=False, says="the connection was lost", expect="told; thinking is not kept as a reply",
    ),
    Row(
        kind="stream", name="a line that is no JSON", answers=(Says(LONG, insert=b"data: {garbage\n\n"),),
        answered=False, kept=True, says="the reply cannot be read", expect="told; what arrived before is kept",
    ),
    Row(
        kind="stream", name="an empty reply", answers=(Says(""),), says="The model sent an empty reply",
        expect="told that it was empty; the chat goes on",
    ),
    Row(
        kind="stream", name="nothing but a body of no bytes", answers=(Sends(b""),), answered=False,
        says="the reply was empty", expect="told; the user asks again",
    ),
    Row(
        kind="stream", name="silence before the first byte", answers=(Says(LONG, silent_at="before the first byte"),),
        quiet_s=1.0, answered=False, says="the provider sent nothing for 1 s",
        expect="told, with the option; not asked again, because it may be at work",
    ),
    Row(
        kind="stream", name="silence in the text", answers=(Says(LONG, silent_at="in the text"),), quiet_s=1.0,
        answered=False, kept=True, says="the provider sent nothing for 1 s", expect="told; what arrived is kept",
    ),
    Row(
        kind="stream", name="silence in the text, while another message waits", quiet_s=1.0, answered=False, kept=True,
        answers=(Says(LONG, silent_at="in the text"),), hasty=True, says="the provider sent nothing for 1 s",
        expect="told once of both: what arrived is kept, and the waiting message is back in the input",
    ),
    Row(
        kind="stream", name="an error object with status 200", answered=False,
        answers=(Sends(b'{"error": {"message": "The engine is off", "type": "nope"}}', "application/json"),),
        says="the provider reported an error", expect="told with the provider's words",
    ),
    Row(
        kind="stream", name="JSON that is no reply", answers=(Sends(b'["hello"]', "application/json"),),
        answered=False, says="answered with application/json", expect="told, with what to check",
    ),
    Row(
        kind="stream", name="bytes that are not the gzip they claim to be", answered=False,
        answers=(Sends(b"garbage" * 99, headers={"Content-Encoding": "gzip"}),) * 9, says="the reply cannot be read",
        expect="told in a sentence",
    ),
    Row(
        kind="stream", name="a line of five megabytes", answered=False, kept=True,
        answers=(Says(LONG, insert=b"data: " + b"x" * 5_000_000 + b"\n\n"),), says="cannot be read",
        expect="told; what arrived before is kept",
    ),
    Row(
        kind="stream", name="a comment of five megabytes",
        answers=(Says(LONG, insert=b": " + b"x" * 5_000_000 + b"\n\n"),), expect="left out as any comment is",
    ),
    Row(
        kind="stream", name="a line that is no UTF-8", answers=(Says(LONG, insert=b"data: \xff\xfe\xff\n\n"),),
        answered=False, kept=True, says="cannot be read", expect="told; what arrived before is kept",
    ),
    Row(
        kind="stream", name="a web page with status 200", answered=False,
        answers=(Sends(b"<html><title>Log in</title></html>", "text/html"),), says="answered with text/html",
        expect="told whose page it is, and what to check",
    ),
    Row(
        kind="stream", name="the output limit in the text", answers=(Says("The first half", stop="length"),),
        says="Asked the model to continue its reply", expect="the rest is asked for once",
    ),
)

# ---- tool: the model's arguments in a call


def calls(*wanted: Call) -> tuple[Says, ...]:
    """Return a reply that calls tools."""
    return (Says(calls=wanted),)


def nested(levels: int) -> str:
    """Return JSON with `levels` levels of nesting."""
    return '{"path": ' + '{"a":' * levels + "1" + "}" * levels + "}"


MANY = "{" + ", ".join(f'"k{number}": {number}' for number in range(200)) + "}"
TOOL = tuple(
    Row(kind="tool", name=name, answers=calls(*wanted), expect=expect)
    for name, wanted, expect in (
        ("arguments cut in the middle", [Call("read_file", '{"path": "bi')], "the model reads what is wrong"),
        ("arguments of 2,000 levels", [Call("read_file", nested(2_000))], "the model reads what is wrong"),
        ("a list without an end", [Call("read_file", '{"path": ' + "[" * 5_000)], "the model reads what is wrong"),
        ("NUL in a path", [Call("read_file", '{"path": "a\\u0000b"}')], "the model reads what is wrong"),
        ("half a surrogate", [Call("read_file", '{"path": "\\ud800"}')], "the model reads what is wrong"),
        ("no object", [Call("read_file", "[1, 2]")], "the model reads what is wrong"),
        ("an unknown tool", [Call("launch_rocket", '{"at": "noon"}')], "the model reads which tools there are"),
        ("a huge id", [Call("read_file", '{"path": "x.txt"}', "i" * 20_000)], "the id is replaced by a short one"),
        (
            "arguments without an end",
            [Call("read_file", '{"path": "' + "x" * 2_000_000 + '"}')],
            "kept in part; the model reads what is wrong",
        ),
        ("a name of many lines", [Call("read\nfile\x00", "{}")], "the name is made bearable; there is no such tool"),
        ("a name without an end", [Call("n" * 200_000, "{}")], "the name is made bearable; there is no such tool"),
        ("many wrong arguments", [Call("read_file", MANY)], "the model reads the first of what is wrong"),
        ("a huge result", [Call("read_file", '{"path": "big.txt"}')], "cut in the view, whole in the store"),
        ("a file that is no text", [Call("read_file", '{"path": "binary.txt"}')], "the model reads that it is none"),
        ("a tool that breaks", [Call("breaks")], "the model reads that it failed; nothing else is hurt"),
        ("a tool of the user's that leaves", [Call("leaves")], "the model reads that it failed; the host stays"),
        ("a tool of the user's that hangs", [Call("hangs")], "the model reads that it was stopped"),
        ("a tool of the user's that gives no text", [Call("garbles")], "what is no text is replaced"),
        ("a tool of the user's that gives too much", [Call("floods")], "cut in the view, whole in the store"),
        ("a tool of the user's that gives instructions", [Call("injects")], "text; nothing is approved by it"),
        ("a tool of the user's in Lua, without an editor", [Call("in_lua")], "the model reads that it cannot run"),
        (
            "two calls with one id",
            [Call("read_file", '{"path": "x.txt"}', "same"), Call("read_file", '{"path": "y.txt"}', "same")],
            "both get their result, and ids of their own on the wire",
        ),
    )
)

# ---- server: an MCP server that does what none should, in the middle of a turn (tests/mcp/hostile.py)

SERVER = tuple(
    Row(
        kind="server", name=name, server=ways, answers=tuple(Says(calls=(call,)) for call in wanted), says=says,
        expect=expect, wires=("chat", "messages"),
        server_limit_s=1.0 if any(call.name == "odd__wait" for call in wanted) else PATIENCE_S,
        may_be_over=bool(says),
    )
    for name, ways, wanted, says, expect in (
        ("ends in a call", (), [Call("odd__die")], "The MCP server odd is not running: it ended",
         "the model reads that it ended; started again"),
        ("does not answer a call", (), [Call("odd__wait")], "", "stopped after its time; the model reads so"),
        ("renames its tools while it is called", ("rename",),
         [Call("odd__echo", '{"text": "a"}', "c1"), Call("odd__wait", "{}", "c2")], "",
         "the call after that is one of a tool that is not there"),
        ("prints garbage between its messages", ("garbage",), [Call("odd__echo", '{"text": "a"}')], "",
         "passed over"),
        ("answers twice, and to nobody", ("twice", "wrong-ids"), [Call("odd__echo", '{"text": "a"}')], "",
         "the first answer counts"),
        ("sends a message without an end", (), [Call("odd__huge")], "The MCP server odd is not running: it sent a",
         "the connection is closed; the model reads why"),
        ("gives orders in descriptions", ("inject",), [Call("odd__innocent")], "",
         "text of a tool's description, cut; approves nothing"),
    )
)

# ---- summary: the summariser's answers when the chat must be compacted before the second message

SUMMARIES = {
    "ok": (Says("ok"),),
    "a refusal": (Says("I cannot help with that."),),
    "an error passed off as an answer": (Says("Error: 500 Internal Server Error"),),
    "nothing": (Says(""),),
    "thinking only": (Says("", thinking="I should summarise what was said, section by section. " * 20),),
    "unrelated prose": (Says("The sea was calm that morning, and the gulls had little to say to each other. " * 9),),
    "a failure": (Refuses(500, "Oops"),),
    "too much": (Says(nine_sections("What comes next? " * 6_000)),),
    "a cut text": (Says("1. Primary Request and Intent:\nThe user", stop="length"),),
    "a tool call": (Says(calls=(Call("read_file", '{"path": "big.txt"}'),)),),
}
OTHER_POLICIES = tuple(
    Row(
        kind="summary", name=f"the summariser answers with {what} under {policy}", summary=SUMMARIES[what],
        past_words=5_000, window=16_000, policy=policy, says="The summary was written without a model",
        expect="never taken for a summary: one is made of the log instead, and the user told",
    )
    # kodacode asks no model, codebuddy none for this few messages.
    for policy in ("adaptive", "cowork", "cowork_chat")
    for what in ("ok", "a failure")
)
SUMMARY = tuple(
    Row(
        kind="summary", name=f"the summariser answers with {what}", summary=answers, past_words=4_000,
        compact_at=8_000, says="" if what == "too much" else "Compaction failed: ",
        expect="never taken for a summary; told, and nothing is changed",
    )
    for what, answers in SUMMARIES.items()
)

# ---- clock: the wall clock jumps before the second message, before the third, before the restart

DAY, YEAR = 86_400.0, 31_536_000.0
CLOCK = tuple(
    Row(kind="clock", name=name, clock_jumps_s=jumps, expect="nobody notices: order comes from the log")
    for name, jumps in {
        "a day back": (-DAY, 0.0, 0.0),
        "a day back, then two forward": (-DAY, 2 * DAY, 0.0),
        "a year forward, then back": (YEAR, -YEAR, 0.0),
        "to 1970": (-1_800_000_000.0, 0.0, 0.0),
        "back across the restart": (0.0, 0.0, -YEAR),
    }.items()
)

# ---- disk: the store cannot be written when the second message comes, or when its reply does

SHORT_OF_SPACE = "Message two, which is long: " + "what comes next? " * 3_000
DISK = (
    Row(
        kind="disk", name="it turns read-only", disk="read-only", returned=True, answered=False,
        says="the file is read-only", expect="not shown as sent; back in the input",
    ),
    Row(
        kind="disk", name="it is full", disk="full", text=SHORT_OF_SPACE, returned=True, answered=False,
        says="the disk is full", expect="not shown as sent; back in the input",
    ),
    Row(
        kind="disk", name="another process keeps it locked", disk="locked", returned=True, answered=False,
        says="another process keeps the file locked", expect="not shown as sent; back in the input",
    ),
    Row(
        kind="disk", name="it turns read-only while the reply arrives", disk="read-only in the reply",
        says="The reply is not stored yet: the file is read-only",
        expect="shown and told; stored with the next message",
    ),
    Row(
        kind="disk", name="it is full when the reply arrives", disk="full in the reply", answers=(Says(LONG * 90),),
        says="The reply is not stored yet: the disk is full", expect="shown and told; stored with the next message",
    ),
    Row(
        kind="disk", name="it is locked while the reply arrives", disk="locked in the reply",
        says="The reply is not stored yet: another process keeps",
        expect="shown and told; stored with the next message",
    ),
    Row(
        kind="disk", name="the file is deleted", disk="deleted",
        says="Chat history deleted while open; restored, nothing was lost",
        expect="noticed before the next write, said, and written again with everything",
    ),
    Row(
        kind="disk", name="the file is deleted while the reply arrives", disk="deleted in the reply",
        says="Chat history deleted while open; restored, nothing was lost", expect="written again with everything",
    ),
    Row(
        kind="disk", name="the whole folder is deleted", disk="folder deleted",
        says="Chat history deleted while open; restored, nothing was lost", expect="as when the file is",
    ),
    Row(
        kind="disk", name="it turns read-only while calls arrive", disk="read-only in the reply", answered=False,
        answers=calls(Call("read_file", '{"path": "x.txt"}')),
        says="No tool was run, because the calls could not be stored", expect="what is not in the log never runs",
    ),
    Row(
        kind="disk", name="large results have no place", disk="no place for large results",
        answers=calls(Call("read_file", '{"path": "big.txt"}')),
        says="Only the start and end of a long result are kept: the disk is full",
        expect="the model gets the start and end; told",
    ),
)

# ---- window: how much the model takes

WINDOW = (
    Row(
        kind="window", name="unknown", window=0, expect="assumed; nothing is said while it decides nothing",
        wires=("chat", "responses"),
    ),
    Row(
        kind="window", name="unknown, and the chat comes to where it decides", window=0, past_words=8_000,
        says="is unknown: 32,000 tokens are assumed", wires=("chat", "responses"),
        expect="assumed, and said once, with the line to set",
    ),
    Row(
        kind="window", name="4k, with tools and a history", window=4_000, offers_tools=False, past_words=700,
        expect="compacted as often as needed; every message is answered",
    ),
    Row(
        kind="window", name="4k, with tools", window=4_000, past_words=300,
        expect="compacted as often as needed; every message is answered",
    ),
    Row(
        kind="window", name="a tool result larger than what is left", window=12_000,
        answers=calls(Call("read_file", '{"path": "big.txt"}')), expect="cut before it enters the view (R-524)",
    ),
    Row(
        kind="window", name="a message that can never fit", window=16_000, text="word " * 40_000, returned=True,
        answered=False, says="Not sent: ", expect="not sent; back in the input, with what takes the room",
    ),
    Row(
        kind="window", name="smaller on the server than believed", window=100_000, server_window=12_000,
        past_words=6_000, arrives=2, because=SMALLER, says="is 12,000 tokens, not 100,000",
        wires=("chat", "messages"), expect="the true size is learned, the chat compacted, and the message answered",
    ),
    Row(
        kind="window", name="smaller on the server, which does not say how small", window=100_000,
        server_window=12_000, past_words=6_000, arrives=2, because=SMALLER, wires=("responses",),
        says="The summary was written without a model",
        expect="the request for a summary is refused as well: compacted without a model, and answered",
    ),
)

# ---- usage: the server's report of each request


def reported(prompt: object, output: object, cached: object = 0) -> dict[WireName, dict[str, object]]:
    """Return the same usage figures in each wire format."""
    tokens = {"input_tokens": prompt, "output_tokens": output}
    written = 0 if isinstance(prompt, int) else prompt
    return {
        "chat": {
            "prompt_tokens": prompt,
            "completion_tokens": output,
            "prompt_tokens_details": {"cached_tokens": cached},
        },
        "responses": {**tokens, "input_tokens_details": {"cached_tokens": cached}},
        "messages": {**tokens, "cache_read_input_tokens": cached, "cache_creation_input_tokens": written},
    }


USAGES = {
    "zero": (reported(0, 0), "reports too few tokens"),
    "negative": (reported(-20_000, -5), ""),
    "50 of 20,000": (reported(50, 20), "reports too few tokens"),
    "2³¹-1": (reported(2**31 - 1, 20), "reports"),
    "cached tokens only": (reported(0, 20, 300), "reports too few tokens"),
    "strings": (reported("12000", "twenty"), ""),
    "null": (reported(None, None, None), ""),
    "a number in words beside a list": (reported("many", [1, 2], {"a": 1}), ""),
}
USAGE = (
    Row(
        kind="usage", name="usage is 50 while the window fills", usage=reported(50, 20), past_words=4_600,
        window=16_000, server_window=16_000, says="reports too few tokens",
        expect="compacted in time by our own count; the server never has to refuse",
    ),
    *(
        Row(
            kind="usage", name=f"usage is {what}", usage=usage, past_words=4_000, says=says,
            expect="the estimate stays in force; told once where it cannot be true",
        )
        for what, (usage, says) in USAGES.items()
    ),
    Row(
        kind="usage", name="no usage at all", usage={"chat": {}}, wires=("chat",), past_words=4_000,
        expect="the estimate stays in force",
    ),
)

TABLE: tuple[Row, ...] = (
    *STATUS, *TOO_MUCH, *STREAM, *TOOL, *SERVER, *SUMMARY, *OTHER_POLICIES, *CLOCK, *DISK, *WINDOW, *USAGE,
)
