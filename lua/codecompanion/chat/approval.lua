---Questions of tool calls: a block with the exact command or diff, answered with one key in normal mode.
---
---The keys exist only while a question is open, and only in normal mode: what is typed into the input stays text.

local api = vim.api
local blocks = require("codecompanion.chat.blocks")
local buffer = require("codecompanion.chat.buffer")
local draw = require("codecompanion.chat.draw")

local M = {}

local MAX_LINES = 60

---@type { [1]: string, [2]: "once"|"always"|"reject"|"cancel", [3]: string }[]
local ANSWERS = {
  { "approve_once", "once", "once" },
  { "approve_always", "always", "always in this chat" },
  { "reject", "reject", "reject…" },
  { "cancel_all", "cancel", "cancel all" },
}

---The line that names the keys.
---@return string line
---@return { row: integer, from: integer, to: integer, group: string }[] marks
local function keys_line()
  local keymaps = require("codecompanion.chat.keymaps")
  local line, marks = "", {}
  for _, answer in ipairs(ANSWERS) do
    local key = keymaps.keys(answer[1], "n")[1]
    if key then
      line = line .. (line == "" and "" or "   ")
      marks[#marks + 1] = { row = 0, from = #line, to = #line + #key, group = "CodeCompanionApprovalKey" }
      line = line .. key .. " " .. answer[3]
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
---@return table? approval The one under the cursor, else the oldest
local function current(chat)
  local approvals = chat.approvals
  if api.nvim_get_current_buf() == chat.bufnr then
    local item = draw.item_at(chat, api.nvim_win_get_cursor(0)[1] - 1)
    for _, approval in ipairs(approvals) do
      if item == approval.item then
        return approval
      end
    end
  end
  return approvals[1]
end

---@param chat CodeCompanion.Chat
---@param decision "once"|"always"|"reject"|"cancel"
local function answer(chat, decision)
  local approval = current(chat)
  if not approval or approval.answered then
    return
  end
  local function send(reason)
    approval.answered = true
    require("codecompanion.chat.session").notify(chat, "approve", {
      call_id = approval.call_id,
      decision = decision,
      reason = reason,
    })
  end
  if decision ~= "reject" then
    return send("")
  end
  vim.ui.input({ prompt = "Reason for the rejection (empty: none): " }, function(reason)
    if reason then
      send(reason)
    end
  end)
end

---@param chat CodeCompanion.Chat
---@param on boolean
local function switch_keys(chat, on)
  if chat.approval_keys == on then
    return
  end
  chat.approval_keys = on
  local keymaps = require("codecompanion.chat.keymaps")
  for _, entry in ipairs(ANSWERS) do
    for _, key in ipairs(keymaps.keys(entry[1], "n")) do
      if on then
        vim.keymap.set("n", key, function()
          answer(chat, entry[2])
        end, { buffer = chat.bufnr, nowait = true, silent = true, desc = "Approval: " .. entry[3] })
      else
        pcall(vim.keymap.del, "n", key, { buffer = chat.bufnr })
      end
    end
  end
end

---A tool call asks for permission.
---@param chat CodeCompanion.Chat
---@param event table approval_requested
function M.requested(chat, event)
  local before = chat.tail_kind
  local block = draw.append(chat, block_for(event))
  chat.approvals[#chat.approvals + 1] = { call_id = event.call_id, item = block.item, before = before }
  switch_keys(chat, true)
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
  if #chat.approvals == 0 then
    switch_keys(chat, false)
  end
end

---All questions go away (the host is gone, the turn is over).
---@param chat CodeCompanion.Chat
function M.close_all(chat)
  while #chat.approvals > 0 do
    M.closed(chat, chat.approvals[1].call_id)
  end
end

return M
