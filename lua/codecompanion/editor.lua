---One snapshot of what the host may know of the editor, taken when a request is made (`requests.Snapshot`).
---
---The chat's own windows and buffers are left out: "current" is where the user works.

local api = vim.api

local M = {}

local MAX_DIAGNOSTICS = 500
local MAX_QUICKFIX = 500

local SEVERITIES = { "ERROR", "WARN", "INFO", "HINT" }

---@param bufnr integer
---@return boolean
local function is_file(bufnr)
  return vim.bo[bufnr].buftype == "" and api.nvim_buf_get_name(bufnr) ~= ""
end

---The window the user works in: this one, else the previous one, else any that shows a file.
---@return integer? win
local function work_window()
  local wins = { api.nvim_get_current_win(), vim.fn.win_getid(vim.fn.winnr("#")) }
  vim.list_extend(wins, api.nvim_tabpage_list_wins(0))
  for _, win in ipairs(wins) do
    if win ~= 0 and api.nvim_win_is_valid(win) and is_file(api.nvim_win_get_buf(win)) then
      return win
    end
  end
end

---@return table[]
local function buffers()
  local found = {}
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    if vim.bo[bufnr].buflisted and is_file(bufnr) then
      found[#found + 1] = {
        name = api.nvim_buf_get_name(bufnr),
        filetype = vim.bo[bufnr].filetype,
        modified = vim.bo[bufnr].modified,
        tick = api.nvim_buf_get_changedtick(bufnr),
      }
    end
  end
  return found
end

---@return table[]
local function diagnostics()
  local found = {}
  for _, diagnostic in ipairs(vim.diagnostic.get()) do
    if #found == MAX_DIAGNOSTICS then
      break
    end
    if api.nvim_buf_is_valid(diagnostic.bufnr) and is_file(diagnostic.bufnr) then
      found[#found + 1] = {
        path = api.nvim_buf_get_name(diagnostic.bufnr),
        line = diagnostic.lnum + 1,
        severity = SEVERITIES[diagnostic.severity] or "ERROR",
        message = diagnostic.message,
        source = diagnostic.source,
      }
    end
  end
  return found
end

---@return string[]
local function quickfix()
  local found = {}
  for _, item in ipairs(vim.fn.getqflist()) do
    if #found == MAX_QUICKFIX then
      break
    end
    local name = item.bufnr > 0 and api.nvim_buf_is_valid(item.bufnr) and api.nvim_buf_get_name(item.bufnr) or ""
    found[#found + 1] = ("%s:%d:%d: %s"):format(vim.fn.fnamemodify(name, ":."), item.lnum, item.col, item.text)
  end
  return found
end

---@param bufnr integer
---@return string
local function selection(bufnr)
  local first, last = api.nvim_buf_get_mark(bufnr, "<"), api.nvim_buf_get_mark(bufnr, ">")
  if first[1] == 0 or last[1] == 0 or last[1] > api.nvim_buf_line_count(bufnr) then
    return ""
  end
  return table.concat(api.nvim_buf_get_lines(bufnr, first[1] - 1, last[1], false), "\n")
end

---Take the snapshot.
---@return table snapshot
function M.snapshot()
  local win = work_window()
  local bufnr = win and api.nvim_win_get_buf(win)
  return {
    cwd = vim.fn.getcwd(),
    buffers = buffers(),
    current = bufnr and api.nvim_buf_get_name(bufnr) or nil,
    cursor = win and api.nvim_win_get_cursor(win) or nil,
    selection = bufnr and selection(bufnr) or nil,
    diagnostics = diagnostics(),
    quickfix = quickfix(),
  }
end

return M
