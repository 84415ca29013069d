---Sends the text of the input: as a message, as a branch if it edits an old message, or as a slash command.

local buffer = require("codecompanion.chat.buffer.chat_text")
local draft = require("codecompanion.chat.wire.draft")
local message = require("codecompanion.chat.wire.send_message")

local M = {}

---Send the text of the input, or run the slash command in it.
---@param chat CodeCompanion.Chat
function M.send(chat)
  buffer.ensure_input(chat)
  local text = buffer.input_text(chat)
  if text:find("^%s*$") then
    return
  end
  if require("codecompanion.chat.slash").execute(chat, text) then
    return
  end
  local edit = draft.editing(chat)
  if edit then
    return require("codecompanion.chat.life.fork").send(chat, edit, text, M.send)
  end
  local sent = message.send(chat, text, function()
    draft.sending(chat)
    draft.take(chat)
  end)
  if sent then
    chat.draft.saved = ""
  end
end

return M
