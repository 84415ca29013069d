---Options of slash commands: `interactions.chat.slash_commands`. lua/codecompanion/chat/slash/slash_registry.lua knows
---which names are in use.

return {
  name = "<name>",
  description = "Your own slash command, or a built-in one.",
  disable = true,
  fields = {
    {
      name = "callback",
      type = "function",
      optional = true,
      signature = "fun(chat: CodeCompanion.SlashChat, argument: string): string?",
      description = "Function to run; a returned string is put into the input.",
    },
    {
      name = "description",
      type = "string",
      optional = true,
      description = "Text shown in help and completion.",
    },
    {
      name = "argument",
      type = "string",
      optional = true,
      description = "Syntax of the argument, such as `[words]`.",
    },
    {
      name = "multiline",
      type = "boolean",
      optional = true,
      description = "The argument may span several lines.",
    },
    {
      name = "complete",
      type = "function",
      optional = true,
      signature = "fun(lead: string): string[]",
      description = "Completes the argument.",
    },
    {
      name = "enabled",
      type = { "boolean", "function" },
      optional = true,
      signature = "fun(): boolean",
      description = "False disables the command. A function is called at each use.",
    },
    {
      name = "opts",
      description = "Options of the command.",
      fields = {
        {
          name = "contains_code",
          type = "boolean",
          optional = true,
          description = "Refuse the command while `opts.send_code` is false (true for built-in ones that attach code).",
        },
      },
    },
  },
}
