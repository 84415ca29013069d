---A restart of the host that is put off until no chat is in a turn, which would be lost.

local M = {}

---@type table<string, true> Chats in which something runs
local busy = {}
---@type fun()? The restart that waits
local waiting = nil

local function go_on()
  if waiting and next(busy) == nil then
    local restart = waiting
    waiting = nil
    restart()
  end
end

---@param event CodeCompanion.Event.State
function M.note(event)
  busy[event.chat] = event.state ~= "idle" or nil
  if waiting then
    vim.schedule(go_on) -- not while the host waits for what taking this event costs
  end
end

---@param restart fun()
function M.restart(restart)
  waiting = restart
  vim.schedule(go_on)
end

---The host is gone: nothing runs in it, and there is nothing to restart.
function M.forget()
  busy, waiting = {}, nil
end

return M
