---Notifies the user once of events in a chat that is not visible, or while another program has the focus: a tool call
---that waits, or the end of a turn. A visible chat needs no notification, least of all on the command line below it.

local api = vim.api
local kinds = require("codecompanion.chat.state.question_kinds")
local options = require("codecompanion.chat.state.chat_options")
local questions = require("codecompanion.chat.state.questions")
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")
local shown = require("codecompanion.chat.buffer.shown")

local M = {}

local focused = true

---Track the focus of Neovim, as reported by terminals.
function M.setup()
  local group = api.nvim_create_augroup("codecompanion.attention", {})
  api.nvim_create_autocmd({ "FocusLost", "FocusGained" }, {
    group = group,
    callback = function(args)
      focused = args.event == "FocusGained"
    end,
  })
end

---@param chat CodeCompanion.Chat
---@return boolean
local function unseen(chat)
  return not focused or #shown.visible(chat) == 0
end

---@param chat CodeCompanion.Chat
---@param text string|string[]
---@param level? integer
local function tell(chat, text, level)
  local is_on_same_screen = #shown.visible(chat) > 0 and say.is_builtin_notify()
  if options.display().notify_unseen and not is_on_same_screen then
    say.line(text, level)
  end
end

---Return the notification of a waiting tool call, and its shorter forms.
---@param chat CodeCompanion.Chat
---@param event table approval_requested event
---@return string[]
local function of_approval(chat, event)
  local kind, key = kinds[event.kind], " · :CodeCompanion approval"
  if kind then
    local whole = ("%s %s"):format(questions.name_of(chat), kind.told)
    return { whole .. key, kind.waiting[1] .. key, kind.waiting[2] .. key, ":CodeCompanion approval" }
  end
  local what = event.title ~= "" and event.title or event.name
  what = require("codecompanion.text.visible_characters").line(what).text
  local whole = event.filetype == "sh" and ("%s: %s"):format(event.name, vim.fn.strcharpart(what, 0, 60)) or what
  return {
    ("Approval needed in %s: %s"):format(questions.name_of(chat), whole) .. key,
    ("Approval needed: %s"):format(event.name) .. key,
    "Approval needed" .. key,
    ":CodeCompanion approval",
  }
end

---Notify the user of a waiting tool call.
---@param chat CodeCompanion.Chat
---@param event table approval_requested event
function M.approval(chat, event)
  local hidden = unseen(chat)
  if hidden then
    tell(chat, of_approval(chat, event), severity.WARN)
  end
  local autocmds = require("codecompanion.chat.state.autocmds")
  autocmds.fire(chat, "ApprovalWaiting", vim.tbl_extend("force", event, { unseen = hidden }))
end

---Notify the user once the last window of a chat with a waiting tool call is closed.
---@param chat CodeCompanion.Chat
function M.hidden(chat)
  vim.schedule(function() -- the window is closed, or another one shows the chat
    local waiting = questions.waiting(chat)[1] or select(2, next(chat.put_away))
    if waiting and not waiting.answered and not chat.closed and #vim.fn.win_findbuf(chat.bufnr) == 0 then
      tell(chat, of_approval(chat, waiting.event), severity.WARN)
    end
  end)
end

---Notify the user of the end of a turn, unless the user stopped it.
---@param chat CodeCompanion.Chat
---@param event table turn_finished event
function M.finished(chat, event)
  local autocmds = require("codecompanion.chat.state.autocmds")
  if event.reason == "stopped" then
    return autocmds.fire(chat, "ChatStopped", event)
  end
  local hidden = unseen(chat)
  if hidden and event.error ~= "" then
    tell(chat, ("The reply in %s failed: %s"):format(questions.name_of(chat), event.error), severity.WARN)
  elseif hidden then
    tell(chat, ("The reply in %s is complete"):format(questions.name_of(chat)))
  end
  autocmds.fire(chat, "ChatDone", vim.tbl_extend("force", event, { unseen = hidden }))
end

return M
