---Lists the adapters and their requirements (`:CodeCompanion adapter`): the user's own, then those that are ready,
---popular ones and the rest.

local choose = require("codecompanion.screen.choose")
local default_adapter = require("codecompanion.adapters.default_adapter")
local highlights = require("codecompanion.chat.buffer.chat_highlights")
local life = require("codecompanion.chat.life")
local loading = require("codecompanion.chat.lists.loading_list")
local readiness = require("codecompanion.adapters.readiness")
local registry = require("codecompanion.chat.state.open_chats")
local say = require("codecompanion.say")
local session = require("codecompanion.chat.state.session")
local severity = require("codecompanion.severity")

local api = vim.api
local M = {}

local NARROW = 60 -- in cells; below this width the columns are not aligned

local HEADINGS = { "Current and configured", "Misconfigured", "Ready", "Popular", "More" }

---Adapters listed before the rest, in this order.
local POPULAR = {
  "chatgpt",
  "copilot",
  "anthropic",
  "openai",
  "gemini",
  "openrouter",
  "ollama",
  "lmstudio",
}

---Return the heading of `HEADINGS` that an adapter is listed under.
---@param item CodeCompanion.AdapterReadiness
---@param current? string Adapter of the chat
---@return string
local function heading_of(item, current)
  local http = require("codecompanion.config").options.adapters.http
  if item.name == current then
    return "Current and configured"
  elseif item.state == "broken" then
    return "Misconfigured"
  elseif readiness.is_own(item.name, http) then
    return "Current and configured"
  elseif item.state == "ready" then
    return "Ready"
  end
  return vim.list_contains(POPULAR, item.name) and "Popular" or "More"
end

---Return the adapters by heading, popular ones in their own order.
---@param found CodeCompanion.AdapterReadiness[]
---@param current? string Adapter of the chat
---@return table<string, CodeCompanion.AdapterReadiness[]>
local function grouped(found, current)
  local groups = {}
  for _, item in ipairs(found) do
    local heading = heading_of(item, current)
    groups[heading] = groups[heading] or {}
    table.insert(groups[heading], item)
  end
  local rank = {}
  for index, name in ipairs(POPULAR) do
    rank[name] = index
  end
  table.sort(groups.Popular or {}, function(left, right)
    return rank[left.name] < rank[right.name]
  end)
  return groups
end

---The configuration line that adds a server.
local OWN_SERVER = 'adapters = { http = { my_server = { extends = "openai_compatible",'
  .. ' env = { url = "http://localhost:8080" } } } },'

