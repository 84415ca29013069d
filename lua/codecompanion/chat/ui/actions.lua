---What the keys of the chat buffer do; the names are those of `interactions.chat.keymaps`.

local api = vim.api
local anchors = require("codecompanion.chat.buffer.anchors")
local buffer = require("codecompanion.chat.buffer.text")
local draft = require("codecompanion.chat.wire.draft")
local marks = require("codecompanion.chat.buffer.marks")
local say = require("codecompanion.say")
local session = require("codecompanion.chat.state.session")
local severity = require("codecompanion.severity")
local submit = require("codecompanion.chat.ui.submit")

---@type table<string, fun(chat: CodeCompanion.Chat)>
local M = {}

---@return integer row 0-based
local function cursor_row()
  return api.nvim_win_get_cursor(0)[1] - 1
end

function M.options()
  require("codecompanion.chat.ui.help").open(require("codecompanion.slash").list())
end

function M.completion()
  if vim.fn.pumvisible() == 1 then
    api.nvim_feedkeys(vim.keycode("<C-n>"), "n", false)
  else
    api.nvim_feedkeys(vim.keycode("<C-x><C-o>"), "n", false)
  end
end

M.send = submit.send
M.regenerate = session.regenerate
M.clear = session.clear

---Switch approvals off or on.
---@param chat CodeCompanion.Chat
function M.yolo_mode(chat)
  chat.yolo = not chat.yolo
  session.notify(chat, "set_yolo", { on = chat.yolo })
  local sentence = require("codecompanion.chat.state.yolo").sentence(chat.yolo)
  say.chat(chat, sentence, chat.yolo and severity.WARN or severity.INFO)
  require("codecompanion.chat.state.status").publish(chat)
  require("codecompanion.chat.draw.activity").draw(chat)
end

---Whether the place where the machine writes is on the screen, so that it is plain what would be stopped.
---@param chat CodeCompanion.Chat
---@return boolean
local function sees_the_turn(chat)
  return vim.fn.line("w$") >= anchors.position(chat, "tail")
end

---Stop what runs; asks first when the running turn is out of sight. The key never starts a macro: its next key would be
---lost to a register. It ends one that was begun elsewhere.
function M.stop(chat)
  if vim.fn.reg_recording() ~= "" then
    return api.nvim_feedkeys("q", "n", false)
  end
  if not require("codecompanion.chat.state.status").is_busy(chat) then
    return say.hint("Nothing is running in this chat.")
  elseif sees_the_turn(chat) then
    return session.cancel(chat)
  end
  local question = ("Stop the turn below (%s)?"):format(require("codecompanion.chat.state.status").activity(chat))
  local answers = { { key = "y", label = "yes" }, { key = "n", label = "no" } }
  require("codecompanion.screen.confirm").ask(question, answers, function(key)
    if key == "y" then
      session.cancel(chat)
    end
  end)
end

---Close the chat; asks first when that would stop what runs or cancel what waits for an answer.
function M.close(chat)
  local chats = require("codecompanion.chat.ui.life")
  if not require("codecompanion.chat.state.status").is_busy(chat) then
    return chats.close(chat)
  end
  local waiting = #require("codecompanion.chat.state.questions").waiting(chat) > 0
  local what = waiting and "cancels what waits for your approval" or "stops the running turn"
  local answers = {
    { key = "h", label = "hide, it goes on" },
    { key = "c", label = "close" },
    { key = "n", label = "no" },
  }
  require("codecompanion.screen.confirm").ask(("Closing %s."):format(what), answers, function(key)
    if key == "c" then
      chats.close(chat)
    elseif key == "h" then
      chats.hide(chat)
    end
  end)
end

---Take the message under the cursor back into the input; sending it forks the chat there.
function M.edit_message(chat)
  require("codecompanion.chat.ui.fork").edit(chat, cursor_row())
end

---An empty code block at the cursor, with the language of the buffer one came from.
function M.codeblock(chat)
  local filetype = ""
  local previous = vim.fn.bufnr("#")
  if previous > 0 and previous ~= chat.bufnr then
    filetype = vim.bo[previous].filetype
  end
  local row = math.max(cursor_row(), (anchors.position(chat, "input")))
  local line = api.nvim_buf_get_lines(chat.bufnr, row, row + 1, false)[1] or ""
  local first = line == "" and row or row + 1
  vim.bo[chat.bufnr].modifiable = true
  api.nvim_buf_set_lines(chat.bufnr, first, line == "" and row + 1 or first, false, { "```" .. filetype, "", "```" })
  api.nvim_win_set_cursor(0, { first + 2, 0 })
