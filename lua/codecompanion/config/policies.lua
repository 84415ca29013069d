---Checks the options `policy` and `policies`. The host checks the contents of a policy's table when it starts
---(`python/codecompanion/context/policy/table.py`).

local plain = require("codecompanion.values.plain")

local M = {}

local CHOICE = '{ default = "codecompanion", anthropic = "cowork" }'
local POLICY = '{ extends = "codecompanion", … }'

---@param value string|table
---@return string? problem
---@return any normalised
function M.check_choice(value)
  for key in pairs(type(value) == "table" and value or {}) do
    if type(key) ~= "string" then
      return "expected policy names by adapter: " .. CHOICE
    end
  end
  return nil, value
end

---Check that one user-defined policy can be sent to the host, which checks its contents.
---@param value table
---@return string? problem
---@return any normalised
function M.check(value)
  if #value > 0 then
    return "got a list; expected " .. POLICY
  end
  local problem = plain.problem(value, "")
  if problem then
    local where, text = problem:match("^%.?([^:]*): (.*)$")
    return where ~= "" and ("%s in `%s`; a policy contains only data"):format(text, where) or text
  end
  return nil, value
end

---Return the choice in the host's form.
---@param value string|table<string, string>
---@return string policy Default for adapters without an entry
---@return table<string, string> by_adapter
function M.choice(value)
  if type(value) == "string" then
    return value, {}
  end
  local by_adapter = vim.deepcopy(value)
  by_adapter.default = nil
  return value.default or "codecompanion", by_adapter
end

return M
