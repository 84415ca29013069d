---Tells the user once about what happens where nobody looks: a tool call that waits, or a turn that is over, in a chat
---that is not on the screen or while another program has the focus. What is on the screen speaks for itself.

local api = vim.api
local kinds = require("codecompanion.chat.state.question_kinds")
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

local M = {}

local focused = true

---Follow the focus of Neovim (terminals report it).
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
  return not focused or #require("codecompanion.chat.window").visible(chat) == 0
end

---@param chat CodeCompanion.Chat
---@return string
local function name_of(chat)
  return chat.title ~= "" and ("“%s”"):format(vim.fn.strcharpart(chat.title, 0, 40))
    or ("chat %s"):format(chat.name)
end

---@param text string
---@param level? integer
local function tell(text, level)
  if require("codecompanion.chat.state.options").display().notify_unseen then
    say.line(text, level)
  end
end

---A tool call waits.
---@param chat CodeCompanion.Chat
---@param event table approval_requested
function M.approval(chat, event)
  local kind = kinds[event.kind]
  if kind and not kind.waits then
    return
  end
  local hidden = unseen(chat)
  if hidden and kind then
    tell(("%s %s · :CodeCompanion approval"):format(name_of(chat), kind.told), severity.WARN)
  elseif hidden then
    local what = event.title ~= "" and event.title or event.name
    what = require("codecompanion.screen.visible").line(what).text
    if event.filetype == "sh" then
      what = ("%s: %s"):format(event.name, vim.fn.strcharpart(what, 0, 60))
    end
    tell(("Approval needed in %s: %s · :CodeCompanion approval"):format(name_of(chat), what), severity.WARN)
  end
  local autocmds = require("codecompanion.chat.state.autocmds")
  autocmds.fire(chat, "ApprovalWaiting", vim.tbl_extend("force", event, { unseen = hidden }))
end

---A turn is over that the user did not stop.
---@param chat CodeCompanion.Chat
---@param event table turn_finished
function M.finished(chat, event)
  local hidden = unseen(chat)
  if hidden and event.error ~= "" then
    tell(("The reply in %s failed: %s"):format(name_of(chat), event.error), severity.WARN)
  elseif hidden then
    tell(("The reply in %s is complete"):format(name_of(chat)))
  end
  local data = vim.tbl_extend("force", event, { unseen = hidden })
  require("codecompanion.chat.state.autocmds").fire(chat, "ChatDone", data)
end

---Whether something waits for the answer; a question about rules waits quietly, and the chat goes on without it.
---@param approval CodeCompanion.Approval
---@return boolean
function M.is_pressing(approval)
  local kind = kinds[approval.event.kind]
  return not kind or kind.waits
end

---The tool calls that wait for an answer and are drawn.
---@param chat CodeCompanion.Chat
---@return CodeCompanion.Approval[]
function M.waiting(chat)
  return vim.tbl_filter(M.is_pressing, chat.approvals or {})
end

---Whether a tool call of the chat waits for an answer, be it drawn or not.
---@param chat CodeCompanion.Chat
---@return boolean
function M.waits(chat)
  return #M.waiting(chat) > 0 or vim.iter(vim.tbl_values(chat.put_away)):any(M.is_pressing)
end

---For status lines: the chats that wait for an answer, but for the one that is shown there.
---@param bufnr? integer The current buffer when not given
---@return string? text
function M.elsewhere(bufnr)
  bufnr = bufnr or api.nvim_get_current_buf()
  local waiting = vim.tbl_filter(function(chat)
    return M.waits(chat) and chat.bufnr ~= bufnr
  end, require("codecompanion.chat").list())
  if #waiting > 1 then
    return ("%d chats are waiting for your approval"):format(#waiting)
  end
  return waiting[1] and ("%s is waiting for your approval"):format(name_of(waiting[1])) or nil
end

---A key of an approval was pressed somewhere else.
function M.point_to_block()
  local key = require("codecompanion.chat.ui.keymaps").keys("next_approval", "n")[1]
  local text = "The approval is not under the cursor" .. (key and (" · %s goes there"):format(key) or "")
  say.hint(text)
end

return M
