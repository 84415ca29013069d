---Options of the chat: `interactions.chat` without its keymaps. The host checks the values of commands, variables,
---shares and triggers when it starts (python/codecompanion/engine/configured.py).

local context = require("codecompanion.config.options.context")

return {
  {
    name = "adapter",
    type = { "string", "table" },
    optional = true,
    adapter = true,
    description = "Adapter of new chats; by default see |codecompanion-choose|.",
  },
  {
    name = "roles",
    description = "Names in the headers of the chat buffer.",
    fields = {
      {
        name = "llm",
        type = { "string", "function" },
        default = function(adapter)
          return ("CodeCompanion (%s)"):format(adapter.formatted_name)
        end,
        default_text = 'function(adapter) → "CodeCompanion (<adapter.formatted_name>)"',
        signature = "fun(adapter: CodeCompanion.AdapterInfo): string",
        description = "Header of the model's messages.",
      },
      {
        name = "user",
        type = { "string", "function" },
        default = "Me",
        signature = "fun(): string",
        description = "Header of your messages.",
      },
    },
  },
  {
    name = "keymaps",
    description = "Chat keymaps: { modes = { n = …, i = … } }, or false to disable one. Custom keymaps need a"
      .. " `callback`, see |codecompanion-keymaps|.",
    fields = require("codecompanion.config.options.keymaps").list(),
    values = require("codecompanion.config.options.keymaps").custom(),
    alias = { goto_file_under_cursor = "open_file", inspect = "debug" },
  },
  {
    name = "tools",
    description = "Tools of the model; false disables one. Other names are your own tools.",
    fields = require("codecompanion.config.options.tools"),
    values = require("codecompanion.config.options.own_tools"),
    alias = { insert_edit_into_file = "insert_edit" },
  },
  {
    name = "slash_commands",
    description = "Your own slash commands, see |codecompanion-own-slash|; false disables a built-in one.",
    fields = {},
    values = require("codecompanion.config.options.slash_commands"),
  },
  {
    name = "editor_context",
    description = "Editor content to mention, see |codecompanion-editor-context|; false disables an item, your own"
      .. " items need a `callback`.",
    fields = require("codecompanion.config.options.editor_context").fields(),
    values = require("codecompanion.config.options.editor_context").own(),
  },
  {
    name = "opts",
    description = "Behaviour of the chat.",
    fields = {
      {
        name = "system_prompt",
        type = { "string", "function" },
        optional = true,
        signature = "fun(ctx: CodeCompanion.SystemPromptContext): string",
        description = "System prompt; `${default_system_prompt}` or `ctx.default_system_prompt` is the built-in one.",
      },
      {
        name = "context_window",
        type = { "integer", "string" },
        optional = true,
        check = require("codecompanion.config.tokens").check(),
        description = "Context window size of all models, in tokens; by default see |codecompanion-windows|.",
      },
      {
        name = "policy",
        type = { "string", "table" },
        items = { type = "string" },
        default = "codecompanion",
        check = require("codecompanion.config.policies").check_choice,
        description = "Context management policy, or policies by adapter, see |codecompanion-policies|.",
      },
      {
        name = "policies",
        description = "Your own policies, see |codecompanion-own-policies|.",
        fields = {},
        values = {
          name = "<name>",
          type = "table",
          optional = true,
          check = require("codecompanion.config.policies").check,
          description = "`extends`, and option values.",
        },
      },
      {
        name = "strategies",
        description = "Your own policy steps, in Python, see |codecompanion-own-strategies|.",
        fields = {},
        values = {
          name = "<name>",
          type = "string",
          optional = true,
          check = require("codecompanion.config.own_tool_settings").check_python,
          description = '`path/to/file.py:function` (from `stdpath("config")`) or `module.path:function`.',
        },
      },
      {
        name = "max_provider_requests_per_turn",
        type = "integer",
        default = 32,
        check = function(value)
          return value == 0 and "0 would forbid every request; a negative number means no limit" or nil, value
        end,
        description = "Maximum requests in response to one message; negative = no limit.",
      },
      {
        name = "max_output_continuations",
        type = "integer",
        default = 1,
        check = function(value)
          return (value < 0 or value > 2) and "expected 0, 1 or 2" or nil, value
        end,
        description = "Automatic continuations per turn when a reply reaches the output limit: 0, 1 or 2.",
      },
      {
        name = "completion_provider",
        type = "string",
        enum = { "default", "blink", "cmp", "coc" },
        optional = true,
        description = "Menu of the input; by default Neovim's, unless a plugin is active.",
      },
      {
        name = "tell_open_file",
        type = "boolean",
        default = true,
        description = "Tell the model which file and lines you are looking at, see |codecompanion-looking-at|.",
      },
      {
        name = "tell_environment",
        type = "boolean",
        default = true,
        description = "Add system, folder, branch and date to the system prompt, see |codecompanion-environment|.",
      },
      {
        name = "budget",
        type = "number",
        min = 0,
        default = 0,
        description = "Maximum cost of a chat in US dollars, see |codecompanion-budgets|.",
      },
      {
        name = "budget_warn",
        type = "number",
        default = 0,
        description = "Warn at this fraction of `budget`, 0 to 1.",
      },
      {
        name = "total_budget",
        type = "number",
        min = 0,
        default = 0,
        description = "Maximum cost of all stored chats in US dollars.",
      },
      {
        name = "total_budget_warn",
        type = "number",
        default = 0,
        description = "Warn at this fraction of `total_budget`, 0 to 1.",
      },
      {
        name = "on_compact",
        type = "string",
        enum = { "auto", "submit", "ask", "stop" },
        default = "auto",
        description = "After a compaction, `auto` continues an interrupted turn, `submit` always continues, `ask` and"
          .. " `stop` wait (`ask` with a notice).",
      },
      {
        name = "tokenizer",
        type = "string",
        enum = { "estimate", "exact" },
        default = "estimate",
        description = "`estimate`: fast, 1 % off in coding chats; `exact`: for OpenAI models (0.2 s at start, 80 MB).",
      },
      {
        name = "compaction_timeout",
        type = "integer",
        min = 1000,
        default = 120000,
        description = "Time limit for a summary request without output; a whole compaction may take ten times as long.",
      },
      {
        name = "checkpoint_every_messages",
        type = { "integer", "boolean" },
        default = 12,
        check = function(value)
          local fits = value == false or (type(value) == "number" and value >= 1)
          return not fits and "expected 1 or more messages, or false" or nil, value
        end,
        description = "Write a checkpoint after this many messages, see |codecompanion-checkpoints|; false: only the"
          .. " policy's.",
      },
      {
        name = "memory",
        description = "Memory for later chats, see |codecompanion-memory|.",
        fields = {
          {
            name = "enabled",
            type = "boolean",
            default = true,
            description = "Write to the memory and start new chats with it.",
          },
          {
            name = "max_tokens",
            type = "integer",
            min = 0,
            default = 1000,
            description = "Maximum tokens of memory in a new chat, at most 1/16 of the context window; 0 = none.",
          },
          {
            name = "exclude",
            type = "list",
            default = {},
            items = { type = "string", description = "A regular expression." },
            description = "Python regular expressions; matching summaries are not stored.",
          },
        },
      },
      {
        name = "live_attachments",
        type = "boolean",
        default = true,
        description = "Send changes to attached files with each message, see |codecompanion-live|; false: send once.",
      },
      {
        name = "response_style",
        type = "string",
        enum = { "default", "terse" },
        optional = true,
        description = "`terse` asks for brief replies; by default the policy decides.",
      },
      {
        name = "context_packet",
        description = "Facts about the workspace, sent with your messages.",
        fields = {
          {
            name = "enabled_sections",
            type = "list",
            default = {},
            items = {
              type = "string",
              enum = { "repo", "git", "git_dirty_summary", "diagnostics" },
              description = "",
            },
            description = "`repo`, `git`, `git_dirty_summary`, `diagnostics`: see |codecompanion-context-packet|.",
          },
        },
      },
      {
        name = "context_management",
        description = "Context editing and compaction, see |codecompanion-context|.",
        fields = context,
        legacy = { trigger = "compaction.trigger" },
      },
    },
  },
}
