---`/adapter [name]`: talk to another adapter, with its default model.

---@type CodeCompanion.SlashCommand
return {
  name = "adapter",
  description = "Change the adapter",
  argument = "[name]",
  complete = function(lead)
    return require("codecompanion.chat.models").adapters(lead)
  end,
  run = function(chat, argument, refuse)
    if argument == "" then
      return require("codecompanion.chat.pickers").model(chat)
    end
    require("codecompanion.chat.models").use_adapter(chat, argument, refuse)
  end,
}
