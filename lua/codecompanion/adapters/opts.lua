---What an adapter's `opts` may hold, and where each goes in `AdapterSettings`. The help file lists them from here.

---@class CodeCompanion.AdapterOpt
---@field field string Field of AdapterSettings, or of its `options`
---@field option? boolean It belongs into `options`
---@field type "integer"|"boolean"|"string"
---@field milliseconds? boolean Given in milliseconds, sent in seconds
---@field min? integer
---@field enum? string[]
---@field kinds? string[] Kinds of adapters it means something to; all that use the network when nil
---@field description string

---@type table<string, CodeCompanion.AdapterOpt>
return {
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
    description = "The longest a whole reply may take, in milliseconds (600000).",
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
    description = "The longest silence in a reply, in milliseconds (120000).",
  },
  max_retries = {
    field = "max_retries",
    type = "integer",
    description = "How often a request that failed for a passing reason is sent again (3).",
  },
  include_usage = {
    field = "include_usage",
    type = "boolean",
    description = "Ask the endpoint to report token counts (true).",
  },
  parallel_tool_calls = {
    field = "parallel_tool_calls",
    type = "boolean",
    description = "Allow or forbid several tool calls in one reply; not sent when not set.",
  },
  context_window = {
    field = "context_window",
    type = "integer",
    min = 1,
    kinds = { "openai", "openai_compatible", "offline" },
    description = "Window of the models of the endpoint, in tokens; `models.<name>.context_window` comes first.",
  },
  max_output_tokens = {
    field = "max_output_tokens",
    type = "integer",
    min = 1,
    description = "The longest reply to ask for, in tokens; not sent when not set.",
  },
  vision = {
    field = "image_input",
    option = true,
    type = "boolean",
    description = "Whether the models take images; false sends a note instead (true).",
  },
  send_reasoning = {
    field = "send_reasoning",
    option = true,
    type = "boolean",
    description = "Give a model's reasoning back to it in later requests (false).",
  },
  short_call_ids = {
    field = "short_call_ids",
    option = true,
    type = "boolean",
    description = "Send tool call ids of nine letters and digits, which Mistral insists on (false).",
  },
  system_role = {
    field = "system_role",
    option = true,
    type = "string",
    enum = { "system", "developer" },
    description = 'The role the system prompt is sent in ("system").',
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
