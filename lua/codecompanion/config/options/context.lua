---Options of context editing and compaction: `interactions.chat.opts.context_management` (R-501 … R-504, R-529).
---
---The defaults are those of policy `codecompanion` (python/codecompanion/context/policies/codecompanion.toml; a test
---compares them). Only options set by the user are sent to the host: other policies have their own defaults. The host
---validates triggers and conflicts between them (`context/thresholds.py`, `context/policy/policy_options.py`).

---@class CodeCompanion.TriggerContext
---@field adapter CodeCompanion.AdapterInfo
---@field model string
---@field window integer In tokens

---@type CodeCompanion.Option
local THRESHOLD = {
  name = "compaction_threshold",
  type = { "number", "string" },
  optional = true,
  description = "Trigger of the `kodacode` policy (0.8).",
}

---@type CodeCompanion.Option
local TARGET = {
  name = "compaction_target_threshold",
  type = { "number", "string" },
  optional = true,
  description = "Target of the `kodacode` policy (0.6); must be below its trigger.",
}

local TRIGGER = { "number", "string", "boolean", "function" }

return {
  {
    name = "enabled",
    type = { "boolean", "function" },
    default = true,
    signature = "fun(adapter: CodeCompanion.AdapterInfo): boolean",
    description = "Use context editing and compaction. A function is called when a chat opens.",
  },
  {
    name = "strict",
    type = "boolean",
    default = false,
    description = "Follow only the policy's document, see |codecompanion-strict|.",
  },
  {
    name = "editing",
    description = "Context editing: clear old tool results.",
    fields = {
      {
        name = "trigger",
        type = TRIGGER,
        default = 0.65,
        signature = "fun(ctx: CodeCompanion.TriggerContext): number",
        description = "When to edit, see |codecompanion-context-settings|; false = never.",
      },
      {
        name = "exclude_tools",
        type = "list",
        items = { type = "string" },
        default = { "memory" },
        description = "Tools whose results are never cleared.",
      },
      {
        name = "keep_cycles",
        type = "integer",
        min = 0,
        default = 3,
        description = "Number of newest cycles that keep their results.",
      },
    },
  },
  {
    name = "compaction",
    description = "Compaction: replace the conversation with a summary.",
    fields = {
      {
        name = "trigger",
        type = TRIGGER,
        default = 0.85,
        signature = "fun(ctx: CodeCompanion.TriggerContext): number",
        description = "When to compact, as for editing; with false, `/compact` still works.",
      },
      {
        name = "min_token_savings",
        type = { "integer", "string" },
        check = require("codecompanion.config.tokens").check(0),
        default = 10000,
        description = "Minimum tokens to save; in a small context window, a fifth of it.",
      },
      {
        name = "adapter",
        type = { "string", "table" },
        optional = true,
        adapter = true,
        description = "Adapter for summaries; by default the chat's.",
      },
      {
        name = "fallback_to_chat_adapter",
        type = "boolean",
        default = false,
        description = "If the summary adapter fails, try the chat's own once.",
      },
    },
  },
  THRESHOLD,
  TARGET,
  {
    name = "sessions",
    description = "Options of the `kodacode` policy, named as in its document.",
    fields = {
      THRESHOLD,
      TARGET,
      {
        name = "response_style",
        type = "string",
        enum = { "default", "terse" },
        optional = true,
        description = "Used if `interactions.chat.opts.response_style` is not set.",
      },
    },
  },
}
