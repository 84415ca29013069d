---Options of the model's tools: `interactions.chat.tools`.

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
            description = "Time limit for a call.",
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
  description = "Commands that run without asking, see |codecompanion-approvals|.",
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

local keep = variables("keep_variables", "Variables to pass to commands although they look like secrets.")
local hide = variables("hide_variables", "More variables to hide from commands.")

return {
  tool("read_file", "Reads a file, or a range of its lines."),
  tool("file_search", "Finds files by name."),
  tool("grep_search", "Searches the text of the files."),
  tool("code_search", "Finds code for a question or a name in the index."),
  tool("get_diagnostics", "Reads the editor's diagnostics."),
  tool("insert_edit", "Changes a file by search and replace.", { ask = true }),
  tool("create_file", "Creates a file.", { ask = true }),
  tool("delete_file", "Deletes a file.", { ask = true, never_yolo = true }),
  tool(
    "run_command",
    "Runs a shell command.",
    { ask = true, never_yolo = true, timeout = 300000, more = { prefixes, keep, hide } }
  ),
  tool("memory", "Searches the memory of the project and writes notes."),
  tool("recall", "Finds and reads content removed from the chat."),
  {
    name = "groups",
    description = "Groups of tools, see |codecompanion-tool-groups|.",
    fields = {},
    values = {
      name = "<name>",
      description = "Your own group.",
      disable = true,
      fields = {
        {
          name = "tools",
          type = "list",
          optional = true,
          items = { type = "string", description = "The name of a tool." },
          description = "The tools of the group.",
        },
        {
          name = "description",
          type = "string",
          default = "Your own group.",
          description = "Text shown in lists.",
        },
        {
          name = "system_prompt",
          type = "string",
          optional = true,
          description = "Text added to the system prompt.",
        },
        {
          name = "opts",
          description = "How the group is shown.",
          fields = {
            {
              name = "collapse_tools",
              type = "boolean",
              default = true,
              description = "Show one line for the group above the chat, not one per tool.",
            },
          },
        },
      },
    },
  },
  {
    name = "opts",
    description = "Options of all tools.",
    fields = {
      { name = "enabled", type = "boolean", default = true, description = "Offer tools to the model." },
      {
        name = "default_tools",
        type = "list",
        optional = true,
        items = { type = "string", description = "The name of a tool or of a group." },
        description = "Tools and groups of new chats (default: all).",
      },
      {
        name = "yolo",
        type = "boolean",
        default = false,
        description = "Start new chats in YOLO mode: only tools with `allowed_in_yolo_mode = false` ask.",
      },
      {
        name = "save_with_autocmds",
        type = "boolean",
        default = true,
        description = "Run your `BufWrite*` autocommands when a tool saves a loaded buffer.",
      },
      {
        name = "guarded_files",
        type = "list",
        default = {},
        items = { type = "string", description = "A pattern as in a `.gitignore`." },
        description = "More files that always need approval, see |codecompanion-guarded-files|; `!` excludes files.",
      },
      {
        name = "max_result_chars",
        type = "integer",
        min = 1000,
        default = 40000,
        description = "Maximum characters of a tool result in a request; the history keeps the full result.",
      },
    },
  },
}
