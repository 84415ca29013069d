---Options of the chat: `interactions.chat` without its keymaps.

local context = require("codecompanion.config.options.context")

---@param value number
---@return string? problem
---@return number share
local function check_share(value)
  return not (value >= 0 and value <= 1) and ("got %s; expected a share between 0 and 1"):format(value) or nil, value
end

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
        description = "Whether the model is offered the tool.",
      },
      {
        name = "opts",
        description = "How the tool is run.",
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
            description = "Whether YOLO mode covers this tool; false asks even then.",
          },
          {
            name = "timeout",
            type = "integer",
            min = 1,
            default = overrides.timeout or 60000,
            description = "The longest a call may take, in milliseconds.",
          },
        }, overrides.more or {}),
      },
    },
  }
end

---What is wrong with the beginnings of commands; the host decides what they cover.
---@param prefixes any[] Items that are no strings are the list's own mistake, found apart from this
---@return string? problem
---@return string[] prefixes
local function check_prefixes(prefixes)
  for _, prefix in ipairs(prefixes) do
    prefix = type(prefix) == "string" and prefix or "-"
    if prefix:find("^%s*$") or prefix:find("[;&|<>()$`\\{}*?%[%]!\r\n]") or prefix:find("^%s*[%a_][%w_]*=") then
      local expected = "expected the plain beginning of a command, without operators, variables or wildcards"
      return ("%q: %s"):format(prefix, expected), prefixes
    end
  end
  return nil, prefixes
end

local prefixes = {
  name = "allowed_prefixes",
  type = "list",
  default = {},
  items = { type = "string", description = "The beginning of a command, such as `git status`." },
  check = check_prefixes,
  description = "Commands that begin like one of these, word by word, run without asking; see"
    .. " |codecompanion-approvals|.",
}

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
    { ask = true, never_yolo = true, timeout = 300000, more = { prefixes } }
  ),
  tool("memory", "Keeps notes across chats in a folder of their own."),
  tool("recall", "Finds and reads what was taken out of the chat."),
}

table.insert(tools, {
  name = "opts",
  description = "Options of all tools.",
  fields = {
    { name = "enabled", type = "boolean", default = true, description = "Whether the model is offered any tools." },
    {
      name = "yolo",
      type = "boolean",
      default = false,
      description = "Whether new chats begin in YOLO mode: tools run without asking, except those with"
        .. " `allowed_in_yolo_mode = false`.",
    },
    {
      name = "save_with_autocmds",
      type = "boolean",
      default = true,
      description = "Whether saving a file that a tool changed in a loaded buffer runs your `BufWrite*` autocommands,"
        .. " such as format on save. False saves it as `:noautocmd write` does.",
    },
    {
      name = "guarded_files",
      type = "list",
      default = {},
      items = { type = "string", description = "A pattern as in a `.gitignore`." },
      description = "Further files whose change is asked about whatever was granted, as patterns of a `.gitignore`;"
        .. " one with `!` in front takes files out of the built-in list. The last pattern that matches decides. See"
        .. " |codecompanion-guarded-files|.",
    },
    {
      name = "max_result_chars",
      type = "integer",
      min = 1000,
      default = 40000,
      description = "A tool result longer than this (in characters) is kept whole in the history, and the model is"
        .. " shown its beginning and end with a note how to read the rest.",
    },
  },
})

