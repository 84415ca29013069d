---Asks for approval of tool calls: a block shows the exact command or the changed lines. A key answers the only open
---question from anywhere in the chat; if there are several, the cursor must be on the block. The file is longer than
---others because asking, answering and closing share the state of a question.
---
---A question takes neither the focus nor the cursor: the user can keep typing, and a key moves to the block.

local api = vim.api
local anchors = require("codecompanion.chat.buffer.anchors")
local attention = require("codecompanion.chat.question.attention")
local buffer = require("codecompanion.chat.buffer.chat_text")
local choose = require("codecompanion.screen.choose")
local draw = require("codecompanion.chat.draw.put_blocks")
local fit = require("codecompanion.text.fit")
local float = require("codecompanion.screen.float")
local follow = require("codecompanion.chat.question.next_question")
local host = require("codecompanion.host")
local keys = require("codecompanion.chat.question.approval_keys")
local kinds = require("codecompanion.chat.state.question_kinds")
local marks = require("codecompanion.chat.buffer.row_marks")
local questions = require("codecompanion.chat.state.questions")
local say = require("codecompanion.say")
local session = require("codecompanion.chat.state.session")
local severity = require("codecompanion.severity")
local shown = require("codecompanion.chat.buffer.shown")
local tools = require("codecompanion.chat.draw.tool_blocks")
local view = require("codecompanion.chat.buffer.scroll")

local M = {}

---Return the `diff_view` module, which is loaded with the first question, so that a new chat is drawn sooner.
---@return table
local function diff_view()
  return require("codecompanion.chat.question.diff_view")
end

---@return table
local function no_always()
  return require("codecompanion.chat.question.no_always")
end

---@return table
local function visible()
  return require("codecompanion.text.visible_characters")
end

local GONE = "This approval was already answered or cancelled."
local notes_ns = api.nvim_create_namespace("codecompanion.chat.approval.notes")

---@class CodeCompanion.Approval
---@field call_id string
---@field event table approval_requested event
---@field item table
---@field before? string Kind of the block above it
---@field answered? boolean
---@field came_at? integer Time in milliseconds when it appeared or the cursor was moved to it automatically; nil once
---the user went to it
---@field view? CodeCompanion.ChangeView
---@field drawn_text? string Text shown in the block in place of the original proposal
---@field entered? table<string, string> Values entered into a form

---@param chat CodeCompanion.Chat
---@param approval CodeCompanion.Approval
---@return boolean
local function is_open(chat, approval)
  return not approval.answered and vim.list_contains(chat.approvals, approval)
end

---@param chat CodeCompanion.Chat
---@param approval CodeCompanion.Approval
---@param decision "once"|"always"|"reject"|"cancel"
---@param more? { reason?: string, family?: boolean, text?: string }
---@param granted? string[] Message about the grant, longest form first
local function send(chat, approval, decision, more, granted)
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
  if decision == "reject" then
    require("codecompanion.chat.question.rejected_changes").keep(approval.event, diff_view().edited_text(approval))
  end
  approval.answered = true
  keys.forget_pointing()
  diff_view().close(approval)
  session.attach(chat)
  host.request("approve", vim.tbl_extend("force", payload, more or {}), function(err)
    if err then
      approval.answered = false -- the question is still open, or its end is about to arrive
      say.line(err, severity.WARN)
    elseif granted then
      say.line(granted)
    end
  end)
end

---Ask for a line of text; cancelling (`<Esc>`, `<C-c>`) leaves the question open.
---@param opts table Options of vim.ui.input()
---@param given fun(text: string)
local function ask_for(opts, given)
  pcall(vim.ui.input, opts, function(text)
    choose.forget_prompt()
    if text then
      given(text)
    end
  end)
end

---Scroll until a whole block is visible; if it was not, it has to be read before a key answers it.
---@param chat CodeCompanion.Chat
---@param row integer Its first row, which stays in the window
local function show_end(chat, row)
  for _, approval in ipairs(chat.approvals) do
    local first, last = marks.item_rows(chat, approval.item)
    if first == row and last and last > vim.fn.line("w$") then
      approval.came_at = (vim.uv or vim.loop).now()
      local rows = math.min(last - vim.fn.line("w$"), vim.fn.winline() - 1)
      if rows > 0 then
        vim.cmd.normal({ rows .. "\5", bang = true }) -- CTRL-E
      end
    end
  end
