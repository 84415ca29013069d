---Parses the arguments of `:[range]CodeCompanionChat`: a command (`Toggle`, `Resume` …), or options and a question.
---
---A command without an argument must be the only word: `add a test` is a question. `Resume` takes a title only when it
---is spelled exactly like this; a leading `--` turns anything into a question.

local api = vim.api
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")
local starting_with = require("codecompanion.values.starting_with")

local M = {}

local OPTIONS = { "adapter", "model", "policy" }

---@class CodeCompanion.ChatCommand
---@field run fun(arguments: string, args: table)
---@field argument? boolean Words may follow

---Return the selected lines: the range, or the Visual selection for a mapping with <Cmd>.
---@param args { range: integer, line1: integer, line2: integer }
---@return { [1]: integer, [2]: integer }? range 1-based line numbers, both included
local function selected(args)
  if args.range > 0 then
    return { args.line1, args.line2 }
  end
  if vim.fn.mode():find("^[vV\22]") then
    local first, last = vim.fn.line("v"), vim.fn.line(".")
    api.nvim_feedkeys(vim.keycode("<Esc>"), "nx", false)
    return { math.min(first, last), math.max(first, last) }
  end
end

---@param range { [1]: integer, [2]: integer }
---@return string[]
local function lines_of(range)
  return api.nvim_buf_get_lines(0, range[1] - 1, range[2], false)
end

---@type table<string, CodeCompanion.ChatCommand>
local COMMANDS = {
  Toggle = {
    run = function()
      require("codecompanion.chat").toggle()
    end,
  },
  Resume = {
    argument = true,
    run = function(arguments)
      require("codecompanion.chat").resume(arguments, { check = true })
    end,
  },
  New = {
    run = function()
      require("codecompanion.chat").open()
    end,
  },
  Add = {
    run = function(_, args)
      local range = selected(args)
      if not range then
        local sentence = "Nothing was added: select lines, or give a range, as in :'<,'>CodeCompanionChat Add"
        return say.line({ sentence, "Nothing was added: select lines first" }, severity.WARN)
      end
      require("codecompanion.chat").add_selection(lines_of(range), range)
    end,
  },
}

---Return the commands in alphabetical order.
---@return string[]
function M.names()
  local names = vim.tbl_keys(COMMANDS)
  table.sort(names)
  return names
end

---@param text string Everything typed after the command
---@return string? name
---@return string rest
local function command_of(text)
  local word, rest = text:match("^(%a+)%s*(.*)$")
  if not word then
    return nil, text
  end
  for name, command in pairs(COMMANDS) do
    if word:lower() == name:lower() and (rest == "" or (command.argument and word == name)) then
      return name, rest
    end
  end
  return nil, text
end

---Parse leading `adapter=… model=… policy=…` options.
---@param text string
---@return table<string, string> options
---@return string rest The question
---@return string? refusal
function M.parse(text)
  local options = {}
  while true do
    local name, value, rest = text:match("^([%a_]+)=(%S*)%s*(.*)$")
    if not name then
      return options, (text:gsub("^%-%-%s+", "", 1))
    end
    if not vim.list_contains(OPTIONS, name) then
      local near = require("codecompanion.values.nearest").word(name, OPTIONS)
      if near then
        return {}, "", ("No option %s=; did you mean %s=? Nothing was sent"):format(name, near)
      end
      return options, text
    end
    if value == "" then
      return {}, "", ("%s= needs a name, as in %s=…; nothing was sent"):format(name, name)
    end
    if options[name] then
      return {}, "", ("%s= is given twice; nothing was sent"):format(name)
    end
    options[name], text = value, rest
  end
end

---Return the command that a single word was probably meant to be.
---@param text string
---@return string?
local function mistyped(text)
  return text:find("^%a+$") and require("codecompanion.values.nearest").word(text, M.names()) or nil
end

---@param word string
---@param near string
local function refuse_word(word, near)
  local meant = ("No command %s; did you mean %s?"):format(word, near)
  local all = table.concat(M.names(), ", ")
  say.line({ ("%s :CodeCompanionChat takes %s, or a question"):format(meant, all), meant }, severity.ERROR)
end

