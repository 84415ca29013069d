---Checks one value against its option (type, choices, further checks) and provides the message for each failure.

local nearest = require("codecompanion.values.nearest")
local plain = require("codecompanion.values.plain")

local M = {}

---@param value any
---@return string
function M.kind_of(value)
  if type(value) == "table" and #value > 0 and vim.islist(value) then
    return "a list"
  end
  if type(value) == "string" then
    return vim.inspect(value:sub(1, 60))
  elseif type(value) == "number" or type(value) == "boolean" then
    return tostring(value)
  end
  return type(value)
end

---@param types string[]
---@return string
local function either(types)
  if #types == 1 then
    return types[1]
  end
  return table.concat(types, ", ", 1, #types - 1) .. " or " .. types[#types]
end

---@param value any
---@param wanted string
---@return boolean
local function is_a(value, wanted)
  if wanted == "integer" then
    return type(value) == "number" and value % 1 == 0 and value == value and math.abs(value) < 2 ^ 53
  elseif wanted == "list" then
    return type(value) == "table" and vim.islist(value)
  elseif wanted == "number" then
    return type(value) == "number"
  end
  return type(value) == wanted
end

---Return the problem with the type of a value.
---@param node CodeCompanion.Option
---@param value any
---@return string? problem
function M.unfit(node, value)
  local types = type(node.type) == "table" and node.type or { node.type } --[[@as string[] ]]
  for _, wanted in ipairs(types) do
    if is_a(value, wanted) then
      return type(value) == "string" and not plain.is_utf8(value) and "it is not UTF-8 text" or nil
    end
  end
  return ("got %s; expected %s"):format(M.kind_of(value), either(types))
end

---Return the default of an option, or the defaults of a section.
---@param node CodeCompanion.Option
---@return any
function M.default_of(node)
  if not node.fields then
    return type(node.default) == "table" and vim.deepcopy(node.default) or node.default
  end
  local defaults = {}
  for _, field in ipairs(node.fields) do
    defaults[field.name] = M.default_of(field)
  end
  return defaults
end

---Return the problem with the keys of { name = …, model = … }.
---@param value table
---@return string?
local function bad_adapter_reference(value)
  for key in pairs(value) do
    if key ~= "name" and key ~= "model" then
      return ("unknown key %q; expected { name = …, model = … }"):format(tostring(key))
    end
  end
  if type(value.name) ~= "string" or (value.model ~= nil and type(value.model) ~= "string") then
    return "expected { name = string, model = string }"
  end
end

---Return the problem with a value of the right type, or nil and the normalised value.
---@param node CodeCompanion.Option
---@param value any
---@return string? problem
---@return any normalised
function M.further(node, value)
  if node.enum and type(value) == "string" and not vim.list_contains(node.enum, value) then
    local quoted = vim.tbl_map(vim.inspect, node.enum)
    local near = nearest.word(value, node.enum)
    local advice = near and ("; did you mean %q?"):format(near) or ""
    return ("got %s; expected %s%s"):format(vim.inspect(value), either(quoted), advice)
  end
  if node.min and type(value) == "number" and value < node.min then
    return ("got %s; the minimum is %s"):format(value, node.min)
  end
  if node.adapter and type(value) == "table" then
    local wrong = bad_adapter_reference(value)
    if wrong then
      return wrong
    end
  end
  if node.check then
    return node.check(value)
  end
  return nil, value
end

return M
