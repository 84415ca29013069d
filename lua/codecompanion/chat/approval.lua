---Questions of tool calls: a block with the exact command or diff, answered with a key while the cursor is on it.
---
---A question takes neither the focus nor the cursor: who is typing goes on typing, and a key goes to the block.

local api = vim.api
local attention = require("codecompanion.chat.attention")
local blocks = require("codecompanion.chat.blocks")
local buffer = require("codecompanion.chat.buffer")
local draw = require("codecompanion.chat.draw")
local keys = require("codecompanion.chat.approval_keys")

local M = {}

local MAX_LINES = 60
local GONE = "that approval is no longer open"

---The line that names the keys.
---@return string line
---@return { row: integer, from: integer, to: integer, group: string }[] marks
local function keys_line()
  local keymaps = require("codecompanion.chat.keymaps")
  local line, marks = "", {}
  for _, answer in ipairs(keys.ON_BLOCK) do
    local key = keymaps.keys(answer[1], "n")[1]
    if key then
      line = line .. (line == "" and "" or "   ")
      marks[#marks + 1] = { row = 0, from = #line, to = #line + #key, group = "CodeCompanionApprovalKey" }
      line = line .. key .. " " .. answer[2]
    end
  end
  return line, marks
end

---@param event table approval_requested
---@return CodeCompanion.Block
local function block_for(event)
  local title = ("? %s needs your approval"):format(event.name)
  if event.title ~= "" and event.title ~= event.name then
    title = title .. ": " .. blocks.one_line(event.title)
  end
  local body = blocks.split((event.body:gsub("\n+$", "")))
  local shown = vim.list_slice(body, 1, MAX_LINES)
  local fence = blocks.fence(event.body)
  local lines = { title, fence .. (event.filetype or "text") }
  vim.list_extend(lines, shown)
  lines[#lines + 1] = fence
  if #body > #shown then
    lines[#lines + 1] = ("… %d more lines · K shows all"):format(#body - #shown)
  end
  local code_end = 2 + #shown + 1
  local answers, marks = keys_line()
  for _, mark in ipairs(marks) do
    mark.row = #lines
  end
  lines[#lines + 1] = answers
  marks[#marks + 1] = { row = 0, from = 0, to = #title, group = "CodeCompanionApproval" }
  return {
    kind = "approval",
    lines = lines,
    marks = marks,
    markdown = { 1, code_end },
    item = { approval = event.call_id, body = event.body, title = title, filetype = event.filetype },
  }
end

---@param chat CodeCompanion.Chat
---@param approval table
---@param decision "once"|"always"|"reject"|"cancel"
---@param reason? string
local function send(chat, approval, decision, reason)
  if approval.answered or not vim.list_contains(chat.approvals, approval) then
    return require("codecompanion.say")(GONE, vim.log.levels.WARN)
  end
  approval.answered = true
  require("codecompanion.chat.session").notify(chat, "approve", {
    call_id = approval.call_id,
    decision = decision,
    reason = reason or "",
  })
end

---Ask for the reason; no answer (`<Esc>`, `<C-c>`) leaves the question open.
---@param chat CodeCompanion.Chat
---@param approval table
local function reject(chat, approval)
  local prompt = "Reason for the rejection (empty: none): "
  pcall(vim.ui.input, { prompt = prompt }, function(reason)
    if reason then
      send(chat, approval, "reject", reason)
    end
  end)
end

---Go to the next question, from the last one to the first.
---@param chat CodeCompanion.Chat
local function go_to_next(chat)
  local cursor = api.nvim_win_get_cursor(0)[1] - 1
  local first, after
  for _, approval in ipairs(chat.approvals) do
    local row = draw.item_rows(chat, approval.item)
    if row and (not first or row < first) then
      first = row
    end
    if row and row > cursor and (not after or row < after) then
      after = row
    end
  end
  local target = after or first
  if target then
    vim.cmd("normal! m'")
    api.nvim_win_set_cursor(0, { target + 1, 0 })
    vim.cmd("normal! zv")
  end
end

---@type table<string, fun(chat: CodeCompanion.Chat, approval: table)>
local ACTIONS = {
  approve_once = function(chat, approval)
    send(chat, approval, "once")
  end,
  approve_always = function(chat, approval)
    send(chat, approval, "always")
  end,
  reject = reject,
  cancel_all = function(chat, approval)
    send(chat, approval, "cancel")
  end,
  show_diff = function(_, approval)
    local item = approval.item
    require("codecompanion.chat.float").show({
      title = item.title,
      text = item.body,
      filetype = item.filetype or "text",
      state = "",
    })
  end,
}

---Do what a key stands for.
---@param chat CodeCompanion.Chat
---@param name string
function M.act(chat, name)
  if name == "next_approval" then
    return go_to_next(chat)
  end
  local approval = keys.under_cursor(chat)
  if approval and not approval.answered then
    ACTIONS[name](chat, approval)
  end
end

---Show a chat that waits for an answer, with the cursor on the question (`:CodeCompanion approval`).
function M.go()
  local chats = require("codecompanion.chat")
  for _, chat in ipairs(chats.list()) do
    if #chat.approvals > 0 then
      chats.show(chat)
      return go_to_next(chat)
    end
  end
  require("codecompanion.say")("No approval is waiting")
end

---A tool call asks for permission.
---@param chat CodeCompanion.Chat
---@param event table approval_requested
function M.requested(chat, event)
  local before = chat.tail_kind
  local block = draw.append(chat, block_for(event))
  chat.approvals[#chat.approvals + 1] = { call_id = event.call_id, item = block.item, before = before }
  keys.update(chat)
  attention.approval(chat, event)
end

---A question was answered: its block goes away.
---@param chat CodeCompanion.Chat
---@param call_id string
function M.closed(chat, call_id)
  for index, approval in ipairs(chat.approvals) do
    if approval.call_id == call_id then
      local first, last = draw.item_rows(chat, approval.item)
      if first then
        if last + 1 == buffer.position(chat, "tail") then
          chat.tail_kind = approval.before
        end
        buffer.remove(chat, first, last + 1)
      end
      table.remove(chat.approvals, index)
      break
    end
  end
  keys.update(chat)
end

---All questions go away (the host is gone, the turn is over).
---@param chat CodeCompanion.Chat
function M.close_all(chat)
  while #chat.approvals > 0 do
    M.closed(chat, chat.approvals[1].call_id)
  end
end

return M
