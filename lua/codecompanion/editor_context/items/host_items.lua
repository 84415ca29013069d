---Defines the editor context items that the host reads by their argument
---(`codecompanion.session.editor_context.host_mentions`), and the item that asks it to gather code.

local MAX_OFFERED = 200

---@type CodeCompanion.EditorContext.Item[]
return {
  {
    name = "diff",
    description = "Changes since the last commit; :staged, :unstaged, :branch",
    argument = "staged | unstaged | branch",
    complete = function()
      return { "staged", "unstaged", "branch" }
    end,
    by_host = true,
  },
  {
    name = "file",
    description = "A file by its path, open or not; :10-20 for some of its lines",
    argument = "path",
    needs_argument = true,
    complete = function(lead, files)
      return files.fitting(lead, MAX_OFFERED, files.folder())
    end,
    by_host = true,
  },
  {
    name = "codebase",
    description = "The project's code that the question is about",
    of_host = true,
  },
}
