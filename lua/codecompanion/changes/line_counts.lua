---Counts the lines that a change adds to and removes from a file.

local M = {}

---Return `+3 −1`, or "" if no line differs.
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
