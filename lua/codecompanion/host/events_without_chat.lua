---Handles events that belong to no chat and therefore have no buffer.

local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

local M = {}

---The host functions that an event may call, provided by `codecompanion.host`.
---@class CodeCompanion.HostOfEvents
---@field request fun(verb: string, payload: table?, callback: CodeCompanion.HostCallback?)
---@field notify fun(verb: string, payload: table?)
---@field status fun(): CodeCompanion.HostStatus, string
---@field restart_when_idle fun(text: string)

---@param host CodeCompanion.HostOfEvents
---@return fun(): boolean
local function is_ready(host)
  return function()
    return host.status() == "ready"
  end
end

---@type table<string, fun(event: table, host: CodeCompanion.HostOfEvents)>
local meanings = {
  notice = function(event)
    say.line(event.text, severity[event.level])
  end,
  request_failed = function(event)
    if not event.gone then
      say.line(event.error, severity.ERROR)
    end
  end,
  host_ready = function(event)
    require("codecompanion.config").take_from_host(event.mistakes or {})
  end,
  mistakes = function(event)
    require("codecompanion.config").take_from_host(event.mistakes, event.failures)
  end,
  host_exit = function()
    local tools = package.loaded["codecompanion.host.run_own_tools"]
    if tools then
      tools.stop_all()
    end
  end,
  mcp_changed = function(_, host)
    require("codecompanion.host.mcp_servers").changed(host.request, is_ready(host))
  end,
  packages_missing = function(event, host)
    require("codecompanion.install").add(event.extra, function(problem)
      if not problem then
        host.restart_when_idle("Packages installed; the Python process restarts with them.")
      end
    end)
  end,
  index_progress = function(event, host)
    require("codecompanion.host.index_progress").show(event, host.notify, is_ready(host))
  end,
}

---@param event table
---@param host CodeCompanion.HostOfEvents
function M.show(event, host)
  local meaning = meanings[event.type]
  if meaning then
    meaning(event, host)
  end
end

return M
