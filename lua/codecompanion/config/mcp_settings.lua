---Returns the MCP servers' settings as they are sent to the host: `python/codecompanion/settings_sections.py`,
---`McpSettings`.

---@param map table<string, any>
---@return table<string, any>
local function object(map)
  return next(map) == nil and vim.empty_dict() or map
end

---@param tool table|false
---@return table
local function told_tool(tool)
  if not tool then
    return { enabled = false }
  end
  return object({
    enabled = tool.enabled,
    require_approval_before = tool.require_approval_before,
    timeout_s = tool.timeout and tool.timeout / 1000,
  })
end

---@param server table
---@return table
local function told_server(server)
  return {
    enabled = server.enabled,
    cmd = server.cmd or {},
    env = object(server.env),
    cwd = server.cwd or "",
    url = server.url or "",
    headers = object(server.headers),
    require_approval_before = server.require_approval_before,
    timeout_s = server.timeout / 1000,
    start_timeout_s = server.start_timeout / 1000,
    tools = object(vim.tbl_map(told_tool, server.tools)),
  }
end

---@param mcp table `mcp` of the options
---@return table settings
return function(mcp)
  local servers = {}
  for name, server in pairs(mcp.servers) do
    servers[name] = server and told_server(server) or nil
  end
  return {
    enabled = mcp.enabled,
    start_with_chat = mcp.start_with_chat,
    wait_s = mcp.wait / 1000,
    project_file = mcp.project_file,
    servers = object(servers),
  }
end
