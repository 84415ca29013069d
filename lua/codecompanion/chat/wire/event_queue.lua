---Queues events and draws them in order, in slices, so that neither a burst nor a long text blocks the editor.

local api = vim.api
local events = require("codecompanion.chat.wire.events")
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

local M = {}

local BUDGET_MS = 4
local PAUSE_MS = 1
local BURST = 500
local MAX_TEXT_BYTES = 6 * 1024

local STREAMED = { text = true, reasoning = true }

---@class CodeCompanion.Queue
---@field items table[]
---@field head integer Index of the next event
---@field scheduled boolean
---@field breathed? boolean Drawing waits until the burst has settled

---Return the next event; adjacent pieces of text are merged, long ones are split.
---@param queue CodeCompanion.Queue
---@return table? event
local function next_event(queue)
  local event = queue.items[queue.head]
  if not event then
    return nil
  end
  if not STREAMED[event.type] then
    queue.head = queue.head + 1
    return event
  end
  local parts, bytes = {}, 0
  while true do
    local other = queue.items[queue.head]
    if not other or other.type ~= event.type or bytes >= MAX_TEXT_BYTES then
      break
    end
    local text = other.text
    if bytes + #text > 2 * MAX_TEXT_BYTES then
      local cut = MAX_TEXT_BYTES + vim.str_utf_end(text, MAX_TEXT_BYTES)
      queue.items[queue.head] = { type = event.type, text = text:sub(cut + 1) }
      text = text:sub(1, cut)
    else
      queue.head = queue.head + 1
    end
    parts[#parts + 1] = text
    bytes = bytes + #text
  end
  return { type = event.type, text = table.concat(parts) }
end

---@param chat CodeCompanion.Chat
---@param event table
local function handle(chat, event)
  local handler = require("codecompanion.chat.wire.unloaded_buffers")(chat, event)
  if not handler then
    return
  end
  local ok, problem = xpcall(handler, debug.traceback, chat, event)
  if not ok then
    -- an error while drawing must not drop the rest of the reply
    say.once(("CodeCompanion: could not draw %s: %s"):format(event.type, problem), severity.ERROR)
  end
end

---@param chat CodeCompanion.Chat
local pump
pump = function(chat)
  local queue = chat.queue
  queue.scheduled = false
  if not api.nvim_buf_is_valid(chat.bufnr) then
    return
  end
  if #queue.items > BURST and not queue.breathed then
    -- receiving this many events has already used its share of the editor's time
    queue.breathed, queue.scheduled = true, true
    vim.defer_fn(function()
      pump(chat)
    end, PAUSE_MS)
    return
  end
  local start = vim.uv.hrtime()
  repeat
    local event = next_event(queue)
    if event then
      handle(chat, event)
    end
  until not event or (vim.uv.hrtime() - start) / 1e6 >= BUDGET_MS or not api.nvim_buf_is_valid(chat.bufnr)
  if not api.nvim_buf_is_valid(chat.bufnr) then
    return
  end
  events.after(chat)
  if queue.items[queue.head] then
    queue.scheduled = true
    vim.defer_fn(function()
      pump(chat)
    end, PAUSE_MS)
  else
    queue.items, queue.head, queue.breathed = {}, 1, false
  end
end

---@param chat CodeCompanion.Chat
---@param event table
function M.push(chat, event)
  local queue = chat.queue
  queue.items[#queue.items + 1] = event
  if not queue.scheduled then
    queue.scheduled = true
    vim.schedule(function()
      pump(chat)
    end)
  end
end

return M
