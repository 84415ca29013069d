---The built-in adapters, as data: complete entries in the shape of `AdapterSettings`
---(python/codecompanion/adapters/base.py).

---@class CodeCompanion.AdapterSettings
---@field name string
---@field kind "openai"|"openai_compatible"|"offline"
---@field formatted_name string What headers and pickers show
---@field base_url string
---@field chat_path string
---@field models_path string
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

---@param overrides table<string, any>
---@return CodeCompanion.AdapterSettings
local function entry(overrides)
  return vim.tbl_extend("force", {
    formatted_name = "",
    base_url = "",
    chat_path = "/chat/completions",
    models_path = "/models",
    key = "",
    key_header = "",
    model = "",
    models = {},
    headers = vim.empty_dict(),
    parameters = vim.empty_dict(),
    context_window = 0,
    max_output_tokens = 0,
    max_tokens_field = "max_completion_tokens",
    include_usage = true,
    parallel_tool_calls = vim.NIL,
    timeout_s = 600,
    connect_timeout_s = 10,
    idle_timeout_s = 120,
    max_retries = 3,
    proxy = "",
    options = vim.empty_dict(),
  }, overrides)
end

---@type table<string, CodeCompanion.AdapterSettings>
return {
  openai = entry({
    name = "openai",
    kind = "openai",
    formatted_name = "OpenAI",
    base_url = "https://api.openai.com/v1",
    key = "OPENAI_API_KEY",
    model = "gpt-4.1",
  }),
  openai_compatible = entry({
    name = "openai_compatible",
    kind = "openai_compatible",
    formatted_name = "OpenAI compatible",
    base_url = "http://localhost:11434/v1",
    max_tokens_field = "max_tokens",
  }),
  offline = entry({ name = "offline", kind = "offline", formatted_name = "Offline", model = "offline" }),
}
