---Parses token counts as people write them: 16000, "16k", "1M" (R-102). The Python version is
---`counting/token_sizes.py`.

local M = {}

M.FORMS = 'a number of tokens, such as 16000, "16k" or "1M"'

local UNITS = { [""] = 1, k = 1000, m = 1000000 }

---Parse a token count.
---@param value any
---@return integer? tokens nil if it is not a token count
function M.parse(value)
  if type(value) == "number" then
    return value % 1 == 0 and value >= 1 and value < 2 ^ 53 and value or nil
  end
  local digits, unit = tostring(value):match("^(%d+)([kKmM]?)$")
  local tokens = digits and #digits <= 15 and tonumber(digits) * UNITS[unit:lower()]
  return tokens and tokens >= 1 and tokens or nil
end

---Return a check for an option of type { "integer", "string" }.
---@param least? integer Minimum, 1 by default
---@return fun(value: any): string?, integer?
function M.check(least)
  return function(value)
    local tokens = (value == 0 and least == 0) and 0 or M.parse(value)
    if not tokens then
      return ("got %s; expected %s"):format(vim.inspect(value), M.FORMS)
    end
    return nil, tokens
  end
end

return M
