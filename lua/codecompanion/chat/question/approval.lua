---Questions of tool calls: a block with the exact command or diff, answered with a key while the cursor is on it.
---Longer than other files because asking, answering and putting away share the state of a question.
---
---A question takes neither the focus nor the cursor: who is typing goes on typing, and a key goes to the block.

local api = vim.api
local anchors = require("codecompanion.chat.buffer.anchors")
local attention = require("codecompanion.chat.question.attention")
local buffer = require("codecompanion.chat.buffer.text")
local choose = require("codecompanion.screen.choose")
local draw = require("codecompanion.chat.draw.put")
local fit = require("codecompanion.screen.fit")
local float = require("codecompanion.screen.float")
local follow = require("codecompanion.chat.question.follow")
local host = require("codecompanion.host")
local keys = require("codecompanion.chat.question.keys")
local kinds = require("codecompanion.chat.state.question_kinds")
local marks = require("codecompanion.chat.buffer.marks")
local questions = require("codecompanion.chat.state.questions")
local say = require("codecompanion.say")
local session = require("codecompanion.chat.state.session")
local severity = require("codecompanion.severity")
local view = require("codecompanion.chat.buffer.view")

local M = {}

---Loaded by the first question: a new chat is painted sooner without them.
---@return table
local function diff_view()
  return require("codecompanion.chat.question.diff_view")
end

---@return table
local function visible()
  return require("codecompanion.screen.visible")
end

local GONE = "This approval was already answered or cancelled."
local edited_ns = api.nvim_create_namespace("codecompanion.chat.approval.edited")

---@class CodeCompanion.Approval
---@field call_id string
---@field event table approval_requested
---@field item table
---@field before? string Kind of the block above it
---@field answered? boolean
---@field came_at? integer Milliseconds: when the cursor was taken to it
---@field view? CodeCompanion.DiffView

---@param chat CodeCompanion.Chat
---@param approval CodeCompanion.Approval
---@return boolean
local function is_open(chat, approval)
  return not approval.answered and vim.list_contains(chat.approvals, approval)
end

---@param chat CodeCompanion.Chat
---@param approval CodeCompanion.Approval
---@param decision "once"|"always"|"reject"|"cancel"
---@param more? { reason?: string, prefix?: string }
local function send(chat, approval, decision, more)
  if not is_open(chat, approval) then
    return say.line(GONE, severity.WARN)
  end
  if chat.read_only then
    return say.line(session.READ_ONLY_LINES, severity.WARN)
  end
  local payload = { chat = chat.id, call_id = approval.call_id, decision = decision, reason = "" }
  if decision == "once" or decision == "always" then
    payload.text = diff_view().edited_text(approval)
  end
  approval.answered = true
  keys.forget_pointing()
  diff_view().close(chat, approval)
  session.attach(chat)
  host.request("approve", vim.tbl_extend("force", payload, more or {}), function(err)
    if err then
      approval.answered = false -- the question is still open, or its end is on the way
      say.line(err, severity.WARN)
    end
  end)
end

---Ask for a line; no answer (`<Esc>`, `<C-c>`) leaves the question open.
---@param opts table Of vim.ui.input()
---@param given fun(text: string)
local function ask_for(opts, given)
  pcall(vim.ui.input, opts, function(text)
    choose.forget_prompt()
    if text then
      given(text)
    end
  end)
end

---Go to the next question, from the last one to the first.
---@param chat CodeCompanion.Chat
---@return boolean found
function M.go_to_next(chat)
  local cursor = view.cursor_row()
  local first, after
  for _, approval in ipairs(chat.approvals) do
    approval.came_at = nil -- who goes there has seen it
    local row = marks.item_rows(chat, approval.item)
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
    keys.forget_pointing()
  end
  return target ~= nil
end

