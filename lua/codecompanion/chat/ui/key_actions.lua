---Implements the actions of the chat buffer's keys, named as in `interactions.chat.keymaps`.

local api = vim.api
local anchors = require("codecompanion.chat.buffer.anchors")
local code = require("codecompanion.chat.ui.code_blocks")
local folds = require("codecompanion.chat.buffer.folds")
local keys = require("codecompanion.chat.state.configured_keys")
local marks = require("codecompanion.chat.buffer.row_marks")
local say = require("codecompanion.say")
local session = require("codecompanion.chat.state.session")
local severity = require("codecompanion.severity")
local submit = require("codecompanion.chat.ui.submit")
local travel = require("codecompanion.chat.ui.undo")
local unread = require("codecompanion.chat.buffer.unread")
local view = require("codecompanion.chat.buffer.scroll")

---@type table<string, fun(chat: CodeCompanion.Chat)>
local M = {}

---@param chat CodeCompanion.Chat
function M.options(chat)
  require("codecompanion.chat.lists.chat_help").open(require("codecompanion.chat.slash").list(), chat.meter)
end

function M.completion()
  if vim.fn.pumvisible() == 1 then
    api.nvim_feedkeys(vim.keycode("<C-n>"), "n", false)
  else
    api.nvim_feedkeys(vim.keycode("<C-x><C-o>"), "n", false)
  end
end

M.codeblock = code.insert
M.yank_code = code.yank
M.send = submit.send
M.regenerate = session.regenerate
M.clear = session.clear

---Turn YOLO mode on or off.
---@param chat CodeCompanion.Chat
function M.yolo_mode(chat)
  chat.yolo = not chat.yolo
  session.notify(chat, "set_yolo", { on = chat.yolo })
  local sentence = require("codecompanion.chat.state.yolo").sentence(chat.yolo)
  say.chat(chat, sentence, chat.yolo and severity.WARN or severity.INFO)
  require("codecompanion.chat.state.chat_status").publish(chat)
  require("codecompanion.chat.draw.activity").draw(chat)
end

---Return whether the point where output is inserted is visible, so that the user can see what would be stopped.
---@param chat CodeCompanion.Chat
---@return boolean
local function sees_the_turn(chat)
  return vim.fn.line("w$") >= anchors.position(chat, "tail")
end

---@return string
local function nothing_runs()
  local close = keys.keys("close", "n")[1]
  return close and ("Nothing is running; %s closes the chat"):format(close) or "Nothing is running in this chat"
end

---Stop the running work; ask first if the running turn is not visible. The key never starts recording a macro, because
---the next key would name the register. It ends a recording that was started elsewhere.
function M.stop(chat)
  if vim.fn.reg_recording() ~= "" then
    return api.nvim_feedkeys("q", "n", false)
  end
  if not require("codecompanion.chat.state.chat_status").is_busy(chat) then
    return require("codecompanion.chat.sources.attach_source").stop(chat) or say.hint(nothing_runs())
  elseif require("codecompanion.screen.closed_page").takes_key() then
    return
  elseif sees_the_turn(chat) then
    return session.cancel(chat)
  end
  local question = ("Stop the turn below (%s)?"):format(require("codecompanion.chat.state.chat_status").activity(chat))
  local answers = { { key = "y", label = "yes" }, { key = "n", label = "no" } }
  require("codecompanion.screen.confirm").ask(question, answers, function(key)
    if key == "y" then
      session.cancel(chat)
    end
  end)
end

