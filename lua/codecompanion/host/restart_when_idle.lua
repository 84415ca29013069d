---Delays a restart of the host until no chat is in a turn, because a running turn would be lost.

local M = {}

---@type table<string, true> Chats with running work
local busy = {}
---@type fun()? The delayed restart
local waiting = nil

local function restart_if_idle()
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
    vim.schedule(restart_if_idle) -- not now, because the host is waiting for this event to be handled
  end
end

---@param restart fun()
function M.restart(restart)
  waiting = restart
  vim.schedule(restart_if_idle)
end

---Reset the state after the host has exited.
function M.forget()
  busy, waiting = {}, nil
end

return M
