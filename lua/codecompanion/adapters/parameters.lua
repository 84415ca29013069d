---What an entry's `schema` says about requests: the model, the longest reply, and any other parameter.

local sorted = require("codecompanion.config.sorted")

local tokens = require("codecompanion.config.tokens")

local M = {}

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

---@param self CodeCompanion.Resolving
---@param choices any A list of names, or a table by name, or both mixed
local function set_models(self, choices)
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
      self.windows[name] = window and tokens.parse(window) or nil
    end
  end
  self.settings.models = names
end

---@param self CodeCompanion.Resolving
---@param name string `reasoning.effort` stands for a field of a field
---@param mapping string `parameters` or `parameters.options`
---@param value any
local function put(self, name, mapping, value)
  local path = vim.split(mapping .. "." .. name, ".", { plain = true })
  if path[1] ~= "parameters" then
    self:problem(("schema.%s.mapping"):format(name), ("got %q; expected parameters or parameters.…"):format(mapping))
    return
  end
  local place = self.settings.parameters
  for index = 2, #path - 1 do
    place[path[index]] = place[path[index]] or {}
    place = place[path[index]]
  end
  place[path[#path]] = value
end

---What codecompanion.nvim's anthropic adapter makes of these two: the field `thinking`.
---@type table<string, fun(self: CodeCompanion.Resolving, value: any): boolean? wrong>
local ANTHROPIC = {
  extended_thinking = function(self, value)
    if type(value) ~= "boolean" then
      return true
    end
    local thinking = self.settings.parameters.thinking
    self.settings.parameters.thinking = value and (thinking or { type = "adaptive" }) or nil
  end,
  thinking_budget = function(self, value)
    if type(value) ~= "number" or value < 1024 or value % 1 ~= 0 then
      return true
    end
    local switch = vim.tbl_get(self.entry, "schema", "extended_thinking", "default")
    if switch ~= false then
      self.settings.parameters.thinking = { type = "enabled", budget_tokens = value }
    end
  end,
}
local EXPECTED = { extended_thinking = "true or false", thinking_budget = "a whole number of tokens from 1024 on" }

---@param self CodeCompanion.Resolving
---@param name string
---@param parameter table
local function set_parameter(self, name, parameter)
  local at = "schema." .. name
  for key in sorted(parameter) do
    if not vim.list_contains(SCHEMA_KEYS, key) then
      local expected = table.concat(SCHEMA_KEYS, ", ")
      self:problem(at .. "." .. tostring(key), ("unknown key; expected one of %s"):format(expected))
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
  local own = self.settings.kind == "anthropic" and ANTHROPIC[name]
  if own then
    if own(self, value) then
      self:problem(at .. ".default", ("got %s; expected %s"):format(vim.inspect(value), EXPECTED[name]))
    end
  elseif name == "model" then
    if type(value) ~= "string" then
      return self:problem(at .. ".default", ("got %s; expected the name of a model"):format(type(value)))
    end
    self.settings.model = value
  elseif CAPS[name] ~= nil then
    local limit = tokens.parse(value)
    if not limit then
      return self:problem(at .. ".default", ("got %s; expected %s"):format(vim.inspect(value), tokens.FORMS))
    end
    self.settings.max_output_tokens = limit
    self.settings.max_tokens_field = CAPS[name] or self.settings.max_tokens_field
  else
    put(self, name, parameter.mapping or "parameters", value)
  end
end

---@param self CodeCompanion.Resolving
function M.set(self)
  for key, value in pairs(self.entry.parameters or {}) do
    self.settings.parameters[key] = value
  end
  for name, parameter in sorted(self.entry.schema or {}) do
    if type(parameter) ~= "table" then
      self:problem("schema." .. name, ("got %s; expected { default = … }"):format(type(parameter)))
    else
      set_parameter(self, name, parameter)
      if name == "model" and parameter.choices ~= nil then
        set_models(self, parameter.choices)
      end
    end
  end
end

return M
