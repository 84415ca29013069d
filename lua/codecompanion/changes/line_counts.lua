---How much a change of a file adds and removes.

local M = {}

---`+3 −1`, "" when no line differs.
---@param row { added: integer, removed: integer }
---@return string
function M.text(row)
  local parts = {}
  if row.added > 0 then
    parts[#parts + 1] = "+" .. row.added
  end
  if row.removed > 0 then
    parts[#parts + 1] = "−" .. row.removed
  end
  return table.concat(parts, " ")
end

return M
