---`/model [name]`: talk to another model, of this adapter or another one.

---@type CodeCompanion.SlashCommand
return {
  name = "model",
  description = "Change the model",
  argument = "[name]",
  complete = function(lead)
    return require("codecompanion.chat.lists.models").names(lead)
  end,
  run = function(chat, argument, refuse)
    if argument == "" then
      return require("codecompanion.chat.lists.pickers").model(chat)
    end
    require("codecompanion.chat.lists.models").use_model(chat, argument, refuse)
  end,
}
