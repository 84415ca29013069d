---Looks for a model again before a message is sent in a chat that only fell back to `offline`: a server on this machine
---may have been started since. A chat whose adapter the user chose is left alone.

local choice = require("codecompanion.adapters.default_adapter")
local keys = require("codecompanion.chat.state.configured_keys")
local say = require("codecompanion.say")
local session = require("codecompanion.chat.state.session")

local M = {}

---Call `go_on` at once, or within 0.3 s if the chat has no model; a model found is used from then on.
---@param chat CodeCompanion.Chat
---@param go_on fun()
function M.before(chat, go_on)
  local options = require("codecompanion.config").options
  if chat.adapter ~= choice.FALLBACK or chat.is_adapter_chosen or not choice.is_automatic(options) then
    return go_on()
  end
  choice.make(options, function(made)
    if made.is_usable and made.name ~= chat.adapter and not chat.closed then
      session.set_model(chat, made.name, made.model)
      made.is_told = true
      say.chat(chat, choice.sentence(made, keys.keys("change_adapter", "n")[1]))
    end
    go_on()
  end, true)
end

return M
