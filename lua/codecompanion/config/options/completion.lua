---Options of completion at the cursor: `completion` (R-261, R-262). The host knows the endpoints and model families
---(python/codecompanion/adapters/completion, python/codecompanion/completion/families.toml).

---@param name string
---@param description string
---@return CodeCompanion.Option
local function key(name, description)
  return {
    name = name,
    type = { "string", "list" },
    items = { type = "string" },
    optional = true,
    description = description,
  }
end

---@param value table<any, any>
---@return string? problem
---@return table<string, boolean>? normalised
local function check_filetypes(value)
  for filetype, wanted in pairs(value) do
    if type(filetype) ~= "string" or type(wanted) ~= "boolean" then
      local text = "%s = %s; expected filetypes with true or false: { markdown = false }"
      return text:format(tostring(filetype), tostring(wanted))
    end
  end
  return nil, value
end

local TOKENS = { prefix = true, suffix = true, middle = true, eot = true }

---@param value table<any, any>
---@return string? problem
---@return table<string, string>? normalised
local function check_tokens(value)
  local text = "expected strings by name: { prefix = …, suffix = …, middle = …, eot = … }"
  for name, token in pairs(value) do
    if not TOKENS[name] or type(token) ~= "string" or token == "" then
      return ("%s = %s; %s"):format(tostring(name), tostring(token), text)
    end
  end
  for name in pairs(TOKENS) do
    if next(value) ~= nil and not value[name] then
      return ("%s is missing; %s"):format(name, text)
    end
  end
  return nil, value
end

---@param value string
---@return string? problem
---@return string? normalised
local function check_url(value)
  if value:match("^https?://.") then
    return nil, value
  elseif value:match("^[%w._-]+:%d+$") or value:match("^[%w._-]+:%d+/%S*$") or value:match("^%[[%x:]+%]:%d+") then
    return nil, "http://" .. value
  end
  return "expected an address that begins with http:// or https://"
end

return {
  {
    name = "enabled",
    type = "boolean",
    default = false,
    description = "Suggest code at the cursor. `:CodeCompanion complete on` and `off` apply to this session.",
  },
  {
    name = "endpoint",
    type = "string",
    enum = { "ollama", "llamacpp", "completions", "mistral", "deepseek", "chat" },
    default = "ollama",
    description = "Protocol of the server, see |codecompanion-complete-servers|; `chat` is slower and less accurate.",
  },
  {
    name = "url",
    type = "string",
    optional = true,
    check = check_url,
    description = "Address without the path; by default the endpoint's.",
  },
  {
    name = "adapter",
    type = "string",
    optional = true,
    description = "Adapter whose address and key are used.",
  },
  {
    name = "api_key",
    type = "string",
    optional = true,
    check = require("codecompanion.values.key_source").check,
    description = "Source of the API key, see |codecompanion-keys|.",
  },
  {
    name = "model",
    type = "string",
    default = "qwen2.5-coder",
    description = "Fill-in-the-middle model: Qwen Coder, DeepSeek Coder, CodeLlama, StarCoder, Codestral.",
  },
  {
    name = "family",
    type = "string",
    optional = true,
    description = "Model family, which determines the tokens: `qwen`, `deepseek`, `deepseek-ascii`, `starcoder`,"
      .. " `codestral`, `codellama`, `plain`; by default from the model's name.",
  },
  {
    name = "tokens",
    type = "table",
    default = {},
    check = check_tokens,
    description = "Tokens for an unknown family: { prefix = …, suffix = …, middle = …, eot = … }.",
  },
  {
    name = "max_tokens",
    type = "integer",
    min = 1,
    default = 128,
    description = "Maximum tokens in a suggestion.",
  },
  {
    name = "temperature",
    type = "number",
    min = 0,
    default = 0.1,
    description = "Sampling temperature; 0 = deterministic.",
  },
  {
    name = "multi_line",
    type = "boolean",
    default = true,
    description = "Suggest several lines.",
  },
  {
    name = "project",
    type = "boolean",
    default = true,
    description = "Send signatures and similar code from other files; false sends only the current file.",
  },
  {
    name = "timeout",
    type = "integer",
    min = 100,
    default = 10000,
    description = "Time limit for a suggestion.",
  },
  {
    name = "trigger",
    type = "string",
    enum = { "automatic", "manual" },
    default = "automatic",
    description = "`automatic` suggests when you pause, `manual` on `:CodeCompanionComplete` or its mapping.",
  },
  {
    name = "debounce",
    type = "integer",
    min = 50,
    default = 300,
    description = "Pause in typing before a request.",
  },
  {
    name = "adaptive",
    type = "boolean",
    default = true,
    description = "Adapt the pause to the server and your typing, from half of `debounce` to twice.",
  },
  {
    name = "display",
    type = "string",
    enum = { "ghost", "lsp", "none" },
    default = "ghost",
    description = "`ghost`: ghost text; `lsp`: through Neovim 0.12; `none`: only completion menus.",
  },
  {
    name = "filetypes",
    type = "table",
    default = { ["*"] = true, gitcommit = false, gitrebase = false, help = false, hgcommit = false },
    check = check_filetypes,
    description = "Filetypes with suggestions; `*` is all others.",
  },
  {
    name = "max_file_size_mb",
    type = "number",
    min = 0,
    default = 1,
    description = "Maximum file size for suggestions, in megabytes.",
  },
  {
    name = "keymaps",
    description = "Insert mode keys, none by default, see |codecompanion-complete-plug|.",
    fields = {
      key("accept", "Insert the whole suggestion."),
      key("accept_line", "Insert the next line of the suggestion."),
      key("accept_word", "Insert the next word of the suggestion."),
      key("next", "Show the next suggestion, and request more."),
      key("previous", "Show the previous suggestion."),
      key("dismiss", "Hide the suggestion."),
      key("complete", "Request suggestions now."),
    },
  },
}
