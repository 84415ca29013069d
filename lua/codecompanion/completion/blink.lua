---Source for blink.cmp: `sources.providers.codecompanion = { module = "codecompanion.completion.blink" }`.

local registry = require("codecompanion.chat.state.registry")

local M = {}
M.__index = M

---@return table
function M.new()
  return setmetatable({}, M)
end

---@return boolean
function M.enabled(_)
  return vim.bo.filetype == "codecompanion"
end

---@return string[]
function M.get_trigger_characters(_)
  return { "/", "@", "#", "{", ":" }
end

---@param context table
---@param callback fun(result: table)
function M.get_completions(_, context, callback)
  local row, col = context.cursor[1] - 1, context.cursor[2]
  local chat = registry.by_buffer(context.bufnr)
  local from, items = require("codecompanion.completion").items(chat, row, context.line:sub(1, col))
  callback({
    is_incomplete_forward = true,
    is_incomplete_backward = true,
    items = vim.tbl_map(function(item)
      return {
        label = item.label,
        filterText = item.word,
        kind = vim.lsp.protocol.CompletionItemKind.Function,
        documentation = item.description ~= "" and { kind = "plaintext", value = item.description } or nil,
        textEdit = {
          newText = item.word,
          range = { start = { line = row, character = from }, ["end"] = { line = row, character = col } },
        },
      }
    end, items),
  })
end

return M
