---Redraws a chat: empties its buffer, and lets the host send the content from the log.
---
---Whatever changed the text (`:e`, `:bd`, a session file, an edit of sent messages), the chat is restored completely:
---draft, messages being sent, opened folds, cursors. The chat itself keeps running in the host.

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

---Return the draft, even if the text of the buffer was lost.
---@param chat CodeCompanion.Chat
---@return string
local function draft_text(chat)
  local kept = chat.draft.kept
  chat.draft.kept = nil
  return kept or buffer.input_text(chat)
end

---Empty the buffer except for the draft and the messages being sent.
---@param chat CodeCompanion.Chat
function M.blank(chat)
  local text = draft_text(chat)
  approval.put_away(chat)
  chat.stream = nil
  -- marks outlive their lines: their virtual text would pile up on the first line
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

---Redraw the chat from the log.
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

---Start a complete redraw: the events that follow contain everything.
---@param chat CodeCompanion.Chat
function M.begin(chat)
  if chat.awaiting ~= "redrawn" then
    places.remember(chat)
    M.blank(chat)
  end
  chat.awaiting, chat.ignore_restored = nil, false
end

return M
