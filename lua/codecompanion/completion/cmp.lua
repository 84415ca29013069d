---Source for nvim-cmp:
---`require("cmp").register_source("codecompanion", require("codecompanion.completion.cmp").new())`.

local registry = require("codecompanion.chat.state.registry")

local M = {}
M.__index = M

---@return table
function M.new()
  return setmetatable({}, M)
end

---@return boolean
function M.is_available(_)
  return vim.bo.filetype == "codecompanion"
end

---@return string[]
function M.get_trigger_characters(_)
  return { "/", "@", "#", "{", ":" }
end

---@return string
function M.get_keyword_pattern(_)
  return [[\%(/\k*\|@\f*\|#{[^{}]*}\?\|#\k*\|\f\+\)]]
end

---@param params table
---@param callback fun(result: table)
function M.complete(_, params, callback)
  local context = params.context
  local chat = registry.by_buffer(context.bufnr)
  local row, col = context.cursor.row - 1, context.cursor.col - 1
  local from, items = require("codecompanion.completion").items(chat, row, context.cursor_before_line)
  callback({
    isIncomplete = true,
    items = vim.tbl_map(function(item)
      return {
        label = item.label,
        filterText = item.word,
        kind = vim.lsp.protocol.CompletionItemKind.Function,
        documentation = item.description,
        textEdit = {
          newText = item.word,
          range = { start = { line = row, character = from }, ["end"] = { line = row, character = col } },
        },
      }
    end, items),
  })
end

return M
