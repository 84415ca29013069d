---`/continue`: let the model go on with a reply that was cut off.

---@type CodeCompanion.SlashCommand
return {
  name = "continue",
  description = "Continue a reply that was cut off",
  run = function(chat, _, refuse)
    require("codecompanion.chat.state.session").go_on(chat, refuse)
  end,
}