---Open a chat with these options and send the text, if there is any.
---@param options table<string, string>
---@param text string
local function ask(options, text)
  local chats, session = require("codecompanion.chat"), require("codecompanion.chat.state.session")
  local plain = next(options) == nil
  local chat = chats.open({ reuse = plain, adapter = options.adapter, model = options.model })
  session.attach(chat, options) -- before anything opens the chat without the options
  require("codecompanion.chat.wire.draft").set(chat, text)
  local function send()
    if text ~= "" then
      require("codecompanion.chat.ui.submit").send(chat)
    end
  end
  if not options.policy then
    return send()
  end
  session.request(chat, "set_policy", { policy = options.policy }, send, function(reason)
    local told = reason:gsub("%.?$", ".", 1)
    say.chat(chat, told .. (text ~= "" and " Your message is in the input." or ""), severity.WARN)
  end)
end

---Run `:[range]CodeCompanionChat [command | adapter=… model=… policy=… words]`.
---@param args { args: string, range: integer, line1: integer, line2: integer }
function M.run(args)
  local text = vim.trim(args.args)
  local name, rest = command_of(text)
  if name then
    return COMMANDS[name].run(rest, args)
  end
  local near = mistyped(text)
  if near then
    return refuse_word(text, near)
  end
  local options, words, refusal = M.parse(text)
  if refusal then
    return say.line(refusal, severity.ERROR)
  end
  local range = args.range > 0 and { args.line1, args.line2 } or nil
  if text == "" and range then
    return require("codecompanion.chat").add_selection(lines_of(range), range)
  elseif text == "" then
    return require("codecompanion.chat").open({ reuse = true })
  end
  if range and require("codecompanion.editor_context.send_code").refuses("A range") then
    return
  elseif range then
    words = require("codecompanion.chat").quoted(lines_of(range), range) .. words
  end
  ask(options, words)
end

---@return string[]
local function builtin_policies()
  local folder = require("codecompanion.system.python_environment").root() .. "/python/codecompanion/context/policies"
  local names = vim.tbl_keys((require("codecompanion.config").options.interactions.chat.opts.policies or {}))
  for file in vim.fs.dir(folder) do
    names[#names + 1] = file:match("^(.+)%.toml$")
  end
  return names
end

---Return the values of an option that are known now, because completion must not wait: those the host has reported,
---otherwise those in the configuration.
---@param name string
---@param lead string
---@param before string Preceding text: `adapter=…` there selects the models
---@return string[]
local function values(name, lead, before)
  local models = require("codecompanion.chat.lists.models")
  local found
  if name == "policy" then
    found = vim.list_extend(require("codecompanion.chat.lists.pickers").policy_names(""), builtin_policies())
  elseif name == "adapter" then
    local http = require("codecompanion.config").options.adapters.http
    found = vim.list_extend(models.adapters(""), require("codecompanion.adapters").names(http))
  else
    local default = require("codecompanion.adapters.default_adapter").reference(require("codecompanion.config").options)
    found = models.names("", before:match("adapter=(%S+)") or default)
  end
  table.sort(found)
  return starting_with(vim.fn.uniq(found), lead)
end

---@param lead string
---@param line string
---@param position integer
---@return string[]
function M.complete(lead, line, position)
  local typed = line:sub(1, position):match("CodeCompanionChat!?%s+(.*)$") or ""
  local title = typed:match("^[Rr]esume%s+(.*)$")
  if title then
    local done = #title - #lead -- Neovim replaces the last word only
    return vim.tbl_map(function(name)
      return name:sub(done + 1)
    end, require("codecompanion.chat.lists.resume_list").names(title))
  end
  local before = typed:sub(1, #typed - #lead)
  if before:gsub("%a+=%S+%s+", "") ~= "" then
    return {} -- inside a question
  end
  local name, value = lead:match("^(%a+)=(%S*)$")
  if name then
    return vim.tbl_map(function(found)
      return name .. "=" .. found
    end, vim.list_contains(OPTIONS, name) and values(name, value, before) or {})
  end
  local unused = vim.tbl_filter(function(option)
    return not before:find(option .. "=", 1, true)
  end, OPTIONS)
  local offered = vim.tbl_map(function(option)
    return option .. "="
  end, unused)
  return starting_with(vim.list_extend(before == "" and M.names() or {}, offered), lead)
end

return M
