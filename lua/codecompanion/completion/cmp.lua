---Source for nvim-cmp:
---`require("cmp").register_source("codecompanion", require("codecompanion.completion.cmp").new())`.

local registry = require("codecompanion.chat.state.open_chats")

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

---Return the position encoding: UTF-8, so that positions are byte offsets.
---@return string
function M.get_position_encoding_kind(_)
  return "utf-8"
end

---@param params table
---@param callback fun(result: table)
function M.complete(_, params, callback)
  local context = params.context
  local chat = registry.by_buffer(context.bufnr)
  local row = context.cursor.row - 1
  local before = context.cursor_before_line
  local completion = require("codecompanion.chat.ui.complete_input")
  completion.when_known(before, function()
    callback({
      isIncomplete = true,
      items = completion.lsp_items(chat, row, before),
    })
  end)
end

return M
