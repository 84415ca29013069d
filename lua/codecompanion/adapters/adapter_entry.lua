---Turns an entry of `adapters.http` into the settings sent to the host: merges its layers, calls its functions and
---drops unsupported keys. The host decides what an entry means (addresses, headers, parameters, options):
---`python/codecompanion/adapters/entries/resolve.py`.

local builtin = require("codecompanion.adapters.builtin_adapters")
local key_source = require("codecompanion.values.key_source")
local layering = require("codecompanion.adapters.entry_layers")
local plain = require("codecompanion.values.plain")
local sorted = require("codecompanion.values.sorted")

---@class CodeCompanion.AdapterSettings The settings of an adapter that the editor itself needs
---@field name string
---@field kind "openai"|"openai_compatible"|"openai_responses"|"anthropic"|"copilot"|"chatgpt"|"offline"
---@field formatted_name string
---@field key string Source of the key: ENV_NAME, `cmd:…`, `file:…`, "function", or "" for none; `literal:…` is refused
---@field model string "" = the first model the endpoint lists
---@field address string As written in the entry
---@field transport string `opts.transport`
---@field client string `opts.client`, "" = none

---@class CodeCompanion.Resolving
---@field name string
---@field path string Key path of the entry
---@field http table `adapters.http` of the options
---@field problems string[]
---@field foreign string[] Keys of codecompanion.nvim that have no effect here
---@field entry CodeCompanion.AdapterEntry All layers merged
---@field settings? CodeCompanion.AdapterSettings nil when the adapter cannot be used at all
---@field told? table Settings sent to the host; nil for a built-in adapter without any settings of its own
---@field key_function? fun(adapter: table): string
local Resolving = {}
Resolving.__index = Resolving

---@param key string
---@param text string
function Resolving:problem(key, text)
  table.insert(self.problems, ("%s%s: %s"):format(self.path, key ~= "" and "." .. key or "", text))
end

---@param value any
---@param ... any Arguments, if `value` is a function
---@return boolean ok
---@return any result
local function evaluate(value, ...)
  if type(value) ~= "function" then
    return true, value
  end
  return pcall(value, ...)
end

---Return the value of `env.<key>`: a function's result, an environment variable's value, or the text itself.
---@param key string
---@return string?
function Resolving:env(key)
  local ok, value = evaluate((self.entry.env or {})[key], self.entry)
  if not ok then
    self:problem("env." .. key, ("the function failed: %s"):format(value))
    return nil
  end
  if value == nil then
    return nil
  end
  if type(value) ~= "string" then
    self:problem("env." .. key, ("got %s; expected a string"):format(type(value)))
    return nil
  end
  if value:match("^cmd:") or value:match("^file:") then
    self:problem("env." .. key, "only env.api_key may be read from a command or a file")
    return nil
  end
  if value:match("^schema%.") then
    local found = vim.tbl_get(self.entry, unpack(vim.split(value, ".", { plain = true })))
    return type(found) == "string" and found or nil
  end
  if value:match("^[%a_][%w_]*$") then
    return vim.env[value] or value
  end
  return value
end

---Number of bytes of a possible key that are shown: enough to find it in a configuration.
local SHOWN_OF_LITERAL = 3
---Return the problem with an entry that contains the key itself, which must not be shown.
---@param name string Name of the adapter
---@return string
local function key_advice(name)
  local own = name:upper():gsub("[^%w]+", "_"):gsub("^[%d_]+", "")
  local text = "expected an environment variable, not the key itself: set %s in your shell, and write"
    .. ' api_key = "$%s" ("cmd:…", "file:…" and functions work too)'
  own = (own ~= "" and own or "MY") .. "_API_KEY"
  return text:format(own, own)
end

---@param place string Source of the built-in adapter's key
---@return string place Source of this entry's key
function Resolving:key_place(place)
  local key = (self.entry.env or {}).api_key
  if type(key) == "function" then
    self.key_function = key
    return "function"
  elseif key == nil then
    return place
  elseif type(key) ~= "string" then
    self:problem("env.api_key", ("got %s; expected a string or a function"):format(type(key)))
    return place
  end
  local source = key_source.of(key)
  if source then
    return source
  end
  self:problem("env.api_key", key_advice(self.name))
  return "literal:" .. key:sub(1, SHOWN_OF_LITERAL):gsub("[^%w_-]", "")
end

---Return the names in `env` that the host needs: referenced ones, without the key.
---@return string[]
function Resolving:needed_env()
  local needed = {}
  for _, name in ipairs({ "url", "chat_url", "models_endpoint", "limits_endpoint" }) do
    needed[name] = (self.entry.env or {})[name] ~= nil or nil
  end
  for _, text in ipairs(vim.list_extend({ self.entry.url }, vim.tbl_values(self.entry.headers or {}))) do
    for name in tostring(text):gmatch("%${([%w_]+)}") do
      needed[name] = true
    end
  end
  needed.api_key = nil
  return vim.tbl_keys(needed)
end

