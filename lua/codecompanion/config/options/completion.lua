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
      local text = "%s = %s; expected names of filetypes with true or false: { markdown = false }"
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
  local text = "expected texts by name: { prefix = …, suffix = …, middle = …, eot = … }"
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

local NO_KEY_PLACE = "is not the name of an environment variable; keys do not belong in a configuration: expected a"
  .. ' name in capitals, "cmd:…" or "file:…"'

---Check the source of a key. The text is not shown, because it may be a key.
---@param value string
---@return string? problem
---@return string? normalised
local function check_key_place(value)
  if value:match("^[%u_][%u%d_]*$") or value:match("^cmd:.") or value:match("^file:.") then
    return nil, value
  end
  return NO_KEY_PLACE
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
  return "an address begins with http:// or https://"
end

return {
  {
    name = "enabled",
    type = "boolean",
    default = false,
    description = "Suggest code at the cursor. `:CodeCompanion complete on` and `off` switch it for this session.",
  },
  {
    name = "endpoint",
    type = "string",
    enum = { "ollama", "llamacpp", "completions", "mistral", "deepseek", "chat" },
    default = "ollama",
    description = "API of the server: `ollama` (/api/generate), `llamacpp` (/infill), `completions`"
      .. " (/v1/completions of vLLM, llama.cpp, LM Studio …, with the model's own tokens), `mistral`"
      .. " (/v1/fim/completions, Codestral), `deepseek` (/beta/completions), or `chat`: a chat model is asked to"
      .. " fill the gap: slower and worse.",
  },
  {
    name = "url",
    type = "string",
    optional = true,
    check = check_url,
    description = "Address of the server without the path; `host:port` is http. By default the usual server of the"
      .. " endpoint: this machine for `ollama`, `llamacpp` and `completions`, the provider for `mistral` and"
      .. " `deepseek`.",
  },
  {
    name = "adapter",
    type = "string",
    optional = true,
    description = "Adapter of `adapters.http` whose address and key are used, unless `url` and `api_key` say"
      .. " otherwise.",
  },
  {
    name = "api_key",
    type = "string",
    optional = true,
    check = check_key_place,
    description = 'Location of the key: the name of an environment variable, "cmd:…" or "file:…". Your own servers'
      .. " need none.",
  },
  {
    name = "model",
    type = "string",
    default = "qwen2.5-coder",
    description = "Model of the suggestions. It must be one that fills in the middle: Qwen Coder, DeepSeek Coder,"
      .. " CodeLlama, StarCoder, Codestral. Others continue the text before the cursor.",
  },
  {
    name = "family",
    type = "string",
    optional = true,
    description = "Tokens that mark prefix, suffix and middle: `qwen`, `deepseek`, `deepseek-ascii`, `starcoder`,"
      .. " `codestral`, `codellama` or `plain` (none). By default it follows from the model's name.",
  },
  {
    name = "tokens",
    type = "table",
    default = {},
    check = check_tokens,
    description = "Tokens of an unknown family: { prefix = …, suffix = …, middle = …, eot = … }, as documented on"
      .. " the model's page. They override `family`.",
  },
  {
    name = "max_tokens",
    type = "integer",
    min = 1,
    default = 128,
    description = "Maximum length of a suggestion, in tokens.",
  },
  {
    name = "temperature",
    type = "number",
    min = 0,
    default = 0.1,
    description = "Randomness of the suggestions; 0 is none.",
  },
  {
    name = "multi_line",
    type = "boolean",
    default = true,
    description = "Suggest several lines. False ends every suggestion after its first line.",
  },
  {
    name = "project",
    type = "boolean",
    default = true,
    description = "Include signatures and similar code of other files of the project, from its code index. False"
      .. " sends only the current file.",
  },
  {
    name = "timeout",
    type = "integer",
    min = 100,
    default = 10000,
    description = "How long to wait for the server, in milliseconds; then there is no suggestion.",
  },
  {
    name = "trigger",
    type = "string",
    enum = { "automatic", "manual" },
    default = "automatic",
    description = "`automatic` asks when you pause, `manual` only with `:CodeCompanionComplete` or its mapping.",
  },
  {
    name = "debounce",
    type = "integer",
    min = 50,
    default = 300,
    description = "Length of the pause before the server is asked, in milliseconds.",
  },
  {
    name = "adaptive",
    type = "boolean",
    default = true,
    description = "Adapt the pause to how fast the server answers and how fast you type, between half of `debounce`"
      .. " (but at least 50 ms) and twice as long. False always waits exactly `debounce`.",
  },
  {
    name = "display",
    type = "string",
    enum = { "ghost", "lsp", "none" },
    default = "ghost",
    description = "Display of suggestions: `ghost` by this plugin, at the cursor; `lsp` by Neovim's own"
      .. " `vim.lsp.inline_completion` (0.12); `none` only in the sources for completion menus.",
  },
  {
    name = "filetypes",
    type = "table",
    default = { ["*"] = true, gitcommit = false, gitrebase = false, help = false, hgcommit = false },
    check = check_filetypes,
    description = "Where to suggest: filetypes with true or false; `*` is all the others.",
  },
  {
    name = "max_file_size_mb",
    type = "number",
    min = 0,
    default = 1,
    description = "Suggest nothing in larger files, in megabytes.",
  },
  {
    name = "keymaps",
    description = "Keys in insert mode, none by default. Without a suggestion a key keeps its previous function."
      .. " Instead you can map |codecompanion-complete-plug|.",
    fields = {
      key("accept", "Insert the whole suggestion."),
      key("accept_line", "Insert its next line."),
      key("accept_word", "Insert its next word."),
      key("next", "Show the next suggestion; asks for more after the last one."),
      key("previous", "Show the previous suggestion."),
      key("dismiss", "Dismiss the suggestion."),
      key("complete", "Ask for suggestions now, with or without one on the screen."),
    },
  },
}
