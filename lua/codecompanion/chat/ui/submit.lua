---Sending what stands in the input: as a message, as a branch where an old one is edited, or as a slash command.

local api = vim.api
local buffer = require("codecompanion.chat.buffer.text")
local draft = require("codecompanion.chat.wire.draft")
local outgoing = require("codecompanion.chat.wire.outgoing")
local session = require("codecompanion.chat.state.session")
local view = require("codecompanion.chat.buffer.view")

local M = {}

---Send what stands in the input region, or carry out the slash command that stands there.
---@param chat CodeCompanion.Chat
function M.send(chat)
  buffer.ensure_input(chat)
  local text = buffer.input_text(chat)
  if text:find("^%s*$") then
    return
  end
  if require("codecompanion.slash").execute(chat, text) then
    return
  end
  local edit = draft.editing(chat)
  if edit then
    return require("codecompanion.chat.ui.fork").send(chat, edit, text, M.send)
  end
  draft.sending(chat)
  local sent ---@type CodeCompanion.Outgoing
  buffer.edit(chat, function() -- one edit: what an edit costs beside its lines is most of what is felt
    draft.take(chat)
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
  chat.draft.saved = ""
end

return M
