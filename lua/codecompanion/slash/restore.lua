---`/restore [checkpoint]`: make a chat of a checkpoint of this one; this one stays as it is.

---@type CodeCompanion.SlashCommand
return {
  name = "restore",
  description = "Open a checkpoint of this chat as a new chat",
  argument = "[checkpoint]",
  run = function(chat, argument, refuse)
    local chats = require("codecompanion.chat.ui.resume")
    if argument ~= "" then
      return chats.restore(argument, nil, refuse)
    end
    require("codecompanion.chat.lists.pickers").checkpoint(chat.id, function(id)
      chats.restore(id)
    end)
  end,
}
