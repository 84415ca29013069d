---Completes text in the input: slash commands on its first line, items such as `#{buffer}`, and `@path` on all lines
---(R-213). Used by 'omnifunc' and by the blink and cmp sources.

local api = vim.api

local anchors = require("codecompanion.chat.buffer.anchors")
local registry = require("codecompanion.chat.state.open_chats")

local M = {}

---@param chat CodeCompanion.Chat?
---@param row integer 0-based
---@return boolean Whether the input is empty above the row: only there are slash commands completed
local function is_command_row(chat, row)
  if not chat then
    return false
  end
  local first = anchors.position(chat, "input")
  local above = row >= first and api.nvim_buf_get_lines(chat.bufnr, first, row, false)
  return above and table.concat(above) == "" or false
end

---@class CodeCompanion.Completion
---@field word string Text to insert
---@field label string
---@field description string
---@field kind "File"|"Folder"|"Keyword"|"Module"|"Value"|"Variable" Kind in the language server protocol, for the icon
---@field filter? string Text to match against the typed text; defaults to `word`
---@field command? string Name of a slash command that can run immediately

---Maximum number of paths; typing more narrows them down.
local MAX_PATHS = 200

---Characters that require quotes around a name (`python/codecompanion/retrieval/mentions.py`).
local QUOTED = "[<>|(){}%[%],;@%s]"
local ENDS_QUOTED = "[.,:;!?'*_]$"

---Return a name as written after `@`, or nil if it cannot be written.
---@param name string
---@param is_quoted boolean The opening quote was typed
---@return string?
local function mention_of(name, is_quoted)
  if name:find('"') then
    return nil
  elseif is_quoted or name:gsub(" ", ""):find(QUOTED) or name:find(ENDS_QUOTED) then
    return ('@"%s%s'):format(name, vim.endswith(name, "/") and "" or '"')
  end
  return "@" .. name:gsub(" ", "\\ ")
end

---Return files and folders that match the text after an `@`; only text has parts that can be sent.
---@param lead string
---@param is_quoted boolean
---@return CodeCompanion.Completion[]
local function files(lead, is_quoted)
  local project_files, is_image = require("codecompanion.project_files"), require("codecompanion.system.image_names")
  local found = {}
  for _, path in ipairs(project_files.fitting(lead, MAX_PATHS, project_files.folder())) do
    local word = mention_of(path, is_quoted)
    if word and not is_image(path) and not path:lower():find("%.pdf$") then
      local is_folder = vim.endswith(path, "/")
      found[#found + 1] = {
        word = word,
        label = "@" .. path,
        filter = (is_quoted and '@"' or "@") .. path,
        description = is_folder and "folder" or "send the parts that match the question",
        kind = is_folder and "Folder" or "File",
      }
    end
  end
  return found
end

