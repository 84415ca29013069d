---`/file [path]`: attach a file to the next request; a PDF is attached as a document.

local paths = require("codecompanion.slash.paths")

---@type CodeCompanion.SlashCommand
return {
  name = "file",
  description = "Attach a file or a PDF",
  argument = "[path]",
  complete = paths.complete,
  run = function(chat, argument)
    if argument ~= "" then
      return paths.attach(chat, "file", argument)
    end
    paths.pick(chat, "file", function()
      return true
    end)
  end,
}
