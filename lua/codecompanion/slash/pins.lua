---`/pins`: what is pinned in this chat (R-361).

---@type CodeCompanion.SlashCommand
return {
  name = "pins",
  description = "List the pins",
  run = function(chat)
    require("codecompanion.chat.lists.recall").pins(chat)
  end,
}
