---`/help`: keys and commands.

---@type CodeCompanion.SlashCommand
return {
  name = "help",
  description = "Show keys and commands",
  run = function()
    require("codecompanion.chat.ui.help").open(require("codecompanion.slash").list())
  end,
}
