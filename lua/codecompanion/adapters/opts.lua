---What an adapter's `opts` may hold, and where each goes in `AdapterSettings`. The help file lists them from here.

---@class CodeCompanion.AdapterOpt
---@field field string Field of AdapterSettings, or of its `options`
---@field option? boolean It belongs into `options`
---@field type string|string[] Of integer, boolean, string, strings (a list) and table; any of several
---@field fields? table<string, CodeCompanion.AdapterOpt> Of a table
---@field milliseconds? boolean Given in milliseconds, sent in seconds
---@field min? integer
---@field enum? string[]
---@field kinds? string[] Kinds of adapters it means something to; all that use the network when nil
---@field description string

local CHAT = { "openai", "openai_compatible" }
local COMPACTING = { "openai_responses", "anthropic" }

---@type table<string, CodeCompanion.AdapterOpt>
return {
  compaction = {
    field = "compaction",
    option = true,
    type = "boolean",
    kinds = COMPACTING,
    description = "Let the provider compact the chat (true, on `anthropic` for the models that can); false leaves it to"
      .. " the plugin's own compaction.",
  },
  compaction_instructions = {
    field = "compaction_instructions",
    option = true,
    type = "string",
    kinds = { "anthropic" },
    description = "Prompt for the provider's compaction, instead of its own (" .. '"" = its own).',
  },
  pause_after_compaction = {
    field = "pause_after_compaction",
    option = true,
    type = "boolean",
    kinds = { "anthropic" },
    description = "Let the provider stop after its compaction; the request is then resent at once (false).",
  },
  clear_tool_uses = {
    field = "clear_tool_uses",
    option = true,
    type = { "boolean", "table" },
    kinds = { "anthropic" },
    fields = {
      trigger = { field = "trigger", type = "integer", description = "From how many input tokens on (100000)." },
      keep = { field = "keep", type = "integer", description = "How many tool uses stay (3)." },
      exclude_tools = { field = "exclude_tools", type = "strings", description = 'Never cleared ({ "memory" }).' },
      clear_at_least = { field = "clear_at_least", type = "integer", description = "Fewest tokens worth it (0)." },
    },
    description = "Let the provider clear old tool results too (false): true, or a table with `trigger` (100000 input"
      .. ' tokens), `keep` (3 tool uses), `exclude_tools` ({ "memory" }) and `clear_at_least` (0 tokens).',
  },
  cache = {
    field = "cache",
    option = true,
    type = "boolean",
    kinds = { "anthropic" },
    description = "Set the marks that the provider needs to cache prompts (true).",
  },
  cache_ttl = {
    field = "cache_ttl",
    option = true,
    type = "string",
    enum = { "5m", "1h" },
    kinds = { "anthropic" },
    description = 'How long the provider keeps a cached prompt ("5m").',
  },
  reasoning_summary = {
    field = "reasoning_summary",
    option = true,
    type = "string",
    enum = { "auto", "concise", "detailed", "none" },
    kinds = { "openai_responses" },
    description = 'The summary of the model\'s reasoning to ask for ("auto").',
  },
  prompt_cache_key = {
    field = "prompt_cache_key",
    option = true,
    type = "boolean",
    kinds = { "openai_responses" },
    description = "Name the chat to the provider's prompt cache (true).",
  },
  chunk_chars = {
    field = "chunk_chars",
    option = true,
    type = "integer",
    min = 1,
    kinds = { "offline" },
    description = "Characters in one piece of a reply (24).",
  },
  timeout = {
    field = "timeout_s",
    type = "integer",
    min = 1,
    milliseconds = true,
    description = "The longest a whole reply may take, in milliseconds; no limit when not set.",
  },
  connect_timeout = {
    field = "connect_timeout_s",
    type = "integer",
    min = 1,
    milliseconds = true,
    description = "The longest connecting may take, in milliseconds (10000).",
  },
  idle_timeout = {
    field = "idle_timeout_s",
    type = "integer",
    min = 1,
    milliseconds = true,
    description = "The longest silence before and within a reply, in milliseconds. When not set: none for this machine,"
      .. " 30 minutes in a private network, else 10 minutes and more for a long prompt.",
  },
  max_retries = {
    field = "max_retries",
    type = "integer",
    description = "How often a request that failed for a passing reason is sent again (3).",
  },
  include_usage = {
    field = "include_usage",
    type = "boolean",
    kinds = CHAT,
    description = "Ask the endpoint to report token counts (true).",
  },
  parallel_tool_calls = {
    field = "parallel_tool_calls",
    type = "boolean",
    description = "Allow or forbid several tool calls in one reply; not sent when not set.",
  },
  context_window = {
    field = "context_window",
    type = "tokens",
    kinds = { "openai", "openai_compatible", "openai_responses", "anthropic", "offline" },
    description = "Window of the models of the endpoint, in tokens; `models.<name>.context_window` comes first.",
  },
  max_output_tokens = {
    field = "max_output_tokens",
    type = "tokens",
    description = "The longest reply to ask for, in tokens; not sent when not set.",
  },
  vision = {
    field = "image_input",
    option = true,
    type = "boolean",
    description = "Whether the models take images; false sends a note instead (true).",
  },
  documents = {
    field = "document_input",
    option = true,
    type = "boolean",
    description = "Whether the models take PDFs; false sends a note instead (true for `anthropic`, `openai_responses`,"
      .. " `openai` and `openrouter`).",
  },
  send_reasoning = {
    field = "send_reasoning",
    option = true,
    type = { "boolean", "string" },
    enum = { "tool_turns" },
    kinds = { "openai", "openai_compatible", "openai_responses" },
    description = "Give a model's reasoning back to it in later requests: never, always, or in turns that called tools"
      .. ' (false; "tool_turns" for `ollama`, `llama_cpp`, `vllm`, `deepseek` and `kimi`; true for'
      .. " `openai_responses`).",
  },
  reasoning_field = {
    field = "reasoning_field",
    option = true,
    type = "string",
    enum = { "", "reasoning_content", "reasoning" },
    kinds = CHAT,
    description = 'The field reasoning is given back in; the one it came in when empty ("").',
  },
  short_call_ids = {
    field = "short_call_ids",
    option = true,
    type = "boolean",
    kinds = CHAT,
    description = "Send tool call ids of nine letters and digits, as Mistral insists (false; true for `mistral`).",
  },
  system_role = {
    field = "system_role",
    option = true,
    type = "string",
    enum = { "system", "developer" },
    kinds = CHAT,
    description = 'The role the system prompt is sent in ("system").',
  },
  one_system_message = {
    field = "one_system_message",
    option = true,
    type = "boolean",
    kinds = CHAT,
    description = "Send a summary that is a system message as a message of the user, for endpoints that take one system"
      .. " message only (false; true for `gemini`, `mistral`, local servers and `openai_compatible`).",
  },
  playback = {
    field = "playback",
    option = true,
    type = "string",
    kinds = { "offline" },
    description = "A transcript (JSON Lines) to play back as the model's side and its tools' results.",
  },
  delay_ms = {
    field = "delay_ms",
    option = true,
    type = "integer",
    kinds = { "offline" },
    description = "A pause before each piece of a reply, in milliseconds (0): to watch streaming.",
  },
}
