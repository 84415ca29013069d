---Manages branches of a chat: edit and resend a user message, continue in a copy, switch between branches.
---
---The host creates the branch as a new chat with the text as its draft; then the windows switch to it, and the draft is
---sent as usual. After a failure the text stays in the input.

local api = vim.api
local buffer = require("codecompanion.chat.buffer.chat_text")
local choose = require("codecompanion.screen.choose")
local draft = require("codecompanion.chat.wire.draft")
local fit = require("codecompanion.text.fit")
local host = require("codecompanion.host")
local life = require("codecompanion.chat.life")
local marks = require("codecompanion.chat.buffer.row_marks")
local new_id = require("codecompanion.values.new_id")
local record = require("codecompanion.chat.state.chat_record")
local say = require("codecompanion.say")
local session = require("codecompanion.chat.state.session")
local severity = require("codecompanion.severity")
local view = require("codecompanion.chat.buffer.scroll")

local M = {}

local LAST_CHARS = 40

---@class CodeCompanion.Edit
---@field message_id string Id of the edited message
---@field fork string Id of the new branch; a retry uses the same id
---@field before string Previous text of the input
---@field sending? boolean The host is creating the branch

---@param chat CodeCompanion.Chat
---@param payload table
---@param callback fun(err?: string, id?: string) Called only while the buffer is loaded
---@param always? fun() Called before `callback`, even if the buffer is not loaded
local function ask(chat, payload, callback, always)
  session.attach(chat)
  payload.chat = chat.id
  host.request("fork_chat", payload, function(err, id)
    if always then
      always()
    end
    if api.nvim_buf_is_loaded(chat.bufnr) then
      callback(err, id)
    end
  end)
end

---Return the item of the user message at a row.
---@param chat CodeCompanion.Chat
---@param row integer 0-based
---@return table?
local function own_message(chat, row)
  local item = marks.item_at(chat, row)
  return item and item.own and item.message_id and item or nil
end

---Put the message under the cursor into the input for editing.
---@param chat CodeCompanion.Chat
---@param row integer 0-based
function M.edit(chat, row)
  local item = own_message(chat, row)
  if not item then
    return say.line("Put the cursor on one of your messages to edit and resend it.", severity.WARN)
  end
  session.request(chat, "show_original", { item = item.message_id }, function(original)
    draft.edit(chat, { message_id = item.message_id, fork = new_id(record.ID_BYTES) }, original.text)
    view.cursor_to_input(chat)
  end)
end

---Return the text typed after sending: the remainder after the sent text, or all text if the sent part was changed.
---@param typed string
---@param sent string
---@return string
local function typed_after(typed, sent)
  return vim.startswith(typed, sent) and (typed:sub(#sent + 1):gsub("^%s+", "")) or typed
end

---Send an edited message: the chat continues in a branch without the original message and everything after it.
---@param chat CodeCompanion.Chat
---@param edit CodeCompanion.Edit
---@param text string
---@param submit fun(chat: CodeCompanion.Chat) Sends the text of the input
function M.send(chat, edit, text, submit)
  if edit.sending then
    return
  end
  edit.sending = true
  local payload = { fork = edit.fork, at = edit.message_id, draft = text }
  ask(chat, payload, function(err, id)
    if err then
      local text_is_kept = "Not sent. Your text is still in the input. " .. err
      return say.chat(chat, text_is_kept, severity.WARN)
    end
    local typed = buffer.input_text(chat)
    draft.end_edit(chat, edit)
    local branch = life.replace(chat, assert(id))
    branch.when_drawn = function()
      submit(branch) -- its initial draft
      if typed ~= text then
        draft.prepend(branch, typed_after(typed, text))
      end
    end
    chat.state = "idle" -- the host has created the branch, so closing stops nothing
    life.close(chat)
  end, function()
    edit.sending = false
  end)
end

---Continue in a copy of the chat.
---@param chat CodeCompanion.Chat
---@param title string "" = the current title with a number
---@param refuse fun(reason: string) Receives the reason for a failure
function M.branch(chat, title, refuse)
  ask(chat, { fork = new_id(record.ID_BYTES), title = title }, function(err, id)
    if err then
      return refuse(err)
    end
    life.replace(chat, assert(id))
    say.line("This is the new branch; /fork list switches back.")
  end)
end

---@param row table
---@return string
local function line(row)
  local title = require("codecompanion.chat.state.chat_title").shown(row.title)
  local count = require("codecompanion.chat.lists.stored_lines").count(row)
  local parts = { ("   "):rep(row.depth) .. (row.depth > 0 and "└ " or "") .. title, count }
  if row.last_question ~= "" and row.last_question ~= row.title then
    local last = fit.without_nul(row.last_question)
    local long = vim.fn.strchars(last) > LAST_CHARS
    parts[#parts + 1] = "last: " .. vim.fn.strcharpart(last, 0, LAST_CHARS) .. (long and "…" or "")
  end
  parts[#parts + 1] = row.current and "this chat" or row.owned and "open elsewhere" or nil
  return table.concat(parts, " · ")
end

---Show the branches of the chat as a tree, and switch to one of them.
---@param chat CodeCompanion.Chat
function M.list(chat)
  session.request(chat, "list_branches", {}, function(rows)
    if #rows < 2 then
      return say.line("No branches yet; /fork creates one.")
    end
    choose.select(rows, {
      prompt = "Branches of this chat",
      kind = "codecompanion.branch",
      format_item = line,
      is_current = function(row)
        return row.current
      end,
    }, function(row)
      if row and not row.current then
        life.replace(chat, row.id)
      end
    end)
  end)
end

return M
