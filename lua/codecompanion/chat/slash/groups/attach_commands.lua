---Slash commands that attach something to the chat.

local buffers = require("codecompanion.chat.slash.attach_buffers")
local paths = require("codecompanion.chat.slash.attach_paths")

---@type CodeCompanion.SlashCommand[]
return {
  {
    name = "file",
    description = "Attach files or PDFs",
    argument = "[--once] [paths]",
    many = true,
    complete = paths.complete_files,
    run = paths.attach_files,
  },
  {
    name = "buffer",
    description = "Attach buffers, unsaved changes included",
    argument = "[--once] [names]",
    many = true,
    complete = buffers.complete,
    run = buffers.attach,
  },
  {
    name = "image",
    description = "Attach images",
    argument = "[paths]",
    many = true,
    complete = paths.complete_images,
    run = paths.attach_images,
  },
}
