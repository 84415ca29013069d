---Provides the keys of an edit in place other than the decision keys: `interactions.inline.keymaps`.

local M = {}

---Descriptions of the decision keys in an edit in place.
M.TEXTS = vim.tbl_extend("force", require("codecompanion.changes.decision_keys").OF_CHANGES, {
  always_accept = "Accept this and later edits in place without asking",
})

---@return CodeCompanion.Option[]
local function described()
  return require("codecompanion.config.options.edit_in_place")[2].fields
end

---@param name string
---@param mode string
---@return string[]
local function keys_of(name, mode)
  local entry = require("codecompanion.config").options.interactions.inline.keymaps[name]
  local found = entry and entry.modes and entry.modes[mode] or {}
  return type(found) == "table" and found or { found }
end

---@param name string
---@return string? key
function M.of(name)
  return keys_of(name, "n")[1]
end

---Return the hints shown below a proposal, for `changes.keys.hint`.
---@return { [1]: string, [2]: string }[]
function M.hints()
  local found = {}
  for _, one in ipairs({ { "follow_up", "follow up" }, { "options", "keys" } }) do
    local key = M.of(one[1])
    found[#found + 1] = key and { "=" .. key, one[2] } or nil
  end
  return found
end

---Return the keys of these actions, for `changes.keys.set`.
---@param actions table<string, fun()> By name
---@return { mode: string, lhs: string, action: fun(), text: string }[]
function M.further(actions)
  local found = {}
  for _, field in ipairs(described()) do
    for _, mode in ipairs({ "n", "i", "v" }) do
      for _, lhs in ipairs(keys_of(field.name, mode)) do
        local action, text = actions[field.name], field.description
        found[#found + 1] = { mode = mode, lhs = lhs, action = action, text = text, verb = field.name }
      end
    end
  end
  return found
end

---Return the mapped keys with their descriptions, for the window that lists them.
---@return { keys: string, text: string }[]
function M.described()
  local rows = {}
  for _, field in ipairs(described()) do
    local shown = table.concat(keys_of(field.name, "n"), " ")
    rows[#rows + 1] = shown ~= "" and { keys = shown, text = field.description } or nil
  end
  return rows
end

return M
