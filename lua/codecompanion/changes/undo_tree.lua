---Reads the undo tree of a buffer, in which decisions on proposals are steps.

local api = vim.api

local M = {}

---Return the change number of the current text.
---@param bufnr integer
---@return integer
function M.state(bufnr)
  return api.nvim_buf_call(bufnr, vim.fn.changenr)
end

---Return how many times the file was written.
---@param bufnr integer
---@return integer
function M.saves(bufnr)
  return api.nvim_buf_call(bufnr, vim.fn.undotree).save_last
end

---Close the undo block: the next change begins a new one.
---@param bufnr integer
function M.close_block(bufnr)
  vim.bo[bufnr].undolevels = vim.bo[bufnr].undolevels
end

---The last result of `changes`, cached because the tree may be large: it is read once for all proposals of a buffer.
---@type { bufnr: integer, state: integer, changes: table<integer, "made"|"undone"> }?
local known

---Clear the cached result, because the tree is about to change.
function M.forget()
  known = nil
end

---Return which numbered changes are in the text, and which were undone.
---@param bufnr integer
---@return table<integer, "made"|"undone"> by_number Without changes that can no longer be undone
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
  for _, entry in ipairs(tree.entries) do -- from the oldest one to the current one, then those that can be redone
    found[entry.seq] = state
    undone(entry.alt)
    state = entry.seq == tree.seq_cur and "undone" or state
  end
  known = { bufnr = bufnr, state = now, changes = found }
  return found
end

return M
