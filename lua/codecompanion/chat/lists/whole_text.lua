---Shows the full text of drawn or sent content in a float.

local float = require("codecompanion.screen.float")
local session = require("codecompanion.chat.state.session")

local M = {}

---Show a message as originally written.
---@param chat CodeCompanion.Chat
---@param id string Message or call id
function M.message(chat, id)
  session.request(chat, "show_original", { item = id }, float.show)
end

---Show the system prompt and the names of the tools.
---@param chat CodeCompanion.Chat
function M.system_prompt(chat)
  session.request(chat, "show_system_prompt", {}, function(result)
    local text = result.text
    if result.tools and #result.tools > 0 then
      text = text .. "\n\n---\nTools: " .. table.concat(result.tools, ", ")
    end
    float.show({ title = "System prompt", text = text, filetype = "markdown", state = "" })
  end)
end

return M