end

---The fenced blocks of the transcript, from the top. A fence is closed by one that is at least as long.
---@param lines string[]
---@return { first: integer, last: integer }[] 1-based lines of the fences
local function code_blocks(lines)
  local found, first, opener = {}, nil, nil
  for row, line in ipairs(lines) do
    local fence, info = line:match("^ ? ? ?(```+)(.*)$")
    if fence and not first and not info:find("`") then
      first, opener = row, #fence
    elseif fence and first and #fence >= opener and info:find("^%s*$") then
      found[#found + 1] = { first = first, last = row }
      first = nil
    end
  end
  return found
end

---Yank the code block under the cursor; elsewhere the last one above it.
function M.yank_code(chat)
  local lines = api.nvim_buf_get_lines(chat.bufnr, 0, (anchors.position(chat, "header")), false)
  local line, chosen = cursor_row() + 1, nil
  for _, block in ipairs(code_blocks(lines)) do
    if block.first <= line then
      chosen = block
    end
  end
  if not chosen then
    return say.hint("There is no code block here or above.")
  end
  local code = vim.list_slice(lines, chosen.first + 1, chosen.last - 1)
  vim.fn.setreg(vim.v.register, code, "l")
  say.hint(("%d line%s of code yanked"):format(#code, #code == 1 and "" or "s"))
end

---@param chat CodeCompanion.Chat
---@param step 1|-1
local function header(chat, step)
  local row = cursor_row()
  for _ = 1, vim.v.count1 do
    local from = step == 1 and { row + 1, 0 } or { row - 1, -1 }
    local to = step == 1 and -1 or 0
    local target
    if step == 1 or row > 0 then
      local mark = api.nvim_buf_get_extmarks(chat.bufnr, marks.roles, from, to, { limit = 1 })[1]
      target = mark and mark[2]
    end
    local input = anchors.position(chat, "header")
    if step == 1 and not target and row < input then
      target = input
    elseif step == -1 and row > input then
      target = input
    end
    if not target then
      break
    end
    row = target
  end
  vim.cmd("normal! m'")
  api.nvim_win_set_cursor(0, { row + 1, 0 })
end

function M.next_header(chat)
  header(chat, 1)
end

function M.previous_header(chat)
  header(chat, -1)
end

function M.next_chat(chat)
  require("codecompanion.chat.ui.life").cycle(chat, 1)
end

function M.previous_chat(chat)
  require("codecompanion.chat.ui.life").cycle(chat, -1)
end

function M.change_adapter(chat)
  require("codecompanion.chat.lists.pickers").model(chat)
end

---Open or close a fold; elsewhere the key stays what it is in Neovim, `<C-i>`.
function M.toggle_fold()
  if vim.fn.foldlevel(".") > 0 then
    vim.cmd("normal! za")
  else
    api.nvim_feedkeys((vim.v.count > 0 and vim.v.count or "") .. vim.keycode("<C-i>"), "n", false)
  end
end

function M.debug(chat)
  require("codecompanion.chat.lists.inspector").open(chat)
end

---What the policy would change before the next request, and /compact now; nothing is sent.
function M.preview(chat)
  session.request(chat, "preview", {}, require("codecompanion.screen.float").show_rows)
end

---The whole content of what stands under the cursor.
function M.show_original(chat)
  local row = cursor_row()
  local item = marks.item_at(chat, row)
  local float = require("codecompanion.screen.float")
  if item and item.approval then
    return require("codecompanion.chat.question.approval").act(chat, "show_diff")
  end
  if item and item.change then
    return session.request(chat, "show_change", { change_id = item.change.change_id }, float.show)
  end
  local attached = require("codecompanion.chat.draw.context").item_at(chat, row)
  local id = attached and attached.id or item and (item.call_id or item.message_id)
  local answer = not id and require("codecompanion.chat.draw.replaced").at(chat, row)
  id = id or answer and answer.items[#answer.items]
  if id and id ~= "" then
    return session.request(chat, "show_original", { item = id }, float.show)
  end
  say.hint("Nothing more to show here.")
end

---@param chat CodeCompanion.Chat
---@param step 1|-1
local function file_change(chat, step)
  for _ = 1, vim.v.count1 do
    local row = require("codecompanion.files.marks").next_row(chat, cursor_row(), step)
    if not row then
      return
    end
    vim.cmd("normal! m'")
    api.nvim_win_set_cursor(0, { row + 1, 0 })
  end
end

function M.next_change(chat)
  file_change(chat, 1)
end

function M.previous_change(chat)
  file_change(chat, -1)
end

---Go to the question that waits for an answer.
function M.next_approval(chat)
  require("codecompanion.chat.question.approval").next(chat)
end

---Take back what a tool did to a file; on one that is taken back, bring it back.
function M.revert_change(chat)
  local item = marks.item_at(chat, cursor_row())
  if item and item.change then
    return require("codecompanion.files.revert").revert(chat, { item.change.change_id })
  end
  say.hint("No file change here; ]e goes to the next one")
end

function M.system_prompt(chat)
  require("codecompanion.chat.lists.originals").system_prompt(chat)
end

---The message under the cursor, when it is not in the context as it was written: cleared, or compacted away.
---@param chat CodeCompanion.Chat
---@return string? id
local function removed_item(chat)
  local row = cursor_row()
  local item = marks.item_at(chat, row)
  local id = item and (item.message_id or item.call_id)
  if not id or id == "" then
    return nil
  end
  return (item.cleared or require("codecompanion.chat.state.gone").is_gone(chat, item)) and id or nil
end

---Put what was taken out back into the context; in the input the key does what it always does.
function M.restore(chat)
  local id = removed_item(chat)
  if id then
    require("codecompanion.chat.wire.history").restore(chat, id)
  elseif cursor_row() < anchors.position(chat, "header") then
    say.hint("Nothing to restore here: this was not removed.")
  else
    -- in front of what was typed since: the character to put there may be waiting
    api.nvim_feedkeys((vim.v.count > 0 and vim.v.count or "") .. "r", "in", false)
  end
end

---Open the file of a line of the context block, or the path under the cursor; of a cleared result, what it was.
function M.open_file(chat)
  local shown = marks.item_at(chat, cursor_row())
  if shown and shown.cleared then
    return M.show_original(chat)
  end
  local item = require("codecompanion.chat.draw.context").item_at(chat, cursor_row())
  local path = item and item.label or vim.fn.expand("<cfile>")
  path = vim.fs.normalize(path)
  if vim.fn.filereadable(path) == 0 then
    say.hint(("No file %s"):format(path))
    return
  end
  require("codecompanion.files.show").file(vim.fn.fnamemodify(path, ":p"))
end

---Undo above the input: attachments come back in the context block; elsewhere there is nothing to undo.
---@param chat CodeCompanion.Chat
---@param step -1|1
local function undo_elsewhere(chat, step)
  local history = require("codecompanion.chat.wire.history")
  local in_context = cursor_row() < anchors.position(chat, "top")
  if in_context and step < 0 and chat.undo_kind == "detached" then
    return history.undo(chat, chat.next_undo)
  elseif in_context and step > 0 and chat.next_redo then
    return history.redo(chat, chat.next_redo)
  end
  local word = step < 0 and "undo" or "redo"
  say.hint(("Nothing to %s here: it works in the input, on cards and on ✂ lines."):format(word))
end

---@param chat CodeCompanion.Chat
---@param step -1|1
local function travel(chat, step)
  local change = require("codecompanion.chat.draw.view_marks").at(chat, cursor_row())
  if change then
    local history = require("codecompanion.chat.wire.history")
    return (step < 0 and history.undo or history.redo)(chat, change.id)
  end
  local in_input = cursor_row() >= anchors.position(chat, "header")
  if step < 0 and chat.just_detached and chat.just_detached == buffer.input_text(chat) then
    return require("codecompanion.chat.wire.attachments").attach_again(chat)
  end
  if step < 0 and chat.just_cleared and not (in_input and draft.can_undo(chat)) then
    return require("codecompanion.chat.wire.history").undo(chat)
  end
  if in_input then
    for _ = 1, vim.v.count1 do
      if not draft.travel(chat, step) then
        break
      end
    end
  else
    undo_elsewhere(chat, step)
  end
end

function M.undo(chat)
  travel(chat, -1)
end

function M.redo(chat)
  travel(chat, 1)
end

return M
