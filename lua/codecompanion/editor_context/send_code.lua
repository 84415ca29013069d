---Decides whether code may be sent to a model: `opts.send_code`, evaluated when something is about to be sent.
---
---Refused code never reaches the host. Code that the host would read itself (gathered code, live attachments, tools) is
---omitted because of `send_code` in the snapshot.

local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

local M = {}

M.WHY = "opts.send_code is false"

---Kinds of attachments that contain code; their slash commands have the same names.
local KINDS = { file = true, buffer = true, symbols = true, diff = true, terminal = true }

---@return table
local function options()
  return require("codecompanion.config").options
end

---Return whether code may be sent now. A function that fails, or does not return a boolean, forbids it.
---@return boolean
function M.is_allowed()
  local option = options().opts.send_code
  if type(option) ~= "function" then
    return option
  end
  local ok, answer = pcall(option)
  if ok and type(answer) == "boolean" then
    return answer
  end
  local what = ok and ("returned %s; expected a boolean"):format(type(answer)) or ("failed: %s"):format(answer)
  local problem = ("opts.send_code: the function %s; no code is sent"):format(what)
  require("codecompanion.config").failed(problem)
  say.once(problem, severity.ERROR)
  return false
end

---Return whether an action is refused because it would send code; if so, report it.
---@param what string The action, as the subject of a sentence: `An edit in place`
---@return boolean refused
function M.refuses(what)
  if M.is_allowed() then
    return false
  end
  local brief = ("Nothing was sent: %s"):format(M.WHY)
  say.line({ ("%s sends code, and %s; nothing was sent"):format(what, M.WHY), brief }, severity.WARN)
  return true
end

---Return why an attachment is refused.
---@param kind string
---@return string? reason
function M.attachment_refusal(kind)
  local command = options().interactions.chat.slash_commands[kind]
  local says = command and command.opts and command.opts.contains_code
  if not KINDS[kind] or says == false or M.is_allowed() then
    return nil
  end
  return ("Not attached: a %s sends code, and %s."):format(kind, M.WHY)
end

return M
