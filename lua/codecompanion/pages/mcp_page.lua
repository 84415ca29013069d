---`:CodeCompanion mcp`: shows the MCP servers of a folder with their state, their tools and the cost of each, and keys
---to manage them. In a chat it shows the chat's folder, elsewhere Neovim's working folder.

local api = vim.api
local fit = require("codecompanion.text.fit")
local float = require("codecompanion.screen.float")
local host = require("codecompanion.host")
local known = require("codecompanion.host.mcp_servers")
local load_page = require("codecompanion.pages.load_page")
local numbers = require("codecompanion.text.numbers")
local say = require("codecompanion.say")
local scratch = require("codecompanion.screen.scratch_buffer")
local severity = require("codecompanion.severity")
local visible = require("codecompanion.text.visible_characters")

local M = {}

local FOOTER = { "r (re)start", "s stop", "t tool on or off", "K output", "a trust", "q close" }
local MARKS = { ready = "✓", starting = "…", failed = "✗", off = "-", ["not started"] = "·" }
local HANGING = "  " -- before the further rows of a long line
local NOTHING = {
  "No MCP server is configured.",
  "",
  "Configure servers with `mcp.servers` in setup(), or in a project's `.mcp.json`.",
  "See :help codecompanion-mcp",
}

---@class CodeCompanion.McpShown
---@field root string The folder
---@field servers CodeCompanion.McpServer[]
---@field files CodeCompanion.McpFile[] Project files that configure servers

---@class CodeCompanion.McpLine
---@field file? CodeCompanion.McpFile
---@field server? CodeCompanion.McpServer
---@field tool? CodeCompanion.McpTool

---@param text string Text from a server
---@return string
local function shown(text)
  return visible.line((text:gsub("%s+", " "))).text
end

