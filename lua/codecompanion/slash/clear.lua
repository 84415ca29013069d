---`/clear`: start over in this chat; the history keeps everything.

---@type CodeCompanion.SlashCommand
return {
  name = "clear",
  description = "Clear the chat (/undo brings it back)",
  run = function(chat)
    require("codecompanion.chat.state.session").clear(chat)
  end,
}
