---`/memory`: the summaries that compactions wrote down for later chats; the chosen one is opened (R-446, R-447).

---@type CodeCompanion.SlashCommand
return {
  name = "memory",
  description = "List what compactions remembered",
  run = function()
    require("codecompanion.chat.lists.pickers").memory(function(path)
      require("codecompanion.files.show").file(path)
    end)
  end,
}
