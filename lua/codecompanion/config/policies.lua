---Checks of the options `policy` and `policies`. What a policy's table may say is known to the host, which checks it
---when it is greeted (`python/codecompanion/context/policy_table.py`).

local M = {}

---@param value string|table
---@return string? problem
---@return any normalised
function M.check_choice(value)
  if type(value) == "string" then
    return nil, value
  end
  for adapter, name in pairs(value) do
    if type(adapter) ~= "string" or type(name) ~= "string" then
      return 'expected names of policies by adapter: { default = "codecompanion", anthropic = "cowork" }'
    end
  end
  return nil, value
end

---@param value table
---@return string? problem
---@return any normalised
function M.check(value)
  for name, policy in pairs(value) do
    if type(name) ~= "string" or type(policy) ~= "table" then
      return 'expected tables by name: { mine = { extends = "codecompanion", … } }'
    end
    local where = M.find_function(policy)
    if where then
      return ("%s.%s is a function; a policy is data: expected a value"):format(name, where)
    end
  end
  return nil, value
end

---@param value table
---@return string? where Key path of the first function in it
function M.find_function(value)
  for key, inner in pairs(value) do
    local deeper = type(inner) == "table" and M.find_function(inner)
    if type(inner) == "function" or deeper then
      return deeper and ("%s.%s"):format(key, deeper) or tostring(key)
    end
  end
end

---The choice as the host wants it.
---@param value string|table<string, string>
---@return string policy Of chats whose adapter is not named
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
