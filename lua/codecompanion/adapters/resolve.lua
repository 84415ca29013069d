---From an entry of `adapters.http` to the settings the host gets: inheritance, CodeCompanion's shapes, checks.

local nearest = require("codecompanion.config.nearest")
local sorted = require("codecompanion.config.sorted")

---@class CodeCompanion.AdapterEntry
---@field extends? string
---@field name? string Accepted for entries written for codecompanion.nvim; the key in the configuration counts
---@field formatted_name? string
---@field url? string
---@field env? table<string, string|function>
---@field headers? table<string, string>
---@field parameters? table<string, any>
---@field schema? table<string, table>
---@field opts? table<string, any>

local ENTRY_KEYS = { "extends", "name", "formatted_name", "url", "env", "headers", "parameters", "schema", "opts" }
local FOREIGN_KEYS = {
  available_tools = true,
  body = true,
  features = true,
  handlers = true,
  methods = true,
  raw = true,
  roles = true,
  type = true,
  vendor = true,
}
local SCHEMA_KEYS = {
  "choices",
  "condition",
  "default",
  "desc",
  "enabled",
  "limits",
  "mapping",
  "optional",
  "order",
  "subtype",
  "subtype_key",
  "type",
  "validate",
}
-- Parameters that every provider names differently but that mean the same: the cap of a reply.
local CAPS = { max_tokens = "max_tokens", max_completion_tokens = "max_completion_tokens", max_output_tokens = false }

---@type table<string, CodeCompanion.AdapterOpt>
local OPTS = require("codecompanion.adapters.opts")

-- Adapters of codecompanion.nvim that are not here, with the endpoint that serves instead.
local INSTEAD = {
  anthropic = false,
  deepseek = "https://api.deepseek.com/v1",
  huggingface = "https://router.huggingface.co/v1",
  kimi = "https://api.moonshot.ai/v1",
  mistral = "https://api.mistral.ai/v1",
  novita = "https://api.novita.ai/openai/v1",
  ollama = "http://localhost:11434",
  openai_responses = false,
  openrouter = "https://openrouter.ai/api/v1",
  xai = "https://api.x.ai/v1",
}

---@class CodeCompanion.Resolving
---@field name string
---@field path string Key path of the entry
---@field http table `adapters.http` of the options
---@field builtin table<string, CodeCompanion.AdapterSettings>
---@field problems string[]
---@field entry CodeCompanion.AdapterEntry All layers merged
---@field settings CodeCompanion.AdapterSettings
---@field windows table<string, integer> Context window by model, from `schema.model.choices`
---@field key_function? fun(adapter: table): string
local Resolving = {}
Resolving.__index = Resolving

---@param key string
---@param text string
function Resolving:problem(key, text)
  table.insert(self.problems, ("%s%s: %s"):format(self.path, key ~= "" and "." .. key or "", text))
end

---@param name string
---@param known string[]
---@return string
local function no_such_adapter(name, known)
  local endpoint = INSTEAD[name]
  if endpoint then
    return ('there is no adapter "%s"; extend "openai_compatible" with env.url = "%s"'):format(name, endpoint)
  end
  local near = nearest.word(name, known)
  return ('there is no adapter "%s"%s'):format(
    name,
    near and ('; did you mean "%s"?'):format(near) or ("; there are %s"):format(table.concat(known, ", "))
  )
end

---@param value any
---@param ... any Arguments, when `value` is a function
---@return boolean ok
---@return any result
local function evaluate(value, ...)
  if type(value) ~= "function" then
    return true, value
  end
  return pcall(value, ...)
end

---@param layer table Values of the wrong type are taken out
function Resolving:check_keys(layer)
  for name in sorted(layer) do
    local text = tostring(name)
    if FOREIGN_KEYS[name] then
      self:problem(text, "belongs to codecompanion.nvim, not to this plugin; the host makes and reads the requests")
    elseif not vim.list_contains(ENTRY_KEYS, name) then
      local near = nearest.word(text, ENTRY_KEYS)
      self:problem(
        text,
        near and ("unknown key; did you mean `%s`?"):format(near)
          or ("unknown key; the keys of an adapter are %s"):format(table.concat(ENTRY_KEYS, ", "))
      )
    end
  end
  for _, name in ipairs({ "env", "headers", "parameters", "schema", "opts" }) do
    if layer[name] ~= nil and type(layer[name]) ~= "table" then
      self:problem(name, ("got %s; expected a table"):format(type(layer[name])))
      layer[name] = nil
    end
  end
  for _, name in ipairs({ "extends", "name", "formatted_name", "url" }) do
    if layer[name] ~= nil and type(layer[name]) ~= "string" then
      self:problem(name, ("got %s; expected a string"):format(type(layer[name])))
      layer[name] = nil
    end
  end