---@type table<string, fun(chat: CodeCompanion.Chat, approval: CodeCompanion.Approval)>
local ACTIONS = {
  approve_once = function(chat, approval)
    if (approval.event.form or "") ~= "" then
      approval.entered = approval.entered or {}
      return require("codecompanion.mcp.form").fill(approval.event.form, approval.entered, function(values)
        send(chat, approval, "once", { text = values })
      end)
    end
    send(chat, approval, "once")
  end,
  approve_always = function(chat, approval)
    if approval.event.why ~= "" then
      return say.line(("Asked every time: %s"):format(approval.event.why), severity.WARN)
    end
    send(chat, approval, "always")
  end,
  approve_prefix = function(chat, approval)
    if approval.event.prefix == "" or approval.event.why ~= "" then
      return say.line({
        "No prefix is offered: what this could run is not known; g2 allows exactly it",
        "No prefix is offered for this; g2 allows exactly it",
      })
    end
    local opts = { prompt = "Always run commands with this prefix: ", default = approval.event.prefix }
    ask_for(opts, function(prefix)
      if vim.trim(prefix) ~= "" then
        send(chat, approval, "always", { prefix = vim.trim(prefix) })
      end
    end)
  end,
  reject = function(chat, approval)
    if kinds[approval.event.kind] then
      return send(chat, approval, "reject") -- nobody reads a reason
    end
    ask_for({ prompt = "Reason for rejecting it (optional): " }, function(reason)
      send(chat, approval, "reject", { reason = reason })
    end)
  end,
  cancel_all = function(chat, approval)
    send(chat, approval, "cancel")
  end,
  show_diff = function(chat, approval)
    local event = approval.event
    if diff_view().fits(event) then
      return diff_view().open(chat, approval, M)
    end
    local text = visible().text(event.body, event.filetype == "diff")
    float.show({
      title = visible().line(event.title).text,
      text = text,
      filetype = event.filetype,
      state = "",
    })
  end,
}

---@param chat CodeCompanion.Chat
---@param approval CodeCompanion.Approval
---@param name string
local function carry_out(chat, approval, name)
  local kind = kinds[approval.event.kind]
  if kind and kind.hints[name] then
    return say.hint(kind.hints[name])
  end
  ACTIONS[name](chat, approval)
end

---Answer a question, or show it.
---@param chat CodeCompanion.Chat
---@param approval CodeCompanion.Approval
---@param name string
function M.answer(chat, approval, name)
  if not is_open(chat, approval) then
    return say.line(GONE, severity.WARN)
  end
  carry_out(chat, approval, name)
end

---Do what a key stands for.
---@param chat CodeCompanion.Chat
---@param name string
function M.act(chat, name)
  local approval = keys.under_cursor(chat)
  if approval and not approval.answered and not follow.is_unread(approval, name) then
    carry_out(chat, approval, name)
  end
end

M.NONE = "No approval is waiting"

---Go to the next question of this chat.
---@param chat CodeCompanion.Chat
function M.next(chat)
  if not M.go_to_next(chat) then
    say.hint(M.NONE)
  end
end

---Say on the block whether accepting it there would write what the user has changed in the diff.
---@param chat CodeCompanion.Chat
---@param approval CodeCompanion.Approval
function M.mark_edited(chat, approval)
  if not vim.list_contains(chat.approvals, approval) or not api.nvim_buf_is_loaded(chat.bufnr) then
    return
  end
  local first = marks.item_rows(chat, approval.item)
  if first then
    api.nvim_buf_clear_namespace(chat.bufnr, edited_ns, first, first + 1)
    local text = diff_view().edited_text(approval)
    if text then
      local words = text == approval.event.before and "  all of it skipped" or "  with your changes"
      local line = api.nvim_buf_get_lines(chat.bufnr, first, first + 1, false)[1]
      local wraps = api.nvim_strwidth(line .. words) + 1 > fit.narrowest(chat)
      api.nvim_buf_set_extmark(chat.bufnr, edited_ns, first, wraps and #line or 0, {
        virt_text = { { words, "CodeCompanionWarning" } },
        virt_text_pos = wraps and "inline" or "eol",
      })
    end
  end
end

---Let the user know of a question, once.
---@param chat CodeCompanion.Chat
---@param event table approval_requested
local function announce(chat, event)
  if not chat.announced[event.call_id] then
    chat.announced[event.call_id] = true
    attention.approval(chat, event)
  end
end

---A tool call asks for permission while nothing can be drawn: the drawing of the chat will ask again.
---@param chat CodeCompanion.Chat
---@param event table approval_requested
function M.requested_away(chat, event)
  chat.put_away[event.call_id] = chat.put_away[event.call_id] or { call_id = event.call_id, event = event }
  announce(chat, event)
