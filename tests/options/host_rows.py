"""Rows for options that the host reads: the chat, its tools, its context and its models."""

from __future__ import annotations

from collections.abc import Iterator

from tests.options import host_scenes as host
from tests.options.meaning_scenes import found_by_meaning
from tests.options.row import CHAT, TOOLS, Row, in_chat, in_tools, loop

MANAGED = f"{CHAT}.context_management"
SMALL = "context_window = 20000"
OTHER = """adapters = { http = { other = {
    extends = "openai_compatible", env = { url = "URL" }, opts = { context_window = 128000 },
    schema = { model = { default = "MODEL" } },
  } } }"""
"""A second adapter."""
ADAPTERS = (
    "anthropic azure_openai bedrock cerebras chatgpt copilot deepseek fireworks gemini groq huggingface kimi llama_cpp"
    " lmstudio minimax mistral nebius novita ollama openai openai_compatible openai_responses openrouter together"
    " vertex vllm xai zai"
).split()
ENTRY = """{
    env = { url = "URL", api_key = "cmd:echo pencil" }, schema = { model = { default = "test-model" } },
    formatted_name = "NAME", headers = { MORE }, opts = { max_retries = 0, context_window = WINDOW },
  }"""


def rows() -> Iterator[Row]:
    """Yield all rows of this module."""
    yield from _of_tools()
    yield from _of_own_tools()
    yield from _of_chats()
    yield from _of_money()
    yield from _of_context()
    yield from _of_memory()
    yield from _of_rules()
    yield from _of_adapters()
    yield from _of_completion()
    yield from _of_gathering()
    yield from _of_meaning()
    yield from _of_servers()


def _of_tools() -> Iterator[Row]:
    asks = {"insert_edit", "create_file", "delete_file", "run_command"}
    for name in host.CALLS:
        scene, path = host.tool(name), f"{TOOLS}.{name}"
        yolo = in_tools(f"opts = {{ yolo = true }}, {name} = {{ opts = {{ require_approval_before = true }} }}")
        yield Row(f"{path}.enabled", "false", scene)
        yield Row(f"{path}.opts.require_approval_before", "false" if name in asks else "true", scene)
        never = name in {"delete_file", "run_command"}
        yield Row(f"{path}.opts.allowed_in_yolo_mode", "true" if never else "false", scene, yolo)
        yield Row(f"{path}.opts.timeout", "50" if name == "run_command" else "1", scene)
    command, edit = f"{TOOLS}.run_command.opts", host.tool("insert_edit")
    yield Row(f"{command}.allowed_prefixes", "{ 'echo' }", host.tool("run_command", command="echo one"))
    yield Row(f"{command}.keep_variables", "{ 'MY_API_KEY' }", host.tool("run_command"))
    yield Row(f"{command}.hide_variables", "{ 'PENCIL' }", host.tool("run_command"))
    yield Row(f"{TOOLS}.opts.enabled", "false", host.talk)
    yield Row(f"{TOOLS}.opts.default_tools", "{ 'read_only' }", host.talk)
    yield Row(f"{TOOLS}.opts.yolo", "true", edit)
    yield Row(f"{TOOLS}.opts.guarded_files", "{ 'app.py' }", edit, in_tools("opts = { yolo = true }"))
    yield Row(f"{TOOLS}.opts.max_result_chars", "1000", host.tool("read_file", path="big.txt"))
    yield Row("workspace.root", "'sub'", host.tool("read_file"))
    sandbox = host.tool("run_command", command="touch $HOME/pencil && echo written")
    yield Row("sandbox", "'off'", sandbox)


def _of_own_tools() -> Iterator[Row]:
    group = "groups = { mine = { tools = { 'read_file' } } }"
    path = f"{TOOLS}.groups.mine"
    yield Row(f"{path}.tools", "{ 'grep_search' }", host.group, in_tools(group))
    yield Row(f"{path}.description", "'Only reads.'", host.group, in_tools(group))
    yield Row(f"{path}.system_prompt", "'Read slowly.'", host.group, in_tools(group))
    yield Row(f"{path}.opts.collapse_tools", "false", host.group, in_tools(group))
    path, scene = f"{TOOLS}.mine", host.tool("mine", word="pencil")
    own = "mine = { python = 'CONFIG/mine.py:shout', description = 'Shouts.' }"
    yield Row(f"{path}.python", "'CONFIG/mine.py:whisper'", scene, in_tools(own))
    yield Row(f"{path}.description", "'Cries.'", scene, in_tools(own))
    yield Row(f"{path}.enabled", "false", scene, in_tools(own))
    schema = "{ type = 'object', properties = { word = { type = 'string' }, more = { type = 'string' } } }"
    yield Row(f"{path}.schema", schema, scene, in_tools(own))
    yield Row(f"{path}.opts.require_approval_before", "false", scene, in_tools(own))
    yolo = in_tools(f"{own}, opts = {{ yolo = true }}")
    yield Row(f"{path}.opts.allowed_in_yolo_mode", "false", scene, yolo)
    yield Row(f"{path}.opts.timeout", "1", scene, in_tools(own))


