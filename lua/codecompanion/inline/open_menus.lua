---Detects an open completion menu: Neovim's own, or that of blink.cmp or nvim-cmp. A suggestion and a menu are never
---shown together.

local M = {}

---The plugins, each with the function that reports whether its menu is open.
local PLUGINS = { ["blink.cmp"] = "is_menu_visible", cmp = "visible" }

local watched = false

---@return boolean
function M.is_open()
  if vim.fn.pumvisible() == 1 then
    return true
  end
  for name, question in pairs(PLUGINS) do
    local plugin = package.loaded[name]
    if type(plugin) == "table" and plugin[question] then
      local ok, is_open = pcall(plugin[question])
      if ok and is_open then
        return true
      end
    end
  end
  return false
end

---Watch nvim-cmp, which has its own events and may be loaded at any time.
---@param callback fun() Called when its menu opens or closes
function M.watch_cmp(callback)
  local cmp = package.loaded.cmp
  if watched or type(cmp) ~= "table" or not cmp.event then
    return
  end
  watched = true
  for _, event in ipairs({ "menu_opened", "menu_closed" }) do
    pcall(cmp.event.on, cmp.event, event, callback)
  end
end

return M
