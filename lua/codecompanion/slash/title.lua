---`/title [text]`: `/rename` under another name.

---@type CodeCompanion.SlashCommand
return vim.tbl_extend("force", require("codecompanion.slash.rename"), {
  name = "title",
  description = "Set the title of the chat",
})
