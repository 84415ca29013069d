---Lists the tools of a chat (`/tools`): which are offered, their token counts, their sources, and whether they ask for
---approval.

local api = vim.api
local blocks = require("codecompanion.chat.draw.blocks")
local fit = require("codecompanion.text.fit")
local float = require("codecompanion.screen.float")
local numbers = require("codecompanion.text.numbers")
local say = require("codecompanion.say")
local scratch = require("codecompanion.screen.scratch_buffer")
local session = require("codecompanion.chat.state.session")
local severity = require("codecompanion.severity")
local visible = require("codecompanion.text.visible_characters")

local M = {}

local FOOTER = { "<CR> on/off", "a as configured", "K show", "q close" }
local ON, OFF = "●", "○"
local WIDEST, WIDEST_NAME, NARROWEST_NAME = 100, 30, 12
local FRESH_MS = 10000
---The built-in groups and their descriptions, as in the host.
local BUILT_IN_GROUPS = {
  { "full", "All tools." },
  { "files", "Find, read and change files; no commands." },
  { "read_only", "Find and read files; no changes." },
  { "none", "No tools." },
}

---@param texts string[]
---@return integer
local function widest(texts)
  local width = 0
  for _, text in ipairs(texts) do
    width = math.max(width, api.nvim_strwidth(text))
  end
  return width
end

---@param text string
---@param width integer
---@return string
local function padded(text, width)
  return text .. (" "):rep(width - api.nvim_strwidth(text))
end

---@param names table[]
---@return string[]
local function names_of(names)
  return vim.tbl_map(function(row)
    return row.name
  end, names)
end

