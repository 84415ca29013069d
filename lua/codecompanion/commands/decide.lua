---`:CodeCompanion accept|reject|skip|always` and the <Plug> maps: decide on a proposal without pressing its key.
---They apply to the nearest proposal: the diff or proposal in the current buffer, else the chat's approval, else
---the only pending approval.

local api = vim.api
local say = require("codecompanion.say")
local of_buffer = require("codecompanion.changes.proposals_of_buffer")

local M = {}

local VERBS = { accept = "accept_change", reject = "reject_change", skip = "skip_hunk", always = "always_accept" }

---Return the chat in the current window, or else the only one that waits.
---@return CodeCompanion.Chat?
---@return integer count Number of chats waiting for an approval
local function waiting_chat()
  local here = require("codecompanion.chat.state.open_chats").by_buffer()
  if here then
    return #here.approvals > 0 and here or nil, #here.approvals
  end
  local waiting = vim.tbl_filter(function(chat)
    return #chat.approvals > 0
  end, require("codecompanion.chat.state.open_chats").list())
  return #waiting == 1 and waiting[1] or nil, #waiting
end

---@param name "accept"|"reject"|"skip"|"always"
---@param range? { [1]: integer, [2]: integer } 1-based lines
function M.run(name, range)
  local verb, bufnr = VERBS[name], api.nvim_get_current_buf()
  local rows = range and { range[1] - 1, range[2] - 1 } or nil
  local view = require("codecompanion.changes.change_view").of(bufnr)
  if view then
    local action = view.actions[verb]
    return action and action(rows) or not action and say.hint("Nothing to decide about this change")
  end
  local edit = of_buffer.chosen(bufnr)
  if edit and edit.actions[verb] then
    return edit.actions[verb](rows)
  end
  local chat, count = waiting_chat()
  if chat and verb == "skip_hunk" then
    return say.hint("Open the diff of the approval to skip a hunk")
  elseif chat then
    local win = require("codecompanion.chat.buffer.shown").visible(chat)[1]
    if win then
      return api.nvim_win_call(win, function()
        require("codecompanion.chat.question.approval_keys").run(chat.bufnr, verb)
      end)
    end
  end
  if count > 0 then
    return require("codecompanion.chat").go_to_approval() -- it should be read first
  end
  say.hint("No proposed change or approval here")
end

---Return rejected changes of tool calls that can be proposed again, newest first.
---@return CodeCompanion.Rejected[]
local function rejected()
  return require("codecompanion.chat.question.rejected_changes").list()
end

---Return whether something can be reopened here.
---@return boolean
function M.can_reopen()
  return of_buffer.can_reopen(api.nvim_get_current_buf()) or #rejected() > 0
end

---`:CodeCompanion reopen`: propose again the rejected changes of this buffer, or else those of a chat. Text typed since
---is kept.
function M.reopen()
  if of_buffer.reopen(api.nvim_get_current_buf()) then
    return
  end
  local found = rejected()
  if #found == 0 then
    return say.line("No rejected change to propose again")
  end
  if #found == 1 then
    return require("codecompanion.chat.question.rejected_changes").propose(found[1])
  end
  require("codecompanion.screen.choose").select(found, {
    prompt = "Propose again",
    kind = "codecompanion.reopen",
    format_item = function(one)
      return one.title
    end,
  }, function(one)
    if one then
      require("codecompanion.chat.question.rejected_changes").propose(one)
    end
  end)
end

return M
