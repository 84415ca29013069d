---A text on its way to the model: drawn above the input, and handed to the host.

local api = vim.api
local buffer = require("codecompanion.chat.buffer.text")
local outgoing = require("codecompanion.chat.wire.outgoing")
local session = require("codecompanion.chat.state.session")
local view = require("codecompanion.chat.buffer.view")

local M = {}

---Send a text as the user's message.
---@param chat CodeCompanion.Chat
---@param text string
---@param before? fun() Done in the same edit of the buffer: what an edit costs beside its lines is most of what is felt
function M.send(chat, text, before)
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
  session.notify(chat, "submit", {
    submit_id = sent.submit_id,
    key = sent.key,
    text = text,
    snapshot = require("codecompanion.editor").snapshot(),
  })
end

return M
