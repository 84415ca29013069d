---Options of context editing and compaction: `interactions.chat.opts.context_management` (R-501 … R-504, R-529).
---
---The defaults are those of policy `codecompanion` (python/codecompanion/context/policies/codecompanion.toml; a test
---compares them). Only what the user sets is sent to the host: other policies bring their own.

local check_trigger = require("codecompanion.config.trigger")

local TRIGGER = { "number", "string", "boolean", "function" }

return {
  {
    name = "enabled",
    type = { "boolean", "function" },
    default = true,
    signature = "fun(adapter: CodeCompanion.AdapterInfo): boolean",
    description = "Whether context editing and compaction run at all. A function is asked when a chat opens and when"
      .. " its adapter or model changes.",
  },
  {
    name = "editing",
    description = "Context editing: old tool results are replaced by a placeholder.",
    fields = {
      {
        name = "trigger",
        type = TRIGGER,
        default = 0.65,
        check = check_trigger,
        signature = "fun(ctx: CodeCompanion.TriggerContext): number",
        description = "When editing begins: a fraction of the context window (0 < t < 1), a number of tokens (2 or"
          .. ' more), a percentage ("65%"), a function that returns one of these, or false for never.',
      },
      {
        name = "exclude_tools",
        type = "list",
        items = { type = "string" },
        default = { "memory" },
        description = "Names of tools whose results are never cleared.",
      },
      {
        name = "keep_cycles",
        type = "integer",
        min = 0,
        default = 3,
        description = "How many of the newest cycles keep their tool results, the running one included. A cycle is one"
          .. " message of yours and everything the model did in response.",
      },
    },
  },
  {
    name = "compaction",
    description = "Compaction: the conversation is replaced by a summary.",
    fields = {
      {
        name = "trigger",
        type = TRIGGER,
        default = 0.85,
        check = check_trigger,
        signature = "fun(ctx: CodeCompanion.TriggerContext): number",
        description = "When compaction runs, in the same forms as the trigger of editing; false for never (`/compact`"
          .. " still works).",
      },
      {
        name = "min_token_savings",
        type = { "integer", "string" },
        check = require("codecompanion.config.tokens").check(0),
        default = 10000,
        description = "An automatic compaction that would save fewer tokens than this is not done.",
      },
      {
        name = "adapter",
        type = { "string", "table" },
        optional = true,
        adapter = true,
        description = "Another adapter for the summary: its name, or { name = …, model = … }. Used for `/compact` too."
          .. " The chat's own adapter when not set.",
      },
      {
        name = "fallback_to_chat_adapter",
        type = "boolean",
        default = false,
        description = "When the adapter above fails, ask the chat's own adapter once. Otherwise a failure skips this"
          .. " round, nothing is changed, and you are told.",
      },
    },
  },
}
