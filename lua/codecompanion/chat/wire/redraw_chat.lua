---One way to draw a chat: empty its buffer, and let the host tell from the log what belongs there.
---
---Whatever Vim did to the text (`:e`, `:bd`, a session file, an edit of what was sent), the chat comes back the same:
---draft, messages on their way, what the user opened, where the cursors were. The chat itself goes on in the host.

local api = vim.api
local anchors = require("codecompanion.chat.buffer.anchors")
local approval = require("codecompanion.chat.question.approval")
local buffer = require("codecompanion.chat.buffer.chat_text")
local draft = require("codecompanion.chat.wire.draft")
local folds = require("codecompanion.chat.buffer.folds")
local host = require("codecompanion.host")
local outgoing = require("codecompanion.chat.wire.outgoing")
local places = require("codecompanion.chat.buffer.cursor_places")
local record = require("codecompanion.chat.state.chat_record")
local session = require("codecompanion.chat.state.session")

local M = {}

---The draft as the user left it, also when the text of the buffer is lost.
---@param chat CodeCompanion.Chat
---@return string
local function draft_text(chat)
  local kept = chat.draft.kept
  chat.draft.kept = nil
  return kept or buffer.input_text(chat)
end

---Empty the buffer but for the draft and what is being sent.
---@param chat CodeCompanion.Chat
function M.blank(chat)
  local text = draft_text(chat)
  approval.put_away(chat)
  chat.stream = nil
  -- marks outlive their lines: with them their virtual text would gather on the first line
  anchors.clear_marks(chat)
  record.reset(chat)
  buffer.blank(chat, text)
  for _, win in ipairs(vim.fn.win_findbuf(chat.bufnr)) do
    folds.apply(chat, win)
  end
  outgoing.draw_all(chat)
  draft.redrawn(chat)
  places.settle_partly(chat)
end

---Draw the chat again, out of the log.
---@param chat CodeCompanion.Chat
function M.redraw(chat)
  if not api.nvim_buf_is_loaded(chat.bufnr) then
    return
  end
  M.blank(chat)
  if chat.attached == "yes" and not chat.read_only then
    chat.awaiting = "redrawn"
    host.notify("redraw_chat", { chat = chat.id })
  elseif chat.attached == "opening" then
    chat.awaiting = "chat_opened"
  elseif chat.known or chat.stored then
    chat.attached, chat.awaiting = "no", "chat_opened"
    session.attach(chat)
  end
end

---What comes now is everything.
---@param chat CodeCompanion.Chat
function M.begin(chat)
  if chat.awaiting ~= "redrawn" then
    places.remember(chat)
    M.blank(chat)
  end
  chat.awaiting, chat.ignore_restored = nil, false
end

return M