---Return tools and groups of tools that a message can choose.
---@param chat CodeCompanion.Chat
---@param lead string Text after `@` or `@{`
---@return CodeCompanion.Completion[]
local function tools(chat, lead)
  local found = {}
  for _, one in ipairs(require("codecompanion.chat.lists.tool_list").names(chat)) do
    if vim.startswith(one.name, lead) or vim.startswith(one.short or "", lead) then
      local word = ("@{%s}"):format(one.name)
      found[#found + 1] = { word = word, label = word, description = one.description, kind = "Module" }
    end
  end
  return found
end

---Return items of editor context, or arguments of an item, that complete the typed text.
---@param typed string Text from the `#` to the cursor
---@return CodeCompanion.Completion[]
local function context_items(typed)
  local context = require("codecompanion.editor_context")
  local name, lead = typed:match("^#{([%w_]+):([^{}]*)$")
  if name then
    local item = context.get(name)
    local project = require("codecompanion.project_files")
    local given = item and item.argument and item.complete and item.complete(lead, project) or {}
    given = vim.tbl_filter(function(argument)
      return not argument:find("[{}]") and (name == "file" or argument:find(lead, 1, true) ~= nil)
    end, given)
    return vim.tbl_map(function(argument)
      local is_folder = vim.endswith(argument, "/")
      local word = ("#{%s:%s%s"):format(name, argument, is_folder and "" or "}")
      return { word = word, label = word, description = is_folder and "folder" or item.description, kind = "Value" }
    end, vim.list_slice(given, 1, MAX_PATHS))
  end
  local found = {}
  local begun = typed:match("^#{?([%w_]*)$") or typed:match("^#{([%w_]+)}$")
  for _, item in ipairs(begun and context.list() or {}) do
    if vim.startswith(item.name, begun) then
      local word = item.needs_argument and ("#{%s:"):format(item.name) or ("#{%s}"):format(item.name)
      local label = item.argument and ("#{%s:%s}"):format(item.name, item.argument) or word
      label = item.needs_argument and label or word
      found[#found + 1] = { word = word, label = label, description = item.description, kind = "Variable" }
    end
  end
  return found
end

---Return the parts of the editor and the project that a message may mention.
---@param chat CodeCompanion.Chat
---@param before string
---@return integer? from
---@return CodeCompanion.Completion[]
local function mentions(chat, before)
  local hash = before:match("#{[^{}]*}?$") or before:match("#[%w_]*$")
  local items = hash and context_items(hash) or {}
  if #items > 0 then
    return #before - #hash, items
  end
  local quote, quoted = before:match('()@"([^"]*)$')
  if quote and (quote == 1 or before:sub(quote - 1, quote - 1):find("[%s(]")) then
    return quote - 1, files(quoted, true)
  end
  local escaped = before:gsub("\\ ", "\0\0")
  local start, lead = escaped:match('()@([^%s"@]*)$')
  if not start or (start > 1 and not escaped:sub(start - 1, start - 1):find("[%s(]")) then
    return nil, {}
  end
  if lead:sub(1, 1) == "{" then
    return start - 1, tools(chat, lead:sub(2))
  end
  return start - 1, vim.list_extend(files((lead:gsub("%z%z", " ")), false), tools(chat, lead))
end

---Return the completions of the text before the cursor.
---@param chat CodeCompanion.Chat?
---@param row integer 0-based
---@param before string The line before the cursor
---@return integer? from 0-based byte column of the completed text, or nil if there is none
---@return CodeCompanion.Completion[] items
function M.items(chat, row, before)
  if not chat or row < anchors.position(chat, "input") then
    return nil, {}
  elseif not is_command_row(chat, row) or before:sub(1, 1) ~= "/" then
    return mentions(chat, before)
  end
  local slash = require("codecompanion.chat.slash")
  local name, lead = before:match("^/([%w_:-]+)%s+(.*)$")
  if name then
    local command = slash.get(name)
    if not command or not command.complete then
      return nil, {}
    end
    if command.many then
      -- only the last word; a space within it is written `\ `
      lead = lead:gsub("\\ ", "\0\0"):match("%S*$"):gsub("%z%z", "\\ ")
    end
    return #before - #lead,
      vim.tbl_map(function(value)
        return { word = value, label = value, description = "", kind = "Value" }
      end, command.complete(lead))
  end
  local typed = before:match("^/([%w_:-]*)$")
  if not typed then
    return nil, {}
  end
  local items = {}
  for _, command in ipairs(slash.list()) do
    if vim.startswith(command.name, typed) then
      items[#items + 1] = {
        word = "/" .. command.name,
        label = "/" .. command.name .. (command.argument and (" " .. command.argument) or ""),
        description = command.description,
        kind = "Keyword",
        command = command.name,
      }
    end
  end
  return 0, items
end

---Return the completions for completion plugins. No item has the kind of a function or method, because plugins would
---append parentheses.
---@param chat CodeCompanion.Chat?
---@param row integer 0-based
---@param before string The line before the cursor
---@return table[] items As `lsp.CompletionItem`, with positions in bytes
function M.lsp_items(chat, row, before)
  local from, items = M.items(chat, row, before)
  local number = 0
  return vim.tbl_map(function(item)
    number = number + 1
    return {
      label = item.label,
      sortText = ("%04d"):format(number),
      filterText = item.filter or item.word,
      kind = vim.lsp.protocol.CompletionItemKind[item.kind],
      labelDetails = item.description ~= "" and { description = item.description } or nil,
      documentation = item.description ~= "" and { kind = "plaintext", value = item.description } or nil,
      textEdit = {
        newText = item.word,
        range = { start = { line = row, character = from }, ["end"] = { line = row, character = #before } },
      },
    }
  end, items)
end

---@param items CodeCompanion.Completion[]
---@return table[]
local function menu(items)
  return vim.tbl_map(function(item)
    return { word = item.word, abbr = item.label, menu = item.description, icase = 1 }
  end, items)
end

---Return whether the text may be a file name, which may match at other positions than its beginning.
---@param before string
---@return boolean
local function may_be_file(before)
  local is_mention = before:find("@$") or before:find('@[^{%s"][^%s"]*$') or before:find('@"[^"]*$')
  return (is_mention or before:find("#{file:[^{}]*$") or before:find("^/file%s") or before:find("^/image%s")) ~= nil
end

---Call `done` when the files of the project are known if the text may be a file name, otherwise at once.
---@param before string The line before the cursor
---@param done fun()
function M.when_known(before, done)
  if not may_be_file(before) then
    return done()
  end
  local project_files = require("codecompanion.project_files")
  project_files.look(project_files.folder(), done)
end

---Show the menu again once the files of the project are known, if the cursor has not moved.
---@param before string
---@param show fun()
local function show_when_known(before, show)
  local project_files = require("codecompanion.project_files")
  local folder = may_be_file(before) and project_files.folder()
  if folder and not project_files.is_known(folder) then
    vim.schedule(function() -- includes the text inserted by the menu
      project_files.when_known(folder, show)
    end)
  end
end

---Return whether Neovim 0.12 completes while the user types: the next character shows the new entries, and an entry
---must not be inserted.
---@return boolean
local function is_autocomplete_on()
  local ok, is_on = pcall(api.nvim_get_option_value, "autocomplete", {})
  return ok and is_on
end

---Return the text before the cursor, and its position.
---@return string before
---@return integer row 0-based
local function place()
  local cursor = api.nvim_win_get_cursor(0)
  return api.nvim_get_current_line():sub(1, cursor[2]), cursor[1] - 1
end

---Text before the completed text, and its row. Whether the completed text is still in the line when its completions are
---requested depends on the kind of completion.
local started = { before = "", row = 0 }

---Complete the input, as the 'omnifunc' of chat buffers.
---@param findstart 0|1
---@param base string
---@return integer|table
function M.omnifunc(findstart, base)
  local chat = registry.by_buffer()
  if findstart == 1 then
    local before, row = place()
    local automatic = chat and chat.automatic_menu
    local is_automatic = automatic and automatic.opened
    show_when_known(before, function()
      if is_automatic then
        return automatic.opened and automatic.show()
      elseif is_autocomplete_on() then
        return
      end
      local text, now = place()
      local from, items = M.items(chat, now, text)
      if from and #items > 0 then
        vim.fn.complete(from + 1, menu(items))
      end
    end)
    local from, found = M.items(chat, row, before)
    started = { before = before:sub(1, from or 0), row = row }
    return (not is_automatic or #found > 0) and from or -3
  end
  local _, items = M.items(chat, started.row, started.before .. base)
  return { words = menu(items), refresh = "always" }
end

---Handle an accepted completion. No command runs automatically: the line stays in the input until it is sent.
---@param chat CodeCompanion.Chat
---@param item table `v:completed_item`
function M.done(chat, item)
  if type(item) == "table" and type(item.word) == "string" and vim.startswith(item.word, "/") then
    local command = require("codecompanion.chat.slash").get(item.word:sub(2))
    local row = api.nvim_win_get_cursor(0)[1] - 1
    local line = api.nvim_buf_get_lines(chat.bufnr, row, row + 1, false)[1]
    if command and command.complete and line == item.word and api.nvim_get_mode().mode:sub(1, 1) == "i" then
      api.nvim_feedkeys(" ", "n", false)
    end
  end
end

return M
