---`/rename [text]`: call the chat something; without a text the user is asked.

---@type CodeCompanion.SlashCommand
return {
  name = "rename",
  description = "Change the title of the chat",
  argument = "[text]",
  run = function(chat, argument, refuse)
    require("codecompanion.chat.state.session").attach(chat)
    require("codecompanion.chat.lists.stored").rename(chat.id, argument, { present = chat.title, refuse = refuse })
  end,
}
