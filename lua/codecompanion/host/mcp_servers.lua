---What the host said last of its MCP servers: for completion of their prompts and resources.

local M = {}

local REFRESH_AFTER_MS = 100

---@class CodeCompanion.McpTool
---@field name string As the model calls it
---@field own_name string As the server calls it
---@field tokens integer
---@field offered boolean
---@field asks boolean
---@field hints string[] What the server says of it
---@field problem string Why it is not offered, "" when it is

---@class CodeCompanion.McpServer
---@field name string
---@field state string "off", "not started", "starting", "ready" or "failed"
---@field problem string
---@field lacks_packages boolean
---@field source string File it comes from, "" for the configuration
---@field line string What is started or reached
---@field version string
---@field protocol string
---@field tools CodeCompanion.McpTool[]
---@field tokens integer Of the tools that are offered
---@field resources string[][] Address and name
---@field prompts { [1]: string, [2]: string[], [3]: string[] }[] Name, names of the arguments, of the required ones
---@field left_out string[]
---@field log string[] The newest lines of what it said
---@field older_lines integer How many there were before these

---@class CodeCompanion.McpFile
---@field path string
---@field servers string[] Names of those it does not switch off
---@field trusted boolean
---@field problem string

---@type CodeCompanion.McpServer[]
M.servers = {}
---@type table<fun(), true>
local watchers = {}
local is_due = false

---Call `watcher` whenever something has changed.
---@param watcher fun()
---@return fun() unwatch
function M.watch(watcher)
  watchers[watcher] = true
  return function()
    watchers[watcher] = nil
  end
end

---@alias CodeCompanion.AskHost fun(verb: string, payload: table, done: fun(err: string?, result: any))

---The arguments of a prompt as they are typed: `<required> [optional]`.
---@param prompt { [1]: string, [2]: string[], [3]: string[] }
---@return string
function M.arguments(prompt)
  local shown = vim.tbl_map(function(name)
    return (vim.list_contains(prompt[3], name) and "<%s>" or "[%s]"):format(name)
  end, prompt[2])
  return table.concat(shown, " ")
end

---The resources of servers that run, as `#{mcp:server:address}`; templates have braces to be filled in.
---@param lead string
---@return string[]
local function resources(lead)
  local found = {}
  for _, server in ipairs(M.servers) do
    for _, resource in ipairs(server.resources) do
      local argument = ("%s:%s"):format(server.name, resource[1])
      if vim.startswith(argument, lead) and not argument:find("}", 1, true) then
        found[#found + 1] = argument
      end
    end
  end
  return found
end

---Offer `#{mcp:…}` in messages, once there is a server.
local function offer_resources()
  if #M.servers > 0 then
    require("codecompanion.editor_context").register({
      name = "mcp",
      description = "A resource of an MCP server",
      argument = "server:address",
      needs_argument = true,
      complete = resources,
      by_host = true,
    })
  end
end

---Ask the host about the servers of Neovim's working folder, where the next message is written.
---@param request CodeCompanion.AskHost `host.request`
local function ask(request)
  request("show_mcp", { chat = "", cwd = vim.fn.getcwd() }, function(err, result)
    if not err then
      M.servers = result.servers
      offer_resources()
    end
    for watcher in pairs(watchers) do
      watcher()
    end
  end)
end

---Something has changed: ask again soon, once for many changes.
---@param request CodeCompanion.AskHost
---@param is_ready fun(): boolean
function M.changed(request, is_ready)
  if is_due then
    return
  end
  is_due = true
  vim.defer_fn(function()
    is_due = false
    if is_ready() then
      ask(request)
    end
  end, REFRESH_AFTER_MS)
end

return M