end

---The chain of entries an adapter is made of, the most general first. The first names a built-in entry.
---@param name string
---@param seen table<string, boolean>
---@return string? builtin_name nil when the chain is broken (a problem has been noted)
---@return CodeCompanion.AdapterEntry[] layers
function Resolving:layers(name, seen)
  local entry = self.http[name]
  if entry == nil or entry == name then
    if self.builtin[name] then
      return name, {}
    end
    self:problem("", no_such_adapter(name, require("codecompanion.adapters").names(self.http)))
    return nil, {}
  end
  if seen[name] then
    self:problem("", ('extends itself by way of "%s"'):format(name))
    return nil, {}
  end
  seen[name] = true
  local ok, value = evaluate(entry)
  if not ok then
    self:problem("", ("the function failed: %s"):format(value))
    return nil, {}
  end
  if type(value) == "string" then
    value = { extends = value }
  elseif type(value) ~= "table" then
    self:problem("", ("the function returned %s; expected a table"):format(type(value)))
    return nil, {}
  end
  local layer = vim.deepcopy(value)
  self:check_keys(layer)
  local base = layer.extends or (self.builtin[name] and name)
  if not base then
    self:problem("", 'it needs `extends`, for instance extends = "openai_compatible"')
    return nil, {}
  end
  local builtin_name, layers
  if base == name and self.builtin[name] then
    builtin_name, layers = name, {}
  elseif base == name then
    self:problem("", no_such_adapter(name, vim.tbl_keys(self.builtin)))
    return nil, {}
  else
    builtin_name, layers = self:layers(base, seen)
  end
  layers[#layers + 1] = layer
  return builtin_name, layers
end

---The value of `env.<key>`: what a function returns, what an environment variable holds, or the text itself.
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

---@param template string
---@param key string Key path below the entry, for errors
---@return string
function Resolving:interpolate(template, key)
  return (
    template:gsub("%${([%w_]+)}", function(name)
      if name == "api_key" then
        return nil
      end
      local value = self:env(name)
      if value == nil then
        self:problem(key, ("${%s} is not in env"):format(name))
      end
      return value
    end)
  )
end

function Resolving:set_key()
  local key = (self.entry.env or {}).api_key
  if key == nil then
    return
  elseif type(key) == "function" then
    self.settings.key, self.key_function = "function", key
  elseif type(key) ~= "string" then
    self:problem("env.api_key", ("got %s; expected a string or a function"):format(type(key)))
  elseif key == "" or key:match("^cmd:.") or key:match("^file:.") then
    self.settings.key = key
  elseif key:match("^[%u_][%u%d_]*$") or (key:match("^[%a_][%w_]*$") and vim.env[key]) then
    self.settings.key = key
  else
    -- It may be a key: the text itself must not be shown.
    self:problem(
      "env.api_key",
      "is not the name of an environment variable; keys do not belong in a configuration: expected a variable's name,"
        .. ' "cmd:…", "file:…" or a function'
    )
  end
end

---Where requests go: `url`, or `env.url` with `env.chat_url` and `env.models_endpoint`.
function Resolving:set_url()
  local entry, env, settings = self.entry, self.entry.env or {}, self.settings
  if entry.url and entry.url ~= "${url}${chat_url}" then
    local full = self:interpolate(entry.url, "url"):gsub("/+$", "")
    local base = full:match("^(.*)/chat/completions$")
    if base then
      settings.base_url, settings.chat_path = base, "/chat/completions"
    else
      settings.base_url, settings.chat_path = full:match("^(%w+://[^/]+)(.*)$")
    end
  end
  if env.url ~= nil then
    local base = self:env("url")
    settings.base_url = base and base:gsub("/+$", "") or settings.base_url
    -- CodeCompanion's base ends before the version; one that ends with it (`…/v1`) is meant as it stands.
    local versioned = (settings.base_url .. "/"):match("/v%d+%w*/") ~= nil
    settings.chat_path = versioned and "/chat/completions" or "/v1/chat/completions"
    settings.models_path = versioned and "/models" or "/v1/models"
  end
  settings.chat_path = env.chat_url ~= nil and self:env("chat_url") or settings.chat_path
  settings.models_path = env.models_endpoint ~= nil and self:env("models_endpoint") or settings.models_path
  if settings.kind ~= "offline" and not (settings.base_url or ""):match("^https?://[^/]") then
    local key = env.url ~= nil and "env.url" or "url"
    self:problem(key, ("got %s; expected http://… or https://…"):format(vim.inspect(settings.base_url)))
    settings.base_url = self.builtin[settings.kind].base_url
  end
end

function Resolving:set_headers()
  for name, value in sorted(self.entry.headers or {}) do
    local lowered = tostring(name):lower()
    if type(value) ~= "string" then
      self:problem("headers." .. tostring(name), ("got %s; expected a string"):format(type(value)))
    elseif lowered == "authorization" and value == "Bearer ${api_key}" or lowered == "content-type" then
      -- The host sends these by itself.
      self.settings.headers[name] = nil
    else
      self.settings.headers[name] = self:interpolate(value, "headers." .. name)
    end
  end
end

---@param choices any A list of names, or a table by name, or both mixed
function Resolving:set_models(choices)
  local ok, value = evaluate(choices, self.entry)
  if not ok or (value ~= nil and type(value) ~= "table") then
    self:problem("schema.model.choices", ok and "expected a table" or ("the function failed: %s"):format(value))
    return
  end
  local names = {}
  for key, choice in sorted(value or {}) do
    local name = type(key) == "number" and choice or key
    if type(name) ~= "string" then
      self:problem("schema.model.choices", ("got %s; expected names of models"):format(vim.inspect(name)))
    else
      names[#names + 1] = name
      local window = type(choice) == "table" and vim.tbl_get(choice, "meta", "context_window") or nil
      self.windows[name] = type(window) == "number" and window or nil
    end
  end
  self.settings.models = names
end

---One entry of `schema`: a parameter of the request.
---@param name string
---@param parameter table
function Resolving:set_parameter(name, parameter)
  local at = "schema." .. name
  for key in sorted(parameter) do
    if not vim.list_contains(SCHEMA_KEYS, key) then
      self:problem(
        at .. "." .. tostring(key),
        ("unknown key; expected one of %s"):format(table.concat(SCHEMA_KEYS, ", "))
      )
    end
  end
  local enabled_ok, enabled = evaluate(parameter.enabled, self.entry)
  local ok, value = evaluate(parameter.default, self.entry)
  if not (enabled_ok and ok) then
    self:problem(at, ("a function failed: %s"):format(enabled_ok and value or enabled))
    return
  end
  if enabled == false or value == nil then
    return
  end
  if name == "model" then
    if type(value) ~= "string" then
      return self:problem(at .. ".default", ("got %s; expected the name of a model"):format(type(value)))
    end
    self.settings.model = value
  elseif CAPS[name] ~= nil then
    if type(value) ~= "number" or value < 1 or value % 1 ~= 0 then
      return self:problem(at .. ".default", "expected a whole number of tokens")
    end
    self.settings.max_output_tokens = value
    self.settings.max_tokens_field = CAPS[name] or self.settings.max_tokens_field
  else
    self:put_parameter(name, parameter.mapping or "parameters", value)
  end
end

---@param name string
---@param mapping string `parameters` or `parameters.options`
---@param value any
function Resolving:put_parameter(name, mapping, value)
  local parts = vim.split(mapping, ".", { plain = true })
  if parts[1] ~= "parameters" then
    self:problem(("schema.%s.mapping"):format(name), ("got %q; expected parameters or parameters.…"):format(mapping))
    return
  end
  local place = self.settings.parameters
  for index = 2, #parts do
    place[parts[index]] = place[parts[index]] or {}
    place = place[parts[index]]
  end
  place[name] = value
end

function Resolving:set_schema()
  for name, parameter in sorted(self.entry.schema or {}) do
    if type(parameter) ~= "table" then
      self:problem("schema." .. name, ("got %s; expected { default = … }"):format(type(parameter)))
    else
      self:set_parameter(name, parameter)
      if name == "model" and parameter.choices ~= nil then
        self:set_models(parameter.choices)
      end
    end
  end
end

---@param opt CodeCompanion.AdapterOpt
---@return boolean
function Resolving:takes(opt)
  return vim.list_contains(opt.kinds or { "openai", "openai_compatible" }, self.settings.kind)
end

---@param name string
---@param opt CodeCompanion.AdapterOpt
---@param value any
function Resolving:set_opt(name, opt, value)
  if not self:takes(opt) then
    return self:problem("opts." .. name, ("means nothing to an adapter of kind %s"):format(self.settings.kind))
  end
  local wanted = opt.type == "integer" and "number" or opt.type
  local fits = type(value) == wanted
  if fits and wanted == "number" then
    fits = value >= (opt.min or 0) and (opt.type == "number" or value % 1 == 0)
  elseif fits and opt.enum then
    fits = vim.list_contains(opt.enum, value)
  end
  if not fits then
    local expected = opt.enum and table.concat(vim.tbl_map(vim.inspect, opt.enum), " or ")
      or ("%s%s"):format(opt.type, wanted == "number" and (" from %s on"):format(opt.min or 0) or "")
    return self:problem("opts." .. name, ("got %s; expected %s"):format(vim.inspect(value), expected))
  end
  local place = opt.option and self.settings.options or self.settings
  place[opt.field] = opt.milliseconds and value / 1000 or value
end

function Resolving:set_opts()
  local names = vim.tbl_filter(function(name)
    return self:takes(OPTS[name])
  end, vim.tbl_keys(OPTS))
  table.sort(names)
  for name, value in sorted(self.entry.opts or {}) do
    local near = nearest.word(tostring(name), names)
    if OPTS[name] then
      self:set_opt(name, OPTS[name], value)
    elseif name == "stream" or name == "tools" then
      if value ~= true then
        self:problem("opts." .. name, "cannot be switched off here")
      end
    elseif near then
      self:problem("opts." .. tostring(name), ("unknown key; did you mean `%s`?"):format(near))
    else
      self:problem("opts." .. tostring(name), ("unknown key; expected one of %s"):format(table.concat(names, ", ")))
    end
  end
end

local M = {}
M.no_such_adapter = no_such_adapter

---@param name string
---@param http table `adapters.http` of the options
---@param builtin table<string, CodeCompanion.AdapterSettings>
---@return CodeCompanion.Resolving resolved `settings` is nil when the entry cannot be used at all
function M.resolve(name, http, builtin)
  local self = setmetatable({
    name = name,
    path = "adapters.http." .. name,
    http = http,
    builtin = builtin,
    problems = {},
    windows = {},
    entry = {},
  }, Resolving)
  local builtin_name, layers = self:layers(name, {})
  if not builtin_name then
    return self
  end
  local override = (http.extend or {})[name]
  if override ~= nil and type(override) ~= "table" then
    table.insert(self.problems, ("adapters.http.extend.%s: got %s; expected a table"):format(name, type(override)))
  elseif override then
    local layer = vim.deepcopy(override)
    self.path = "adapters.http.extend." .. name
    self:check_keys(layer)
    self.path = "adapters.http." .. name
    layers[#layers + 1] = layer
  end
  for _, layer in ipairs(layers) do
    self.entry = vim.tbl_deep_extend("force", self.entry, layer)
  end
  self.settings = vim.deepcopy(builtin[builtin_name])
  self.settings.name = name
  self.settings.formatted_name = self.entry.formatted_name or (builtin[name] or {}).formatted_name or name
  self:set_key()
  self:set_url()
  self:set_headers()
  for key, value in pairs(self.entry.parameters or {}) do
    self.settings.parameters[key] = value
  end
  self:set_schema()
  self:set_opts()
  if self.settings.kind ~= "offline" then
    self.settings.proxy = vim.tbl_get(http, "opts", "proxy") or ""
  end
  return self
end

return M
