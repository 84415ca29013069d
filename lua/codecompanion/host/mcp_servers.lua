---Caches the host's latest list of MCP servers, for completion of their prompts and resources.

local M = {}

local REFRESH_AFTER_MS = 100

---@class CodeCompanion.McpTool
---@field name string Name used by the model
---@field own_name string Name used by the server
---@field tokens integer
---@field offered boolean
---@field asks boolean
---@field hints string[] Hints given by the server
---@field problem string Why the tool is not offered, or "" if it is

---@class CodeCompanion.McpServer
---@field name string
---@field state string "off", "not started", "starting", "ready" or "failed"
---@field problem string
---@field lacks_packages boolean
---@field source string File that configures the server, or "" for the user's configuration
---@field line string Command line or URL of the server
---@field version string
---@field protocol string
---@field tools CodeCompanion.McpTool[]
---@field tokens integer Token count of the offered tools
---@field resources string[][] URI and name
---@field prompts { [1]: string, [2]: string[], [3]: string[] }[] Name, argument names, required argument names
---@field left_out string[]
---@field log string[] Latest lines of the server log
---@field older_lines integer Number of earlier log lines

---@class CodeCompanion.McpFile
---@field path string
---@field servers string[] Names of the servers that the file does not disable
---@field trusted boolean
---@field problem string

---@type CodeCompanion.McpServer[]
M.servers = {}
---@type table<fun(), true>
local watchers = {}
local is_due = false

---Call `watcher` after each change.
---@param watcher fun()
---@return fun() unwatch
function M.watch(watcher)
  watchers[watcher] = true
  return function()
    watchers[watcher] = nil
  end
end

---@alias CodeCompanion.AskHost fun(verb: string, payload: table, done: fun(err: string?, result: any))

---Return the argument syntax of a prompt: `<required> [optional]`.
---@param prompt { [1]: string, [2]: string[], [3]: string[] }
---@return string
function M.arguments(prompt)
  local shown = vim.tbl_map(function(name)
    return (vim.list_contains(prompt[3], name) and "<%s>" or "[%s]"):format(name)
  end, prompt[2])
  return table.concat(shown, " ")
end

---Return the resources of running servers that begin with `lead`, as `server:address`. Templates are omitted, because
---their braces must be filled in.
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

---Offer `#{mcp:…}` in messages, once a server exists.
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

---Request the list of servers for Neovim's working folder, where the next message is written.
---@param request CodeCompanion.AskHost The function `host.request`
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

---Request the list again after a change, debounced.
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
