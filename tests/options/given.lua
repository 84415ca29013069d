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

---The default keys of actions, written out: `modes` replaces the default ones as a whole.
---@param actions CodeCompanion.Option[]
---@return table<string, table> keymaps
function M.written_out(actions)
  local entries = {}
  for _, action in ipairs(actions) do
    local modes = {}
    for _, mode in ipairs(action.fields[1].fields) do
      modes[mode.name] = mode.default
    end
    entries[action.name] = { modes = modes }
  end
  return entries
end

---@return table interactions With the keys of proposed changes and of edits in place
function M.deciding_keys()
  return {
    shared = { keymaps = M.written_out(require("codecompanion.config.options.changes").fields()[1].fields) },
    inline = { keymaps = M.written_out(require("codecompanion.config.options.edit_in_place")[2].fields) },
  }
end

---@return table<string, table> keymaps In which each action of the chat buffer, and one of the user's, says its name
function M.telling_keys()
  local entries = M.written_out(require("codecompanion.config.options.keymaps").list())
  entries.mine = { modes = { n = "<F6>" }, description = "Mine" }
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
  local waits, begins = {}, { n = "", i = "i", x = "v" }
  for _, mode in ipairs({ "n", "i", "x" }) do
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

---@param how { async?: boolean, silent?: boolean, contains_code?: boolean, has_params?: boolean }
---@return table<string, table> items Each gives a text, another one through `done`, which it never calls when `silent`
function M.own_items(how)
  local entries = {}
  for _, name in ipairs(vim.list_extend({ "mine" }, require("codecompanion.config.options.editor_context").NAMES)) do
    entries[name] = {
      description = "Gives a text",
      opts = { async = how.async, contains_code = how.contains_code, has_params = name == "mine" or how.has_params },
      callback = function(_, done)
        if done and not how.silent then
          vim.schedule(function()
            done("the text of " .. name .. " through done")
          end)
        end
        return not done and "the text of " .. name or nil
      end,
    }
  end
  return entries
end

---Mention every item in a message of its own, and complete what is typed of it.
---@param ask fun(text: string) Sends a message
---@return table found
function M.mention_all(ask)
  local complete = require("codecompanion.chat.ui.complete_input")
  local chat = require("codecompanion.chat").last_chat()
  local row, found = vim.api.nvim_buf_line_count(chat.bufnr) - 1, {}
  for _, name in ipairs(vim.list_extend({ "mine" }, require("codecompanion.config.options.editor_context").NAMES)) do
    for _, typed in ipairs({ "#{" .. name, "#{" .. name .. ":" }) do
      found[#found + 1] = { complete.items(chat, row, typed) }
    end
    for _, text in ipairs({ "#{" .. name .. "}", "#{" .. name .. ":argument}" }) do
      ask(text)
    end
  end
  return found
end

---Show a proposal in a new buffer, whose keys say their names.
function M.show_proposal()
  vim.cmd.enew()
  local function tell(prefix)
    return setmetatable({}, {
      __index = function(_, name)
        return function()
          table.insert(M.pressed, prefix .. name)
        end
      end,
    })
  end
  local further = require("codecompanion.edit_in_place.edit_keys").further(tell("inline "))
  require("codecompanion.changes.decision_keys").set(vim.api.nvim_get_current_buf(), tell(""), further)
end

return M
