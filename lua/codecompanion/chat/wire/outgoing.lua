---Manages messages being sent: they move from the input to the history, or back into the draft after a failure.
---
---The exact text of the input is sent (lesson 37). It becomes a block above the input at once, and a normal turn when
---the host confirms that it is stored; until then it must not be lost.

local api = vim.api
local anchors = require("codecompanion.chat.buffer.anchors")
local blocks = require("codecompanion.chat.draw.blocks")
local buffer = require("codecompanion.chat.buffer.chat_text")
local draft = require("codecompanion.chat.wire.draft")
local draw = require("codecompanion.chat.draw.put_blocks")
local installing = require("codecompanion.chat.state.install_status")
local marks = require("codecompanion.chat.buffer.row_marks")
local notices = require("codecompanion.chat.draw.notices")
local session = require("codecompanion.chat.state.session")

local M = {}

---@class CodeCompanion.Outgoing
---@field submit_id integer
---@field key string Unique across editors
---@field text string
---@field block CodeCompanion.Block
---@field queued? string The reason why it waits in the host
---@field unsure? boolean The host that received it has exited, and may have stored it

---@param chat CodeCompanion.Chat
---@param outgoing CodeCompanion.Outgoing
---@return { [1]: string, [2]: string }[]
local function mark_of(chat, outgoing)
  local mark = installing.waits(chat) and "sent when ready" or "sending…"
  mark = outgoing.unsure and "checking whether it was sent…" or outgoing.queued or mark
  return { { mark, "CodeCompanionPending" } }
end

---@param chat CodeCompanion.Chat
---@param outgoing CodeCompanion.Outgoing
---@param is_first boolean
local function draw_block(chat, outgoing, is_first)
  local right = mark_of(chat, outgoing)
  outgoing.block = blocks.user(outgoing.text, { submit_id = outgoing.submit_id }, right)
  draw.sequence(chat, (anchors.position(chat, "header")), { outgoing.block })
  -- the block belongs below the tail, but marks on its row moved along with it
  if is_first then
    anchors.place(chat, "tail", (marks.item_rows(chat, outgoing.block.item)))
  end
end

