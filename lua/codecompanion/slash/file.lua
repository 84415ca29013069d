---`/file [paths]`: attach files to the next request; a PDF is attached as a document.

local paths = require("codecompanion.slash.paths")

---@type CodeCompanion.SlashCommand
return {
  name = "file",
  description = "Attach files or PDFs",
  argument = "[paths]",
  many = true,
  complete = paths.complete,
  run = function(chat, argument, refuse)
    if argument ~= "" then
      return paths.attach_all(chat, "file", argument, refuse)
    end
    paths.pick(chat, "file", function()
      return true
    end)
  end,
}
