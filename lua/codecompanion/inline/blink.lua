---Source of suggestions for blink.cmp: `sources.providers.codecompanion_code = { name = "CodeCompanion", module =
---"codecompanion.inline.blink", async = true }`.

local menu = require("codecompanion.inline.menu_entries")

local M = {}
M.__index = M

---@return table
function M.new()
  return setmetatable({}, M)
end

---@return boolean
function M.enabled(_)
  return menu.is_enabled()
end

---@param context table
---@param callback fun(result: table)
---@return fun() cancel
function M.get_completions(_, context, callback)
  return menu.ask(context.bufnr, context.cursor[1] - 1, context.cursor[2], function(items)
    callback({ is_incomplete_forward = true, is_incomplete_backward = true, items = items })
  end)
end

return M
