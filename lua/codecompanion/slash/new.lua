---`/new`: open a new chat in this window; this one goes on and can be reached by the keys for the next chat.

---@type CodeCompanion.SlashCommand
return {
  name = "new",
  description = "Open a new chat in this window",
  run = function()
    require("codecompanion.chat.ui.life").open({ layout = "here" })
  end,
}
