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
---@param text string
---@param level? integer
local function tell(chat, text, level)
  local is_on_same_screen = #shown.visible(chat) > 0 and say.is_builtin_notify()
  if options.display().notify_unseen and not is_on_same_screen then
    say.line(text, level)
  end
end

---Notify the user of a waiting tool call.
---@param chat CodeCompanion.Chat
---@param event table approval_requested event
function M.approval(chat, event)
  local kind = kinds[event.kind]
  local hidden = unseen(chat)
  if hidden and kind then
    tell(chat, ("%s %s · :CodeCompanion approval"):format(questions.name_of(chat), kind.told), severity.WARN)
  elseif hidden then
    local what = event.title ~= "" and event.title or event.name
    what = require("codecompanion.text.visible_characters").line(what).text
    if event.filetype == "sh" then
      what = ("%s: %s"):format(event.name, vim.fn.strcharpart(what, 0, 60))
    end
    local text = ("Approval needed in %s: %s · :CodeCompanion approval"):format(questions.name_of(chat), what)
    tell(chat, text, severity.WARN)
  end
  local autocmds = require("codecompanion.chat.state.autocmds")
  autocmds.fire(chat, "ApprovalWaiting", vim.tbl_extend("force", event, { unseen = hidden }))
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
