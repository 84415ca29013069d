---`/pins`: what is pinned in this chat (R-361).

---@type CodeCompanion.SlashCommand
return {
  name = "pins",
  description = "List what is pinned",
  run = function(chat)
    require("codecompanion.chat.history").pins(chat)
  end,
}