def _of_chats() -> Iterator[Row]:
    yield Row(f"{CHAT}.system_prompt", "'Be a pencil.'", host.talk)
    yield Row(f"{CHAT}.context_window", "'16k'", host.talk)
    yield Row(f"{CHAT}.tell_open_file", "false", host.talk)
    yield Row(f"{CHAT}.tell_environment", "false", host.talk)
    yield Row(f"{CHAT}.response_style", "'terse'", host.talk)
    yield Row(f"{CHAT}.context_packet.enabled_sections", "{ 'repo' }", host.talk)
    yield Row(f"{CHAT}.tokenizer", "'exact'", host.talk)
    yield Row(f"{CHAT}.checkpoint_every_messages", "1", host.talk)
    yield Row("opts.language", "'Danish'", host.talk)
    yield Row("opts.log_level", "'DEBUG'", host.logged, in_chat("context_packet = { enabled_sections = { 'git' } }"))
    mine = loop("adapters = { http = { loop = { schema = { model = { default = 'mine' } } } } }")
    yield Row("models.mine.max_output_tokens", "99", host.talk, mine)
    unknown = f"(function(t) t.adapters.http.loop.opts.context_window = nil return t end)({mine})"
    yield Row("models.mine.context_window", "9000", host.talk, unknown)
    yield Row(f"{CHAT}.max_provider_requests_per_turn", "1", host.tool("read_file"))
    yield Row(f"{CHAT}.max_output_continuations", "0", host.cut_off)
    yield Row(f"{CHAT}.live_attachments", "false", host.attached)


def _of_money() -> Iterator[Row]:
    for name in ("budget", "total_budget"):
        spent = in_chat(f"{name} = 0.01")
        yield Row(f"{CHAT}.{name}", "0.001", host.talk_priced)
        yield Row(f"{CHAT}.{name}_warn", "0.001", host.talk_priced, spent)


def _of_context() -> Iterator[Row]:
    yield Row(f"{CHAT}.policy", "'cowork'", host.long, in_chat(SMALL))
    mine = f"{SMALL}, policy = 'mine', policies = {{ mine = {{ extends = 'codecompanion' }} }}"
    changed = "{ extends = 'codecompanion', editing = { trigger = 0.3 } }"
    yield Row(f"{CHAT}.policies.mine", changed, host.long, in_chat(mine))
    strategy = f"{SMALL}, policy = 'uses_mine', strategies = {{ mine = 'CONFIG/mine.py:keep' }}"
    yield Row(f"{CHAT}.strategies.mine", "'CONFIG/mine.py:shorten'", host.long_with_own_policy, in_chat(strategy))
    yield Row(f"{MANAGED}.enabled", "false", host.long, in_chat(SMALL))
    yield Row(f"{MANAGED}.strict", "true", host.long, in_chat(f"{SMALL}, policy = 'adaptive'"))
    yield Row(f"{MANAGED}.editing.trigger", "0.3", host.long, in_chat(SMALL))
    yield Row(f"{MANAGED}.editing.keep_cycles", "1", host.long, in_chat(SMALL))
    yield Row(f"{MANAGED}.editing.exclude_tools", "{ 'read_file' }", host.long, in_chat(SMALL))
    no_editing = "context_management = { editing = { trigger = false }"
    yield Row(f"{MANAGED}.compaction.trigger", "0.5", host.long, in_chat(f"{SMALL}, {no_editing} }}"))
    early = in_chat(f"{no_editing}, compaction = {{ trigger = 9000 }} }}")
    yield Row(f"{MANAGED}.compaction.min_token_savings", "100", host.long, early)
    kodacode = in_chat(f"{SMALL}, policy = 'kodacode'")
    for where in (MANAGED, f"{MANAGED}.sessions"):
        yield Row(f"{where}.compaction_threshold", "0.99", host.long, kodacode)
        yield Row(f"{where}.compaction_target_threshold", "0.2", host.long, kodacode)
    yield Row(f"{MANAGED}.sessions.response_style", "'terse'", host.talk)


