---`/recall [words]`: search what was removed from the context.

---@type CodeCompanion.SlashCommand
return {
  name = "recall",
  description = "Search what was removed from the context",
  argument = "[words]",
  run = function(chat, argument)
    require("codecompanion.chat.lists.recall").recall(chat, argument)
  end,
}
