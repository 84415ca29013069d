---Completion in the input: slash commands on its first line, `#{buffer}` and the like and `@path` on all (R-213).
---Neovim's own ('omnifunc'), and what the blink and cmp sources share.

local api = vim.api

local anchors = require("codecompanion.chat.buffer.anchors")
local registry = require("codecompanion.chat.state.registry")

local M = {}

---@param chat CodeCompanion.Chat?
---@param row integer 0-based
---@return boolean The row is the first of the input: only there a slash command may stand
local function is_command_row(chat, row)
  return chat ~= nil and row == anchors.position(chat, "input")
end

---@class CodeCompanion.Completion
---@field word string Text to insert
---@field label string
---@field description string
---@field kind "File"|"Folder"|"Keyword"|"Module"|"Value"|"Variable" Of the language server protocol, for its icon
---@field command? string Name of the slash command that can be carried out at once

---A folder may have more; who types on gets the rest.
local MAX_PATHS = 200

---Files that go on from what is typed after an `@`: of one folder, however large the project is.
---@param lead string
---@return CodeCompanion.Completion[]
local function files(lead)
  local found = require("codecompanion.slash.paths").complete(lead)
  return vim.tbl_map(function(path)
    local is_folder = vim.endswith(path, "/")
    local kind, description = is_folder and "Folder" or "File", is_folder and "" or "show the file"
    return { word = "@" .. path, label = "@" .. path, description = description, kind = kind }
  end, vim.list_slice(found, 1, MAX_PATHS))
end

---Tools and groups of tools, as they are chosen in a message.
---@param chat CodeCompanion.Chat
---@param lead string What is typed after `@` or `@{`
---@return CodeCompanion.Completion[]
local function tools(chat, lead)
  local found = {}
  for _, one in ipairs(require("codecompanion.chat.lists.tools").names(chat)) do
    if vim.startswith(one.name, lead) or vim.startswith(one.short or "", lead) then
      local word = ("@{%s}"):format(one.name)
      found[#found + 1] = { word = word, label = word, description = one.description, kind = "Module" }
    end
  end
  return found
end

---Items of editor context, or the arguments of one, that go on from what is typed.
---@param typed string From the `#` on
---@return CodeCompanion.Completion[]
local function context_items(typed)
  local context = require("codecompanion.editor_context")
  local name, lead = typed:match("^#{([%w_]+):([^{}]*)$")
  if name then
    local item = context.get(name)
    local given = item and item.argument and item.complete and item.complete(lead) or {}
    given = vim.tbl_filter(function(argument)
      return argument:find(lead, 1, true) ~= nil
    end, given)
    return vim.tbl_map(function(argument)
      local is_folder = vim.endswith(argument, "/")
      local word = ("#{%s:%s%s"):format(name, argument, is_folder and "" or "}")
      return { word = word, label = word, description = is_folder and "" or item.description, kind = "Value" }
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

---What of the editor and the project a message may mention.
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
  local escaped = before:gsub("\\ ", "\0\0")
  local start, lead = escaped:match('()@([^%s"@]*)$')
  if not start or (start > 1 and not escaped:sub(start - 1, start - 1):find("[%s(]")) then
    return nil, {}
  end
  if lead:sub(1, 1) == "{" then
    return start - 1, tools(chat, lead:sub(2))
  end
  return start - 1, vim.list_extend(tools(chat, lead), files((lead:gsub("%z%z", "\\ "))))
end

---What may follow the text before the cursor.
---@param chat CodeCompanion.Chat?
---@param row integer 0-based
---@param before string The line up to the cursor
---@return integer? from 0-based byte column where the completed text begins, nil: nothing to complete
---@return CodeCompanion.Completion[] items
function M.items(chat, row, before)
  if not chat or row < anchors.position(chat, "input") then
    return nil, {}
  elseif not is_command_row(chat, row) or before:sub(1, 1) ~= "/" then
    return mentions(chat, before)
  end
  local slash = require("codecompanion.slash")
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

---The items as completion plugins take them. None is a function or a method, which get brackets when they are accepted.
---@param chat CodeCompanion.Chat?
---@param row integer 0-based
---@param before string The line up to the cursor
---@return table[] items As `lsp.CompletionItem`, with places in bytes
function M.lsp_items(chat, row, before)
  local from, items = M.items(chat, row, before)
  return vim.tbl_map(function(item)
    return {
      label = item.label,
      filterText = item.word,
      kind = vim.lsp.protocol.CompletionItemKind[item.kind],
      documentation = item.description ~= "" and { kind = "plaintext", value = item.description } or nil,
      textEdit = {
        newText = item.word,
        range = { start = { line = row, character = from }, ["end"] = { line = row, character = #before } },
      },
    }
  end, items)
end

---'omnifunc' of chat buffers.
---@param findstart 0|1
---@param base string
---@return integer|table
function M.omnifunc(findstart, base)
  local chat = registry.by_buffer()
  local cursor = api.nvim_win_get_cursor(0)
  local line = api.nvim_get_current_line():sub(1, cursor[2])
  if findstart == 1 then
    return (M.items(chat, cursor[1] - 1, line)) or -3
  end
  local _, items = M.items(chat, cursor[1] - 1, line .. base)
  return vim.tbl_map(function(item)
    return { word = item.word, abbr = item.label, menu = item.description, icase = 1 }
  end, items)
end

---A completion was accepted. Nothing is carried out by itself: the line stands there, and sending it does it.
---@param chat CodeCompanion.Chat
---@param item table `v:completed_item`
function M.done(chat, item)
  if type(item) == "table" and type(item.word) == "string" and vim.startswith(item.word, "/") then
    local command = require("codecompanion.slash").get(item.word:sub(2))
    local row = anchors.position(chat, "input")
    local line = api.nvim_buf_get_lines(chat.bufnr, row, row + 1, false)[1]
    if command and command.complete and line == item.word and api.nvim_get_mode().mode:sub(1, 1) == "i" then
      api.nvim_feedkeys(" ", "n", false)
    end
  end
end

return M
