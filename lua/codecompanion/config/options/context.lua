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
  description = "KodaCode's own name of `compaction.trigger`, for policy `kodacode`: the share of the context"
    .. " window (0.8 there), or the number of tokens, above which older history is summarised.",
}

---@type CodeCompanion.Option
local TARGET = {
  name = "compaction_target_threshold",
  type = { "number", "string" },
  optional = true,
  description = "For policy `kodacode`: any summary that brings the history to this share of the window (0.6"
    .. " there), or to that number of tokens, is good enough. Smaller than `compaction_threshold`.",
}

local TRIGGER = { "number", "string", "boolean", "function" }

return {
  {
    name = "enabled",
    type = { "boolean", "function" },
    default = true,
    signature = "fun(adapter: CodeCompanion.AdapterInfo): boolean",
    description = "Use context editing and compaction. A function is called when a chat opens and when its adapter or"
      .. " model changes.",
  },
  {
    name = "strict",
    type = "boolean",
    default = false,
    description = "Manage the context exactly as the policy's document describes, without the plugin's own steps."
      .. " |codecompanion-strict| lists them, and those that always run. For one chat: `/policy codebuddy strict`.",
  },
  {
    name = "editing",
    description = "Context editing: replace old tool results with a placeholder.",
    fields = {
      {
        name = "trigger",
        type = TRIGGER,
        default = 0.65,
        signature = "fun(ctx: CodeCompanion.TriggerContext): number",
        description = "When editing begins: a fraction of the context window (0 < t < 1), a number of tokens (2 or"
          .. ' more), a percentage ("65%"), a function that returns one of these, or false for never.',
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
        description = "How many of the newest cycles keep their tool results, including the current one. A cycle is"
          .. " one of your messages and everything the model did in response.",
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
        description = "When compaction begins, written like the trigger of editing; false for never (`/compact` still"
          .. " works).",
      },
      {
        name = "min_token_savings",
        type = { "integer", "string" },
        check = require("codecompanion.config.tokens").check(0),
        default = 10000,
        description = "Skip an automatic compaction that would save fewer tokens than this; in small windows a fifth of"
          .. " the window is enough.",
      },
      {
        name = "adapter",
        type = { "string", "table" },
        optional = true,
        adapter = true,
        description = "Adapter that writes the summary, also for `/compact`: its name, or"
          .. " { name = …, model = … }. By default the chat's own adapter.",
      },
      {
        name = "fallback_to_chat_adapter",
        type = "boolean",
        default = false,
        description = "Try the chat's own adapter once if the adapter above fails. Otherwise a failed compaction"
          .. " changes nothing and shows a message.",
      },
    },
  },
  THRESHOLD,
  TARGET,
  {
    name = "sessions",
    description = "Options of policy `kodacode`, named as in its document.",
    fields = {
      THRESHOLD,
      TARGET,
      {
        name = "response_style",
        type = "string",
        enum = { "default", "terse" },
        optional = true,
        description = "Same as `interactions.chat.opts.response_style`, which is used if both are set.",
      },
    },
  },
}
