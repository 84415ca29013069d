---Options of the chat: `interactions.chat` without its keymaps. What commands, variables, shares and triggers may be is
---known to the host, which checks them when it is greeted (python/codecompanion/engine/configured.py).

local context = require("codecompanion.config.options.context")

---@param name string
---@param description string
---@param overrides? { ask?: boolean, never_yolo?: boolean, timeout?: integer, more?: CodeCompanion.Option[] }
---@return CodeCompanion.Option
local function tool(name, description, overrides)
  overrides = overrides or {}
  return {
    name = name,
    description = description,
    disable = true,
    tool = true,
    fields = {
      {
        name = "enabled",
        type = "boolean",
        default = true,
        description = "Offer the tool to the model.",
      },
      {
        name = "opts",
        description = "How the tool runs.",
        fields = vim.list_extend({
          {
            name = "require_approval_before",
            type = "boolean",
            default = overrides.ask or false,
            description = "Ask before each call.",
          },
          {
            name = "allowed_in_yolo_mode",
            type = "boolean",
            default = not overrides.never_yolo,
            description = "Run this tool without asking in YOLO mode; false asks even then.",
          },
          {
            name = "timeout",
            type = "integer",
            min = 1,
            default = overrides.timeout or 60000,
            description = "Time limit of a call, in milliseconds.",
          },
        }, overrides.more or {}),
      },
    },
  }
end

local prefixes = {
  name = "allowed_prefixes",
  type = "list",
  default = {},
  items = { type = "string", description = "The beginning of a command, such as `git status`." },
  description = "Commands that run without asking, given by their first words; see |codecompanion-approvals|.",
}

---@param name string
---@param description string
---@return CodeCompanion.Option
local function variables(name, description)
  return {
    name = name,
    type = "list",
    default = {},
    items = { type = "string", description = "The name of an environment variable, or a pattern such as `PG*`." },
    description = description .. " See |codecompanion-command-environment|.",
  }
end

local keep = variables("keep_variables", "Environment variables that commands get although they look like secrets.")
local hide = variables("hide_variables", "Environment variables that commands do not get, besides those hidden anyway.")

local tools = {
  tool("read_file", "Reads a file, or a range of its lines."),
  tool("file_search", "Finds files by name."),
  tool("grep_search", "Searches the text of the files."),
  tool("get_diagnostics", "Reads the diagnostics of the editor."),
  tool("insert_edit", "Changes a file by search and replace.", { ask = true }),
  tool("create_file", "Creates a file.", { ask = true }),
  tool("delete_file", "Deletes a file.", { ask = true, never_yolo = true }),
  tool(
    "run_command",
    "Runs a shell command.",
    { ask = true, never_yolo = true, timeout = 300000, more = { prefixes, keep, hide } }
  ),
  tool("memory", "Keeps notes across chats, in a separate folder."),
  tool("recall", "Finds and reads what was removed from the chat."),
}

table.insert(tools, {
  name = "opts",
  description = "Options of all tools.",
  fields = {
    { name = "enabled", type = "boolean", default = true, description = "Offer tools to the model." },
    {
      name = "yolo",
      type = "boolean",
      default = false,
      description = "Start new chats in YOLO mode: tools run without asking, except those with"
        .. " `allowed_in_yolo_mode = false`.",
    },
    {
      name = "save_with_autocmds",
      type = "boolean",
      default = true,
      description = "Run your `BufWrite*` autocommands, such as format on save, when saving a file that a tool"
        .. " changed in a loaded buffer. False saves it like `:noautocmd write`.",
    },
    {
      name = "guarded_files",
      type = "list",
      default = {},
      items = { type = "string", description = "A pattern as in a `.gitignore`." },
      description = "More files whose changes always ask, as patterns of a `.gitignore`; a pattern with `!` in front"
        .. " excludes files of the built-in list. The last matching pattern wins. See |codecompanion-guarded-files|.",
    },
    {
      name = "max_result_chars",
      type = "integer",
      min = 1000,
      default = 40000,
      description = "Maximum length of a tool result in characters. The model gets the beginning and the end of a"
        .. " longer one and a note on how to read the rest; the history keeps all of it.",
    },
  },
})

return {
  {
    name = "adapter",
    type = { "string", "table" },
    default = "offline",
    adapter = true,
    description = "The adapter of new chats: its name, or { name = …, model = … }. The default works without a"
      .. " network and without a key.",
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
    description = "Tools that the model can call. Set a tool to false to switch it off.",
    fields = tools,
    alias = { insert_edit_into_file = "insert_edit" },
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
          .. " 0, 1 or 2. `/continue` does it by hand.",
      },
      {
        name = "budget",
        type = "number",
        min = 0,
        default = 0,
        description = "What one chat may cost, in US dollars; 0 = unlimited. Once it is spent, the next turn ends"
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
        description = "What all stored chats together may cost, in US dollars; 0 = unlimited.",
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
        description = "What happens after a compaction. `auto`: an interrupted turn continues, an idle chat waits for"
          .. " you; `submit`: the model always continues; `ask` and `stop`: it always waits, and `ask` says so.",
      },
      {
        name = "tokenizer",
        type = "string",
        enum = { "estimate", "exact" },
        default = "estimate",
        description = "How tokens are counted until the provider reports them: a fast estimate (about 1 % off in"
          .. " coding chats), or the vocabulary o200k_base, which takes 0.2 s at start-up and 80 MB.",
      },
      {
        name = "compaction_timeout",
        type = "integer",
        min = 1000,
        default = 120000,
        description = "Time limit of each of a compaction's model calls, in milliseconds; after it nothing is changed."
          .. " All calls of one compaction together may take ten times as long.",
      },
      {
        name = "checkpoint_every_messages",
        type = { "integer", "boolean" },
        optional = true,
        check = function(value)
          local fits = value == false or (type(value) == "number" and value >= 1)
          return not fits and "expected a whole number of messages from 1 on, or false" or nil, value
        end,
        description = "Write a checkpoint of the chat beside the database after this many messages (yours and the"
          .. " model's), and its state after every turn; `:CodeCompanionRestore` restores a chat from them. false:"
          .. " only before a compaction that asks for one. Without this option the policy decides.",
      },
      {
        name = "memory",
        description = "What compactions remember for later chats, see |codecompanion-memory|.",
        fields = {
          {
            name = "enabled",
            type = "boolean",
            default = true,
            description = "Write to the memory and to the daily log.",
          },
          {
            name = "exclude",
            type = "list",
            default = {},
            items = { type = "string", description = "A regular expression." },
            description = "Python regular expressions, ignoring case. A summary is not remembered if one of them"
              .. " matches it or your messages that it covers.",
          },
        },
      },
      {
        name = "response_style",
        type = "string",
        enum = { "default", "terse" },
        optional = true,
        description = "Length of ordinary replies: `default` leaves it to the model, `terse` adds three lines to the"
          .. " system prompt of every turn that ask for brief ones. Without it the policy decides (`terse` with"
          .. " kodacode, else `default`). A change applies to chats opened afterwards.",
      },
      {
        name = "context_packet",
        description = "A few facts about the workspace, sent with your messages so that the model need not ask.",
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
