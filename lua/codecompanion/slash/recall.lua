---`/recall [words]`: search what was taken out of the context.

---@type CodeCompanion.SlashCommand
return {
  name = "recall",
  description = "Search what was taken out of the context",
  argument = "[words]",
  run = function(chat, argument)
    require("codecompanion.chat.history").recall(chat, argument)
  end,
}
