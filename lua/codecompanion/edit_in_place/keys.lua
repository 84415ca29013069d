---The keys of a buffer while a proposal stands in it. What they did in this buffer before, they do again afterwards.

local M = {}

---In the order of the window that lists them.
M.ORDER = {
  "accept_change",
  "reject_change",
  "accept_hunk",
  "reject_hunk",
  "next_hunk",
  "previous_hunk",
  "retry",
  "follow_up",
  "show_diff",
  "open_chat",
  "stop",
  "options",
}

---@param name string
---@return table<string, string[]> by_mode
local function configured(name)
  local entry = require("codecompanion.config").options.interactions.inline.keymaps[name]
  local found = {}
  for mode, keys in pairs(entry and entry.modes or {}) do
    found[mode] = type(keys) == "table" and keys or { keys }
  end
  return found
end

---The first key of an action in Normal mode, nil when it has none.
---@param name string
---@return string?
function M.of(name)
  return (configured(name).n or {})[1]
end

---What keys do, in a few words: `ga accept · gr reject`; actions without a key are left out.
---@param actions { [1]: string, [2]: string }[] Name and words
---@param before? string What stands before it, unless it is empty
---@return string
function M.hint(actions, before)
  local parts = {}
  for _, action in ipairs(actions) do
    local key = M.of(action[1])
    parts[#parts + 1] = key and (key .. " " .. action[2])
  end
  return #parts == 0 and "" or ((before or "") .. table.concat(parts, " · "))
end

---What each key does, for the window that lists them.
---@return string[]
function M.lines()
  local schema = require("codecompanion.config.options.edit_in_place")[2]
  local described, lines = {}, {}
  for _, field in ipairs(schema.fields) do
    described[field.name] = field.description
  end
  for _, name in ipairs(M.ORDER) do
    local keys = table.concat(configured(name).n or {}, " ")
    if keys ~= "" then
      lines[#lines + 1] = ("  %-8s %s"):format(keys, described[name])
    end
  end
  return lines
end

---@alias CodeCompanion.EditKeys { mode: string, lhs: string, before: table? }[]

---Set the keys in a buffer.
---@param bufnr integer
---@param actions table<string, fun()>
---@return CodeCompanion.EditKeys set To be given to `restore`
function M.set(bufnr, actions)
  local set = {}
  local described = require("codecompanion.config.options.edit_in_place")[2].fields
  for _, field in ipairs(described) do
    for mode, keys in pairs(configured(field.name)) do
      for _, lhs in ipairs(keys) do
        local before = vim.api.nvim_buf_call(bufnr, function()
          return vim.fn.maparg(lhs, mode, false, true)
        end)
        set[#set + 1] = { mode = mode, lhs = lhs, before = before.buffer == 1 and before or nil }
        vim.keymap.set(mode, lhs, actions[field.name], {
          buffer = bufnr,
          nowait = true,
          silent = true,
          desc = "CodeCompanion: " .. field.description,
        })
      end
    end
  end
  return set
end

---Give the keys back.
---@param bufnr integer
---@param set CodeCompanion.EditKeys
function M.restore(bufnr, set)
  if not vim.api.nvim_buf_is_loaded(bufnr) then
    return
  end
  for index = #set, 1, -1 do
    local one = set[index]
    pcall(vim.keymap.del, one.mode, one.lhs, { buffer = bufnr })
    if one.before then
      vim.api.nvim_buf_call(bufnr, function()
        vim.fn.mapset(one.mode, false, one.before)
      end)
    end
  end
end

return M
