---The listed buffers of the user's files, remembered: reading the options of hundreds of buffers is felt at every
---message. The host is told their names when they change (`requests.GiveOpenFiles`).
---
---Events say when to read them again, which is done while idle. Where events are ignored (`:noautocmd`), the look
---after each message finds the change.

local api = vim.api

local M = {}

local READ_AFTER_MS = 200

---`BufAdd` and `BufDelete` also follow 'buflisted'.
local EVENTS = { "BufAdd", "BufDelete", "BufWipeout", "BufFilePost", "TermOpen" }

---@class CodeCompanion.OpenFile
---@field bufnr integer
---@field name string "" = it has no file yet

---@type CodeCompanion.OpenFile[]? Another table whenever they changed
local listed
local is_old, is_waiting = true, false
---@type CodeCompanion.OpenFile[]?, integer? What the host was told, and on which channel
local told, told_on

---@param bufnr integer Not 0
---@param name string
---@return any
local function option(bufnr, name)
  return vim.fn.getbufvar(bufnr, "&" .. name) -- a sixth of what `nvim_get_option_value` costs, a tenth of `vim.bo`
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

---Read them again when nothing else happens.
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

---All of them, those without a name included, by number.
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

---Those with unsaved changes, with the `changedtick`.
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

---The names of all, where they are not what was told last on this channel.
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