def _of_memory() -> Iterator[Row]:
    remembers = in_chat("policy = 'cowork'")
    yield Row(f"{CHAT}.memory.enabled", "false", host.summarised, remembers)
    yield Row(f"{CHAT}.memory.max_tokens", "0", host.summarised, remembers)
    yield Row(f"{CHAT}.memory.exclude", "{ 'pencil' }", host.summarised, remembers)
    yield Row(f"{CHAT}.on_compact", "'submit'", host.summarised)
    yield Row(f"{CHAT}.compaction_timeout", "1000", host.summarised_slowly)
    other = OTHER.replace("MODEL", "other-model")
    yield Row(f"{MANAGED}.compaction.adapter", "'other'", host.summarised, loop(other))
    bad = OTHER.replace("MODEL", "bad-model")
    by_other = "opts = { context_management = { compaction = { adapter = 'other' } } }"
    by_bad = f"{bad}, interactions = {{ chat = {{ {by_other} }} }}"
    yield Row(f"{MANAGED}.compaction.fallback_to_chat_adapter", "true", host.summarised, loop(by_bad))


def _of_rules() -> Iterator[Row]:
    mine = (
        "rules = { mine = { files = { 'mine.md' }, description = 'Mine.' }, opts = { chat = { autoload = 'mine' } } }"
    )
    yield Row("rules.default.files", "{ 'mine.md' }", host.ruled)
    yield Row("rules.default.description", "'Others.'", host.ruled)
    yield Row("rules.default.parser", "'claude'", host.ruled, loop("rules = { default = { files = { 'mine.md' } } }"))
    yield Row("rules.default.enabled", "false", host.ruled)
    yield Row("rules.mine.files", "{ 'AGENTS.md' }", host.ruled, loop(mine))
    yield Row("rules.mine.description", "'Others.'", host.ruled, loop(mine))
    yield Row("rules.mine.parser", "'claude'", host.ruled, loop(mine))
    yield Row("rules.mine.enabled", "false", host.ruled, loop(mine))
    yield Row("rules.opts.chat.enabled", "false", host.ruled)
    yield Row("rules.opts.chat.autoload", "{}", host.ruled)
    untrusted = loop("trust = { enabled = true }")
    yield Row("trust.enabled", "false", host.ruled, untrusted)
    yield Row("trust.folders", "{ '/**' }", host.ruled, untrusted)


def _of_adapters() -> Iterator[Row]:
    other = OTHER.replace("MODEL", "other-model")
    yield Row("interactions.chat.adapter", "'other'", host.talk, loop(other))
    headers = "{ loop = { headers = { ['x-mine'] = 'yes' } } }"
    yield Row("adapters.http.extend", headers, host.talk)
    own = "{ extends = 'openai_compatible', env = { url = 'URL' }, schema = { model = { default = 'MODEL' } } }"
    chosen = loop(f"adapters = {{ http = {{ mine = {own} }} }}, interactions = {{ chat = {{ adapter = 'mine' }} }}")
    yield Row("adapters.http.mine", own.replace("MODEL", "other"), host.talk, chosen)
    for name in ADAPTERS:
        entry = ENTRY.replace("MORE", "").replace("WINDOW", "128000").replace("NAME", "One")
        around = loop(
            f"adapters = {{ http = {{ {name} = {entry} }} }}, interactions = {{ chat = {{ adapter = '{name}' }} }}"
        )
        other = ENTRY.replace("MORE", "['x-mine'] = 'yes'").replace("WINDOW", "64000").replace("NAME", "Other")
        if name in {"chatgpt", "copilot"}:  # they have a login and one address
            other = "'loop'"
        yield Row(f"adapters.http.{name}", other, host.asked_once, around)
    offline = loop("interactions = { chat = { adapter = 'offline' } }")
    yield Row("adapters.http.offline", "'loop'", host.asked_once, offline)
    few = loop("adapters = { http = { loop = { opts = { max_retries = 0 } } } }")
    yield Row("adapters.http.opts.proxy", "'http://127.0.0.1:9'", host.talk, few)


