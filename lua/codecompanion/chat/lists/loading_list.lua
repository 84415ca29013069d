---A list that the host has to be asked for: it says that it loads when that takes a moment, and it never opens over
---something the user has turned to meanwhile. What came too late is shown at once when it is asked for again.

local api = vim.api
local buffer = require("codecompanion.chat.buffer.chat_text")
local installing = require("codecompanion.chat.state.install_status")
local registry = require("codecompanion.chat.state.open_chats")
local say = require("codecompanion.say")

local M = {}

local SAY_AFTER_MS = 300
local FRESH_MS = 60000

---@type table<string, { items: any, at: integer }> What came too late to be shown
local kept = {}
---@type integer The list that was asked for last; an older one is not shown any more
local newest = 0

---Where the user is and what they have typed.
---@return { win: integer, mode: string, text: string|integer }
local function place()
  local bufnr = api.nvim_get_current_buf()
  local chat = registry.by_buffer(bufnr)
  return {
    win = api.nvim_get_current_win(),
    mode = api.nvim_get_mode().mode:sub(1, 1),
    -- a reply that streams in changes the buffer, too
    text = chat and buffer.input_text(chat) or api.nvim_buf_get_changedtick(bufnr),
  }
end

---Say that a list is there, where it can be read: while somebody types, the command line is not.
---@param key string
---@param what string
local function offer(key, what)
  local function tell()
    if kept[key] then
      say.hint(("The %s are loaded; ask again to see them"):format(what))
    end
  end
  if api.nvim_get_mode().mode:sub(1, 1) == "i" then
    api.nvim_create_autocmd("InsertLeave", { once = true, callback = vim.schedule_wrap(tell) })
  else
    tell()
  end
end

---@class CodeCompanion.Loading
---@field what string In the plural, as in "Loading the stored chats…"
---@field key? string What tells it from the same list of another chat

---Ask for a list and show it, unless the user has gone on to something else by then.
---@param list CodeCompanion.Loading
---@param ask fun(done: fun(items?: any)) `done` is called once: with the items, or with nil when there are none to show
---@param show fun(items: any)
function M.list(list, ask, show)
  local key = list.what .. (list.key or "")
  local late = kept[key]
  kept[key] = nil
  if late and vim.uv.now() - late.at < FRESH_MS then
    return show(late.items)
  end
  newest = newest + 1
  local number, over, said = newest, false, false
  local started
  vim.schedule(function()
    started = place() -- after the command or the key that asks has been carried out
  end)
  vim.defer_fn(function()
    -- the command line says how far an installation is, which is what the list waits for
    if not over and number == newest and not installing.progress() then
      said = true
      say.hint(("Loading the %s…"):format(list.what))
    end
  end, SAY_AFTER_MS)
  ask(function(items)
    over = true
    if said then
      say.hint("")
    end
    if items == nil or number ~= newest then
      return
    elseif started and not vim.deep_equal(started, place()) then
      kept[key] = { items = items, at = vim.uv.now() }
      return offer(key, list.what)
    end
    show(items)
  end)
end

return M
