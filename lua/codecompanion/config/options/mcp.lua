---Options of MCP servers: `mcp`. python/codecompanion/mcp and python/codecompanion/session/mcp start and query the
---servers.

---@param value string[]
---@return string? problem
---@return string[]? normalised
local function check_command(value)
  if #value == 0 then
    return 'expected a program and its arguments: { "npx", "-y", "…" }'
  end
  return nil, value
end

---@param value string
---@return string? problem
---@return string? normalised
local function check_address(value)
  if not value:match("^https?://[^/%s]+") then
    return "expected http://… or https://…"
  end
  return nil, value
end

---Check a table of texts. The values are not shown, because they may be keys.
---@param value table<any, any>
---@return string? problem
---@return table<string, string>? normalised
local function check_texts(value)
  local texts = {}
  for name, text in pairs(value) do
    if type(name) ~= "string" or name == "" then
      return 'expected names with texts: { NAME = "text" }'
    elseif type(text) ~= "string" and type(text) ~= "number" then
      return ("%s is a %s; expected a text"):format(name, type(text))
    end
    texts[name] = tostring(text)
  end
  return nil, texts
end

---@param name string
---@param description string
---@return CodeCompanion.Option
local function texts(name, description)
  return {
    name = name,
    type = "table",
    default = {},
    check = check_texts,
    description = description
      .. " `${NAME}` in a text is replaced by a variable of Neovim's environment; a text that"
      .. " begins with `cmd:` or `file:` is replaced by the output of the command or the content of the file.",
  }
end

---@type CodeCompanion.Option[]
local tool = {
  { name = "enabled", type = "boolean", optional = true, description = "Offer this tool to the model." },
  {
    name = "require_approval_before",
    type = "boolean",
    optional = true,
    description = "Ask before each call of this tool; by default as the server's entry.",
  },
  {
    name = "timeout",
    type = "integer",
    min = 1,
    optional = true,
    description = "Time limit of a call of this tool, in milliseconds; by default that of the server.",
  },
}

---@type CodeCompanion.Option[]
local server = {
  { name = "enabled", type = "boolean", default = true, description = "Use this server." },
  {
    name = "cmd",
    type = "list",
    items = { type = "string" },
    optional = true,
    check = check_command,
    description = "Program and arguments of a server on this machine (stdio).",
  },
  texts("env", "Environment variables of the program, besides Neovim's own without secrets."),
  {
    name = "cwd",
    type = "string",
    optional = true,
    description = "Folder the program runs in, by default the workspace, or your home folder while you do not trust the"
      .. " workspace.",
  },
  {
    name = "url",
    type = "string",
    optional = true,
    check = check_address,
    description = "Address of a server that is reached over streamable HTTP.",
  },
  texts("headers", "HTTP headers of every request to `url`."),
  {
    name = "require_approval_before",
    type = "boolean",
    default = true,
    description = "Ask before each call of one of its tools. The server's own claims about its tools are ignored here.",
  },
  {
    name = "timeout",
    type = "integer",
    min = 1,
    default = 60000,
    description = "Time limit of a call, in milliseconds.",
  },
  {
    name = "start_timeout",
    type = "integer",
    min = 1,
    default = 60000,
    description = "Time limit for starting or reaching the server, in milliseconds.",
  },
  {
    name = "tools",
    description = "Individual tools, by their names on the server.",
    fields = {},
    values = { name = "<tool>", description = "A tool.", disable = true, fields = tool },
  },
}

---@type CodeCompanion.Option[]
return {
  { name = "enabled", type = "boolean", default = true, description = "Use MCP servers." },
  {
    name = "start_with_chat",
    type = "boolean",
    default = false,
    description = "Start the servers when the first chat is opened, not with its first message.",
  },
  {
    name = "wait",
    type = "integer",
    min = 0,
    default = 15000,
    description = "How long a message waits for servers that are starting, in milliseconds. After that the request"
      .. " is sent without their tools, and the chat notes it; they join the next one.",
  },
  {
    name = "project_file",
    type = "boolean",
    default = true,
    description = "Ask about the servers in the file `.mcp.json` of the project; see |codecompanion-mcp-project|.",
  },
  {
    name = "claude_desktop",
    type = "boolean",
    default = false,
    description = "Ask about the servers in the configuration of Claude Desktop too.",
  },
  {
    name = "servers",
    description = "Servers by name.",
    fields = {},
    values = {
      name = "<server>",
      description = "A server: `cmd` or `url`.",
      disable = true,
      alias = { tool_overrides = "tools" },
      fields = server,
    },
  },
}
