---`:CodeCompanion cancel`: stops requests that run without a chat window.

local say = require("codecompanion.say")

local M = {}

---Stop the nearest request: the edit in place under the cursor; otherwise the buffer's other edits, a command line and
---a commit message; if none of those is running, the edits of other buffers.
---@return string[] stopped Descriptions of the stopped requests
local function stop_nearest()
  local stopping = require("codecompanion.edit_in_place.stop_edits")
  local stopped = stopping.under_cursor()
  if #stopped == 0 then
    stopped = stopping.of_buffer()
    vim.list_extend(stopped, require("codecompanion.headless.headless_question").cancel_all())
  end
  return #stopped > 0 and stopped or stopping.elsewhere()
end

---Return the message that is shown if nothing was stopped.
---@return string[]
local function nothing_runs()
  local text = "Nothing is running outside of chats"
  local keys = require("codecompanion.changes.decision_keys")
  local proposed = #require("codecompanion.changes.proposals_of_buffer").live(vim.api.nvim_get_current_buf()) > 0
  local how = proposed and keys.hint({ { "reject_change", "rejects the proposal" } }, " · ") or ""
  if vim.bo.filetype == "codecompanion" then
    local key = require("codecompanion.chat.state.configured_keys").keys("stop", "n")[1]
    how = key and (" · %s stops the reply of this chat"):format(key) or ""
  end
  return { text .. how, text }
end

function M.run()
  local stopped = stop_nearest()
  if #stopped == 0 then
    return say.line(nothing_runs())
  end
  local last = table.remove(stopped)
  local what = #stopped > 0 and table.concat(stopped, ", ") .. " and " .. last or last
  local text = "Stopped " .. what
  say.line({ text .. "; nothing was changed.", text, "Stopped; nothing was changed.", "Stopped" })
end

return M