---@param tool CodeCompanion.McpTool
---@return string
local function tool_line(tool)
  local state = tool.problem ~= "" and ("left out: " .. tool.problem) or tool.offered and "" or "off"
  local parts = { tool.name, numbers.counted(tool.tokens, "token") }
  vim.list_extend(parts, tool.asks and {} or { "does not ask" })
  if #tool.hints > 0 then
    parts[#parts + 1] = "says: " .. table.concat(tool.hints, ", ")
  end
  vim.list_extend(parts, state ~= "" and { state } or {})
  return ("    %s %s"):format(tool.offered and tool.problem == "" and "+" or "-", shown(table.concat(parts, " · ")))
end

---@param path string
---@param root string
---@return string
local function short_path(path, root)
  local below = root:gsub("/$", "") .. "/" -- joinpath keeps no trailing slash since 0.12
  return vim.startswith(path, below) and path:sub(#below + 1) or vim.fn.fnamemodify(path, ":~")
end

---Return the name and state of a server, and the size of its tools: `odd · ready · 4 of 5 tools · 310 tokens`.
---@param server CodeCompanion.McpServer
---@return string
local function state_of(server)
  local head = ("%s · %s"):format(server.name, server.state)
  if server.state ~= "ready" then
    return head
  end
  local offered = #vim.tbl_filter(function(tool)
    return tool.offered and tool.problem == ""
  end, server.tools)
  local tools, tokens = numbers.counted(#server.tools, "tool"), numbers.counted(server.tokens, "token")
  return ("%s · %d of %s · %s"):format(head, offered, tools, tokens)
end

---Return the file that configures a server, if it is not the user's configuration, and its command line or URL.
---@param server CodeCompanion.McpServer
---@param root string
---@return string
local function origin_of(server, root)
  local where = server.source ~= "" and ("from %s · "):format(short_path(server.source, root)) or ""
  return where .. vim.split(server.line, "\n")[1]:sub(#server.name + 3) -- without its name
end

---@param server CodeCompanion.McpServer
---@param root string
---@param put fun(text: string, about: CodeCompanion.McpLine)
local function put_server(server, root, put)
  put(shown(("%s %s"):format(MARKS[server.state] or "?", state_of(server))), { server = server })
  if server.problem ~= "" then
    put("    " .. shown(server.problem), { server = server })
  end
  put("    " .. shown(origin_of(server, root)), { server = server })
  if server.version ~= "" then
    put("    " .. shown(("%s · protocol %s"):format(server.version, server.protocol)), { server = server })
  end
  for _, sentence in ipairs(server.left_out) do
    put("    " .. shown(sentence), { server = server })
  end
  for _, tool in ipairs(server.tools) do
    put(tool_line(tool), { server = server, tool = tool })
  end
  if #server.resources > 0 then
    put("    " .. numbers.counted(#server.resources, "resource"), { server = server })
  end
  for _, prompt in ipairs(server.prompts) do
    local command = ("/mcp:%s:%s %s"):format(server.name, prompt[1], known.arguments(prompt))
    put("    " .. vim.trim(shown(command)), { server = server })
  end
end

---@param file CodeCompanion.McpFile
---@param root string
---@param review string How to review the file
---@return string
local function file_line(file, root, review)
  local name = short_path(file.path, root)
  if file.problem ~= "" then
    return shown(file.problem)
  end
  local state = file.trusted and "trusted" or "not trusted: " .. review
  return shown(("%s · %s · %s"):format(name, table.concat(file.servers, ", "), state))
end

---Wrap a line between words; continuation rows are indented further.
---@param text string
---@param width integer
---@return string[]
local function rows_of(text, width)
  local indent = text:match("^ *")
  local rows = fit.wrap(text:gsub("^( *[^%w%s]+) ", "%1\1"), width - #indent - #HANGING) -- the mark stays with its name
  for at, row in ipairs(rows) do
    rows[at] = indent .. (at > 1 and HANGING or "") .. row:gsub("\1", " ")
  end
  return rows
end

---@param now CodeCompanion.McpShown
---@param width integer
---@return string[] lines
---@return CodeCompanion.McpLine[] about The subject of each line
local function page(now, width)
  local lines, about = {}, {}
  local function put(text, what)
    for _, row in ipairs(api.nvim_strwidth(text) > width and rows_of(text, width) or { text }) do
      lines[#lines + 1], about[#about + 1] = row, what
    end
  end
  for index, server in ipairs(now.servers) do
    if index > 1 then
      put("", {})
    end
    put_server(server, now.root, put)
  end
  if vim.iter(now.servers):any(function(server)
    return server.lacks_packages
  end) then
    local instruction = require("codecompanion.install").manual_instruction("mcp")
    local text = instruction and "Your own Python needs the packages: " .. instruction
      or ":CodeCompanion install mcp installs the packages."
    put("", {})
    put(text, {})
  end
  for index, file in ipairs(now.files) do
    if index == 1 and #lines > 0 then
      put("", {})
    end
    put(file_line(file, now.root, "a to review"), { file = file })
  end
  if #lines == 0 then
    return NOTHING, {}
  end
  return lines, about
end

---@class CodeCompanion.McpPlace
---@field chat string Chat id, or "" for none
---@field cwd string

---@param place CodeCompanion.McpPlace
---@param done fun(now: CodeCompanion.McpShown)
local function load(place, done)
  load_page.ask("MCP servers", "show_mcp", { chat = place.chat, cwd = place.cwd }, done)
end

---@param server CodeCompanion.McpServer
local function show_log(server)
  local lines = vim.tbl_map(shown, server.log)
  if #lines == 0 then
    lines = { "No output yet." }
  elseif server.older_lines > 0 then
    table.insert(lines, 1, ("… %s before these"):format(numbers.counted(server.older_lines, "line")))
  end
  vim.list_extend(lines, { "" }, 1, 1)
  vim.list_extend(lines, vim.tbl_map(shown, vim.split(server.line, "\n")))
  float.open({ title = "Output of " .. server.name, lines = lines, footer = "q close" })
end

---@param place CodeCompanion.McpPlace
---@param now CodeCompanion.McpShown
local function show(place, now)
  local lines, about = page(now, float.default_width())
  local folder = shown(vim.fn.fnamemodify(now.root, ":~"))
  local title = "MCP servers of " .. fit.path(folder, math.min(60, math.max(10, vim.o.columns - 20)))
  local bufnr, win = float.open({
    title = title,
    lines = lines,
    footer = FOOTER,
    hanging = #HANGING,
    layout = function()
      lines, about = page(now, float.default_width())
      return lines, float.default_width()
    end,
  })
  vim.wo[win].cursorline = true
  local on = scratch.keys(bufnr, win, function(line)
    return about[line] and (about[line].server or about[line].file) and about[line] or nil
  end)
  local function reload()
    load(place, function(later)
      if api.nvim_win_is_valid(win) then
        now = later
        lines, about = page(now, api.nvim_win_get_width(win))
        float.update(win, lines)
      end
    end)
  end
  local function change(payload)
    payload.chat, payload.cwd = place.chat, place.cwd
    host.request("change_mcp", payload, function(err)
      if err then
        say.line(err, severity.ERROR)
      end
      reload()
    end)
  end
  local function on_server(key, description, act)
    on(key, description, function(line)
      if not line.server then
        return say.hint(key .. " works on the line of a server")
      end
      act(line)
    end)
  end
  on_server("r", "Start or restart the server", function(line)
    change({ server = line.server.name, what = "restart" })
  end)
  on_server("s", "Stop the server", function(line)
    change({ server = line.server.name, what = "stop" })
  end)
  on_server("t", "Offer the tool, or stop offering it", function(line)
    if not line.tool then
      return say.hint("t works on the line of a tool")
    end
    local what = line.tool.offered and "withhold" or "offer"
    change({ server = line.server.name, what = what, tool = line.tool.own_name })
  end)
  on_server("K", "Show the output of the server", function(line)
    show_log(line.server)
  end)
  scratch.map(bufnr, "a", "Review and trust the files of the folder", function()
    scratch.close(win)
    require("codecompanion.pages.trust_page").open(place.chat)
  end)
  local unwatch
  unwatch = known.watch(function()
    if not api.nvim_win_is_valid(win) then
      return unwatch()
    end
    reload()
  end)
end

---Return the lines of `:checkhealth` about the servers of Neovim's working folder and the files that configure them;
---wait for the host for up to `limit_ms`.
---@param limit_ms integer
---@return { text: string, level: "ok"|"info"|"warn", advice?: string }[]? lines nil if the host does not respond
function M.examine(limit_ms)
  local lines
  host.request("show_mcp", { chat = "", cwd = vim.fn.getcwd() }, function(_, now)
    lines = now and {}
    for _, server in ipairs(now and now.servers or {}) do
      local state = state_of(server) .. (server.problem ~= "" and ": " .. server.problem or "")
      local advice = server.lacks_packages and ":CodeCompanion install mcp installs the packages"
        or ":CodeCompanion mcp: `r` restarts it, `K` shows its output"
      lines[#lines + 1] = {
        text = shown(("%s · %s"):format(state, origin_of(server, now.root))),
        level = server.problem ~= "" and "warn" or server.state == "ready" and "ok" or "info",
        advice = server.problem ~= "" and advice or nil,
      }
    end
    for _, file in ipairs(now and now.files or {}) do
      local level = file.problem ~= "" and "warn" or "info"
      lines[#lines + 1] = { text = file_line(file, now.root, ":CodeCompanion trust"), level = level }
    end
  end)
  vim.wait(limit_ms, function()
    return lines ~= nil
  end, 20)
  return lines
end

---Show the servers of a chat's folder, or of Neovim's working folder.
---@param chat? string Chat id
function M.open(chat)
  local place = { chat = chat or "", cwd = vim.fn.getcwd() }
  load(place, function(now)
    show(place, now)
  end)
end

return M
