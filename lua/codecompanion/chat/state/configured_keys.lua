---Returns the configured keys of chat buffers; `ui/keymaps.lua` maps them, `ui/key_actions.lua` has their actions.

local options = require("codecompanion.chat.state.chat_options")

local M = {}

---@return table<string, table|false>
function M.configured()
  return options.chat().keymaps or {}
end

---Return the keys of an action in a mode, or none if it is disabled.
---@param name string
---@param mode string
---@return string[]
function M.keys(name, mode)
  local entry = M.configured()[name]
  local keys = entry and entry.modes and entry.modes[mode]
  if not keys then
    return {}
  end
  return type(keys) == "table" and keys or { keys }
end

---Return a message of the host with the configured key in place of `ga`; outside of chats, with the command.
---@param text string
---@param is_outside? boolean
---@return string
function M.in_message(text, is_outside)
  local key = not is_outside and M.keys("change_adapter", "n")[1] or ":CodeCompanion adapter"
  local with = key:gsub("%%", "%%%%")
  return (text:gsub("with ga%f[^%w]", "with " .. with):gsub("%(ga%)", "(" .. with .. ")"))
end

---Return the hint of an empty input; keys that do not fit are omitted, the help last.
---@param width integer
---@return string
function M.hint(width)
  local parts = {}
  for _, item in ipairs({ { "send", "send" }, { "options", "help" } }) do
    local key = M.keys(item[1], "n")[1]
    if key then
      parts[#parts + 1] = key .. " " .. item[2]
    end
  end
  while #parts > 1 and vim.api.nvim_strwidth(table.concat(parts, " · ")) > width do
    table.remove(parts, 1)
  end
  return table.concat(parts, " · ")
end

return M
