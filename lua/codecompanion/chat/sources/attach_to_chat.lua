---Attaching something to a chat: the host is asked, and one line says that it is there. The context block, which shows
---it, stands at the top of the chat and is seldom in sight.

local numbers = require("codecompanion.text.numbers")
local say = require("codecompanion.say")
local session = require("codecompanion.chat.state.session")
local severity = require("codecompanion.severity")

local M = {}

local TOGETHER_MS = 60 -- what arrives within it is one line: the files of a pattern

---@type { label: string, tokens: integer }[] What has arrived and is not told yet
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
---@param payload table As `requests.Attach`
---@param refuse? fun(reason: string) Told why it cannot be; the buffer says it when not given
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
