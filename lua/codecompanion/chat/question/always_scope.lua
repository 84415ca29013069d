---Asks for the scope of an "always" answer: which calls to allow from now on.

local choose = require("codecompanion.screen.choose")
local visible = require("codecompanion.text.visible_characters")

local M = {}

---@class CodeCompanion.AlwaysScope
---@field text string
---@field family? boolean All commands that the question offers, not only this one

---Return the scopes that "always" can allow.
---@param event table approval_requested event
---@return CodeCompanion.AlwaysScope[]
local function scopes_of(event)
  if event.filetype ~= "sh" then
    local but = event.path ~= "" and ", except on files that run code" or ""
    return { { text = ("Always allow %s in this chat%s"):format(event.name, but) } }
  end
  local hosts = ""
  if event.place == "network" then
    local count = #(event.hosts or {})
    hosts = count == 0 and " and any host" or count == 1 and " and this host" or " and these hosts"
  end
  local found = { { text = ("Always allow exactly this command%s in this chat"):format(hosts) } }
  if event.covers ~= "" then
    found[2] = { text = ("Always allow %s%s"):format(visible.line(event.covers).text, hosts), family = true }
  end
  return found
end

---Ask for the scope of "always".
---@param event table approval_requested event
---@param chosen fun(scope: CodeCompanion.AlwaysScope)
function M.ask(event, chosen)
  choose.select(scopes_of(event), {
    prompt = "Accept, and allow from now on",
    kind = "codecompanion.always",
    format_item = function(scope)
      return scope.text
    end,
  }, function(scope)
    if scope then
      chosen(scope)
    end
  end)
end

return M
