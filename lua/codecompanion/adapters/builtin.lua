---The built-in adapters, as data: complete entries in the shape of `AdapterSettings`
---(python/codecompanion/adapters/base.py). Endpoints that speak Chat Completions too are in `endpoints.lua`.

---@class CodeCompanion.AdapterSettings
---@field name string
---@field kind "openai"|"openai_compatible"|"openai_responses"|"anthropic"|"offline"
---@field formatted_name string What headers and pickers show
---@field base_url string
---@field chat_path string "" = the wire format's own
---@field models_path string "" = the wire format's own
---@field limits_path string Where the server tells the windows of its models; "" = not asked
---@field key string Where the key is: ENV_NAME, `cmd:…`, `file:…`, "function" or "" for none
---@field key_header string The header the key is sent in, bare; "" = the wire format's own
---@field model string "" = the first the endpoint lists
---@field models string[]
---@field headers table<string, string>
---@field parameters table<string, any>
---@field context_window integer 0 = unknown
---@field max_output_tokens integer 0 = the provider's default
---@field max_tokens_field string
---@field include_usage boolean
---@field parallel_tool_calls boolean|vim.NIL vim.NIL = the provider's default
---@field timeout_s number
---@field connect_timeout_s number
---@field idle_timeout_s number
---@field max_retries integer
---@field proxy string
---@field options table<string, any>

---@class CodeCompanion.BuiltinAdapter: CodeCompanion.AdapterSettings
---@field about string For the help file
---@field entry? CodeCompanion.AdapterEntry A first layer below the user's, for what depends on the environment

---@param name string
---@param overrides table<string, any>
---@return CodeCompanion.BuiltinAdapter
local function entry(name, overrides)
  return vim.tbl_extend("force", {
    name = name,
    kind = "openai_compatible",
    formatted_name = "",
    base_url = "",
    chat_path = "/chat/completions",
    models_path = "/models",
    limits_path = "",
    key = "",
    key_header = "",
    model = "",
    models = {},
    headers = vim.empty_dict(),
    parameters = vim.empty_dict(),
    context_window = 0,
    max_output_tokens = 0,
    max_tokens_field = "max_tokens",
    include_usage = true,
    parallel_tool_calls = vim.NIL,
    timeout_s = 0,
    connect_timeout_s = 10,
    idle_timeout_s = 0,
    max_retries = 3,
    proxy = "",
    options = vim.empty_dict(),
  }, overrides)
end

---@type table<string, CodeCompanion.BuiltinAdapter>
local adapters = {
  openai = entry("openai", {
    kind = "openai",
    formatted_name = "OpenAI",
    base_url = "https://api.openai.com/v1",
    key = "OPENAI_API_KEY",
    model = "gpt-4.1",
    max_tokens_field = "max_completion_tokens",
    options = { document_input = true },
    about = "The OpenAI Chat Completions API. Key: environment variable OPENAI_API_KEY.",
  }),
  openai_responses = entry("openai_responses", {
    kind = "openai_responses",
    formatted_name = "OpenAI Responses",
    base_url = "https://api.openai.com/v1",
    chat_path = "",
    models_path = "",
    key = "OPENAI_API_KEY",
    model = "gpt-5.1",
    about = "The OpenAI Responses API, which compacts by itself. Key: environment variable OPENAI_API_KEY.",
  }),
  anthropic = entry("anthropic", {
    kind = "anthropic",
    formatted_name = "Anthropic",
    base_url = "https://api.anthropic.com",
    chat_path = "",
    models_path = "",
    key = "ANTHROPIC_API_KEY",
    model = "claude-sonnet-5",
    about = "The Anthropic Messages API, which compacts by itself. Key: environment variable ANTHROPIC_API_KEY.",
  }),
  openai_compatible = entry("openai_compatible", {
    formatted_name = "OpenAI compatible",
    base_url = "http://localhost:11434/v1",
    limits_path = "/models",
    options = { one_system_message = true },
    about = "Any other endpoint that speaks Chat Completions.",
  }),
  offline = entry("offline", {
    kind = "offline",
    formatted_name = "Offline",
    model = "offline",
    about = "Embedded: no network, no key. For trying things out and for tests.",
  }),
}
for name, endpoint in pairs(require("codecompanion.adapters.endpoints")) do
  adapters[name] = entry(name, endpoint)
end
return adapters
