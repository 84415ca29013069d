---Checks and copies values that can be sent to the host: text, numbers, booleans, and tables of these that are a list
---or have string keys.

local M = {}

local DEEPEST = 32

---@param text string
---@return boolean
function M.is_utf8(text)
  if not text:find("[\128-\255]") then
    return true
  end
  -- Surrogates and overlong forms are invalid.
  if text:find("\237[\160-\191]") or text:find("\224[\128-\159]") or text:find("\240[\128-\143]") then
    return false
  end
  local rest = text:gsub("[\240-\244][\128-\191][\128-\191][\128-\191]", ".")
  rest = rest:gsub("[\224-\239][\128-\191][\128-\191]", "."):gsub("[\194-\223][\128-\191]", ".")
  return not rest:find("[\128-\255]")
end

---@param value any
---@return string? problem
local function wrong_value(value)
  if value == vim.NIL or type(value) == "boolean" then
    return nil
  elseif type(value) == "string" then
    return not M.is_utf8(value) and "it is not UTF-8 text" or nil
  elseif type(value) == "number" then
    return (value ~= value or math.abs(value) == math.huge) and ("got %s; expected a number"):format(value) or nil
  end
  return ("got a %s; expected a plain value"):format(type(value))
end

---Return the first problem in a value that cannot be sent.
---@param value any
---@param path string Key path of the value
---@param depth? integer
---@return string? problem One sentence that begins with the key path
function M.problem(value, path, depth)
  depth = depth or 0
  if type(value) ~= "table" then
    local wrong = wrong_value(value)
    return wrong and ("%s: %s"):format(path, wrong)
  elseif depth > DEEPEST then
    return path .. ": it is nested too deeply"
  end
  local is_list = vim.islist(value)
  for key, inner in require("codecompanion.values.sorted")(value) do
    local here = is_list and ("%s[%d]"):format(path, key) or ("%s.%s"):format(path, tostring(key))
    if not is_list and type(key) ~= "string" then
      local text = "%s: list items (%s) and named keys are mixed; use one or the other"
      return text:format(path, tostring(key))
    elseif type(key) == "string" and not M.is_utf8(key) then
      return path .. ": a name in it is not UTF-8 text"
    end
    local problem = M.problem(inner, here, depth + 1)
    if problem then
      return problem
    end
  end
end

---Return a copy that can be modified; functions are shared.
---@param value any
---@param depth? integer
---@return any copy nil if a part cannot be copied
function M.copy(value, depth)
  depth = depth or 0
  if type(value) == "thread" or (type(value) == "userdata" and value ~= vim.NIL) or depth > DEEPEST then
    return nil
  elseif type(value) ~= "table" then
    return value
  end
  local copy = setmetatable({}, getmetatable(value))
  for key, inner in pairs(value) do
    copy[key] = M.copy(inner, depth + 1)
    if copy[key] == nil then
      return nil
    end
  end
  return copy
end

return M
