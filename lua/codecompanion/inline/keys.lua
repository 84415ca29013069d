---The keys of `completion.keymaps`, in Insert mode, as long as completion is on. While there is no suggestion a key
---does what it did before.

local M = {}

---What each key does; those that answer false had nothing to do.
---@type table<string, fun(inline: table): boolean>
local ACTIONS = {
  accept = function(inline)
    return inline.accept("all")
  end,
  accept_line = function(inline)
    return inline.accept("line")
  end,
  accept_word = function(inline)
    return inline.accept("word")
  end,
  next = function(inline)
    return inline.cycle(1)
  end,
  previous = function(inline)
    return inline.cycle(-1)
  end,
  dismiss = function(inline)
    return inline.dismiss()
  end,
  complete = function(inline)
    inline.complete()
    return true
  end,
}

---@type { lhs: string, before: table }[] What is mapped, and what was before
local mapped = {}

---Do what a key did before.
---@param lhs string
---@param before table As |maparg()| gave it, empty when it was not mapped
---@return string keys
local function former(lhs, before)
  if not before.lhs then
    return vim.keycode(lhs)
  elseif before.callback then
    local answer = before.callback()
    if before.expr ~= 1 or type(answer) ~= "string" then
      return ""
    end
    return before.replace_keycodes == 1 and vim.keycode(answer) or answer
  elseif before.expr == 1 then
    return vim.api.nvim_eval(before.rhs)
  end
  vim.api.nvim_feedkeys(vim.keycode(before.rhs), before.noremap == 1 and "ni" or "mi", false)
  return ""
end

---@param lhs string
---@param action fun(inline: table): boolean
---@param inline table
---@param description string
local function map(lhs, action, inline, description)
  local before = vim.fn.maparg(lhs, "i", false, true)
  if before.buffer == 1 then
    before = {}
  end
  vim.keymap.set("i", lhs, function()
    return action(inline) and "" or former(lhs, before)
  end, { expr = true, replace_keycodes = false, desc = description })
  mapped[#mapped + 1] = { lhs = lhs, before = before }
end

---@param keymaps table<string, string|string[]> `completion.keymaps`
---@param inline table
function M.set(keymaps, inline)
  M.remove()
  for name, action in pairs(ACTIONS) do
    local keys = keymaps[name] or {}
    keys = type(keys) == "string" and { keys } or keys --[[@as string[] ]]
    for _, lhs in ipairs(keys) do
      map(lhs, action, inline, "CodeCompanion: " .. name:gsub("_", " ") .. " (completion)")
    end
  end
end

---Give the keys back.
function M.remove()
  for index = #mapped, 1, -1 do
    local one = mapped[index]
    pcall(vim.keymap.del, "i", one.lhs)
    if one.before.lhs then
      vim.fn.mapset("i", false, one.before)
    end
  end
  mapped = {}
end

return M
