---Describes YOLO mode: the actions that still ask while it is on. The host decides which actions ask, from the same
---options.

local options = require("codecompanion.chat.state.chat_options")

local M = {}

---Return the tools that ask even in YOLO mode.
---@return string[] names
local function still_asking()
  local names = {}
  for name, tool in pairs(options.chat().tools) do
    if name ~= "opts" and tool and tool.enabled and not tool.opts.allowed_in_yolo_mode then
      names[#names + 1] = name
    end
  end
  table.sort(names)
  return names
end

---Return text for the status line: `YOLO but delete_file, run_command, guarded files`.
---@return string
function M.label()
  local names = still_asking()
  names[#names + 1] = "guarded files"
  return "YOLO but " .. table.concat(names, ", ")
end

---Return the sentence shown when YOLO mode is turned on or off.
---@param on boolean
---@return string
function M.sentence(on)
  if not on then
    return "YOLO mode is off: tools ask again."
  end
  local names = still_asking()
  names[#names + 1] = "changes to guarded files (Makefile, .git, CI …)"
  local key = require("codecompanion.chat.state.configured_keys").keys("yolo_mode", "n")[1]
  local off = key and (" %s turns it off."):format(key) or ""
  return ("YOLO mode is on: tools run without asking. Exceptions: %s.%s"):format(table.concat(names, ", "), off)
end

return M
