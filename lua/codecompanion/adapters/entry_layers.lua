---Collects the entries an adapter inherits from: names, inheritance, keys. `adapter_entry.lua` resolves the result.

local builtin = require("codecompanion.adapters.builtin_adapters")
local nearest = require("codecompanion.values.nearest")
local plain = require("codecompanion.values.plain")
local sorted = require("codecompanion.values.sorted")

---@class CodeCompanion.AdapterEntry
---@field extends? string
---@field name? string Accepted for entries written for codecompanion.nvim; the key in the configuration takes
---precedence
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

---Adapters of other plugins for services that have shut down.
local CLOSED = {
  github_models = "GitHub closed GitHub Models on 30 July 2026",
}

local M = {}

---@param name string
---@param known string[]
---@return string
function M.no_such_adapter(name, known)
  if CLOSED[name] then
    return ('there is no adapter "%s": %s'):format(name, CLOSED[name])
  end
  local near = nearest.word(name, known)
  return ('there is no adapter "%s"%s'):format(
    name,
    near and ('; did you mean "%s"?'):format(near) or ("; the adapters are %s"):format(table.concat(known, ", "))
  )
end

---@param http table `adapters.http` of the options
---@return string[] names Sorted
function M.names(http)
  local all = vim.tbl_extend("keep", builtin, http)
  all.opts, all.extend = nil, nil
  local names = vim.tbl_keys(all)
  table.sort(names)
  return names
end

---@param self CodeCompanion.Resolving
---@param layer table Values of the wrong type are removed
function M.check_keys(self, layer)
  for name in sorted(layer) do
    local text = tostring(name)
    if FOREIGN_KEYS[name] then
      table.insert(
        self.foreign,
        ("%s.%s: the plugin builds the requests and reads the replies"):format(self.path, text)
      )
    elseif not vim.list_contains(ENTRY_KEYS, name) then
      local near = nearest.word(text, ENTRY_KEYS)
      self:problem(
        text,
        near and ("unknown key; did you mean `%s`?"):format(near)
          or ("unknown key; expected one of %s"):format(table.concat(ENTRY_KEYS, ", "))
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

---Return the name of the built-in adapter an adapter is based on, and the chain of entries it inherits, most general
---first.
---@param self CodeCompanion.Resolving
---@param name string
---@param seen table<string, boolean>
---@return string? builtin_name nil when the chain is broken (the problem has been recorded)
---@return CodeCompanion.AdapterEntry[] layers
function M.collect(self, name, seen)
  local entry = self.http[name]
  if entry == nil or entry == name then
    if builtin[name] then
      return name, {}
    end
    self:problem("", M.no_such_adapter(name, M.names(self.http)))
    return nil, {}
  end
  if seen[name] then
    self:problem("", ('extends itself through "%s"'):format(name))
    return nil, {}
  end
  seen[name] = true
  local ok, value = type(entry) ~= "function" or nil, entry
  if not ok then
    ok, value = pcall(entry)
  end
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
    self:problem("", "contains a coroutine, userdata or a table that contains itself")
    return nil, {}
  end
  M.check_keys(self, layer)
  local base = layer.extends or (builtin[name] and name)
  if not base then
    self:problem("", '`extends` is missing, for example extends = "openai_compatible"')
    return nil, {}
  end
  local builtin_name, layers
  if base == name and builtin[name] then
    builtin_name, layers = name, {}
  elseif base == name then
    self:problem("", M.no_such_adapter(name, vim.tbl_keys(builtin)))
    return nil, {}
  else
    builtin_name, layers = M.collect(self, base, seen)
  end
  layers[#layers + 1] = layer
  return builtin_name, layers
end

return M
