---What the user does to the view by hand: undo, redo, restore, pin, recall. The host decides, and answers one sentence.

local say = require("codecompanion.say")
local session = require("codecompanion.chat.state.session")
local severity = require("codecompanion.severity")

local M = {}

---Ask the host for a change of the view; what came of it is said in one line.
---@param chat CodeCompanion.Chat
---@param verb string
---@param payload table
---@param done? fun() Called when it was made
---@param refuse? fun(reason: string) Called when it was not
local function ask(chat, verb, payload, done, refuse)
  if chat.read_only and refuse then
    chat.said = nil -- each action of the user gets its answer
    return refuse(session.READ_ONLY)
  elseif chat.read_only then
    return say.line(session.READ_ONLY, severity.WARN)
  end
  session.attach(chat)
  payload.chat = chat.id
  require("codecompanion.host").request(verb, payload, say.answer(done, refuse))
end

---Take the newest change back; `change_id` names the one under the cursor, which has to be that one.
---@param chat CodeCompanion.Chat
---@param change_id? string
---@param done? fun()
function M.undo(chat, change_id, done)
  ask(chat, "undo_change", { change_id = change_id or "" }, done)
end

---Let what was undone last count again.
---@param chat CodeCompanion.Chat
---@param change_id? string
---@param done? fun()
function M.redo(chat, change_id, done)
  ask(chat, "redo_change", { change_id = change_id or "" }, done)
end

---Put the original of one message back into the view.
---@param chat CodeCompanion.Chat
---@param id string Message or call id
---@param done? fun()
function M.restore(chat, id, done)
  ask(chat, "restore_message", { item = id }, done)
end

---Clear one tool result.
---@param chat CodeCompanion.Chat
---@param id string Message or call id
---@param done? fun()
function M.clear(chat, id, done)
  ask(chat, "clear_message", { item = id }, done)
end

---Pin a message, or a text as an instruction; with neither the newest message.
---@param chat CodeCompanion.Chat
---@param what { item?: string, text?: string }
---@param done? fun()
---@param refuse? fun(reason: string)
function M.pin(chat, what, done, refuse)
  ask(chat, "pin", { item = what.item or "", text = what.text or "" }, done, refuse)
end

---@param chat CodeCompanion.Chat
---@param what { item?: string, number?: integer }
---@param done? fun()
---@param refuse? fun(reason: string)
function M.unpin(chat, what, done, refuse)
  ask(chat, "unpin", { item = what.item or "", number = what.number or 0 }, done, refuse)
end

---@param chat CodeCompanion.Chat
---@param id string Message or call id
function M.show_original(chat, id)
  session.request(chat, "show_original", { item = id }, require("codecompanion.screen.float").show)
end

---@param bufnr integer
---@param lhs string
---@param desc string
---@param rhs fun()
local function map(bufnr, lhs, desc, rhs)
  vim.keymap.set("n", lhs, rhs, { buffer = bufnr, nowait = true, desc = desc })
end

---Close the float that is shown and open its successor.
---@param win integer
---@param again fun()
local function reopen(win, again)
  if vim.api.nvim_win_is_valid(win) then
    vim.api.nvim_win_close(win, true)
  end
  again()
end

---List the pinned messages.
---@param chat CodeCompanion.Chat
function M.pins(chat)
  session.request(chat, "list_pins", {}, function(rows)
    if #rows == 0 then
      return say.line({ "No pins yet; /pin pins the newest message, /pin text an instruction", "No pins yet" })
    end
    local status = require("codecompanion.chat.state.status")
    local lines = vim.tbl_map(function(row)
      return ("%2d  ⚑ %7s  %-9s  %s"):format(row.number, status.short(row.tokens), row.role, row.text)
    end, rows)
    local float = require("codecompanion.screen.float")
    local bufnr, win =
      float.open({ title = "Pinned", lines = lines, width = 100, footer = { "x unpin", "K show", "q close" } })
    vim.wo[win].cursorline = true
    local function row()
      return rows[vim.api.nvim_win_get_cursor(0)[1]]
    end
    map(bufnr, "x", "Unpin", function()
      M.unpin(chat, { item = row().id }, function()
        reopen(win, function()
          M.pins(chat)
        end)
      end)
    end)
    for _, key in ipairs({ "K", "<CR>", "gf" }) do
      map(bufnr, key, "Show the message", function()
        M.show_original(chat, row().id)
      end)
    end
  end)
end

---@param row table
---@return string[]
local function recalled(row)
  local status = require("codecompanion.chat.state.status")
  local facts = ("cycle %d · %s · %s tokens"):format(row.cycle, row.how, status.short(row.tokens))
  local lines = { (("%-6s %s"):format(row.key, row.title):gsub("\n", " ")), "       " .. facts }
  if row.changed ~= "" then
    lines[#lines + 1] = "       ! " .. row.changed
  end
  if row.snippet ~= "" then
    lines[#lines + 1] = "       " .. row.snippet:gsub("%s+", " ")
  end
  return lines
end

---Search what was taken out of the view, and list it.
---@param chat CodeCompanion.Chat
---@param words string "" = everything, newest first
function M.recall(chat, words)
  session.request(chat, "recall", { words = words }, function(result)
    if #result.rows == 0 then
      return say.line(words == "" and "Nothing was removed from this chat" or ("Nothing removed contains: " .. words))
    end
    local lines, at = {}, {}
    for _, row in ipairs(result.rows) do
      for _, line in ipairs(recalled(row)) do
        lines[#lines + 1] = line
        at[#lines] = row
      end
    end
    local title = words == "" and "Removed from the request" or ("Removed: " .. words)
    local footer = { "<CR> show", "r restore", "q close" }
    local bufnr, win = require("codecompanion.screen.float").open({ title = title, lines = lines, footer = footer })
    vim.bo[bufnr].filetype = "codecompanion_recall"
    vim.wo[win].cursorline = true
    local ns = vim.api.nvim_create_namespace("codecompanion.chat.recall")
    for number, line in ipairs(lines) do
      local group = line:find("^       !") and "CodeCompanionWarning" or line:find("^ ") and "CodeCompanionHint"
      if group then
        vim.api.nvim_buf_set_extmark(bufnr, ns, number - 1, 0, { line_hl_group = group })
      end
    end
    local function row()
      return at[vim.api.nvim_win_get_cursor(0)[1]]
    end
    for _, key in ipairs({ "<CR>", "K", "gf" }) do
      map(bufnr, key, "Show the original", function()
        M.show_original(chat, row().id)
      end)
    end
    map(bufnr, "r", "Restore", function()
      M.restore(chat, row().id, function()
        reopen(win, function()
          M.recall(chat, words)
        end)
      end)
    end)
  end)
end

return M
