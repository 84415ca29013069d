---Options of slash commands: `interactions.chat.slash_commands`. lua/codecompanion/chat/slash/slash_registry.lua knows
---which names are in use.

return {
  name = "<name>",
  description = "A slash command: your own, or a built-in one that you switch off.",
  disable = true,
  fields = {
    {
      name = "callback",
      type = "function",
      optional = true,
      signature = "fun(chat: CodeCompanion.SlashChat, argument: string): string?",
      description = "Function of your command, see |codecompanion-own-slash|. A string that it returns is put into the"
        .. " input. Built-in commands have none: their names are reserved.",
    },
    {
      name = "description",
      type = "string",
      optional = true,
      description = "Text beside its name in the help and in completion.",
    },
    {
      name = "argument",
      type = "string",
      optional = true,
      description = "Form of its argument, such as `[words]`. Without it the command takes none.",
    },
    {
      name = "multiline",
      type = "boolean",
      optional = true,
      description = "The argument may have several lines.",
    },
    {
      name = "complete",
      type = "function",
      optional = true,
      signature = "fun(lead: string): string[]",
      description = "Returns values of the argument that begin with `lead`.",
    },
    {
      name = "enabled",
      type = { "boolean", "function" },
      optional = true,
      signature = "fun(): boolean",
      description = "False switches the command off. A function is called whenever commands are listed.",
    },
    {
      name = "opts",
      description = "Options of the command.",
      fields = {
        {
          name = "contains_code",
          type = "boolean",
          optional = true,
          description = "It is refused while `opts.send_code` is false. Built-in commands that attach files, buffers,"
            .. " outlines, diffs or terminals are; false allows one.",
        },
      },
    },
  },
}
