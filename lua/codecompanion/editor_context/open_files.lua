---Caches the listed buffers of the user's files, because reading the options of hundreds of buffers noticeably slows
---down each message. Name changes are sent to the host (`requests.GiveOpenFiles`).
---
---Events trigger a refresh, which runs when idle. If events are ignored (`:noautocmd`), the check after each message
---finds the change.

local api = vim.api

local M = {}

local READ_AFTER_MS = 200

---Events that may change the list; `BufAdd` and `BufDelete` also fire when 'buflisted' changes.
local EVENTS = { "BufAdd", "BufDelete", "BufWipeout", "BufFilePost", "TermOpen" }

---@class CodeCompanion.OpenFile
---@field bufnr integer
---@field name string "" if the buffer has no file yet

---@type CodeCompanion.OpenFile[]? A new table after each change
local listed
local is_old, is_waiting = true, false
---@type CodeCompanion.OpenFile[]?, integer? Last value sent to the host, and the channel used
local told, told_on

---@param bufnr integer Not 0
---@param name string
---@return any
local function option(bufnr, name)
  return vim.fn.getbufvar(bufnr, "&" .. name) -- six times as fast as `nvim_get_option_value`, ten times as `vim.bo`
end

---@return CodeCompanion.OpenFile[]
local function read()
  local found, is_same = {}, listed ~= nil
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    if option(bufnr, "buflisted") == 1 and option(bufnr, "buftype") == "" then
      local at, name = #found + 1, api.nvim_buf_get_name(bufnr)
      local before = is_same and listed[at]
      is_same = before and before.bufnr == bufnr and before.name == name or false
      found[at] = { bufnr = bufnr, name = name }
    end
  end
  is_old = false
  return is_same and #found == #listed and listed or found
end

---Refresh the list when idle.
local function read_soon()
  if not is_waiting then
    is_waiting = true
    vim.defer_fn(function()
      is_waiting = false
      listed = read()
    end, READ_AFTER_MS)
  end
end

local function changed()
  is_old = true
  read_soon()
end

local function watch()
  local group = api.nvim_create_augroup("codecompanion.open_files", { clear = true })
  api.nvim_create_autocmd(EVENTS, { group = group, callback = changed })
  api.nvim_create_autocmd("OptionSet", { group = group, pattern = "buftype", callback = changed })
end

---Return all listed buffers by number, including unnamed ones.
---@return CodeCompanion.OpenFile[]
function M.listed()
  if not listed then
    watch()
  end
  if is_old or not listed then
    listed = read()
  end
  return listed
end

---Return the files with unsaved changes, with their `changedtick`.
---@return { name: string, modified: true, tick: integer }[]
function M.modified()
  local found = {}
  for _, buf in ipairs(vim.fn.getbufinfo({ bufmodified = 1 })) do
    if buf.name ~= "" and buf.listed == 1 and option(buf.bufnr, "buftype") == "" then
      found[#found + 1] = { name = buf.name, modified = true, tick = buf.changedtick }
    end
  end
  return found
end

---Return the names of all files, if they differ from those last sent on this channel.
---@param channel integer
---@return { names: string[] }? payload
function M.changes(channel)
  local now = M.listed()
  read_soon()
  if told == now and told_on == channel then
    return nil
  end
  told, told_on = now, channel
  local names = {}
  for _, file in ipairs(now) do
    names[#names + 1] = file.name ~= "" and file.name or nil
  end
  return { names = names }
end

return M