end

---A tool call asks for permission; a chat that is drawn again asks again for what is still open.
---@param chat CodeCompanion.Chat
---@param event table approval_requested
function M.requested(chat, event)
  event = vim.tbl_extend(
    "keep",
    event,
    { path = "", before = "", after = "", why = "", prefix = "", filetype = "text", kind = "call" }
  )
  local before = chat.tail_kind
  local block = draw.append(chat, require("codecompanion.chat.question.block").block(chat, event))
  local approval = chat.put_away[event.call_id]
  if not approval or not vim.deep_equal(approval.event, event) then
    approval = { call_id = event.call_id, event = event }
  end
  chat.put_away[event.call_id] = nil
  approval.item, approval.before = block.item, before
  chat.approvals[#chat.approvals + 1] = approval
  keys.update(chat, M.act)
  M.mark_edited(chat, approval)
  announce(chat, event)
  if chat.seeks_approval and api.nvim_get_current_buf() == chat.bufnr then
    M.go_to_next(chat)
  end
  chat.seeks_approval = nil
  follow.go(chat, approval)
end

---The windows whose cursor is on these rows.
---@param chat CodeCompanion.Chat
---@param first integer
---@param last integer
---@return integer[]
local function windows_on(chat, first, last)
  return vim.tbl_filter(function(win)
    local row = api.nvim_win_get_cursor(win)[1] - 1
    return row >= first and row <= last
  end, vim.fn.win_findbuf(chat.bufnr))
end

---@param chat CodeCompanion.Chat
---@param call_id string
local function take_away(chat, call_id)
  for index, approval in ipairs(chat.approvals) do
    if approval.call_id == call_id then
      local first, last = marks.item_rows(chat, approval.item)
      if first then
        api.nvim_buf_clear_namespace(chat.bufnr, edited_ns, first, last)
        if last + 1 == anchors.position(chat, "tail") then
          chat.tail_kind = approval.before
        end
        local readers = windows_on(chat, first, last)
        buffer.remove(chat, first, last + 1)
        for _, win in ipairs(readers) do
          view.cursor_to_input(chat, win)
        end
        if approval.answered and vim.list_contains(readers, api.nvim_get_current_win()) then
          follow.wait(chat)
        end
      end
      chat.items[approval.item.id] = nil
      table.remove(chat.approvals, index)
      diff_view().closed(chat, approval)
      break
    end
  end
  keys.update(chat, M.act)
  follow.go(chat, questions.waiting(chat)[1])
end

---The chat is about to be drawn again: the blocks go, the questions and what was edited in them stay for `requested`.
---@param chat CodeCompanion.Chat
function M.put_away(chat)
  for _, approval in ipairs(chat.approvals) do
    chat.put_away[approval.call_id] = approval
  end
  chat.approvals = {}
  keys.update(chat, M.act)
end

---A question was answered: its block goes away.
---@param chat CodeCompanion.Chat
---@param call_id string
function M.closed(chat, call_id)
  chat.announced[call_id] = nil
  take_away(chat, call_id)
  local away = chat.put_away[call_id]
  if away then
    chat.put_away[call_id] = nil
    diff_view().closed(chat, away)
  end
end

---The questions go away: those of tool calls when the turn is over, all of them when the host is gone.
---@param chat CodeCompanion.Chat
---@param all? boolean
function M.close_all(chat, all)
  local function ends(approval)
    return all or questions.is_pressing(approval)
  end
  for _, approval in ipairs(vim.tbl_filter(ends, chat.approvals)) do
    take_away(chat, approval.call_id)
  end
  follow.stop(chat)
  for call_id, approval in pairs(chat.put_away) do
    if ends(approval) then
      chat.put_away[call_id] = nil
      diff_view().closed(chat, approval)
    end
  end
end

---The chat is gone, and its buffer with it.
---@param chat CodeCompanion.Chat
function M.abandon(chat)
  local open = vim.list_extend(vim.tbl_values(chat.put_away), chat.approvals)
  chat.put_away, chat.approvals = {}, {}
  for _, approval in ipairs(open) do
    diff_view().closed(chat, approval)
  end
end

return M
