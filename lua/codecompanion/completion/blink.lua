---Source for blink.cmp: `sources.providers.codecompanion = { module = "codecompanion.completion.blink" }`.

local registry = require("codecompanion.chat.state.open_chats")

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
  local row = context.cursor[1] - 1
  local chat = registry.by_buffer(context.bufnr)
  local before = context.line:sub(1, context.cursor[2])
  local completion = require("codecompanion.chat.ui.complete_input")
  completion.when_known(before, function()
    callback({
      is_incomplete_forward = true,
      is_incomplete_backward = true,
      items = completion.lsp_items(chat, row, before),
    })
  end)
end

return M
