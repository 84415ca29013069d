---Offers suggestions as entries of a completion menu, for the sources for blink.cmp and nvim-cmp.

local place_of = require("codecompanion.inline.suggestion_place")
local source = require("codecompanion.inline.source")
local status = require("codecompanion.inline.completion_status")

local M = {}

local MAX_LABEL = 60
local COUNT = 1

---@return boolean
function M.is_enabled()
  return status.is_on
end

---@param text string
---@param place CodeCompanion.Place
---@param word string Text before the cursor that belongs to the current word
---@return table item As in the language server protocol
local function item_of(text, place, word)
  local first = vim.trim(text:match("^\n*([^\n]*)"))
  local label = vim.fn.strcharpart(word .. first, 0, MAX_LABEL)
  return {
    label = label .. ((#text > #first or label ~= word .. first) and "…" or ""),
    filterText = word .. text:match("^[^\n]*"),
    kind = vim.lsp.protocol.CompletionItemKind.Snippet,
    insertTextFormat = vim.lsp.protocol.InsertTextFormat.PlainText,
    documentation = {
      kind = "markdown",
      value = ("```%s\n%s\n```"):format(vim.bo[place.bufnr].filetype, place.before .. text),
    },
    textEdit = {
      newText = word .. text,
      range = {
        start = { line = place.row, character = place.col - #word },
        ["end"] = { line = place.row, character = place.col },
      },
    },
  }
end

---Request the entries of a menu.
---@param bufnr integer
---@param row integer 0-based
---@param col integer 0-based, in bytes
---@param callback fun(items: table[]) Not called after `cancel`
---@return fun() cancel
function M.ask(bufnr, row, col, callback)
  local place = place_of.at(bufnr, row, col)
  local word = vim.fn.matchstr(place.before, [[\k*$]])
  return source.ask({ place = place, count = COUNT }, function(suggestions)
    callback(vim.tbl_map(function(text)
      return item_of(text, place, word)
    end, suggestions and suggestions.items or {}))
  end)
end

return M
