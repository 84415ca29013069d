---Source of suggestions for nvim-cmp:
---`require("cmp").register_source("codecompanion_code", require("codecompanion.inline.cmp").new())`.

local menu = require("codecompanion.inline.menu_entries")

local M = {}
M.__index = M

---@return table
function M.new()
  return setmetatable({ cancel = function() end }, M)
end

---@return boolean
function M.is_available(_)
  return menu.is_enabled()
end

---@return string
function M.get_position_encoding_kind(_)
  return "utf-8"
end

---@param params table
---@param callback fun(result: table)
function M:complete(params, callback)
  local context = params.context
  self.cancel() -- the previous request is obsolete
  self.cancel = menu.ask(context.bufnr, context.cursor.row - 1, context.cursor.col - 1, function(items)
    callback({ isIncomplete = true, items = items })
  end)
end

return M