return {
  {
    name = "adapter",
    type = { "string", "table" },
    default = "offline",
    adapter = true,
    description = "The adapter of new chats: its name, or { name = …, model = … }. The default answers without a"
      .. " network or a key.",
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
    description = "Keys of the chat buffer. Each is { modes = { n = …, i = … }, description = … }, or false to leave"
      .. " the key alone. Other names are maps of your own and need a `callback`.",
    fields = require("codecompanion.config.options.keymaps").list(),
    values = require("codecompanion.config.options.keymaps").custom(),
    alias = { goto_file_under_cursor = "open_file", inspect = "debug" },
  },
  {
    name = "tools",
    description = "The tools the model may call. A tool is switched off by setting its name to false.",
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
        description = "Replaces the built-in system prompt. In a string, `${default_system_prompt}` stands for the"
          .. " built-in one; a function finds it in `ctx.default_system_prompt`. It is asked when the host starts.",
      },
      {
        name = "context_window",
        type = { "integer", "string" },
        optional = true,
        check = require("codecompanion.config.tokens").check(),
        description = 'The context window in tokens, for every model: 32000, "16k" or "1M" (k = 1000), as every number'
          .. " of tokens. Without it each model has its own: `models`, what the endpoint says, or the built-in table.",
      },
      {
        name = "policy",
        type = { "string", "table" },
        items = { type = "string" },
        default = "codecompanion",
        check = require("codecompanion.config.policies").check_choice,
        description = "The policy of context management: which strategies run, when, and in which order. A name, or"
          .. ' names by adapter: { default = "codecompanion", anthropic = "cowork" }. `/policy` changes it for a chat.',
      },
      {
        name = "policies",
        description = "Policies of your own by name, each with `extends` and values for the options of the policy it"
          .. " extends: see |codecompanion-own-policies|.",
        fields = {},
        values = {
          name = "<name>",
          type = "table",
          optional = true,
          check = require("codecompanion.config.policies").check,
          description = "A policy of your own.",
        },
      },
      {
        name = "max_provider_requests_per_turn",
        type = "integer",
        default = 32,
        check = function(value)
          return value == 0 and "0 would forbid every request; a negative number means no limit" or nil, value
        end,
        description = "After so many requests in answer to one message of yours the turn is ended. A negative number"
          .. " means no limit.",
      },
      {
        name = "max_output_continuations",
        type = "integer",
        default = 1,
        check = function(value)
          return (value < 0 or value > 2) and "expected 0, 1 or 2" or nil, value
        end,
        description = "How often in one turn a reply that ended only at the model's output limit is continued by"
          .. " itself: 0, 1 or 2. `/continue` does it by hand.",
      },
      {
        name = "budget",
        type = "number",
        min = 0,
        default = 0,
        description = "What one chat may cost, in US dollars; 0 = unlimited. When it is used up the next turn ends"
          .. " before anything is sent. Calls whose price nobody knows are not counted; `/cost` says how many.",
      },
      {
        name = "budget_warn",
        type = "number",
        default = 0,
        needs = "budget",
        check = check_share,
        description = "From this share of `budget` on you are warned, between 0 and 1; 0 = never.",
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
        needs = "total_budget",
        check = check_share,
        description = "From this share of `total_budget` on you are warned, between 0 and 1; 0 = never.",
      },
      {
        name = "on_compact",
        type = "string",
        enum = { "auto", "submit", "ask", "stop" },
        default = "auto",
        description = "What happens after a compaction. `auto`: what it interrupted goes on, an idle chat"
          .. " waits for you; `submit`: the model always goes on; `ask` and `stop`: it always waits, `ask` says so.",
      },
      {
        name = "tokenizer",
        type = "string",
        enum = { "estimate", "exact" },
        default = "estimate",
        description = "How texts are counted before the provider reports: a fast estimate (about 1 % off on coding"
          .. " chats), or the vocabulary o200k_base, which costs 0.2 s at the start and 80 MB.",
      },
      {
        name = "compaction_timeout",
        type = "integer",
        min = 1000,
        default = 120000,
        description = "How long one model call of a compaction may take, in milliseconds; then nothing is changed.",
      },
      {
        name = "checkpoint_every_messages",
        type = { "integer", "boolean" },
        optional = true,
        check = function(value)
          local fits = value == false or (type(value) == "number" and value >= 1)
          return not fits and "expected a whole number of messages from 1 on, or false" or nil, value
        end,
        description = "After so many messages of you and the model a checkpoint of the chat is written beside the"
          .. " database, and its state after every turn; `:CodeCompanionRestore` brings a chat back from there. false"
          .. " writes only what a compaction asks for. Without it the policy decides.",
      },
      {
        name = "memory",
        description = "What compactions write down for later chats, see |codecompanion-memory|.",
        fields = {
          {
            name = "enabled",
            type = "boolean",
            default = true,
            description = "Whether anything is written to the memory and to the daily log.",
          },
          {
            name = "exclude",
            type = "list",
            default = {},
            items = { type = "string", description = "A regular expression." },
            description = "Regular expressions (Python's, upper and lower case are the same): a summary that one of"
              .. " them matches, or that is about words of yours that match, is not remembered.",
          },
        },
      },
      {
        name = "response_style",
        type = "string",
        enum = { "default", "terse" },
        optional = true,
        description = "How long ordinary replies are: `default` says nothing about it, `terse` adds three lines to the"
          .. " system prompt of every turn that ask for brief ones. Without it the policy decides (`terse` with"
          .. " kodacode, else `default`). It counts for chats opened afterwards.",
      },
      {
        name = "context_packet",
        description = "A few facts of the workspace that go along with your messages, so that the model need not ask.",
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
            description = "Which: `repo` (name, whether git is there), `git` (branch, number of changed files),"
              .. " `git_dirty_summary` (up to 20 changed files), `diagnostics` (a few of the editor, when your words"
              .. " are about errors or tests). Never contents of files. Off by default.",
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
