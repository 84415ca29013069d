---Sends manual changes of the view to the host: undo, redo, restore, pin, recall. The host decides, and answers with
---one sentence.

local host = require("codecompanion.host")
local say = require("codecompanion.say")
local session = require("codecompanion.chat.state.session")

local M = {}

---Request a change of the view from the host and show its result in one line.
---@param chat CodeCompanion.Chat
---@param verb string
---@param payload table
---@param done? fun() Called after success
---@param refuse? fun(reason: string) Called after a failure
local function ask(chat, verb, payload, done, refuse)
  session.attach(chat)
  payload.chat = chat.id
  local answer = say.answer(done, refuse)
  host.request(verb, payload, function(err, sentence)
    answer(err and chat.read_only and session.READ_ONLY or err, sentence)
  end)
end

---Undo the newest change; `change_id` is the one under the cursor, which must be the newest.
---@param chat CodeCompanion.Chat
---@param change_id? string
---@param done? fun()
function M.undo(chat, change_id, done)
  ask(chat, "undo_change", { change_id = change_id or "" }, done)
end

---Redo the last undone change.
---@param chat CodeCompanion.Chat
---@param change_id? string
---@param done? fun()
function M.redo(chat, change_id, done)
  ask(chat, "redo_change", { change_id = change_id or "" }, done)
end

---Put the original of one message back into the view.
---@param chat CodeCompanion.Chat
---@param id string Message or call id
---@param done? fun()
function M.restore(chat, id, done)
  ask(chat, "restore_message", { item = id }, done)
end

---Clear one tool result.
---@param chat CodeCompanion.Chat
---@param id string Message or call id
---@param done? fun()
function M.clear(chat, id, done)
  ask(chat, "clear_message", { item = id }, done)
end

---Pin a message, or a string as an instruction; with neither, the newest message.
---@param chat CodeCompanion.Chat
---@param what { item?: string, text?: string }
---@param done? fun()
---@param refuse? fun(reason: string)
function M.pin(chat, what, done, refuse)
  ask(chat, "pin", { item = what.item or "", text = what.text or "" }, done, refuse)
end

---@param chat CodeCompanion.Chat
---@param what { item?: string, number?: integer }
---@param done? fun()
---@param refuse? fun(reason: string)
function M.unpin(chat, what, done, refuse)
  ask(chat, "unpin", { item = what.item or "", number = what.number or 0 }, done, refuse)
end

return M