---Close the chat; ask first if that would stop running work or cancel an open question.
function M.close(chat)
  local chats = require("codecompanion.chat.life")
  if not require("codecompanion.chat.state.chat_status").is_busy(chat) then
    local title = chat.title
    chats.close(chat)
    if title ~= "" then
      say.hint({
        ("Closed %s; :CodeCompanionChat Resume reopens it"):format(title),
        ":CodeCompanionChat Resume reopens it",
      })
    end
    return
  end
  local waiting = #require("codecompanion.chat.state.questions").waiting(chat) > 0
  local what = waiting and "cancels the pending approval" or "stops the running turn"
  local answers = {
    { key = "h", label = "hide, keep running" },
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

---Put the message under the cursor into the input for editing; sending it forks the chat there.
function M.edit_message(chat)
  require("codecompanion.chat.life.fork").edit(chat, view.cursor_row())
end

---@param chat CodeCompanion.Chat
---@param step 1|-1
local function header(chat, step)
  local row = view.cursor_row()
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

function M.change_adapter(chat)
  require("codecompanion.chat.lists.pickers").model(chat)
end

---Open or close a fold; elsewhere the key acts as `<C-i>`, as in Neovim.
function M.toggle_fold(chat)
  if vim.fn.foldlevel(".") > 0 then
    vim.cmd("normal! za")
    require("codecompanion.chat.draw.view_marks").show_keys(chat) -- the line of an open fold also shows the keys
  else
    api.nvim_feedkeys((vim.v.count > 0 and vim.v.count or "") .. vim.keycode("<C-i>"), "n", false)
  end
end

function M.debug(chat)
  require("codecompanion.chat.lists.inspector").open(chat)
end

---Show the changes that the policy would make before the next request, and those of /compact; nothing is sent.
function M.preview(chat)
  session.request(chat, "preview", {}, require("codecompanion.screen.float").show_rows)
end

---Show the full content of the item under the cursor.
function M.show_original(chat)
  local row = view.cursor_row()
  local item = marks.item_at(chat, row)
  local float = require("codecompanion.screen.float")
  if item and not item.approval and unread.is_unread(chat, item) then
    return
  elseif item and item.approval then
    return require("codecompanion.chat.question.approval").act(chat, "show")
  end
  if item and item.change then
    local change = item.change
    return session.request(chat, "show_change", { change_id = change.change_id, texts = true }, function(shown)
      require("codecompanion.changes.change_view").open_recorded(shown, change.path)
    end)
  end
  if item and item.gathered and chat.read_only then -- only its host knows more than the buffer shows
    local fold = folds.at(chat, row)
    if fold then
      folds.set_closed(chat, fold, false)
    end
    return say.hint("Only the snippets are here; the rest is in the Neovim that has this chat open")
  end
  if item and item.gathered then
    return require("codecompanion.chat.lists.gathered_code").shown(chat, item.message_id, item.tokens)
  end
  local compaction = item and chat.changes[item.compaction_id]
  if compaction then
    return float.show(require("codecompanion.chat.draw.summary").details(compaction.event))
  end
  local attached = require("codecompanion.chat.draw.context_block").item_at(chat, row)
  local id = attached and attached.id or item and (item.call_id or item.message_id)
  local answer = not id and require("codecompanion.chat.draw.replaced_answers").at(chat, row)
  id = id or answer and answer.items[#answer.items]
  if id and id ~= "" then
    return session.request(chat, "show_original", { item = id }, float.show)
  end
  local topic = require("codecompanion.chat.draw.notices").help_at(chat, row)
  if topic then
    return vim.cmd("CodeCompanion help " .. topic)
  end
  local waiting = require("codecompanion.chat.state.questions").waiting(chat)
  if #waiting == 1 then
    return require("codecompanion.chat.question.approval").act(chat, "show", waiting[1])
  end
  local meter = row >= anchors.position(chat, "header") and chat.meter
  local signs = meter and require("codecompanion.chat.state.chat_status").explained(meter)
  say.hint(signs or "Nothing more to show here.")
end

local DIRECTION = { [1] = " below", [-1] = " above" }

---@param chat CodeCompanion.Chat
---@param step 1|-1
local function file_change(chat, step)
  for _ = 1, vim.v.count1 do
    local row = require("codecompanion.chat.changed_files.change_marks").next_row(chat, view.cursor_row(), step)
    if not row then
      return say.hint("No file change" .. (chat.has_changed_files and DIRECTION[step] or " in this chat"))
    end
    vim.cmd("normal! m'")
    api.nvim_win_set_cursor(0, { row + 1, 0 })
  end
end

function M.next_header(chat)
  header(chat, 1)
end

function M.previous_header(chat)
  header(chat, -1)
end

function M.next_chat(chat)
  require("codecompanion.chat.life").cycle(chat, 1)
end

function M.previous_chat(chat)
  require("codecompanion.chat.life").cycle(chat, -1)
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

---Report where the nearest file change is: the last one above, or else the first one below.
---@param chat CodeCompanion.Chat
---@param found string What is on this line
local function point_to_change(chat, found)
  if not chat.has_changed_files then
    return say.hint("No file change in this chat")
  end
  for _, way in ipairs({ { -1, "previous_change" }, { 1, "next_change" } }) do
    local key = keys.keys(way[2], "n")[1]
    local row, change =
      require("codecompanion.chat.changed_files.change_marks").next_row(chat, view.cursor_row(), way[1])
    if key and row and change then
      local there = ("%s; %s goes to "):format(found, key)
      local name = vim.fs.basename(change.path) .. DIRECTION[way[1]]
      return say.hint({ there .. name .. ", :CodeCompanionRevert lists all", there .. name, there .. "it" })
    end
  end
  say.hint(found .. "; :CodeCompanionRevert lists all")
end

---Revert a file change made by a tool, or restore a reverted one.
function M.revert_change(chat)
  local item = marks.item_at(chat, view.cursor_row())
  if unread.is_unread(chat, item) then
    return
  elseif item and item.change then
    local again = keys.keys("revert_change", "n")[1]
    return require("codecompanion.chat.changed_files.revert_changes").revert(chat, { item.change.change_id }, again)
  end
  point_to_change(chat, item and item.turn_changes and "Several file changes" or "No file change on this line")
end

function M.system_prompt(chat)
  require("codecompanion.chat.lists.whole_text").system_prompt(chat)
end

---Return the message under the cursor if it is not in the context in full: cleared, or removed by compaction.
---@param chat CodeCompanion.Chat
---@return string? id
local function removed_item(chat)
  local row = view.cursor_row()
  local item = marks.item_at(chat, row)
  local id = item and (item.message_id or item.call_id)
  if not id or id == "" then
    return nil
  end
  return (item.cleared or require("codecompanion.chat.state.removed_messages").is_gone(chat, item)) and id or nil
end

---Put removed content back into the context; in the input the key keeps its normal function.
function M.restore(chat)
  local id = removed_item(chat)
  if id and unread.is_unread(chat, marks.item_at(chat, view.cursor_row())) then
    return
  elseif id then
    require("codecompanion.chat.wire.edit_view").restore(chat, id)
  elseif view.cursor_row() < anchors.position(chat, "input") then
    say.hint("Nothing to restore here: this was not removed.")
  else
    -- before the keys typed since, which may include the replacement character
    api.nvim_feedkeys((vim.v.count > 0 and vim.v.count or "") .. "r", "in", false)
  end
end

---Open the file of a line in the context block, or the path under the cursor; for a cleared result show its original.
function M.open_file(chat)
  local shown = marks.item_at(chat, view.cursor_row())
  if shown and shown.gathered then
    return require("codecompanion.chat.lists.gathered_code").go_to(vim.api.nvim_get_current_line())
  elseif shown and shown.turn_changes then
    local of = shown.turn_changes[1].change_id
    return require("codecompanion.chat.changed_files.changes_quickfix").fill(chat, { of_change = of })
  elseif shown and shown.cleared then
    return M.show_original(chat)
  end
  local item = require("codecompanion.chat.draw.context_block").item_at(chat, view.cursor_row())
  if item and item.kind == "memory" then
    return require("codecompanion.pages.memory_page").open(chat.id)
  end
  local root = require("codecompanion.config").options.workspace.root
  local folders = { vim.fn.getcwd(), type(root) == "string" and root ~= "" and vim.fs.normalize(root) or nil }
  local named = require("codecompanion.screen.named_location")
  local place
  if item then
    place = named.read(item.label, folders)
  else
    place = named.at(vim.api.nvim_get_current_line(), vim.api.nvim_win_get_cursor(0)[2], folders)
  end
  if not place then
    local path = item and item.label or vim.fn.expand("<cfile>")
    if chat.has_changed_files then
      return require("codecompanion.chat.changed_files.changes_quickfix").fill(chat, {})
    end
    return say.hint(path == "" and "No file here to open, and none changed in this chat" or ("No file %s"):format(path))
  end
  require("codecompanion.screen.open_file").file(place.path, place.line, place.column)
end

---Show the files of the chat's folder and their trust.
function M.trust(chat)
  require("codecompanion.pages.trust_page").open(chat.id, function()
    return require("codecompanion.chat.question.approval").rows_on_screen(chat, chat.approvals[1])
  end)
end

---Attach the files named in the line under the cursor: pasted or dropped paths.
function M.attach_path(chat)
  require("codecompanion.chat.sources.dropped_files").attach_here(chat)
end

---Start or stop sending changes of the attachment under the cursor to the model; on the heading of the block, this
---applies to all attachments.
function M.toggle_live(chat)
  require("codecompanion.chat.sources.live_attachments").toggle(chat, view.cursor_row())
end

---Undo the newest change of the context; on a rejected file change, propose it again in the file.
function M.undo(chat)
  local item = marks.item_at(chat, view.cursor_row())
  local rejected = require("codecompanion.chat.question.rejected_changes")
  local one = item and item.call_id and rejected.of(item.call_id)
  if one then
    return rejected.propose(one)
  end
  travel(chat, -1)
end

function M.redo(chat)
  travel(chat, 1)
end

return M
