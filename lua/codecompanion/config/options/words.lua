---Options of requests without a chat window: `interactions.cmd` and `interactions.commit`.

---@param what string
---@return CodeCompanion.Option[]
local function fields(what)
  return {
    {
      name = "adapter",
      type = { "string", "table" },
      optional = true,
      adapter = true,
      description = ("Adapter that writes %s; defaults to the adapter of new chats."):format(what),
    },
    {
      name = "timeout",
      type = "integer",
      min = 1000,
      default = 60000,
      description = "Time limit for the reply.",
    },
  }
end

return {
  {
    name = "cmd",
    description = "Generating a command line, see |:CodeCompanionCmd|.",
    fields = fields("the command line"),
  },
  {
    name = "commit",
    description = "Writing a commit message for staged changes, see |codecompanion-commit|.",
    fields = fields("the message"),
  },
}
