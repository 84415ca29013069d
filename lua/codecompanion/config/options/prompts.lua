---Options of the prompt library: `prompt_library`. lua/codecompanion/config/prompt_entries.lua checks the entries.

return {
  fields = {
    {
      name = "markdown",
      description = "Prompts in Markdown files.",
      fields = {
        {
          name = "dirs",
          type = "list",
          items = { type = "string" },
          default = {},
          description = "Further folders with prompts, besides `codecompanion/prompts` in the folder of your"
            .. " configuration. A folder inside a project contains the project's prompts.",
        },
      },
    },
  },
  values = {
    name = "<name>",
    type = { "table", "boolean" },
    optional = true,
    check = require("codecompanion.config.prompt_entries").check,
    description = "Your own prompt, see |codecompanion-prompt-entries|, or a built-in one (`explain`, `fix`,"
      .. " `tests`, `commit`, `review`): false removes it, an entry replaces it.",
  },
}
