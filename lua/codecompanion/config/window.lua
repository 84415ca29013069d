---What `context_window` may be (R-102): tokens, or thousands of them as "128k".

---The window in tokens as the host gets it, or what is wrong with it.
---@param value string|integer
---@return string? problem
---@return integer|nil tokens
return function(value)
  local digits, thousands = tostring(value):match("^(%d+)([kK]?)$")
  local tokens = digits and tonumber(digits) * (thousands == "" and 1 or 1000)
  if not tokens or tokens < 1 then
    return ('got %s; expected a number of tokens, or thousands of them as "128k"'):format(vim.inspect(value))
  end
  return nil, tokens
end
