---Attaches something to a chat through the host, and confirms it in one line. The context block that shows it is at the
---top of the chat, which is rarely visible.

local numbers = require("codecompanion.text.numbers")
local say = require("codecompanion.say")
local session = require("codecompanion.chat.state.session")
local severity = require("codecompanion.severity")

local M = {}

local TOGETHER_MS = 60 -- attachments within this time are confirmed in one line: the files of a pattern

---@type { label: string, tokens: integer }[] Attachments that are not confirmed yet
local arrived = {}

local function tell()
  local tokens = 0
  for _, one in ipairs(arrived) do
    tokens = tokens + one.tokens
  end
  local what = #arrived == 1 and arrived[1].label or ("%d items"):format(#arrived)
  local size = tokens > 0 and (" · %s tokens"):format(numbers.short(tokens)) or ""
  arrived = {}
  say.hint(("Attached %s%s"):format(what, size))
end

---Attach something to the next request.
---@param chat CodeCompanion.Chat
---@param payload table As in `requests.Attach`
---@param refuse? fun(reason: string) Called with the reason for a failure; by default the buffer shows it
function M.attach(chat, payload, refuse)
  local refusal = require("codecompanion.editor_context.send_code").attachment_refusal(payload.kind)
  if refusal then
    return (refuse or function(reason)
      say.chat(chat, reason, severity.WARN)
    end)(refusal)
  end
  session.request(chat, "attach", payload, function(attached)
    arrived[#arrived + 1] = attached
    if #arrived == 1 then
      vim.defer_fn(tell, TOGETHER_MS)
    end
  end, refuse or function(reason)
    say.chat(chat, reason, severity.ERROR)
  end)
end

return M
