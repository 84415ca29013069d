---Texts of questions that are not tool calls, by kind: the keys that answer them, and hints for other keys.

---@class CodeCompanion.QuestionKind
---@field choices { [1]: string, [2]: string }[] Verb and label
---@field notice string Text after the title
---@field hints table<string, string> Hints for keys that do not answer this question
---@field waiting string[] The state of the chat while it waits: a sentence, and a short form
---@field told string The notification for a chat that is not visible: appended to the chat's name

---@type table<string, CodeCompanion.QuestionKind>
return {
  sampling = {
    choices = {
      { "accept_change", "let the model answer" },
      { "reject_change", "no" },
    },
    notice = " · the server is waiting",
    hints = {
      always_accept = "The server asks each time",
      cancel = "Reject it, or stop the call with q",
    },
    waiting = { "waiting for your answer: an MCP server asks", "waiting: MCP server" },
    told = "has an MCP server that asks for a model reply",
  },
  elicitation = {
    choices = {
      { "accept_change", "answer" },
      { "reject_change", "decline" },
      { "cancel", "close without an answer" },
    },
    notice = " · the server is waiting",
    hints = {
      always_accept = "The server asks each time",
    },
    waiting = { "waiting for your answer: an MCP server asks", "waiting: MCP server" },
    told = "has an MCP server that asks for your input",
  },
  compact = {
    choices = {
      { "accept_change", "compact and send" },
      { "reject_change", "do not send" },
    },
    notice = " · not sent yet",
    hints = {
      always_accept = "Asks each time while compaction is paused",
    },
    waiting = { "waiting for your answer: compact?", "waiting: compact?" },
    told = "does not fit the window and asks whether to compact",
  },
}
