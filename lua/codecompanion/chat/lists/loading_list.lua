---Shows lists requested from the host: reports that a list is loading if it takes a moment, and never opens it over
---something else the user has started meanwhile. A late result is shown immediately on the next request.

local api = vim.api
local buffer = require("codecompanion.chat.buffer.chat_text")
local installing = require("codecompanion.chat.state.install_status")
local registry = require("codecompanion.chat.state.open_chats")
local say = require("codecompanion.say")

local M = {}

local SAY_AFTER_MS = 300
local FRESH_MS = 60000

---@type table<string, { items: any, at: integer }> Late results that were not shown
local kept = {}
---@type integer Number of the newest request; older lists are not shown
local newest = 0

---Return the user's current location and input.
---@return { win: integer, mode: string, text: string|integer }
local function place()
  local bufnr = api.nvim_get_current_buf()
  local chat = registry.by_buffer(bufnr)
  return {
    win = api.nvim_get_current_win(),
    mode = api.nvim_get_mode().mode:sub(1, 1),
    -- a streaming reply also changes the buffer
    text = chat and buffer.input_text(chat) or api.nvim_buf_get_changedtick(bufnr),
  }
end

---Report that a list is ready, once it can be read: not while the user types, because the command line is hidden then.
---@param key string
---@param what string
local function offer(key, what)
  local function tell()
    if kept[key] then
      say.hint(("The %s are loaded; open the list again"):format(what))
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
---@field key? string Distinguishes it from the same list of another chat

---Request a list and show it, unless the user has moved on meanwhile.
---@param list CodeCompanion.Loading
---@param ask fun(done: fun(items?: any)) `done` is called once: with the items, or with nil if there are none to show
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
    started = place() -- after the command or key that requested the list has finished
  end)
  vim.defer_fn(function()
    -- the command line shows the progress of the installation that the list waits for
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