---Lay out the list. The most important columns are visible at any width: names are shortened in the middle, token
---counts never.
---@param listed table The host's result
---@param room integer
---@return string[] lines
---@return table<integer, table> rows By line
local function layout(listed, room)
  local lines, rows = {}, {}
  local names = math.max(widest(names_of(listed.tools)), widest(names_of(listed.groups)))
  local width = math.min(WIDEST_NAME, names, math.max(NARROWEST_NAME, room - #"●   1.2k tokens"))
  local function add(row, kind, is_on, parts)
    local name = padded(fit.squeeze(row.name, width), width)
    local line = ("%s %s  "):format(is_on and ON or OFF, name)
    local text = fit.parts(parts, math.max(room - api.nvim_strwidth(line), 1))
    lines[#lines + 1] = blocks.one_line(line .. text)
    rows[#lines] = { kind = kind, name = row.name, row = row }
  end
  lines[#lines + 1] = "Groups"
  for _, group in ipairs(listed.groups) do
    local parts = {}
    if group.state == "" or #group.tools > 0 then
      parts[1] = padded(("%s tokens"):format(numbers.short(group.tokens)), 11)
      parts[2] = padded(("%d tool%s"):format(#group.tools, #group.tools == 1 and "" or "s"), 8)
    end
    vim.list_extend(parts, group.state ~= "" and { visible.line(group.state).text } or {})
    parts[#parts + 1] = visible.line(group.description).text
    add(group, "group", group.on, parts)
  end
  vim.list_extend(lines, { "", "Tools" })
  for _, tool in ipairs(listed.tools) do
    local tokens = padded(("%s tokens"):format(numbers.short(tool.tokens)), 11)
    local words = tool.description:match("^(.-[%.!?])%s") or tool.description
    local parts = { tokens, tool.asks and "asks" or "runs" }
    if tool.source ~= "built in" then
      parts[#parts + 1] = visible.line(tool.source).text
    end
    if tool.why_not ~= "" then
      parts[#parts + 1] = tool.why_not
    end
    parts[#parts + 1] = visible.line(words).text
    add(tool, "tool", tool.sent, parts)
  end
  local how = listed.is_default and "as configured" or "chosen in this chat"
  local sum = "%s of %s tokens are sent with each request · %s"
  lines[#lines + 1] = ""
  sum = sum:format(numbers.short(listed.tokens), numbers.short(listed.all_tokens), how)
  vim.list_extend(lines, fit.wrap(sum, room))
  if listed.note ~= "" then
    vim.list_extend(lines, fit.wrap(visible.line(listed.note).text, room))
  end
  return lines, rows
end

---@param chat CodeCompanion.Chat
---@param done fun(listed: table)
local function load(chat, done)
  session.request(chat, "list_tools", {}, function(listed)
    chat.tools_listed = { at = vim.uv.now(), listed = listed }
    done(listed)
  end)
end

---@param row table
local function show_one(row)
  local lines = fit.wrap(row.row.description or "", 76)
  if row.kind == "group" then
    vim.list_extend(lines, { "" })
    vim.list_extend(lines, row.row.tools)
  end
  float.open({ title = row.name, lines = lines, footer = "q close" })
end

---@param chat CodeCompanion.Chat
---@param listed table
local function show(chat, listed)
  local function room()
    return math.max(10, math.min(WIDEST, vim.o.columns - 4))
  end
  local lines, rows = layout(listed, room())
  local bufnr, win = float.open({
    title = "Tools of this chat",
    lines = lines,
    footer = FOOTER,
    wrap = false,
    width = room(),
    layout = function()
      lines, rows = layout(listed, room())
      return lines, room()
    end,
  })
  vim.wo[win].cursorline = true
  local function reload()
    load(chat, function(now)
      if api.nvim_win_is_valid(win) then
        listed = now
        lines, rows = layout(now, room())
        float.update(win, lines)
      end
    end)
  end
  local on = scratch.keys(bufnr, win, function(line)
    return rows[line]
  end)
  on({ "<CR>", "<Space>" }, "Turn the tool on or off", function(row)
    session.request(chat, "choose_tools", { names = { row.name }, how = "toggle" }, reload, say.line)
  end)
  on("K", "Show", show_one)
  scratch.map(bufnr, "a", "Reset to the configuration", function()
    session.request(chat, "choose_tools", { names = {}, how = "only" }, reload, say.line)
  end)
end

---List the tools, or offer only the named ones.
---@param chat CodeCompanion.Chat
---@param argument string
---@param refuse fun(reason: string)
function M.open(chat, argument, refuse)
  local names = vim.split(argument, "[%s,]+", { trimempty = true })
  if #names == 0 then
    return load(chat, function(listed)
      show(chat, listed)
    end)
  end
  session.request(chat, "choose_tools", { names = names, how = "only" }, function(sentence)
    say.chat(chat, sentence, severity.INFO)
  end, refuse)
end

---@param text string
---@return string
local function first_sentence(text)
  local sentence = text:match("^(.-[%.!?])%s") or text
  return visible.line((sentence:gsub("%.$", ""))).text
end

---Return the short descriptions of the built-in tools; those for the model are longer.
---@return table<string, string>
local function described_tools()
  local found = {}
  for _, option in ipairs(require("codecompanion.config.options.tools")) do
    found[option.name] = option.tool and first_sentence(option.description) or nil
  end
  return found
end

---Return the configured tools and groups, for as long as the host has not listed them.
---@return { name: string, short?: string, description: string }[]
local function configured_names()
  local sorted = require("codecompanion.values.sorted")
  local options, about, found = require("codecompanion.config").options, described_tools(), {}
  local configured = options.interactions.chat.tools
  local function group(name, description, short)
    found[#found + 1] = { name = name, short = short, description = "group: " .. first_sentence(description) }
  end
  for _, one in ipairs(BUILT_IN_GROUPS) do
    if configured.groups[one[1]] == nil then
      group(one[1], one[2])
    end
  end
  for name, one in sorted(configured.groups) do
    group(name, one and one.description or "Your own group")
  end
  for name, server in sorted(options.mcp.servers) do
    if server and server.enabled then
      local short = name:gsub("[^%w_-]", "_")
      group("mcp:" .. short, ("Tools of the MCP server %s"):format(name), short)
    end
  end
  for name, tool in sorted(configured) do
    if name ~= "opts" and name ~= "groups" and tool and tool.enabled ~= false then
      local description = about[name] or first_sentence(tool.description or "Your own tool")
      found[#found + 1] = { name = name, description = description }
    end
  end
  return found
end

---Return names with descriptions, groups first: from the host's last result or, without one, from the configuration.
---@param chat CodeCompanion.Chat
---@return { name: string, short?: string, description: string }[] `short` is an alias
function M.names(chat)
  local known = chat.tools_listed
  if (not known or vim.uv.now() - known.at > FRESH_MS) and chat.attached == "yes" then
    chat.tools_listed = { at = vim.uv.now(), listed = known and known.listed }
    load(chat, function() end)
  end
  if not known or not known.listed then
    return configured_names()
  end
  local found, about = {}, described_tools()
  for _, row in ipairs(known.listed.groups) do
    local state = row.state ~= "" and #row.tools == 0 and visible.line(row.state:match("^[^:]*")).text
    local description = "group: " .. (state or first_sentence(row.description))
    found[#found + 1] = { name = row.name, short = row.short, description = description }
  end
  for _, row in ipairs(known.listed.tools) do
    found[#found + 1] = { name = row.name, description = about[row.name] or first_sentence(row.description) }
  end
  return found
end

return M
