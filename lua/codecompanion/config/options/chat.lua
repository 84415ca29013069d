---Options of the chat: `interactions.chat` without its keymaps. The host checks the values of commands, variables,
---shares and triggers when it starts (python/codecompanion/engine/configured.py).

local context = require("codecompanion.config.options.context")

return {
  {
    name = "adapter",
    type = { "string", "table" },
    optional = true,
    adapter = true,
    description = "The adapter of new chats: its name, or { name = …, model = … }. Without it the first usable one of"
      .. " `adapters.http.opts.order` is chosen, see |codecompanion-choose|.",
  },
  {
    name = "roles",
    description = "The names in the headers of the chat buffer.",
    fields = {
      {
        name = "llm",
        type = { "string", "function" },
        default = function(adapter)
          return ("CodeCompanion (%s)"):format(adapter.formatted_name)
        end,
        default_text = 'function(adapter) → "CodeCompanion (<adapter.formatted_name>)"',
        signature = "fun(adapter: CodeCompanion.AdapterInfo): string",
        description = "The header of the model's messages.",
      },
      {
        name = "user",
        type = { "string", "function" },
        default = "Me",
        signature = "fun(): string",
        description = "The header of your messages.",
      },
    },
  },
  {
    name = "keymaps",
    description = "Keys of the chat buffer. Each is { modes = { n = …, i = … }, description = … }, or false"
      .. " for no mapping. Other names are your own mappings and need a `callback`.",
    fields = require("codecompanion.config.options.keymaps").list(),
    values = require("codecompanion.config.options.keymaps").custom(),
    alias = { goto_file_under_cursor = "open_file", inspect = "debug" },
  },
  {
    name = "tools",
    description = "Tools that the model can call. Set a tool to false to switch it off. Other names are tools of your"
      .. " own.",
    fields = require("codecompanion.config.options.tools"),
    values = require("codecompanion.config.options.own_tools"),
    alias = { insert_edit_into_file = "insert_edit" },
  },
  {
    name = "slash_commands",
    description = "Slash commands of your own, see |codecompanion-own-slash|. Set a built-in one to false to switch it"
      .. " off.",
    fields = {},
    values = require("codecompanion.config.options.slash_commands"),
  },
  {
    name = "editor_context",
    description = "References to the editor in messages, see |codecompanion-editor-context|. Set an item to false"
      .. " to switch it off; other names are your own items and need a `callback`.",
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
        description = "Replaces the built-in system prompt. A string can contain `${default_system_prompt}`, the"
          .. " built-in one; a function finds it in `ctx.default_system_prompt`. It is called when the host starts.",
      },
      {
        name = "context_window",
        type = { "integer", "string" },
        optional = true,
        check = require("codecompanion.config.tokens").check(),
        description = 'Context window in tokens, for all models: 32000, "16k" or "1M" (k = 1000). Without it each'
          .. " model has its own, from `models`, the endpoint or the built-in table.",
      },
      {
        name = "policy",
        type = { "string", "table" },
        items = { type = "string" },
        default = "codecompanion",
        check = require("codecompanion.config.policies").check_choice,
        description = "Policy of context management: which strategies run, when, and in which order. A name, or"
          .. ' names by adapter: { default = "codecompanion", anthropic = "cowork" }. `/policy` changes it for one'
          .. " chat.",
      },
      {
        name = "policies",
        description = "Your own policies by name. Each has `extends` and values for the options of the policy it"
          .. " extends, see |codecompanion-own-policies|.",
        fields = {},
        values = {
          name = "<name>",
          type = "table",
          optional = true,
          check = require("codecompanion.config.policies").check,
          description = "Your own policy.",
        },
      },
      {
        name = "strategies",
        description = "Your own strategies of context management, in Python; policies use them by name, see"
          .. " |codecompanion-own-strategies|.",
        fields = {},
        values = {
          name = "<name>",
          type = "string",
          optional = true,
          check = require("codecompanion.config.own_tool_settings").check_python,
          description = 'Your own strategy: `path/to/file.py:function`, relative to `stdpath("config")`, or'
            .. " `module.path:function`.",
        },
      },
      {
        name = "max_provider_requests_per_turn",
        type = "integer",
        default = 32,
        check = function(value)
          return value == 0 and "0 would forbid every request; a negative number means no limit" or nil, value
        end,
        description = "Maximum number of requests in response to one of your messages; then the turn ends. A negative"
          .. " number means no limit.",
      },
      {
        name = "max_output_continuations",
        type = "integer",
        default = 1,
        check = function(value)
          return (value < 0 or value > 2) and "expected 0, 1 or 2" or nil, value
        end,
        description = "How often per turn to continue a reply automatically that reached the model's output limit:"
          .. " 0, 1 or 2. `/continue` does it manually.",
      },
      {
        name = "tell_open_file",
        type = "boolean",
        default = true,
        description = "Give the model one short line with the workspace file you are looking at and the visible lines."
          .. " It is sent with a message if it has changed since the model last saw it.",
      },
      {
        name = "tell_environment",
        type = "boolean",
        default = true,
        description = "Describe the environment in a short block of the system prompt: system, shell, working folder,"
          .. " git branch, date, your language, Neovim version, see |codecompanion-environment|.",
      },
      {
        name = "budget",
        type = "number",
        min = 0,
        default = 0,
        description = "Maximum cost of one chat, in US dollars; 0 = unlimited. Once it is reached, the next turn ends"
          .. " before anything is sent. Calls without a known price are not counted; `/cost` says how many there are.",
      },
      {
        name = "budget_warn",
        type = "number",
        default = 0,
        description = "Warn when this share of `budget` is spent, between 0 and 1; 0 = never.",
      },
      {
        name = "total_budget",
        type = "number",
        min = 0,
        default = 0,
        description = "Maximum cost of all stored chats together, in US dollars; 0 = unlimited.",
      },
      {
        name = "total_budget_warn",
        type = "number",
        default = 0,
        description = "Warn when this share of `total_budget` is spent, between 0 and 1; 0 = never.",
      },
      {
        name = "on_compact",
        type = "string",
        enum = { "auto", "submit", "ask", "stop" },
        default = "auto",
        description = "Behaviour after a compaction. `auto`: an interrupted turn continues, an idle chat waits for"
          .. " you; `submit`: the model always continues; `ask` and `stop`: it always waits, and `ask` notifies you.",
      },
      {
        name = "tokenizer",
        type = "string",
        enum = { "estimate", "exact" },
        default = "estimate",
        description = "How tokens are counted until the provider reports them: a fast estimate (about 1 % off in"
          .. " coding chats), or exactly by the vocabulary of OpenAI's models (o200k_base), which takes 0.2 s at"
          .. " start-up and 80 MB. It comes with the plugin and needs no network; `/cost` shows both counts.",
      },
      {
        name = "compaction_timeout",
        type = "integer",
        min = 1000,
        default = 120000,
        description = "How long a compaction's model call may stay silent, in milliseconds; then it fails and nothing"
          .. " is changed. A summary that keeps arriving is never cut off. All calls of one compaction together may be"
          .. " silent ten times as long.",
      },
      {
        name = "checkpoint_every_messages",
        type = { "integer", "boolean" },
        default = 12,
        check = function(value)
          local fits = value == false or (type(value) == "number" and value >= 1)
          return not fits and "expected a whole number of messages from 1 on, or false" or nil, value
        end,
        description = "Write a checkpoint of the chat beside the database after this many messages (yours and the"
          .. " model's) and before every compaction, and its state after every turn and compaction, under every"
          .. " policy; `:CodeCompanionRestore` restores a chat from them. false: only those of the policy: a"
          .. " checkpoint before each compaction under `cowork` and `cowork_chat`, and none under the others.",
      },
      {
        name = "memory",
        description = "Memory for later chats, see |codecompanion-memory|.",
        fields = {
          {
            name = "enabled",
            type = "boolean",
            default = true,
            description = "Let compactions write to the memory and to the daily log, and start new chats with the"
              .. " memory of their project.",
          },
          {
            name = "max_tokens",
            type = "integer",
            min = 0,
            default = 1000,
            description = "Maximum tokens of memory that a new chat starts with, and never more than 1/16 of the"
              .. " model's context window; 0 = none. The chat shows it as a line of its context, with its tokens;"
              .. " `dd` removes it.",
          },
          {
            name = "exclude",
            type = "list",
            default = {},
            items = { type = "string", description = "A regular expression." },
            description = "Python regular expressions, ignoring case. A summary is not remembered if one of them"
              .. " matches it or one of your messages that it covers.",
          },
        },
      },
      {
        name = "live_attachments",
        type = "boolean",
        default = true,
        description = "Keep attachments of `/file` and `/buffer` live, see |codecompanion-live|: before each of your"
          .. " messages the model receives their changes. With false they are sent once, as they were.",
      },
      {
        name = "response_style",
        type = "string",
        enum = { "default", "terse" },
        optional = true,
        description = "Length of ordinary replies: `default` leaves it to the model, `terse` adds three lines to the"
          .. " system prompt of every turn that ask for brief replies. Without it the policy decides (`terse` with"
          .. " kodacode, else `default`). A change applies to chats opened afterwards.",
      },
      {
        name = "context_packet",
        description = "A few facts about the workspace, sent with your messages to save the model questions.",
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
            description = "Which facts: `repo` (name, whether it uses git), `git` (branch, number of changed files),"
              .. " `git_dirty_summary` (up to 20 changed files), `diagnostics` (a few from the editor, when your"
              .. " message is about errors or tests). Never file contents. Off by default.",
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