def _of_completion() -> Iterator[Row]:
    at = "enabled = true, url = 'FILL_URL'"

    def around(more: str = "") -> str:
        return loop(f"completion = {{ {at}, {more} }}")

    by_other = (
        "(function(t) t.adapters.http.loop.headers = { ['x-mine'] = 'yes' } return t end)("
        + loop(f"completion = {{ enabled = true, endpoint = 'chat', adapter = 'other' }}, {OTHER}")
        + ")"
    )
    yield Row("completion.endpoint", "'llamacpp'", host.completed, around())
    yield Row("completion.url", "'http://127.0.0.1:9'", host.completed, around())
    yield Row("completion.adapter", "'loop'", host.completed, by_other)
    yield Row("completion.api_key", "'OTHER_KEY'", host.completed, around("endpoint = 'mistral', api_key = 'FILL_KEY'"))
    yield Row("completion.model", "'granite'", host.completed, around())
    yield Row("completion.family", "'starcoder'", host.completed, around("endpoint = 'completions'"))
    tokens = "{ prefix = '<A>', suffix = '<B>', middle = '<C>', eot = '<E>' }"
    yield Row("completion.tokens", tokens, host.completed, around("endpoint = 'completions'"))
    yield Row("completion.max_tokens", "9", host.completed, around())
    yield Row("completion.temperature", "0.9", host.completed, around())
    yield Row("completion.timeout", "100", host.completed_slowly, around())
    yield Row("completion.multi_line", "false", host.completed, around())
    yield Row("completion.project", "false", host.completed, around())


def _of_gathering() -> Iterator[Row]:
    def around(more: str = "") -> str:
        # A gatherer that is late under load would give the same with either value.
        return loop(f"context = {{ timeout = 60000, {more} }}, opts = {{ log_level = 'ERROR' }}")

    memories = "memories = { user = 'CONFIG/memories.md' }"
    for option, value, more in (
        ("enabled", "false", ""),
        ("pipeline", "'document'", ""),
        ("classify", "false", "enabled = true"),
        ("utility", "'loop'", "enabled = true"),
        ("window", "400", ""),
        ("budgets", "{ default = 60 }", ""),
        ("include_hidden", "true", ""),
        ("max_file_size_mb", "0.001", ""),
        ("supplement_when_files_selected", "false", "enabled = true"),
        ("hybrid.top_k", "2", "pipeline = 'document'"),
        ("memories.enabled", "false", memories),
        ("memories.user", "'CONFIG/other.md'", memories),
        ("memories.project", "'.codecompanion/other.md'", memories),
        ("team.enabled", "true", "team = { file = 'team.md' }"),
        ("team.file", "'app.py'", "team = { enabled = true, file = 'team.md' }"),
        ("team.command", "{ 'echo', 'The standup is at ten.' }", "team = { enabled = true, file = 'team.md' }"),
    ):
        yield Row(f"context.{option}", value, host.gathered, around(more))


def _of_meaning() -> Iterator[Row]:
    def around(embedding: str, hybrid: str) -> str:
        at = "pipeline = 'document', utility = 'loop', timeout = 60000"
        context = f"{at}, embedding = {{ {embedding} }}, hybrid = {{ {hybrid} }}"
        return loop(f"context = {{ {context} }}, opts = {{ log_level = 'ERROR' }}")

    served = "url = 'EMBED_URL', model = 'test-embedding'"
    for option, value, embedding in (
        ("url", "'EMBED_URL'", "model = 'test-embedding'"),
        ("model", "'another'", served),
        ("key", "'OTHER_KEY'", f"{served}, key = 'EMBED_KEY'"),
        ("dimensions", "16", served),
        ("query_prefix", "'question: '", served),
        ("document_prefix", "'code: '", served),
        ("onnx", "'CONFIG/model'", ""),
    ):
        yield Row(f"context.embedding.{option}", value, found_by_meaning, around(embedding, "top_k = 2"))
    yield Row("context.timeout", "100", found_by_meaning, around(served, "top_k = 2"))
    for option, value, hybrid in (
        ("vector_weight", "0", ""),
        ("text_weight", "1", ""),
        ("mmr.enabled", "true", ""),
        ("mmr.lambda", "1", "mmr = { enabled = true }"),
        ("decay.enabled", "true", ""),
        ("decay.half_life_days", "365", "decay = { enabled = true, half_life_days = 1 }"),
    ):
        yield Row(
            f"context.hybrid.{option}", value, found_by_meaning, around(served, f"top_k = 2{hybrid and f', {hybrid}'}")
        )


def _of_servers() -> Iterator[Row]:
    command = "cmd = { 'PYTHON', 'PROPER' }"

    def around(more: str = "", of_all: str = "") -> str:
        return loop(f"mcp = {{ servers = {{ mine = {{ {command}, {more} }} }}, {of_all} }}")

    for option, value in (
        ("enabled", "false"),
        ("servers.mine.enabled", "false"),
        ("servers.mine.cmd", "{ 'PYTHON', '-c', '' }"),
        ("servers.mine.require_approval_before", "false"),
    ):
        yield Row(f"mcp.{option}", value, host.served, around())
