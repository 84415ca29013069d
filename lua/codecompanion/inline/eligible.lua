---Decides where and when suggestions may appear (R-262, R-266): in a buffer, and at this moment. Each refusal is a
---sentence, which `:CodeCompanion complete status` shows.

local menus = require("codecompanion.inline.open_menus")

local api = vim.api

local M = {}

local MEGABYTE = 1024 * 1024
local MAX_LINE_BYTES = 10000
local VISUAL_BLOCK = "\22"

---Refusals by the host, by buffer: a buffer gets no suggestions while it has the refused name (for example, a secret
---file).
---@type table<integer, { name: string, why: string }>
local refused = {}
---Whether text is being inserted into a block of lines, where Neovim repeats only typed text.
local in_block = false

---@return table `completion` of the options
local function options()
  return require("codecompanion.config").options.completion
end

---Store the host's refusal for a buffer, until its name changes.
---@param bufnr integer
---@param why string
function M.refuse(bufnr, why)
  refused[bufnr] = { name = api.nvim_buf_get_name(bufnr), why = why }
end

---@param bufnr integer
function M.forget(bufnr)
  refused[bufnr] = nil
end

---Record a mode change: Insert mode entered from a visual block inserts into all of its lines.
---@param from string
---@param to string
function M.on_mode(from, to)
  if to:sub(1, 1) == "i" and from == VISUAL_BLOCK then
    in_block = true
  elseif to:sub(1, 1) ~= "i" then
    in_block = false
  end
end

---@param bufnr integer
---@return string?
local function file_problem(bufnr)
  local name = api.nvim_buf_get_name(bufnr)
  if name:find("^%a[%w+.-]+://") then
    return "not a file on this machine"
  end
  local answer = refused[bufnr]
  if answer and answer.name == name then
    return answer.why
  end
  local limit = options().max_file_size_mb
  if api.nvim_buf_get_offset(bufnr, api.nvim_buf_line_count(bufnr)) > limit * MEGABYTE then
    return ("the file is larger than completion.max_file_size_mb = %s"):format(limit)
  end
end

---Return why a buffer never gets suggestions, or nil.
---@param bufnr integer
---@return string?
function M.buffer_problem(bufnr)
  local bo, send_code = vim.bo[bufnr], require("codecompanion.editor_context.send_code")
  if not send_code.is_allowed() then
    return send_code.WHY
  elseif bo.filetype == "codecompanion" then
    return "this is a chat; suggestions are for files"
  elseif bo.buftype ~= "" then
    return bo.buftype == "prompt" and "the buffer is a prompt"
      or ("the buffer is not a file ('buftype' is %s)"):format(bo.buftype)
  elseif not bo.modifiable then
    return "'modifiable' is off"
  elseif bo.readonly then
    return "the file is read-only"
  elseif vim.b[bufnr].codecompanion_complete == false then
    return "switched off by b:codecompanion_complete"
  end
  local filetypes = options().filetypes
  local wanted = filetypes[bo.filetype]
  if wanted == nil then
    wanted = filetypes["*"] ~= false
  end
  if not wanted then
    return ("completion.filetypes is false for %s"):format(bo.filetype == "" and "*" or bo.filetype)
  end
  return file_problem(bufnr)
end

---Return why the current window gets no suggestion at this moment, or nil.
---@return string?
function M.moment_problem()
  if api.nvim_get_mode().mode ~= "i" then
    return "only in Insert mode"
  elseif in_block then
    return "not while several lines are being changed"
  elseif vim.fn.reg_recording() ~= "" or vim.fn.reg_executing() ~= "" then
    return "not while a macro is being recorded or executed"
  elseif vim.fn.getcmdwintype() ~= "" then
    return "not in the command-line window"
  elseif vim.o.paste or vim.o.revins then
    return "not while 'paste' or 'revins' is set"
  elseif vim.fn.getcurpos()[4] > 0 then
    return "not past the end of a line"
  elseif menus.is_open() then
    return "not while a menu is open"
  elseif vim.fn.col("$") > MAX_LINE_BYTES then
    return "the line is too long"
  end
end

return M