---Return the row of each adapter. URLs of key pages are shown only if all of them fit; `o` opens a page anyway. Advice
---about a server is shown if it fits or the chat uses the server; `:checkhealth` also shows it.
---@param found CodeCompanion.AdapterReadiness[]
---@param room integer
---@param current? string Adapter of the chat
---@return table<CodeCompanion.AdapterReadiness, string>
local function rows_of(found, room, current)
  local names, rows, with_pages, fits = 0, {}, {}, true
  for _, item in ipairs(found) do
    names = math.max(names, #item.name)
  end
  for _, item in ipairs(found) do
    local gap = room < NARROW and "" or (" "):rep(names - #item.name)
    local mark = item.name == current and " · current" or ""
    rows[item] = ("  %s%s  %s%s"):format(item.name, gap, item.text, mark)
    local advised = item.advice and ("%s · %s"):format(rows[item], item.advice)
    local has_room = item.name == current or advised and api.nvim_strwidth(advised) <= room
    rows[item] = advised and has_room and advised or rows[item]
    local page = item.state == "key" and item.page and (" · " .. item.page) or ""
    with_pages[item] = rows[item] .. page
    fits = fits and (page == "" or api.nvim_strwidth(with_pages[item]) <= room)
  end
  return fits and with_pages or rows
end

---@param found CodeCompanion.AdapterReadiness[]
---@param current? string Adapter of the chat
---@return string[] lines
---@return table<integer, CodeCompanion.AdapterReadiness> items By line
local function layout(found, current)
  local rows, groups, lines, items = rows_of(found, vim.o.columns - 4, current), grouped(found, current), {}, {}
  for _, heading in ipairs(HEADINGS) do
    for index, item in ipairs(groups[heading] or {}) do
      if index == 1 then
        vim.list_extend(lines, #lines > 0 and { "", heading } or { heading })
      end
      lines[#lines + 1] = rows[item]
      items[#lines] = item
    end
  end
  return lines, items
end

---Return the chat with the focus, to which the choice applies.
---@return CodeCompanion.Chat?
local function chat_here()
  return registry.by_buffer(api.nvim_get_current_buf())
end

---@param item CodeCompanion.AdapterReadiness
---@param chat? CodeCompanion.Chat
local function use(item, chat)
  local name = item.name
  local function remember()
    default_adapter.choose(require("codecompanion.config").options, name, item.model)
  end
  if chat and api.nvim_buf_is_valid(chat.bufnr) then
    session.set_model(chat, name, item.model, remember)
  else
    life.open({ adapter = name, model = item.model })
    remember()
  end
end

---Return the step that makes an adapter usable, longest form first.
---@param item CodeCompanion.AdapterReadiness
---@return string[]
local function advice(item)
  if item.state == "server" then
    local place = ("%s:%d"):format(item.asks.host, item.asks.port)
    local command = (item.start_command or "") ~= "" and (" with: " .. item.start_command) or ""
    return {
      ("%s is not running at %s. Choose it again after you have started it%s"):format(item.name, place, command),
      ("Not running at %s. Start it%s"):format(place, command),
      "Not running at " .. place,
    }
  elseif item.state == "template" then
    return { "y copies an entry for setup(); set its url to your server's address", "y copies an entry for setup()" }
  elseif item.state ~= "key" then
    return { ("%s: %s"):format(item.name, item.text), item.text }
  elseif item.missing:find("/", 1, true) then
    return { ("Write the key of %s to %s, then choose it again"):format(item.name, item.missing) }
  end
  local set = ("Set %s"):format(item.missing)
  local whole = ("%s in your shell, then restart Neovim"):format(set)
  if not item.page then
    return { whole, set }
  end
  local brief = ("%s, then restart Neovim; o gets a key"):format(set)
  return { ("%s; get a key at %s"):format(whole, item.page), brief, set .. "; o gets a key" }
end

---@param item CodeCompanion.AdapterReadiness
---@param chat? CodeCompanion.Chat
---@param close fun() Closes the list, which stays open beside the required steps
local function choose_item(item, chat, close)
  if item.state == "ready" or item.state == "offline" then
    close()
    if item.needs_client then
      require("codecompanion.host.install_extra").need("sdk")
    end
    return use(item, chat)
  elseif item.state == "login" then
    close()
    return require("codecompanion.pages.login_page").start(item.name, function(ok)
      if ok then
        use(item, chat)
      end
    end)
  elseif item.asks then
    return readiness.ask({ item }, function() -- it may have been started meanwhile
      if item.state == "ready" then
        return choose_item(item, chat, close)
      end
      say.line(advice(item), severity.WARN)
    end)
  end
  say.line(advice(item), severity.WARN)
end

---@param item CodeCompanion.AdapterReadiness
local function copy_line(item)
  local line = item.state == "template" and OWN_SERVER or default_adapter.lua_line(item.name, item.model)
  vim.fn.setreg('"', line)
  pcall(vim.fn.setreg, "+", line)
  say.hint({ "Copied for setup(): " .. line, "Copied the entry for setup(); p pastes it", "Copied; p pastes it" })
end

---@param item CodeCompanion.AdapterReadiness
local function open_page(item)
  if not item.page then
    return say.hint(("%s needs no key"):format(item.name))
  end
  local _, problem = vim.ui.open(item.page)
  if problem then
    say.line({ "Could not open the page; its address is " .. item.page, item.page }, severity.WARN)
  end
end

---@param bufnr integer
---@param items table<integer, CodeCompanion.AdapterReadiness> By line
local function colour(bufnr, items)
  local ns = api.nvim_create_namespace("codecompanion.chat.choose_adapter")
  api.nvim_buf_clear_namespace(bufnr, ns, 0, -1)
  for number, line in ipairs(api.nvim_buf_get_lines(bufnr, 0, -1, false)) do
    local item = items[number]
    local group = not item and "CodeCompanionHeaderModel" or item.state ~= "ready" and "CodeCompanionHint" or nil
    if group and line ~= "" then
      api.nvim_buf_set_extmark(bufnr, ns, number - 1, 0, { end_row = number, hl_group = group })
    end
  end
end

---@param found CodeCompanion.AdapterReadiness[]
---@param chat? CodeCompanion.Chat
local function show(found, chat)
  highlights.define() -- this may be the first window of the plugin
  local current = chat and chat.adapter
  local lines, items = layout(found, current)
  local options ---@type CodeCompanion.ListOptions
  options = {
    title = "Choose an adapter",
    wrap = true,
    accept = function(item, close)
      choose_item(item, chat, close)
    end,
    layout = function()
      local again = layout(found, current)
      return again, choose.width(again, options)
    end,
    on_resize = function(bufnr)
      colour(bufnr, items)
    end,
    keys = {
      {
        key = "y",
        label = "copy for setup()",
        action = copy_line,
      },
      { key = "o", label = "get a key", action = open_page },
    },
  }
  local bufnr = choose.list(lines, function(line)
    return items[line]
  end, options, function() end)
  colour(bufnr, items)
  local first, ready, at
  for number = 1, #lines do
    local item = items[number]
    first = first or item and number
    ready = ready or item and item.state == "ready" and number
    at = at or item and item.name == current and number
  end
  if first then
    api.nvim_win_set_cursor(0, { at or ready or first, 0 })
  end
end

---Maximum time that the list waits for the host's facts about the servers, in milliseconds.
M.CARDS_MS = 1000

---Add the host's facts about the responding servers (context window, tools, speed); without a running host, only names
---are shown.
---@param found CodeCompanion.AdapterReadiness[]
---@param done fun()
local function add_cards(found, done)
  local host, running = require("codecompanion.host"), {}
  for _, item in ipairs(found) do
    if item.asks and item.state == "ready" then
      running[item.name] = item
    end
  end
  if host.status() ~= "ready" or not next(running) then
    return done()
  end
  local over = false
  local function finish()
    if not over then
      over = true
      done()
    end
  end
  vim.defer_fn(finish, M.CARDS_MS)
  host.request("server_cards", { adapters = vim.tbl_keys(running) }, function(_, cards)
    for _, card in ipairs(not over and cards or {}) do
      local item = running[card.adapter]
      local more = #(item.models or {}) - 1
      item.text = "running: " .. card.text .. (more > 0 and (" · %d more"):format(more) or "")
      item.advice = card.advice ~= "" and card.advice or nil
    end
    finish()
  end)
end

---Query the local servers (for at most 0.3 s), ask the host about them, then show the list.
function M.open()
  local http = require("codecompanion.config").options.adapters.http
  local chat = chat_here()
  loading.list({ what = "adapters" }, function(done)
    readiness.all(http, function(found)
      add_cards(found, function()
        done(found)
      end)
    end)
  end, function(found)
    show(found, chat)
  end)
end

return M
