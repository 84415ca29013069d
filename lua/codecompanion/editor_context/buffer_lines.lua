---Lines of a buffer as the host gets them: within bounds, and valid UTF-8.

local api = vim.api
local buffers = require("codecompanion.files.loaded_files")
local named = require("codecompanion.files.named_buffers")
local place = require("codecompanion.editor_context.working_window")

local M = {}

---More is in no context window, and would be felt when it is sent.
M.MAX_BYTES = 4000000

---So much is looked at to find out that a buffer is no text, as the host does.
local SNIFFED_LINES = 200

---@param bufnr integer
---@return boolean
local function is_binary(bufnr)
  for _, line in ipairs(api.nvim_buf_get_lines(bufnr, 0, SNIFFED_LINES, false)) do
    if line:find("\n", 1, true) then -- a NUL
      return true
    end
  end
  return false
end

M.name = named.name

---Why the text of a buffer cannot be sent.
---@param bufnr integer
---@return string?
local function problem(bufnr)
  if not api.nvim_buf_is_loaded(bufnr) and not pcall(vim.fn.bufload, bufnr) then
    return ("%s cannot be read"):format(M.name(bufnr))
  end
  if is_binary(bufnr) then
    return ("%s is not text"):format(M.name(bufnr))
  end
  local bytes = api.nvim_buf_get_offset(bufnr, api.nvim_buf_line_count(bufnr))
  if bytes > M.MAX_BYTES then
    local megabytes = bytes / 1e6
    return ("%s has %.1f MB, more than the %d MB that can be sent"):format(M.name(bufnr), megabytes, M.MAX_BYTES / 1e6)
  end
end

---@param lines string[]
---@return string
function M.join(lines)
  return buffers.shown((table.concat(vim.tbl_map(buffers.shown, lines), "\0"))):gsub("%z", "\n")
end

---Lines of a buffer as a text of the editor; without `first` all of them.
---@param bufnr integer
---@param first? integer 1-based
---@param last? integer
---@return CodeCompanion.EditorContext.Text? text nil = it has no text, or it cannot be sent
---@return string? problem
function M.text(bufnr, first, last)
  local why = problem(bufnr)
  if why then
    return nil, why
  end
  local lines = api.nvim_buf_get_lines(bufnr, first and first - 1 or 0, last or -1, false)
  if not table.concat(lines):find("%S") then
    return nil
  end
  return {
    text = M.join(lines),
    title = place.path(bufnr) == "" and M.name(bufnr) or nil,
    path = place.path(bufnr),
    first = first or 1,
    whole = first == nil,
    language = vim.bo[bufnr].filetype,
    unsaved = vim.bo[bufnr].modified,
  }
end

return M
