---Messages on their way: from the input region to the history and, when that fails, back into the draft.
---
---What is sent is what stands in the input region, exactly (lesson 37). It becomes a block above the input at once and
---a normal turn when the host says that it is stored; until then nothing may lose it.

local api = vim.api
local blocks = require("codecompanion.chat.blocks")
local buffer = require("codecompanion.chat.buffer")
local draft = require("codecompanion.chat.draft")
local draw = require("codecompanion.chat.draw")

local M = {}

---@class CodeCompanion.Outgoing
---@field submit_id integer
---@field key string Unique among all editors
---@field text string
---@field block CodeCompanion.Block

---@param chat CodeCompanion.Chat
---@param outgoing CodeCompanion.Outgoing
---@param is_first boolean
local function draw_block(chat, outgoing, is_first)
  local mark = require("codecompanion.chat.installing").waits(chat) and "sent when ready" or "sending…"
  local right = { { outgoing.queued and "queued" or mark, "CodeCompanionPending" } }
  outgoing.block = blocks.user(outgoing.text, { submit_id = outgoing.submit_id }, right)
  buffer.ensure_input(chat)
  draw.sequence(chat, (buffer.position(chat, "header")), { outgoing.block })
  -- the block belongs below the tail, but marks at its row moved along with it
  if is_first then
    buffer.place(chat, "tail", (draw.item_rows(chat, outgoing.block.item)))
  end
end

---Show `text` above the input as a message that is being sent.
---@param chat CodeCompanion.Chat
---@param text string
---@return CodeCompanion.Outgoing
function M.add(chat, text)
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
    first, last = draw.item_rows(chat, outgoing.block.item)
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

---The message waits for the next request boundary.
---@param chat CodeCompanion.Chat
---@param submit_id integer
function M.queued(chat, submit_id)
  for _, outgoing in ipairs(chat.outgoing) do
    if outgoing.submit_id == submit_id then
      outgoing.queued = true
      draw.set_right(chat, outgoing.block.role_id, { { "queued", "CodeCompanionPending" } })
    end
  end
end

---The message is stored: its block becomes a turn, and the machine writes below it from now on.
---@param chat CodeCompanion.Chat
---@param event table message_sent
function M.sent(chat, event)
  local outgoing = take(chat, event.submit_id)
  local right = blocks.tokens(event.tokens)
  local first, last
  if outgoing then
    first, last = draw.item_rows(chat, outgoing.block.item)
  end
  local known = chat.by_message[event.message_id] ~= nil -- the log had it already when the buffer was drawn
  if not known and first and first == buffer.position(chat, "tail") and outgoing.text == event.text then
    local item = outgoing.block.item
    item.message_id, item.number = event.message_id, event.number
    draw.set_item(chat, first, last, item)
    draw.set_right(chat, outgoing.block.role_id, right)
    buffer.place(chat, "tail", last + 1)
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

---The host is gone: all that was not stored, as far as we know, is on its way no more.
---@param chat CodeCompanion.Chat
---@param never_ready? boolean It never took anything, so nothing can be stored
---@return string? text All of it, in order; nil when there is nothing
function M.withdraw(chat, never_ready)
  local texts = {}
  for _, outgoing in ipairs(chat.outgoing) do
    texts[#texts + 1] = outgoing.text
    if not never_ready then
      chat.unconfirmed[#chat.unconfirmed + 1] = { key = outgoing.key, text = outgoing.text }
    end
    remove_block(chat, outgoing)
  end
  chat.outgoing = {}
  return #texts > 0 and table.concat(texts, "\n") or nil
end

---The same, and it goes back into the draft.
---@param chat CodeCompanion.Chat
---@param never_ready? boolean
function M.recall_all(chat, never_ready)
  local text = M.withdraw(chat, never_ready)
  if text then
    draft.prepend(chat, text)
  end
end

---The host is back and has found messages in its log that went back into the draft: they were sent.
---@param chat CodeCompanion.Chat
---@param stored { key: string, message_id: string, text: string, tokens: integer }[]
---@return boolean confirmed Something was drawn as sent
function M.confirm(chat, stored)
  local texts, sent_again, confirmed = {}, {}, false
  for _, entry in ipairs(chat.unconfirmed) do
    texts[entry.key] = entry.text
  end
  for _, outgoing in ipairs(chat.outgoing) do
    sent_again[outgoing.text] = true -- the host knows it again, and says so
  end
  for _, entry in ipairs(stored) do
    local text = texts[entry.key]
    if text and not sent_again[text] then
      local present = buffer.input_text(chat)
      if present == text then
        draft.set(chat, "")
      elseif vim.startswith(present, text .. "\n") then
        draft.set(chat, present:sub(#text + 2))
      end
      local item = { message_id = entry.message_id }
      draw.append(chat, blocks.user(entry.text, item, blocks.tokens(entry.tokens)))
      confirmed = true
    end
  end
  chat.unconfirmed = {}
  return confirmed
end

M.cursor_to_input = require("codecompanion.chat.view").cursor_to_input

return M
