---`/title [text]`: call the chat something; without a text the user is asked.

---@type CodeCompanion.SlashCommand
return {
  name = "title",
  description = "Give the chat a title",
  argument = "[text]",
  run = function(chat, argument)
    require("codecompanion.chat.session").attach(chat)
    require("codecompanion.chat.stored").rename(chat.id, argument, { present = chat.title })
  end,
}
