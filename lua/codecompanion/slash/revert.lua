---`/revert`: list what the tools changed in files, and take it back.

---@type CodeCompanion.SlashCommand
return {
  name = "revert",
  description = "List file changes and revert them",
  run = function(chat)
    require("codecompanion.files.list").open(chat)
  end,
}
