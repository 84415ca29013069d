---`:CodeCompanion audit`: shows the host's audit log, or exports it as JSON Lines.

local M = {}

---@param chat? { id: string } The current chat
---@param arguments string[] `all`, `export {file}`; none: the current chat, or all chats if there is none
function M.run(chat, arguments)
  local host = require("codecompanion.host")
  local say = require("codecompanion.say")
  local severity = require("codecompanion.severity")
  local payload = { of = chat and chat.id or "", file = "" }
  if arguments[1] == "all" then
    payload.of = ""
  elseif arguments[1] == "export" and arguments[2] then
    payload.of, payload.file = "", table.concat(arguments, " ", 2)
  elseif arguments[1] then
    return say.line("Usage: :CodeCompanion audit [all|export {file}]", severity.ERROR)
  end
  host.request("show_audit", payload, function(err, result)
    if err then
      return say.line(err, severity.ERROR)
    elseif result.said ~= "" then
      return say.line(result.said)
    end
    local float = require("codecompanion.screen.float")
    float.show({ title = result.title, text = result.text, filetype = "markdown", state = "" })
  end)
end

return M
