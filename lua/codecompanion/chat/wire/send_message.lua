---Sends a message to the model: draws it above the input and passes it to the host.

local api = vim.api
local buffer = require("codecompanion.chat.buffer.chat_text")
local look_for_model = require("codecompanion.chat.wire.look_for_model")
local outgoing = require("codecompanion.chat.wire.outgoing")
local say = require("codecompanion.say")
local session = require("codecompanion.chat.state.session")
local severity = require("codecompanion.severity")
local view = require("codecompanion.chat.buffer.scroll")

local M = {}

---Return the current editor context that the message mentions; nothing is loaded for a message without mentions.
---@param chat CodeCompanion.Chat
---@param text string
---@return table[]? items
---@return (fun(done: fun(items: table[])))? later
---@return string? problem
local function mentioned(chat, text)
  if not text:find("#{", 1, true) then
    return nil
  end
  local items, later, problem = require("codecompanion.editor_context").take(text, { id = chat.id, bufnr = chat.bufnr })
  return #items > 0 and items or nil, later, problem
end

---Send text as the user's message. Text with an invalid mention stays in the input, or is put there.
---@param chat CodeCompanion.Chat
---@param text string
---@param before? fun() Runs in the same edit of the buffer, because most of the cost of an edit does not depend on its
---lines
---@return boolean sent
function M.send(chat, text, before)
  local items, later, problem = mentioned(chat, text)
  if problem then
    say.chat(chat, problem, severity.WARN)
    if not before then
      require("codecompanion.chat.wire.draft").prepend(chat, text)
    end
    return false
  end
  local sent ---@type CodeCompanion.Outgoing
  buffer.edit(chat, function()
    if before then
      before()
    end
    sent = outgoing.add(chat, text)
  end)
  if api.nvim_get_current_buf() == chat.bufnr then
    view.cursor_to_input(chat)
  end
  local payload = {
    submit_id = sent.submit_id,
    key = sent.key,
    text = text,
    snapshot = require("codecompanion.editor_context.snapshot").snapshot(),
    items = items,
  }
  look_for_model.before(chat, function()
    if not vim.list_contains(chat.outgoing, sent) then
      return -- withdrawn meanwhile
    end
    session.notify(chat, "submit", payload)
    if later then
      later(function(answers)
        session.notify(chat, "editor_context", { submit_id = sent.submit_id, items = answers })
      end)
    end
  end)
  return true
end

return M