---Return the models of `schema.model.choices`: a list of names, a table keyed by name, or a mix of both.
---@param choices any
---@return table[]? models
function Resolving:models(choices)
  local ok, value = evaluate(choices, self.entry)
  if not ok or (value ~= nil and type(value) ~= "table") then
    self:problem("schema.model.choices", ok and "expected a table" or ("the function failed: %s"):format(value))
    return nil
  end
  local models = {}
  for key, choice in sorted(value or {}) do
    local name = type(key) == "number" and choice or key
    local window = type(choice) == "table" and vim.tbl_get(choice, "meta", "context_window") or nil
    models[#models + 1] = { name = name, context_window = window }
  end
  return models
end

---Return `schema` with its functions called.
---@return table<string, any>
function Resolving:answered_schema()
  local schema = {}
  for name, parameter in sorted(self.entry.schema or {}) do
    if type(parameter) == "table" then
      local answered = vim.tbl_map(function(value)
        return type(value) == "function" and true or value -- `condition` and other functions have no effect here
      end, parameter)
      for _, key in ipairs({ "enabled", "default" }) do
        local ok, value = evaluate(parameter[key], self.entry)
        answered[key] = ok and value
        if not ok then
          self:problem("schema." .. name, ("a function failed: %s"):format(value))
          answered.enabled, answered.default = nil, nil
          break
        end
      end
      if name == "model" and parameter.choices ~= nil then
        answered.choices = self:models(parameter.choices)
      end
      schema[name] = answered
    else
      schema[name] = parameter
    end
  end
  return schema
end

---Return the table without values that cannot be sent.
---@param part string Key path below the entry, including its dot
---@param given? table
---@return table<string, any>
function Resolving:plain(part, given)
  local kept = vim.empty_dict()
  for name, value in sorted(given or {}) do
    local wrong = type(name) ~= "string" and "list items and named keys are mixed; expected named keys"
    wrong = wrong or not plain.is_utf8(name) and "a name in it is not UTF-8 text"
    local problem = wrong and ("%s%s: %s"):format(self.path, part, wrong)
      or plain.problem(value, ("%s%s.%s"):format(self.path, part, name))
    if problem then
      table.insert(self.problems, problem)
    else
      kept[name] = value
    end
  end
  return kept
end

---Build the settings that are sent to the host.
---@param builtin_name string
function Resolving:tell(builtin_name)
  local entry, env = self.entry, {}
  for _, name in ipairs(self:needed_env()) do
    env[name] = self:env(name)
  end
  local texts = self:plain("", { formatted_name = entry.formatted_name, url = entry.url })
  self.told = {
    builtin = builtin_name,
    formatted_name = texts.formatted_name,
    url = texts.url,
    key = self.settings.key,
    env = self:plain(".env", env),
    headers = self:plain(".headers", entry.headers),
    parameters = self:plain(".parameters", entry.parameters),
    schema = self:plain(".schema", self:answered_schema()),
    opts = self:plain(".opts", entry.opts),
  }
  local model = vim.tbl_get(self.told.schema, "model", "default")
  self.settings.model = type(model) == "string" and model or self.settings.model
  self.settings.address = env.url or (texts.url or self.settings.address):gsub("%${([%w_]+)}", env)
end

local M = {}
M.no_such_adapter = layering.no_such_adapter
M.names = layering.names

---@param name string
---@param http table `adapters.http` of the options
---@return CodeCompanion.Resolving resolved `settings` is nil when the entry cannot be used at all
function M.resolve(name, http)
  local self = setmetatable({
    name = name,
    path = "adapters.http." .. name,
    http = http,
    problems = {},
    foreign = {},
    entry = {},
  }, Resolving)
  local builtin_name, layers = layering.collect(self, name, {})
  if not builtin_name then
    return self
  end
  local override = (http.extend or {})[name]
  if override ~= nil and type(override) ~= "table" then
    table.insert(self.problems, ("adapters.http.extend.%s: got %s; expected a table"):format(name, type(override)))
  elseif override then
    local layer = plain.copy(override) or {}
    self.path = "adapters.http.extend." .. name
    layering.check_keys(self, layer)
    self.path = "adapters.http." .. name
    layers[#layers + 1] = layer
  end
  local base = builtin[builtin_name]
  self.entry = vim.tbl_deep_extend("force", {}, base.entry or {}, unpack(layers))
  self.settings = {
    name = name,
    kind = base.kind,
    formatted_name = self.entry.formatted_name or (builtin[name] or {}).formatted_name or name,
    key = self:key_place(base.key),
    model = base.model,
    address = vim.env[base.address_variable or ""] or base.base_url,
    transport = vim.tbl_get(self.entry, "opts", "transport") or base.transport,
    client = vim.tbl_get(self.entry, "opts", "client") or base.client,
  }
  if self.settings.client ~= "" and self.settings.key == base.key then
    self.settings.key = "" -- a cloud cannot use a key for the provider's own address
  end
  if #layers > 0 then
    self:tell(builtin_name)
  end
  return self
end

return M
