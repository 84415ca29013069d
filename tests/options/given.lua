---Builds the table for setup() out of Lua texts; loaded into the Neovim of the option tests as `_G.options_test`.

local M = {}

---@param base string A Lua table as text
---@param path string "" = only the base
---@param value string A Lua expression
---@return table
function M.given(base, path, value)
  local options = assert(loadstring("return " .. base))()
  if path == "" then
    return options
  end
  local at, keys = options, vim.split(path, ".", { plain = true })
  for i = 1, #keys - 1 do
    if type(at[keys[i]]) ~= "table" then
      at[keys[i]] = {}
    end
    at = at[keys[i]]
  end
  at[keys[#keys]] = assert(loadstring("return " .. value))()
  return options
end

---@return string[] problems Of the configuration
function M.setup(base, path, value)
  local config = require("codecompanion.config")
  require("codecompanion").setup(M.given(base, path, value))
  local found = config.findings()
  return vim.list_extend(vim.list_extend({}, found.problems), found.foreign)
end

---@return string greeting `hello` as JSON
function M.greeting()
  return vim.json.encode((require("codecompanion.host.hello_request").prepare()))
end

---What keys did, in order.
---@type string[]
M.pressed = {}

---@return table<string, table> keymaps In which each action of the chat buffer, and one of the user's, says its name
function M.telling_keys()
  local entries = { mine = { modes = { n = "<F6>" }, description = "Mine" } }
  for _, option in ipairs(require("codecompanion.config.options.keymaps").list()) do
    entries[option.name] = {}
  end
  for name, entry in pairs(entries) do
    entry.callback = function()
      table.insert(M.pressed, name)
    end
  end
  return entries
end

---Press <F5> and every configured key in each mode.
---@return string[] pressed The names of the actions
---@return table<string, integer> waits By key, whether it waits for a longer mapping
function M.press_all()
  M.pressed = {}
  local waits, begins = {}, { n = "", i = "i", v = "v" }
  for _, mode in ipairs({ "n", "i", "v" }) do
    local keys = { ["<F5>"] = true }
    for _, map in ipairs(vim.api.nvim_buf_get_keymap(0, mode)) do
      keys[map.lhs] = map.callback ~= nil or nil
      waits[mode .. map.lhs] = map.nowait
    end
    for key in require("codecompanion.values.sorted")(keys) do
      vim.api.nvim_feedkeys(vim.keycode(begins[mode] .. key), "mx", false)
      vim.api.nvim_feedkeys(vim.keycode("<Esc>"), "nx", false)
    end
  end
  return { M.pressed, waits }
end

return M
