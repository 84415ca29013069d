---The list of adapters with what each needs: for `:CodeCompanion` without a model, and for whoever wants another one.

local choose = require("codecompanion.screen.choose")
local life = require("codecompanion.chat.ui.life")
local loading = require("codecompanion.chat.lists.loading")
local readiness = require("codecompanion.adapters.readiness")
local registry = require("codecompanion.chat.state.registry")
local say = require("codecompanion.say")
local session = require("codecompanion.chat.state.session")
local severity = require("codecompanion.severity")

local api = vim.api
local M = {}

local HEADINGS = {
  { states = { ready = true }, text = "Ready" },
  { states = { login = true, key = true }, text = "With a key or a login" },
  { states = { server = true }, text = "On this machine, when it runs" },
  { states = { broken = true }, text = "Not usable as it is configured" },
  { states = { offline = true }, text = "Without a model" },
}

---The line that makes a choice last.
---@param name string
---@return string
function M.lua_line(name)
  return ('interactions = { chat = { adapter = "%s" } },'):format(name)
end

---@param item CodeCompanion.AdapterReadiness
---@param width integer
---@return string
local function line_of(item, width)
  local page = item.state == "key" and item.page and (" · " .. item.page) or ""
  return ("  %s%s  %s%s"):format(item.name, (" "):rep(width - #item.name), item.text, page)
end

---@param found CodeCompanion.AdapterReadiness[]
---@return string[] lines
---@return table<integer, CodeCompanion.AdapterReadiness> items By line
local function layout(found)
  local width, lines, items = 0, {}, {}
  for _, item in ipairs(found) do
    width = math.max(width, #item.name)
  end
  for _, heading in ipairs(HEADINGS) do
    local begun = false
    for _, item in ipairs(found) do
      if heading.states[item.state] then
        if not begun then
          vim.list_extend(lines, #lines > 0 and { "", heading.text } or { heading.text })
          begun = true
        end
        lines[#lines + 1] = line_of(item, width)
        items[#lines] = item
      end
    end
  end
  return lines, items
end

---The chat that the choice is for: the one that has the focus.
---@return CodeCompanion.Chat?
local function chat_here()
  return registry.by_buffer(api.nvim_get_current_buf())
end

---@param name string
---@param chat? CodeCompanion.Chat
local function use(name, chat)
  if chat and api.nvim_buf_is_valid(chat.bufnr) then
    session.set_model(chat, name)
  else
    life.open({ adapter = name })
  end
  local kept = ("Using %s. To keep it, in setup(): %s"):format(name, M.lua_line(name))
  say.line({ kept, ("This chat uses %s; y in the list copies the line for setup()"):format(name), name .. " is used" })
end

---@param item CodeCompanion.AdapterReadiness
---@return string
local function advice(item)
  if item.state == "key" then
    local where = item.page and (" (one gets a key at %s)"):format(item.page) or ""
    return ("%s %s%s: set it in your shell, then start Neovim again"):format(item.name, item.text, where)
  elseif item.state == "server" then
    return ("%s is %s; start it, then choose again"):format(item.name, item.text)
  end
  return item.text
end

---@param item CodeCompanion.AdapterReadiness
---@param chat? CodeCompanion.Chat
local function chosen(item, chat)
  if item.state == "ready" or item.state == "offline" then
    return use(item.name, chat)
  elseif item.state == "login" then
    return require("codecompanion.login").start(item.name, function(ok)
      if ok then
        use(item.name, chat)
      end
    end)
  end
  say.line(advice(item), severity.WARN)
end

---@param name string
local function copy_line(name)
  local line = M.lua_line(name)
  vim.fn.setreg('"', line)
  pcall(vim.fn.setreg, "+", line)
  say.hint("Copied for setup(): " .. line)
end

---@param item CodeCompanion.AdapterReadiness
local function open_page(item)
  if not item.page then
    return say.hint(("%s needs no key"):format(item.name))
  end
  local _, problem = vim.ui.open(item.page)
  if problem then
    say.line(("The page could not be opened here; it is %s"):format(item.page), severity.WARN)
  end
end

---@param found CodeCompanion.AdapterReadiness[]
---@param chat? CodeCompanion.Chat
local function show(found, chat)
  local lines, items = layout(found)
  local bufnr = choose.list(lines, function(line)
    return items[line]
  end, {
    title = "Which model shall answer?",
    wrap = true,
    keys = {
      {
        key = "y",
        label = "copy for setup()",
        action = function(item)
          copy_line(item.name)
        end,
      },
      { key = "o", label = "where to get a key", action = open_page },
    },
  }, function(picked)
    if picked then
      chosen(picked[1], chat)
    end
  end)
  local ns = api.nvim_create_namespace("codecompanion.chat.choose_adapter")
  for number in ipairs(lines) do
    local item = items[number]
    local group = not item and "CodeCompanionHeaderModel" or item.state ~= "ready" and "CodeCompanionHint" or nil
    if group and lines[number] ~= "" then
      api.nvim_buf_set_extmark(bufnr, ns, number - 1, 0, { end_row = number, hl_group = group })
    end
  end
  for number = 1, #lines do
    if items[number] then
      return api.nvim_win_set_cursor(0, { number, 0 })
    end
  end
end

---Show the list once the servers on this machine have been asked, at the latest after 0.3 s.
function M.open()
  local http = require("codecompanion.config").options.adapters.http
  local chat = chat_here()
  loading.list({ what = "adapters" }, function(done)
    readiness.all(http, done)
  end, function(found)
    show(found, chat)
  end)
end

---Whether a new chat would have somebody to answer it, as far as that can be told at once.
---@return boolean
function M.is_needed()
  local options = require("codecompanion.config").options
  local name = require("codecompanion.config.host").adapter_reference(options.interactions.chat.adapter)
  return not readiness.seems_ready(name, options.adapters.http)
end

return M
