---Wording of a question that does not offer "always" because of text in the context: the reason, and a way out. A chat
---shows them in full once; later questions with the same reason show a short form, until `g1` asks for the reason.

local keys = require("codecompanion.changes.decision_keys")
local visible = require("codecompanion.text.visible_characters")

local M = {}

local NOT_OFFERED = "No new “always”"
---End of a reason that trusting the folder removes.
local TRUST = " (:CodeCompanion trust)"

---Return the reason not to offer "always", and the way out.
---@param event table approval_requested event
---@return string
function M.reason(event)
  local because = visible.line(event.narrowed).text
  if not vim.endswith(because, TRUST) then
    return because .. "; a new chat offers it"
  end
  local key = require("codecompanion.chat.state.configured_keys").keys("trust", "n")[1]
  return key and ("%s (%s to trust it)"):format(because:sub(1, -#TRUST - 1), key) or because
end

---Record that a chat shows a question. Only the first question with a given reason shows the reason.
---@param chat CodeCompanion.Chat
---@param event table approval_requested event
function M.note(chat, event)
  chat.no_always[event.narrowed] = chat.no_always[event.narrowed] or event.call_id
end

---Return the warning in the block of a question.
---@param chat CodeCompanion.Chat
---@param event table approval_requested event
---@return string
function M.warning(chat, event)
  local shown_in = chat.no_always[event.narrowed]
  if not shown_in or shown_in == event.call_id then
    return ("%s: %s"):format(NOT_OFFERED, M.reason(event))
  end
  return ("%s; %s says why"):format(NOT_OFFERED, keys.of("always_accept", chat.bufnr) or ":CodeCompanion always")
end

---Show the reason in the block of this question from now on, and return the answer to the key.
---@param chat CodeCompanion.Chat
---@param event table approval_requested event
---@return string[] texts Longest first
function M.explain(chat, event)
  chat.no_always[event.narrowed] = event.call_id
  local reason = M.reason(event)
  return { ("%s: %s"):format(NOT_OFFERED, reason), reason, NOT_OFFERED .. ", see the approval", NOT_OFFERED }
end

return M
