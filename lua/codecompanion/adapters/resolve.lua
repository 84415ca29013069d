---From an entry of `adapters.http` to the settings the host gets: inheritance, CodeCompanion's shapes, checks.

local nearest = require("codecompanion.config.nearest")
local plain = require("codecompanion.config.plain")
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
---@class CodeCompanion.Resolving
---@field name string
---@field path string Key path of the entry
---@field http table `adapters.http` of the options
---@field builtin table<string, CodeCompanion.BuiltinAdapter>
---@field touched boolean The user has said something about it
---@field problems string[]
---@field foreign string[] Keys of codecompanion.nvim that do nothing here
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
  local near = nearest.word(name, known)
  return ('there is no adapter "%s"%s'):format(
    name,
    near and ('; did you mean "%s"?'):format(near) or ("; there are %s"):format(table.concat(known, ", "))
  )
end

---@param http table `adapters.http` of the options
---@param builtin table<string, CodeCompanion.BuiltinAdapter>
---@return string[] names Sorted
local function names_of(http, builtin)
  local names = {}
  for name in pairs(builtin) do
    names[name] = true
  end
  for name, entry in pairs(http) do
    if name ~= "opts" and name ~= "extend" and entry ~= nil then
      names[name] = true
    end
  end
  names = vim.tbl_keys(names)
  table.sort(names)
  return names
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
      table.insert(self.foreign, ("%s.%s: the host makes and reads the requests"):format(self.path, text))
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
    local kind = type(layer[name]) == "table" and #layer[name] > 0 and "a list" or type(layer[name])
    if layer[name] ~= nil and kind ~= "table" then
      self:problem(name, ("got %s; expected a table"):format(kind))
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
    self:problem("", no_such_adapter(name, names_of(self.http, self.builtin)))
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
  local layer = plain.copy(value)
  if not layer then
    self:problem("", "it holds what no entry can: a coroutine, userdata or a table inside itself")
    return nil, {}
  end
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

---Headers the host makes by itself, by name in lower case.
---@param name string
---@param value string
---@return boolean
local function is_made_by_host(name, value)
  return name == "content-type"
    or (name == "authorization" and value == "Bearer ${api_key}")
    or (name == "x-api-key" and value == "${api_key}")
end

function Resolving:set_headers()
  local headers = self.entry.headers or {}
  local bearer = vim.iter(pairs(headers)):any(function(name)
    return tostring(name):lower() == "authorization"
  end)
  for name, value in sorted(headers) do
    if type(value) ~= "string" then
      self:problem("headers." .. tostring(name), ("got %s; expected a string"):format(type(value)))
    elseif self.settings.kind ~= "offline" and is_made_by_host(tostring(name):lower(), value) then
      self.settings.headers[name] = nil
    elseif value == "${api_key}" and not bearer then
      self.settings.key_header = name
    else
      self.settings.headers[name] = self:interpolate(value, "headers." .. name)
    end
  end
end

---Put the built-in value in the place of what cannot be sent to the host.
---@param builtin CodeCompanion.BuiltinAdapter
function Resolving:keep_plain(builtin)
  for field, value in sorted(self.settings) do
    local wrong = plain.problem(value, ("%s.%s"):format(self.path, field))
    if wrong then
      table.insert(self.problems, wrong)
      self.settings[field] = vim.deepcopy(builtin[field])
    end
  end
end

local M = {}
M.no_such_adapter = no_such_adapter
M.names = names_of

---@param name string
---@param http table `adapters.http` of the options
---@param builtin table<string, CodeCompanion.BuiltinAdapter>
---@return CodeCompanion.Resolving resolved `settings` is nil when the entry cannot be used at all
function M.resolve(name, http, builtin)
  local self = setmetatable({
    name = name,
    path = "adapters.http." .. name,
    http = http,
    builtin = builtin,
    problems = {},
    foreign = {},
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
    local layer = plain.copy(override) or {}
    self.path = "adapters.http.extend." .. name
    self:check_keys(layer)
    self.path = "adapters.http." .. name
    layers[#layers + 1] = layer
  end
  local base = vim.deepcopy(builtin[builtin_name])
  self.entry, self.touched = base.entry or {}, #layers > 0
  base.entry, base.about = nil, nil
  for _, layer in ipairs(layers) do
    self.entry = vim.tbl_deep_extend("force", self.entry, layer)
  end
  self.settings = base
  self.settings.name = name
  self.settings.formatted_name = self.entry.formatted_name or (builtin[name] or {}).formatted_name or name
  self:set_key()
  require("codecompanion.adapters.address").set(self)
  self:set_headers()
  require("codecompanion.adapters.parameters").set(self)
  require("codecompanion.adapters.check_opts").set(self)
  if self.settings.kind ~= "offline" then
    self.settings.proxy = vim.tbl_get(http, "opts", "proxy") or ""
  end
  self:keep_plain(builtin[builtin_name])
  return self
end

return M
