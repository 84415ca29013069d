---`/adapter [name]`: talk to another adapter, with its default model.

---@type CodeCompanion.SlashCommand
return {
  name = "adapter",
  description = "Change the adapter",
  argument = "[name]",
  complete = function(lead)
    return require("codecompanion.chat.lists.models").adapters(lead)
  end,
  run = function(chat, argument, refuse)
    if argument == "" then
      return require("codecompanion.chat.lists.pickers").model(chat)
    end
    require("codecompanion.chat.lists.models").use_adapter(chat, argument, refuse)
  end,
}
