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
          description = "Additional folders with prompts.",
        },
      },
    },
  },
  values = {
    name = "<name>",
    type = { "table", "boolean" },
    optional = true,
    check = require("codecompanion.config.prompt_entries").check,
    description = "Your own prompt (|codecompanion-prompt-entries|), or a built-in one.",
  },
}
