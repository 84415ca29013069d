---Shows the diff of an approval in a change view, where it can be edited. Closing the view keeps the question open,
---with the edits.

local api = vim.api
local changes = require("codecompanion.changes.change_view")
local hunks = require("codecompanion.changes.hunks")
local keys = require("codecompanion.changes.decision_keys")
local say = require("codecompanion.say")

local M = {}

local VERBS = { "accept_change", "always_accept", "reject_change", "cancel" }

---@class CodeCompanion.DiffOwner Actions of the diff's keys, and a callback for edits
---@field answer fun(chat: CodeCompanion.Chat, approval: CodeCompanion.Approval, verb: string)
---@field mark_edited fun(chat: CodeCompanion.Chat, approval: CodeCompanion.Approval)
---@field abandon fun(chat: CodeCompanion.Chat)

---Return whether there are two versions to compare.
---@param event table approval_requested event
---@return boolean
function M.fits(event)
  return event.path ~= "" and event.before ~= event.after
end

---Return the proposal as edited by the user, or nil if it is unchanged.
---@param approval CodeCompanion.Approval
---@return string?
function M.edited_text(approval)
  return approval.view and approval.view:edited_text()
end

---Return the labels of the verbs; false hides a key that would only report why it does not work.
---@param event table approval_requested event
---@return table<string, string|false>
local function words_of(event)
  local offers_always = event.why == "" and event.narrowed == ""
  return { reject_change = "reject…", always_accept = offers_always and "always…" }
end

---@param chat CodeCompanion.Chat
---@param approval CodeCompanion.Approval
---@param owner CodeCompanion.DiffOwner
---@return CodeCompanion.ChangeView
local function make(chat, approval, owner)
  local event, actions = approval.event, {}
  for _, verb in ipairs(VERBS) do
    actions[verb] = function()
      owner.answer(chat, approval, verb)
    end
  end
  local view = changes.new({
    title = event.title:match("^%u%l+") or event.name,
    path = event.path,
    before = hunks.text(event.before),
    after = hunks.text(event.after),
    is_editable = event.name ~= "delete_file",
    words = words_of(event),
    actions = actions,
    on_close = function()
      owner.mark_edited(chat, approval)
    end,
    on_write = function()
      local key = keys.of("accept_change") or ":CodeCompanion accept"
      say.hint(("Kept in the proposal; %s accepts it and writes the file"):format(key))
    end,
  })
  api.nvim_create_autocmd("User", {
    pattern = "CodeCompanionChatClosed",
    callback = function(args)
      if approval.view ~= view then
        return true
      elseif args.data.chat == chat.id then
        owner.abandon(chat)
        return true
      end
    end,
  })
  return view
end

---Show the change, or go to the tab page that shows it.
---@param chat CodeCompanion.Chat
---@param approval CodeCompanion.Approval
---@param owner CodeCompanion.DiffOwner
function M.open(chat, approval, owner)
  approval.view = approval.view or make(chat, approval, owner)
  approval.view:open()
end

---Show the current keys in the view after the question has changed.
---@param approval CodeCompanion.Approval
function M.update(approval)
  if approval.view then
    approval.view:label(words_of(approval.event))
  end
end

---Close the view; the edits are kept for next time.
---@param approval CodeCompanion.Approval
function M.close(approval)
  if approval.view then
    approval.view:close()
  end
end

---Close the view when the question ends, unless the user is in it and did not answer; then it shows that the question
---ended.
---@param approval CodeCompanion.Approval
function M.closed(approval)
  local view = approval.view
  if not view then
    return
  elseif view:is_open() and not approval.answered and api.nvim_get_current_win() == view.win then
    view.options.on_close = function()
      approval.view = nil
      view:wipe()
    end
    return view:over("This approval is closed; nothing was written")
  end
  approval.view = nil
  view:wipe()
end

return M
