---Messages on their way: from the input region to the history and, when that fails, back into the draft.
---
---What is sent is what stands in the input region, exactly (lesson 37). It becomes a block above the input at once and
---a normal turn when the host says that it is stored; until then nothing may lose it.

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
---@field key string Unique among all editors
---@field text string
---@field block CodeCompanion.Block
---@field queued? string It waits in the host, for this
---@field unsure? boolean The host that had it is gone; it may have stored it

---@param chat CodeCompanion.Chat
---@param outgoing CodeCompanion.Outgoing
---@return { [1]: string, [2]: string }[]
local function mark_of(chat, outgoing)
  local mark = installing.waits(chat) and "sent when ready" or "sending…"
  mark = outgoing.unsure and "sent or not: being checked" or outgoing.queued or mark
  return { { mark, "CodeCompanionPending" } }
end

---@param chat CodeCompanion.Chat
---@param outgoing CodeCompanion.Outgoing
---@param is_first boolean
local function draw_block(chat, outgoing, is_first)
  local right = mark_of(chat, outgoing)
  outgoing.block = blocks.user(outgoing.text, { submit_id = outgoing.submit_id }, right)
  draw.sequence(chat, (anchors.position(chat, "header")), { outgoing.block })
  -- the block belongs below the tail, but marks at its row moved along with it
  if is_first then
    anchors.place(chat, "tail", (marks.item_rows(chat, outgoing.block.item)))
  end
end

---Show `text` above the input, which is where it should be, as a message that is being sent.
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

---The buffer was emptied: what is on its way stands above the input again.
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

---A message is on its way no more: neither its block nor what is known of it stays.
---@param chat CodeCompanion.Chat
---@param submit_id integer
function M.drop(chat, submit_id)
  local outgoing = take(chat, submit_id)
  if outgoing then
    remove_block(chat, outgoing)
  end
end

---The message waits in the host; until it is a message it is a draft.
---@param chat CodeCompanion.Chat
---@param submit_id integer
---@param mark string What it waits for
local function keep(chat, submit_id, mark)
  for _, outgoing in ipairs(chat.outgoing) do
    if outgoing.submit_id == submit_id then
      outgoing.queued = mark
      marks.set_right(chat, outgoing.block.role_id, mark_of(chat, outgoing))
    end
  end
  draft.save(chat)
end

---The message waits for the next request boundary.
---@param chat CodeCompanion.Chat
---@param submit_id integer
function M.queued(chat, submit_id)
  keep(chat, submit_id, "queued")
end

---The message waits for what goes along with it.
---@param chat CodeCompanion.Chat
---@param submit_id integer
---@param what string What that is
function M.gathering(chat, submit_id, what)
  keep(chat, submit_id, what)
end

---The message is stored: its block becomes a turn, and the machine writes below it from now on.
---@param chat CodeCompanion.Chat
---@param event table message_sent
function M.sent(chat, event)
  local outgoing = take(chat, event.submit_id)
  if outgoing and outgoing.queued then
    draft.save(chat) -- it is none any more
  end
  local right = blocks.tokens(event.tokens)
  local first, last
  if outgoing then
    first, last = marks.item_rows(chat, outgoing.block.item)
  end
  local known = chat.by_message[event.message_id] ~= nil -- the log had it already when the buffer was drawn
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

---The message could not be stored: its text goes back in front of the draft.
---@param chat CodeCompanion.Chat
---@param submit_id integer
---@param text string
function M.failed(chat, submit_id, text)
  M.drop(chat, submit_id)
  draft.prepend(chat, text)
end

---Messages are on their way no more, and go back into the draft.
---@param chat CodeCompanion.Chat
---@param gone CodeCompanion.Outgoing[]
---@return string? text All of it, in order; nil when there is nothing
local function withdraw(chat, gone)
  local texts = {}
  for _, outgoing in ipairs(gone) do
    M.drop(chat, outgoing.submit_id)
    texts[#texts + 1] = outgoing.text
  end
  return #texts > 0 and table.concat(texts, draft.BETWEEN) or nil
end

---What the host never took; of what one that is gone may have stored nothing can be said yet.
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

---The same, and it goes back into the draft.
---@param chat CodeCompanion.Chat
function M.recall_all(chat)
  local text = M.withdraw(chat)
  if text then
    draft.prepend(chat, text)
  end
end

---The host is gone, and with it the answer whether it has stored what is on its way: the next one is asked. Until then
---it stays where it is, apart from what is typed.
---@param chat CodeCompanion.Chat
function M.host_gone(chat)
  for _, outgoing in ipairs(chat.outgoing) do
    outgoing.unsure, outgoing.queued = true, nil
    if api.nvim_buf_is_loaded(chat.bufnr) and marks.item_rows(chat, outgoing.block.item) then
      marks.set_right(chat, outgoing.block.role_id, mark_of(chat, outgoing))
    end
  end
end

---A host has looked into its log: what is there was sent, the rest was not.
---@param chat CodeCompanion.Chat
---@param stored { key: string, message_id: string, text: string, tokens: integer }[]
---@return { outgoing: CodeCompanion.Outgoing, entry: table }[] sent They are still among those on their way
---@return string? text What was not sent, and is on its way no more
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

---The same in a buffer that is drawn.
---@param chat CodeCompanion.Chat
---@param stored table[]
---@return boolean sent Something was
---@return boolean back Something went back into the draft
function M.confirm(chat, stored)
  local sent, text = M.settle(chat, stored)
  for _, pair in ipairs(sent) do
    local submit_id = pair.outgoing.submit_id
    if chat.ignore_restored then
      M.sent(chat, vim.tbl_extend("force", pair.entry, { submit_id = submit_id }))
    else
      M.drop(chat, submit_id) -- the log is drawn, and has it
    end
  end
  if text then
    draft.prepend(chat, text)
  end
  return #sent > 0, text ~= nil
end

return M