---Show `text` above the input as a message being sent; the input must be intact.
---@param chat CodeCompanion.Chat
---@param text string
---@return CodeCompanion.Outgoing
function M.add(chat, text)
  notices.happened(chat, "input")
  chat.submit_id = chat.submit_id + 1
  local outgoing = { submit_id = chat.submit_id, key = chat.nonce .. ":" .. chat.submit_id, text = text }
  draw_block(chat, outgoing, #chat.outgoing == 0)
  chat.outgoing[#chat.outgoing + 1] = outgoing
  draw.touch(chat)
  return outgoing
end

---Redraw the messages being sent above the input of an emptied buffer.
---@param chat CodeCompanion.Chat
function M.draw_all(chat)
  for index, outgoing in ipairs(chat.outgoing) do
    draw_block(chat, outgoing, index == 1)
  end
end

---@param chat CodeCompanion.Chat
---@param submit_id integer
---@return CodeCompanion.Outgoing?
local function take(chat, submit_id)
  for index, outgoing in ipairs(chat.outgoing) do
    if outgoing.submit_id == submit_id then
      return table.remove(chat.outgoing, index)
    end
  end
end

---@param chat CodeCompanion.Chat
---@param outgoing CodeCompanion.Outgoing
local function remove_block(chat, outgoing)
  local first, last
  if api.nvim_buf_is_loaded(chat.bufnr) then
    first, last = marks.item_rows(chat, outgoing.block.item)
  end
  if first then
    buffer.remove(chat, first, last + 1)
  end
end

---Remove the block and the state of a message that is no longer being sent.
---@param chat CodeCompanion.Chat
---@param submit_id integer
function M.drop(chat, submit_id)
  local outgoing = take(chat, submit_id)
  if outgoing then
    remove_block(chat, outgoing)
  end
end

---Mark a message that waits in the host; until it is stored it is kept as a draft.
---@param chat CodeCompanion.Chat
---@param submit_id integer
---@param mark string Text for the reason
local function keep(chat, submit_id, mark)
  for _, outgoing in ipairs(chat.outgoing) do
    if outgoing.submit_id == submit_id then
      outgoing.queued = mark
      marks.set_right(chat, outgoing.block.role_id, mark_of(chat, outgoing))
    end
  end
  draft.save(chat)
end

---Mark a message that waits for the next request boundary.
---@param chat CodeCompanion.Chat
---@param submit_id integer
function M.queued(chat, submit_id)
  keep(chat, submit_id, "queued")
end

---Mark a message that waits for its attachments.
---@param chat CodeCompanion.Chat
---@param submit_id integer
---@param what string Description of the attachments
function M.gathering(chat, submit_id, what)
  keep(chat, submit_id, what)
end

---Turn the block of a stored message into a turn; machine text is now written below it.
---@param chat CodeCompanion.Chat
---@param event table message_sent event
function M.sent(chat, event)
  local outgoing = take(chat, event.submit_id)
  if outgoing and outgoing.queued then
    draft.save(chat) -- the draft is no longer needed
  end
  local right = blocks.tokens(event.tokens)
  local first, last
  if outgoing then
    first, last = marks.item_rows(chat, outgoing.block.item)
  end
  local known = chat.by_message[event.message_id] ~= nil -- it was already in the log when the buffer was drawn
  if not known and first and first == anchors.position(chat, "tail") and outgoing.text == event.text then
    local item = outgoing.block.item
    item.message_id, item.number = event.message_id, event.number
    marks.set_item(chat, first, last, item)
    marks.set_right(chat, outgoing.block.role_id, right)
    anchors.place(chat, "tail", last + 1)
    chat.tail_kind = "user"
    return
  end
  if outgoing then
    remove_block(chat, outgoing)
  end
  if not known then
    local item = { message_id = event.message_id, number = event.number }
    draw.append(chat, blocks.user(event.text, item, right))
  end
end

---Insert the text of a message that could not be stored in front of the draft.
---@param chat CodeCompanion.Chat
---@param submit_id integer
---@param text string
function M.failed(chat, submit_id, text)
  M.drop(chat, submit_id)
  draft.prepend(chat, text)
end

---Remove messages being sent and return their text.
---@param chat CodeCompanion.Chat
---@param gone CodeCompanion.Outgoing[]
---@return string? text The text of all messages, in order; nil if there are none
local function withdraw(chat, gone)
  local texts = {}
  for _, outgoing in ipairs(gone) do
    M.drop(chat, outgoing.submit_id)
    texts[#texts + 1] = outgoing.text
  end
  return #texts > 0 and table.concat(texts, draft.BETWEEN) or nil
end

---Withdraw the messages that no host has accepted; those that an exited host may have stored stay.
---@param chat CodeCompanion.Chat
---@return string? text
function M.withdraw(chat)
  return withdraw(
    chat,
    vim.tbl_filter(function(outgoing)
      return not outgoing.unsure
    end, chat.outgoing)
  )
end

---Withdraw the unaccepted messages and put them before the draft.
---@param chat CodeCompanion.Chat
function M.recall_all(chat)
  local text = M.withdraw(chat)
  if text then
    draft.prepend(chat, text)
  end
end

---Redraw the marks of the messages being sent, because they now wait for something else.
---@param chat CodeCompanion.Chat
function M.mark_all(chat)
  for _, outgoing in ipairs(chat.outgoing) do
    if api.nvim_buf_is_loaded(chat.bufnr) and marks.item_rows(chat, outgoing.block.item) then
      marks.set_right(chat, outgoing.block.role_id, mark_of(chat, outgoing))
    end
  end
end

---Mark the messages being sent as unsure, because an exited host may have stored them: the next host is asked. Until
---then they stay in place, separate from the input.
---@param chat CodeCompanion.Chat
function M.host_gone(chat)
  for _, outgoing in ipairs(chat.outgoing) do
    outgoing.unsure, outgoing.queued = true, nil
  end
  M.mark_all(chat)
end

---Compare the unsure messages with the host's log: those found there were sent, the others were not.
---@param chat CodeCompanion.Chat
---@param stored { key: string, message_id: string, text: string, tokens: integer }[]
---@return { outgoing: CodeCompanion.Outgoing, entry: table }[] sent They are still in the list of messages being sent
---@return string? text Text of the others, which were removed from that list
function M.settle(chat, stored)
  local found, sent, lost = {}, {}, {}
  for _, entry in ipairs(stored) do
    found[entry.key] = entry
  end
  for _, outgoing in ipairs(session.unsure(chat)) do
    local entry = found[outgoing.key]
    if entry then
      sent[#sent + 1] = { outgoing = outgoing, entry = entry }
    else
      lost[#lost + 1] = outgoing
    end
  end
  return sent, withdraw(chat, lost)
end

---Compare the messages as `settle` does, and update a drawn buffer.
---@param chat CodeCompanion.Chat
---@param stored table[]
---@return boolean sent Whether any message was sent
---@return boolean back Whether any text was put back into the draft
function M.confirm(chat, stored)
  local sent, text = M.settle(chat, stored)
  for _, pair in ipairs(sent) do
    local submit_id = pair.outgoing.submit_id
    if chat.ignore_restored then
      M.sent(chat, vim.tbl_extend("force", pair.entry, { submit_id = submit_id }))
    else
      M.drop(chat, submit_id) -- it was drawn from the log
    end
  end
  if text then
    draft.prepend(chat, text)
  end
  return #sent > 0, text ~= nil
end

return M
