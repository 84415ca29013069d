---The undo tree of a buffer, as far as decisions about proposals are steps of it.

local api = vim.api

local M = {}

---The number of the change that the text is after.
---@param bufnr integer
---@return integer
function M.state(bufnr)
  return api.nvim_buf_call(bufnr, vim.fn.changenr)
end

---How often the file was written.
---@param bufnr integer
---@return integer
function M.saves(bufnr)
  return api.nvim_buf_call(bufnr, vim.fn.undotree).save_last
end

---Close the undo block: the next change begins another one.
---@param bufnr integer
function M.close_block(bufnr)
  vim.bo[bufnr].undolevels = vim.bo[bufnr].undolevels
end

---The last result of `changes`: for many proposals of one buffer the tree, which may be large, is read once.
---@type { bufnr: integer, state: integer, changes: table<integer, "made"|"undone"> }?
local known

---Forget what was read: the tree is about to change.
function M.forget()
  known = nil
end

---Which numbered changes are in the text, and which were undone.
---@param bufnr integer
---@return table<integer, "made"|"undone"> by_number Without those that cannot be undone any more
function M.changes(bufnr)
  local now = M.state(bufnr)
  if known and known.bufnr == bufnr and known.state == now then
    return known.changes
  end
  local tree = api.nvim_buf_call(bufnr, vim.fn.undotree)
  local found, state = {}, tree.seq_cur > 0 and "made" or "undone"
  local function undone(entries)
    for _, entry in ipairs(entries or {}) do
      found[entry.seq] = "undone"
      undone(entry.alt)
    end
  end
  for _, entry in ipairs(tree.entries) do -- from the oldest one to the current one, and what can be redone
    found[entry.seq] = state
    undone(entry.alt)
    state = entry.seq == tree.seq_cur and "undone" or state
  end
  known = { bufnr = bufnr, state = now, changes = found }
  return found
end

return M
