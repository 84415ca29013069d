---The option schema: the single definition of every user-visible option with its type, default and description.
---
---The help file, the types and the Python defaults are generated from it (`make doc`). A section is a list of options
---in `fields`, in the order of the help file.

---@class CodeCompanion.Option
---@field name? string Last part of the key path
---@field description string For the help file
---@field type? string|string[] "string", "boolean", "number", "integer", "function", "table" or "list"
---@field default? any
---@field default_text? string Help-file text for a default that is a function
---@field optional? boolean May be nil
---@field enum? string[] Allowed values of a string
---@field min? integer Minimum of a number
---@field items? CodeCompanion.Option Schema of each element of a list
---@field check? fun(value: any): string?, any Further check: returns the problem, or nil and the normalised value
---@field fields? CodeCompanion.Option[] Makes this a section
---@field values? CodeCompanion.Option Schema of values whose keys are not in `fields`; allows free keys
---@field disable? boolean `false` in place of the section disables it
---@field replace? boolean The user's table replaces the default instead of being merged with it
---@field one_of? string[] Fields of which at least one is required
---@field require? string A required field
---@field legacy? table<string, string> Old key → new key, relative to the section
---@field alias? table<string, string> Key in codecompanion.nvim → our key, if ours is the better name
---@field adapter? boolean The value is a reference to an adapter: "name" or { name = …, model = … }
---@field entry? boolean The value is an adapter entry
---@field entries? boolean The value is a table of adapter entries
---@field signature? string Type of the function, if one is allowed
---@field keymap? boolean The option is a keymap of the chat buffer
---@field tool? boolean The option configures a tool of the model

local rules = require("codecompanion.config.options.rules")
local adapters = require("codecompanion.config.options.adapters")
local prompts = require("codecompanion.config.options.prompts")
local words = require("codecompanion.config.options.words")

---@type CodeCompanion.Option
return {
  description = "Options of codecompanion.",
  fields = {
    {
      name = "adapters",
      description = "Providers and their models.",
      fields = {
        {
          name = "http",
          description = "Adapters by name: a table, a function that returns one, or the name of another adapter.",
          fields = adapters.fields,
          values = adapters.other,
        },
      },
    },
    {
      name = "interactions",
      description = "The chat, edits in place and other ways to use a model.",
      fields = {
        {
          name = "chat",
          description = "The chat buffer.",
          fields = require("codecompanion.config.options.chat"),
        },
        {
          name = "inline",
          description = "Edits in place, see |codecompanion-edit|.",
          fields = require("codecompanion.config.options.edit_in_place"),
        },
        {
          name = "shared",
          description = "Proposed changes, see |codecompanion-changes|.",
          fields = require("codecompanion.config.options.changes").fields(),
        },
        words[1],
        words[2],
      },
    },
    {
      name = "context",
      description = "Code sent with a question, see |codecompanion-gather|.",
      fields = require("codecompanion.config.options.gathering"),
    },
    {
      name = "completion",
      description = "Completion at the cursor, see |codecompanion-complete|.",
      fields = require("codecompanion.config.options.completion"),
    },
    {
      name = "mcp",
      description = "Model Context Protocol servers, see |codecompanion-mcp|.",
      fields = require("codecompanion.config.options.mcp"),
    },
    {
      name = "rules",
      description = "Groups of files with instructions for the model, see |codecompanion-rules|.",
      fields = rules.fields,
      values = rules.group,
    },
    {
      name = "prompt_library",
      description = "Prompts by name, see |codecompanion-prompts|.",
      fields = prompts.fields,
      values = prompts.values,
    },
    {
      name = "models",
      description = "Facts about models by name; they override the built-in table.",
      fields = {},
      values = {
        name = "<model>",
        description = "Facts about a model; they override the built-in table.",
        fields = {
          {
            name = "context_window",
            type = { "integer", "string" },
            check = require("codecompanion.config.tokens").check(),
            optional = true,
            description = "Size of the context window.",
          },
          {
            name = "max_output_tokens",
            type = { "integer", "string" },
            check = require("codecompanion.config.tokens").check(),
            optional = true,
            description = "Maximum tokens in a reply; by default 10 % of the context window, at most 4096.",
          },
        },
      },
    },
    {
      name = "workspace",
      description = "The project that tools can read and change.",
      fields = {
        {
          name = "root",
          type = { "string", "function" },
          optional = true,
          signature = "fun(): string",
          description = "Folder that tools must not leave; by default the working folder. A function is called when the"
            .. " host starts.",
        },
      },
    },
    require("codecompanion.config.options.sandbox"),
    {
      name = "trust",
      description = "Folders whose files may instruct the model and start programs, see |codecompanion-trust|.",
      fields = require("codecompanion.config.options.trust"),
    },
    {
      name = "display",
      description = "Appearance.",
      fields = {
        {
          name = "chat",
          description = "The chat buffer.",
          fields = require("codecompanion.config.options.display"),
        },
      },
    },
    {
      name = "host",
      type = "string",
      enum = { "private", "python3" },
      default = "private",
      description = "Python of the host: `private` is the plugin's own environment, `python3` Neovim's provider.",
    },
    {
      name = "python",
      description = "The Python interpreter that runs the host.",
      fields = {
        {
          name = "host_prog",
          type = "string",
          optional = true,
          description = "Python with the packages in requirements.lock, to use instead of the plugin's environment.",
        },
      },
    },
    {
      name = "opts",
      description = "General options.",
      fields = {
        {
          name = "log_level",
          type = "string",
          enum = { "TRACE", "DEBUG", "INFO", "WARN", "ERROR" },
          default = "ERROR",
          description = "Minimum severity of messages in the log file.",
        },
        {
          name = "language",
          type = "string",
          default = "English",
          description = "Language of replies.",
        },
        {
          name = "send_code",
          type = { "boolean", "function" },
          default = true,
          signature = "fun(): boolean",
          description = "Send code to models, see |codecompanion-send-code|. A function is called at each use.",
        },
      },
    },
  },
}
