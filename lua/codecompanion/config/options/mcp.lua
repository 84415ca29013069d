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

---Check a table of names and strings. The strings are not shown, because they may be keys.
---@param value table<any, any>
---@return string? problem
---@return table<string, string>? normalised
local function check_texts(value)
  local texts = {}
  for name, text in pairs(value) do
    if type(name) ~= "string" or name == "" then
      return 'expected strings by name: { NAME = "value" }'
    elseif type(text) ~= "string" and type(text) ~= "number" then
      return ("%s is a %s; expected a string"):format(name, type(text))
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
    description = description .. " `${NAME}`, `cmd:…` and `file:…` are replaced, see |codecompanion-mcp|.",
  }
end

---@type CodeCompanion.Option[]
local tool = {
  { name = "enabled", type = "boolean", optional = true, description = "Offer this tool to the model." },
  {
    name = "require_approval_before",
    type = "boolean",
    optional = true,
    description = "Ask before each call.",
  },
  {
    name = "timeout",
    type = "integer",
    min = 1,
    optional = true,
    description = "Time limit for a call.",
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
    description = "Program and arguments of a local server (stdio).",
  },
  texts("env", "Additional environment variables."),
  {
    name = "cwd",
    type = "string",
    optional = true,
    description = "Working folder; by default the workspace, once you trust it.",
  },
  {
    name = "url",
    type = "string",
    optional = true,
    check = check_address,
    description = "Address of a server that uses streamable HTTP.",
  },
  texts("headers", "HTTP headers of every request to `url`."),
  {
    name = "require_approval_before",
    type = "boolean",
    default = true,
    description = "Ask before each call of its tools.",
  },
  {
    name = "timeout",
    type = "integer",
    min = 1,
    default = 60000,
    description = "Time limit for a call.",
  },
  {
    name = "start_timeout",
    type = "integer",
    min = 1,
    default = 60000,
    description = "Startup timeout.",
  },
  {
    name = "tools",
    description = "Settings of single tools, by name.",
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
    description = "Start the servers when the first chat opens, not with its first message.",
  },
  {
    name = "wait",
    type = "integer",
    min = 0,
    default = 15000,
    description = "Maximum time that a message waits for servers to start.",
  },
  {
    name = "project_file",
    type = "boolean",
    default = true,
    description = "Use the project's `.mcp.json` once you trust it, see |codecompanion-mcp-project|.",
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
