---Reads the source of an API key as it is written in the configuration. A key itself is refused, and never shown.

local M = {}

---Minimum length of a text of capitals and digits that counts as a key, not as the name of a variable.
local MIN_KEY = 20

---Return the source: the name of a variable (also written `$NAME`), `cmd:…`, `file:…`, or "" for none.
---@param text string
---@return string? source nil = the text may be a key
function M.of(text)
  text = text:match("^%${?([%u_][%u%d_]*)}?$") or text -- as in a shell
  if text == "" or text:match("^cmd:.") or text:match("^file:.") or text:match("^[%a_][%w_]*$") and vim.env[text] then
    return text
  end
  local is_key = #text >= MIN_KEY and text:find("%d") and not text:find("_", 1, true)
  return text:match("^[%u_][%u%d_]*$") and not is_key and text or nil
end

---Check an option that names the source of a key.
---@param value string
---@return string? problem
---@return string? source
function M.check(value)
  local source = M.of(value)
  if source == nil then
    return 'expected an environment variable ("$MY_KEY"), "cmd:…" or "file:…", not the key itself'
  end
  return nil, source
end

return M