end

---Go to the next question, wrapping around after the last.
---@param chat CodeCompanion.Chat
---@return boolean found
function M.go_to_next(chat)
  local cursor = view.cursor_row()
  local first, after
  for _, approval in ipairs(chat.approvals) do
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
    show_end(chat, target)
  end
  return target ~= nil
end

---Return the rows of the screen that show an approval, so that a float leaves them readable.
---@param chat CodeCompanion.Chat
---@param approval? CodeCompanion.Approval
---@return CodeCompanion.Rows?
function M.rows_on_screen(chat, approval)
  local first, last = marks.item_rows(chat, approval and approval.item or {})
  local win = shown.visible(chat)[1]
  return first and win and require("codecompanion.screen.clear_of").lines(win, first, last) or nil
end

---@type table<string, fun(chat: CodeCompanion.Chat, approval: CodeCompanion.Approval)>
local ACTIONS = {
  accept_change = function(chat, approval)
    if (approval.event.form or "") ~= "" then
      approval.entered = approval.entered or {}
      return require("codecompanion.chat.question.mcp_form").fill(
        approval.event.form,
        approval.entered,
        function(values)
          send(chat, approval, "once", { text = values })
        end
      )
    end
    send(chat, approval, "once")
  end,
  always_accept = function(chat, approval)
    if approval.event.why ~= "" then
      return say.line(("Always asks: %s"):format(approval.event.why), severity.WARN)
    elseif approval.event.narrowed ~= "" then
      say.line(no_always().explain(chat, approval.event), severity.WARN)
      return M.mark_edited(chat, approval, true)
    end
    local function rows()
      return M.rows_on_screen(chat, approval)
    end
    local always = require("codecompanion.chat.question.always_scope")
    always.ask(approval.event, rows, function(scope)
      send(chat, approval, "always", { family = scope.family }, always.confirmation(scope))
    end)
  end,
  reject_change = function(chat, approval)
    if kinds[approval.event.kind] then
      return send(chat, approval, "reject") -- a reason would not be read
    end
    ask_for({ prompt = "Reason for rejecting it (optional, <Esc> cancels): " }, function(reason)
      send(chat, approval, "reject", { reason = reason })
    end)
  end,
  cancel = function(chat, approval)
    send(chat, approval, "cancel")
  end,
  show = function(chat, approval)
    local event = approval.event
    if diff_view().fits(event) then
      return diff_view().open(chat, approval, M)
    end
    local text = visible().text(event.body, event.filetype == "diff")
    if event.kind == "call" then
      text = table.concat(require("codecompanion.chat.question.call_details").lines(event, text), "\n")
    end
    float.show({
      title = visible().line(event.title).text,
      text = text,
      filetype = event.filetype,
      state = "",
      summary = event.kind == "call" and "approval" or nil,
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

---Perform the action of a key or a command.
---@param chat CodeCompanion.Chat
---@param name string Verb, or "show"
---@param approval? CodeCompanion.Approval Defaults to the one under the cursor
function M.act(chat, name, approval)
  approval = approval or keys.under_cursor(chat)
  if approval and not approval.answered and not follow.is_unread(approval, name) then
    carry_out(chat, approval, name)
  end
end

---Go to the next question of this chat.
---@param chat CodeCompanion.Chat
function M.next(chat)
  if not M.go_to_next(chat) then
    keys.point_to_none(chat)
  end
end

---Return the note beside the first line of a block: its number among several, and whether accepting would write the
---user's edits of the diff.
---@param approval CodeCompanion.Approval
---@param number? integer
---@param count integer
---@return string
local function note_of(approval, number, count)
  local parts = {}
  local text = approval.view and diff_view().edited_text(approval)
  if text then
    parts[1] = text == approval.event.before and "all hunks skipped" or "with your changes"
  end
  if number and count > 1 then
    parts[#parts + 1] = ("%d of %d"):format(number, count)
  end
  return table.concat(parts, " · ")
end

---Update the notes beside the blocks of a chat.
---@param chat CodeCompanion.Chat
local function annotate(chat)
  if not api.nvim_buf_is_loaded(chat.bufnr) then
    return
  end
  api.nvim_buf_clear_namespace(chat.bufnr, notes_ns, 0, -1)
  local waiting = questions.waiting(chat)
  local number_of = {}
  for number, approval in ipairs(waiting) do
    number_of[approval] = number
  end
  for _, approval in ipairs(chat.approvals) do
    local first = marks.item_rows(chat, approval.item)
    local words = note_of(approval, number_of[approval], #waiting)
    if first and words ~= "" then
      local line = api.nvim_buf_get_lines(chat.bufnr, first, first + 1, false)[1]
      local chunks = { { words, "CodeCompanionWarning" } }
      local position, beside = fit.beside(line, chunks, fit.narrowest(chat))
      api.nvim_buf_set_extmark(chat.bufnr, notes_ns, first, #line, { virt_text = beside, virt_text_pos = position })
    end
  end
end

---Return the windows whose cursor is on these rows.
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

---Redraw a block with the text that accepting would write.
---@param chat CodeCompanion.Chat
---@param approval CodeCompanion.Approval
---@param is_forced? boolean Even if the text is the same
local function redraw(chat, approval, is_forced)
  local text = approval.view and diff_view().edited_text(approval)
  text = text ~= approval.event.before and text or nil -- every hunk is skipped: the note reports it
  local first, last = marks.item_rows(chat, approval.item)
  if (text == approval.drawn_text and not is_forced) or not first or not last then
    return
  end
  approval.drawn_text = text
  local event = text and vim.tbl_extend("force", approval.event, { after = text }) or approval.event
  local block = require("codecompanion.chat.question.approval_block").block(chat, event)
  if vim.deep_equal(block.lines, api.nvim_buf_get_lines(chat.bufnr, first, last + 1, false)) then
    return
  end
  local rows = {}
  for _, win in ipairs(windows_on(chat, first, last)) do
    rows[win] = math.min(api.nvim_win_get_cursor(win)[1], first + #block.lines)
  end
  buffer.edit(chat, function()
    buffer.insert(chat, first, block.lines)
    buffer.remove(chat, first + #block.lines, last + #block.lines)
    draw.decorate(chat, first, block)
  end)
  for win, row in pairs(rows) do
    api.nvim_win_set_cursor(win, { row, 0 })
  end
  chat.items[approval.item.id] = nil
  approval.item = block.item
end

---Redraw the open questions after the size of a window has changed.
---@param chat CodeCompanion.Chat
function M.refit(chat)
  for _, approval in ipairs(chat.approvals) do
    redraw(chat, approval, true)
  end
  annotate(chat)
end

---Handle an edit of the proposal in its view, or the end of editing.
---@param chat CodeCompanion.Chat
---@param approval CodeCompanion.Approval
---@param is_forced? boolean Draw the block again even if the text is the same
function M.mark_edited(chat, approval, is_forced)
  if vim.list_contains(chat.approvals, approval) and api.nvim_buf_is_loaded(chat.bufnr) then
    redraw(chat, approval, is_forced)
    annotate(chat)
  end
end

---Notify the user of a question, once.
---@param chat CodeCompanion.Chat
---@param event table approval_requested event
local function announce(chat, event)
  if not chat.announced[event.call_id] then
    chat.announced[event.call_id] = true
    attention.approval(chat, event)
  end
end

---Record a permission request that cannot be drawn: drawing the chat will ask again.
---@param chat CodeCompanion.Chat
---@param event table approval_requested event
function M.requested_away(chat, event)
  chat.put_away[event.call_id] = chat.put_away[event.call_id] or { call_id = event.call_id, event = event }
  announce(chat, event)
end

---Return the question that an event repeats after a decision about trust, or nil.
---@param chat CodeCompanion.Chat
---@param event table approval_requested event
---@return CodeCompanion.Approval?
local function repeated(chat, event)
  local known = chat.put_away[event.call_id]
  for _, approval in ipairs(chat.approvals) do
    known = approval.call_id == event.call_id and approval or known
  end
  local same = known and vim.tbl_extend("force", known.event, { narrowed = event.narrowed, covers = event.covers })
  return vim.deep_equal(same, event) and known or nil
end

---Show a permission request; a redrawn chat receives its open requests again.
---@param chat CodeCompanion.Chat
---@param event table approval_requested event
function M.requested(chat, event)
  local nothing = { what = "", still_asks = "", ["until"] = "" }
  event = vim.tbl_extend("keep", event, {
    path = "",
    before = "",
    after = "",
    why = "",
    again = "",
    narrowed = "",
    exact = nothing,
    covers = nothing,
    filetype = "text",
    kind = "call",
  })
  no_always().note(chat, event)
  local known = repeated(chat, event)
  if known then
    known.event = event
    diff_view().update(known)
    if vim.list_contains(chat.approvals, known) then
      return M.mark_edited(chat, known, true)
    end
  end
  tools.asked(chat, event.call_id, event.name ~= "")
  local before = chat.tail_kind
  local block = draw.append(chat, require("codecompanion.chat.question.approval_block").block(chat, event))
  local approval = chat.put_away[event.call_id]
  if not approval or not vim.deep_equal(approval.event, event) then
    approval = { call_id = event.call_id, event = event }
  end
  chat.put_away[event.call_id] = nil
  approval.item, approval.before, approval.drawn_text = block.item, before, nil
  chat.approvals[#chat.approvals + 1] = approval
  approval.came_at = (vim.uv or vim.loop).now()
  keys.update(chat, M)
  redraw(chat, approval)
  annotate(chat)
  announce(chat, event)
  require("codecompanion.chat.question.unsaved_files").watch(function(one, shown_approval)
    M.mark_edited(one, shown_approval, true)
  end)
  if chat.seeks_approval and api.nvim_get_current_buf() == chat.bufnr then
    M.go_to_next(chat)
  end
  chat.seeks_approval = nil
  follow.go(chat, approval)
end

---@param chat CodeCompanion.Chat
---@param call_id string
local function take_away(chat, call_id)
  for index, approval in ipairs(chat.approvals) do
    if approval.call_id == call_id then
      local first, last = marks.item_rows(chat, approval.item)
      if first then
        if last + 1 == anchors.position(chat, "tail") then
          chat.tail_kind = approval.before
        end
        local readers = windows_on(chat, first, last)
        buffer.remove(chat, first, buffer.is_joined(chat, first) and last or last + 1)
        for _, win in ipairs(readers) do
          view.cursor_to_input(chat, win)
        end
        if approval.answered and vim.list_contains(readers, api.nvim_get_current_win()) then
          follow.wait(chat)
        end
      end
      chat.items[approval.item.id] = nil
      tools.asked(chat, call_id, false)
      table.remove(chat.approvals, index)
      diff_view().closed(approval)
      break
    end
  end
  for _, approval in ipairs(chat.approvals) do -- one may now be the only question, which a key answers from anywhere
    approval.came_at = (vim.uv or vim.loop).now()
  end
  keys.update(chat, M)
  annotate(chat)
  follow.go(chat, questions.waiting(chat)[1])
end

---Remove the blocks before the chat is redrawn; the questions and their edits are kept for `requested`.
---@param chat CodeCompanion.Chat
function M.put_away(chat)
  for _, approval in ipairs(chat.approvals) do
    chat.put_away[approval.call_id] = approval
  end
  chat.approvals = {}
  keys.update(chat, M)
end

---Remove the block of an answered question.
---@param chat CodeCompanion.Chat
---@param call_id string
function M.closed(chat, call_id)
  chat.announced[call_id] = nil
  take_away(chat, call_id)
  local away = chat.put_away[call_id]
  if away then
    chat.put_away[call_id] = nil
    diff_view().closed(away)
  end
end

---Remove all questions, because the turn has ended or the host has exited.
---@param chat CodeCompanion.Chat
function M.close_all(chat)
  for _, approval in ipairs(vim.list_slice(chat.approvals)) do
    take_away(chat, approval.call_id)
  end
  follow.stop(chat)
  for call_id, approval in pairs(chat.put_away) do
    chat.put_away[call_id] = nil
    diff_view().closed(approval)
  end
end

---Drop the questions of a chat whose buffer was deleted.
---@param chat CodeCompanion.Chat
function M.abandon(chat)
  local open = vim.list_extend(vim.tbl_values(chat.put_away), chat.approvals)
  chat.put_away, chat.approvals = {}, {}
  for _, approval in ipairs(open) do
    diff_view().closed(approval)
  end
end

return M
