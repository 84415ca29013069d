---What the questions that are no tool calls say, by their kind: the keys that answer them, and what the others mean.

---@class CodeCompanion.QuestionKind
---@field choices { [1]: string, [2]: string }[] action, words
---@field notice string What stands after the title
---@field hints table<string, string> What a key that answers nothing here says
---@field is_prose? boolean What is asked about are sentences, nothing that is to be read exactly
---@field waits boolean Whether something waits for the answer
---@field waiting? string[] What the chat does meanwhile: in a sentence, and where there is little room
---@field told? string What is said where nobody looks: the name of the chat, and this

---@type table<string, CodeCompanion.QuestionKind>
return {
  rules = {
    choices = {
      { "approve_once", "read in this chat" },
      { "approve_always", "always, until it changes" },
      { "reject", "no" },
      { "show_original", "show all" },
    },
    notice = " · not read yet",
    hints = {
      approve_prefix = "These are files, no command; g1 reads them in this chat",
      cancel_all = "Nothing waits for this answer: leave it, or say no with g3",
    },
    waits = false,
  },
  mcp = {
    choices = {
      { "approve_once", "start them this time" },
      { "approve_always", "always, until the file changes" },
      { "reject", "no" },
      { "show_original", "show all" },
    },
    notice = " · nothing is started yet",
    hints = {
      approve_prefix = "These are servers; g1 starts them this time",
      cancel_all = "Nothing waits for this answer: leave it, or say no with g3",
    },
    waits = false,
  },
  sampling = {
    choices = {
      { "approve_once", "let the model answer" },
      { "reject", "no" },
      { "show_original", "show all" },
    },
    notice = " · the server waits",
    hints = {
      approve_always = "It is asked each time; g1 lets the model answer this",
      approve_prefix = "This is no command; g1 lets the model answer",
      cancel_all = "g3 says no; q stops the call",
    },
    waits = true,
    waiting = { "waiting for your answer: an MCP server asks", "waiting: MCP server" },
    told = "has an MCP server that asks for a reply of the model",
  },
  elicitation = {
    choices = {
      { "approve_once", "answer" },
      { "reject", "decline" },
      { "cancel_all", "close without an answer" },
    },
    notice = " · the server waits",
    hints = {
      approve_always = "It is asked each time; g1 answers",
      approve_prefix = "This is no command; g1 answers",
    },
    is_prose = true,
    waits = true,
    waiting = { "waiting for your answer: an MCP server asks", "waiting: MCP server" },
    told = "has an MCP server that asks you for something",
  },
  compact = {
    choices = {
      { "approve_once", "compact and send" },
      { "reject", "do not send" },
    },
    notice = " · not sent yet",
    hints = {
      approve_always = "It is asked as long as compaction is paused; g1 compacts and sends",
      approve_prefix = "This is no command; g1 compacts and sends",
    },
    is_prose = true,
    waits = true,
    waiting = { "waiting for your answer: compact?", "waiting: compact?" },
    told = "does not fit the window and asks whether to compact",
  },
}
