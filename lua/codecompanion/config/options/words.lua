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
      description = "Adapter that writes "
        .. what
        .. ": its name, or { name = …, model = … }. By default that of new chats.",
    },
    {
      name = "timeout",
      type = "integer",
      min = 1000,
      default = 60000,
      description = "How long to wait for the answer, in milliseconds; then nothing is changed.",
    },
  }
end

return {
  {
    name = "cmd",
    description = "A command line from words, see |:CodeCompanionCmd|.",
    fields = fields("the command line"),
  },
  {
    name = "commit",
    description = "A commit message from the staged changes, see |codecompanion-commit|.",
    fields = fields("the message"),
  },
}
