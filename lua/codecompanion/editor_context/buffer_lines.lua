---Reads lines of a buffer for the host, within size limits and as valid UTF-8.

local api = vim.api
local buffers = require("codecompanion.files.loaded_files")
local named = require("codecompanion.files.named_buffers")
local place = require("codecompanion.editor_context.working_window")

local M = {}

---Maximum size of a buffer's text: a larger one exceeds every context window, and sending it would be noticeably slow.
M.MAX_BYTES = 4000000

---Number of lines checked to detect a binary file, as in the host.
local SNIFFED_LINES = 200

---Matches ASCII text without NUL, five times as fast as a Lua pattern.
local IS_PLAIN = vim.lpeg.R("\1\127") ^ 0 * -1

M.name = named.name

---Return why a buffer has too much text to be sent.
---@param bufnr integer
---@return string? problem
---@return integer bytes
function M.too_large(bufnr)
  local bytes = api.nvim_buf_get_offset(bufnr, api.nvim_buf_line_count(bufnr))
  if bytes > M.MAX_BYTES then
    local size, most = bytes / 1e6, M.MAX_BYTES / 1e6
    return ("%s is %.1f MB, over the limit of %d MB"):format(M.name(bufnr), size, most), bytes
  end
  return nil, bytes
end

---@param bufnr integer
---@param first string[] The first lines of the buffer
---@return string? problem
local function not_text(bufnr, first)
  local has_nul = table.concat(first, "", 1, math.min(#first, SNIFFED_LINES)):find("\n", 1, true) ~= nil
  return has_nul and ("%s is not text"):format(M.name(bufnr)) or nil
end

---Return why the text of a buffer cannot be sent.
---@param bufnr integer
---@return string?
local function problem(bufnr)
  if not api.nvim_buf_is_loaded(bufnr) and not pcall(vim.fn.bufload, bufnr) then
    return ("%s cannot be read"):format(M.name(bufnr))
  end
  return not_text(bufnr, api.nvim_buf_get_lines(bufnr, 0, SNIFFED_LINES, false)) or (M.too_large(bufnr))
end

---@param lines string[]
---@return string
function M.join(lines)
  local text = table.concat(lines, "\n")
  if not IS_PLAIN:match(text) then
    text = buffers.shown(text):gsub("%z", "\n")
  end
  return text
end

---Return all lines of a buffer as one string.
---@param bufnr integer
---@param lines string[]
---@return string? text nil if there is no text or it cannot be sent
---@return string? problem
function M.checked(bufnr, lines)
  local why = not_text(bufnr, lines)
  local text = not why and M.join(lines) or ""
  return text:find("%S") and text or nil, why
end

---Return lines of a buffer as an editor text; without `first`, all lines.
---@param bufnr integer
---@param first? integer 1-based
---@param last? integer
---@return CodeCompanion.EditorContext.Text? text nil if there is no text or it cannot be sent
---@return string? problem
function M.text(bufnr, first, last)
  local why = problem(bufnr)
  if why then
    return nil, why
  end
  local lines = api.nvim_buf_get_lines(bufnr, first and first - 1 or 0, last or -1, false)
  local text, path = M.join(lines), place.path(bufnr)
  if not text:find("%S") then
    return nil
  end
  return {
    text = text,
    title = path == "" and M.name(bufnr) or nil,
    path = path,
    first = first or 1,
    whole = first == nil,
    language = vim.fn.getbufvar(bufnr, "&filetype"),
    unsaved = vim.fn.getbufvar(bufnr, "&modified") == 1,
  }
end

return M
