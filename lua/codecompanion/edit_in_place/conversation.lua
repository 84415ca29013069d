---The chat of an edit: it has no window, but is stored, counted and priced like any other, and can be opened.

local host = require("codecompanion.host")

local M = {}

---@class CodeCompanion.EditConversation
---@field id string Of the chat
---@field submits integer
---@field key string What makes the keys of its submits unique
---@field is_open boolean The host has been asked to open it
---@field on_event fun(event: table)
---@field stop? fun() Ends listening; nil when nobody listens

---@param adapter? string|{ name: string, model?: string }
---@param id string
local function open(adapter, id)
  local name = type(adapter) == "table" and adapter.name or adapter --[[@as string?]]
  local secrets = name and require("codecompanion.config").secrets(name) or {}
  if next(secrets) ~= nil then
    host.notify("give_secrets", { secrets = secrets })
  end
  host.notify("open_chat", {
    chat = id,
    snapshot = require("codecompanion.editor").snapshot(),
    adapter = name,
    model = type(adapter) == "table" and adapter.model or nil,
  })
end

---Whether the chat has a buffer of its own by now.
---@param id string
---@return boolean
function M.has_window(id)
  return vim.fn.bufloaded("codecompanion://" .. id) == 1
end

---@param conversation CodeCompanion.EditConversation
local function listen(conversation)
  conversation.stop = conversation.stop
    or host.subscribe(function(event)
      if event.chat == conversation.id or event.type == "host_exit" then
        conversation.on_event(event)
      end
    end)
end

---Open a chat; nothing is sent yet. `on_event` gets its events, and those of the host's end.
---@param on_event fun(event: table)
---@return CodeCompanion.EditConversation
function M.open(on_event)
  local token = require("codecompanion.chat.state.record").new_id()
  local conversation = { id = token, submits = 0, key = "edit:" .. token, is_open = true }
  conversation.on_event = on_event
  listen(conversation)
  open(require("codecompanion.config").options.interactions.inline.adapter, token)
  return conversation
end

---Send an instruction.
---@param conversation CodeCompanion.EditConversation
---@param text string
---@param target table As `requests.EditTarget`
function M.submit(conversation, text, target)
  local snapshot = require("codecompanion.editor").snapshot()
  if not conversation.is_open and not M.has_window(conversation.id) then
    host.notify("open_chat", { chat = conversation.id, snapshot = snapshot, resume = conversation.id })
  end
  conversation.is_open = true
  listen(conversation)
  conversation.submits = conversation.submits + 1
  host.notify("submit", {
    chat = conversation.id,
    submit_id = conversation.submits,
    key = ("%s:%d"):format(conversation.key, conversation.submits),
    text = text,
    snapshot = snapshot,
    edit = target,
  })
end

---Stop what runs.
---@param conversation CodeCompanion.EditConversation
function M.cancel(conversation)
  host.notify("cancel", { chat = conversation.id })
end

---The host has ended: the next submit opens the chat again.
---@param conversation CodeCompanion.EditConversation
function M.lost(conversation)
  conversation.is_open = false
end

---Nothing more is asked: give the chat back, unless it is a buffer by now. The history keeps it.
---@param conversation CodeCompanion.EditConversation
function M.close(conversation)
  if conversation.stop then
    conversation.stop()
    conversation.stop = nil
  end
  if conversation.is_open and not M.has_window(conversation.id) then
    host.notify("close_chat", { chat = conversation.id })
  end
  conversation.is_open = false
end

---Show it as a chat.
---@param conversation CodeCompanion.EditConversation
function M.show(conversation)
  if conversation.is_open and not M.has_window(conversation.id) then
    host.notify("close_chat", { chat = conversation.id }) -- the buffer opens it again
  end
  conversation.is_open = true
  require("codecompanion.chat").resume(conversation.id)
end

return M
