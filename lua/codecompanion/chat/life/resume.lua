---Resumes stored chats and checkpoints, by id, by title, or from a list.

local host = require("codecompanion.host")
local life = require("codecompanion.chat.life")
local registry = require("codecompanion.chat.state.open_chats")
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

local M = {}

---Minimum number of hexadecimal digits in an id; a shorter string may be a title.
local ID_DIGITS = 2 * require("codecompanion.chat.state.chat_record").ID_BYTES

---Resume a stored chat; without an id the user chooses one.
---@param id? string Id or title of a stored chat, or "last"
---@param opts? { layout?: string, check?: boolean, hidden?: boolean } `check`: ask the host first whether the chat
---exists; `hidden`: show no window
---@param refuse? fun(reason: string) Called if there is no such chat; by default the command line shows it
function M.resume(id, opts, refuse)
  if not id or id == "" or id == "last" then
    life.subscribe()
    require("codecompanion.chat.lists.pickers").session(id == "last", function(chosen)
      life.open_stored(chosen, opts)
    end)
    return
  end
  local is_id = #id >= ID_DIGITS and id:find("^%x+$") ~= nil
  if registry.by_id(id) or (is_id and not (opts and opts.check)) then
    return life.open_stored(id, opts) -- subscribes once the host is starting
  end
  life.subscribe()
  local function show(found)
    if found then
      return life.open_stored(found, opts)
    end
    local reason = ("No stored chat is called %q"):format(id)
    if refuse then
      return refuse(reason .. "; /resume lists them.")
    end
    say.line(reason, severity.WARN)
  end
  local list = require("codecompanion.chat.lists.resume_list")
  if not is_id then
    return list.find(id, show)
  end
  list.find_id(id, show, function()
    life.open_stored(id, opts) -- the chat reports the problem with the host
  end)
end

---Restore a checkpoint as a new chat; the old one is unchanged.
---@param id? string Id of a chat (uses its best checkpoint) or of a checkpoint; without it the user chooses one
---@param opts? { layout?: string }
---@param refuse? fun(reason: string) Called with the reason for a failure; by default the command line shows it
function M.restore(id, opts, refuse)
  life.subscribe()
  if not id or id == "" then
    require("codecompanion.chat.lists.pickers").checkpoint("", function(chosen)
      M.restore(chosen, opts)
    end)
    return
  end
  local payload = { checkpoint = id, snapshot = require("codecompanion.editor_context.snapshot").snapshot() }
  host.request("restore_chat", payload, function(err, restored)
    if err and refuse then
      return refuse(err)
    elseif err then
      return say.line(err, severity.ERROR)
    end
    life.open_stored(restored.chat, opts)
  end)
end

return M
