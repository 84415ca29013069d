---Takes a snapshot of the editor for the host when a request is made (`requests.Snapshot`).
---
---The chat's own windows and buffers are excluded: "current" means where the user works.

local api = vim.api
local open_files = require("codecompanion.editor_context.open_files")
local place = require("codecompanion.editor_context.working_window")

local M = {}

local MAX_DIAGNOSTICS = 500

local SEVERITIES = { "ERROR", "WARN", "INFO", "HINT" }

---Return the diagnostics of open files, for the tool that lists them.
---@return table[]
function M.diagnostics()
  local found, names = {}, {}
  for _, diagnostic in ipairs(vim.diagnostic.get()) do
    local bufnr = diagnostic.bufnr
    if #found == MAX_DIAGNOSTICS then
      break
    end
    if names[bufnr] == nil then
      local is_file = api.nvim_buf_is_valid(bufnr) and place.is_file(bufnr)
      names[bufnr] = is_file and api.nvim_buf_get_name(bufnr) or ""
    end
    if names[bufnr] ~= "" then
      found[#found + 1] = {
        path = names[bufnr],
        line = diagnostic.lnum + 1,
        severity = SEVERITIES[diagnostic.severity] or "ERROR",
        message = diagnostic.message,
        source = diagnostic.source,
      }
    end
  end
  return found
end

---Return a snapshot.
---@return table snapshot
function M.snapshot()
  local win = place.window()
  local bufnr = win and api.nvim_win_get_buf(win)
  return {
    cwd = vim.fn.getcwd(),
    buffers = open_files.modified(),
    current = bufnr and api.nvim_buf_get_name(bufnr) or nil,
    cursor = win and api.nvim_win_get_cursor(win) or nil,
    visible = win and place.visible(win) or nil,
    send_code = require("codecompanion.editor_context.send_code").is_allowed(),
  }
end

return M
