---Maps the keys of `completion.keymaps` in Insert mode while completion is enabled. Without a suggestion, a key keeps
---its previous function.

local uv = vim.uv or vim.loop

local M = {}

local AGAIN_MS = 1500 -- a key repeated within this time is meant for a suggestion
local ALT = vim.keycode("<M-x>"):sub(1, -2) -- prefix of a key with only the Alt modifier

---Actions of the keys; an action that returns false had nothing to do.
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

---@type { lhs: string, before: table, acted_at: number? }[] The mappings, and those they replaced
local mapped = {}

---@param keys string
---@param is_remapped boolean
local function feed(keys, is_remapped)
  vim.api.nvim_feedkeys(keys, is_remapped and "mi" or "ni", true)
end

---Return the keys that Neovim would use without a mapping. It reads a typed `<M-x>` as `<Esc>x`, mappings included, but
---the result of a mapping would be inserted as `x`. Return nothing for a repeated key just after it accepted a word:
---the user does not want to leave Insert mode then.
---@param index integer
---@return string keys
local function unmapped(index)
  local one = mapped[index]
  local keys = vim.keycode(one.lhs)
  if keys:sub(1, #ALT) ~= ALT then
    return keys
  elseif one.acted_at and uv.now() - one.acted_at < AGAIN_MS then
    return ""
  end
  feed(vim.keycode("<Esc>") .. keys:sub(#ALT + 1), true)
  return ""
end

---Call the callback of the previous mapping, now that it may change the text. Called by the keys that `former` returns.
---@param index integer
function M.call(index)
  mapped[index].before.callback()
end

---Return the keys that run the previous function of a key.
---@param index integer Index in `mapped`
---@return string keys
local function former(index)
  local before = mapped[index].before
  if not before.lhs then
    return unmapped(index)
  elseif before.expr == 1 then
    local answer
    if before.callback then
      answer = before.callback()
    else
      answer = vim.api.nvim_eval(vim.keycode(before.rhs))
    end
    if type(answer) == "string" and answer ~= "" then
      feed(before.replace_keycodes == 1 and vim.keycode(answer) or answer, before.noremap ~= 1)
    end
  elseif before.callback then
    feed(vim.keycode(("<Cmd>lua require('codecompanion.inline.suggestion_keys').call(%d)<CR>"):format(index)), false)
  else
    feed(vim.keycode(before.rhs), before.noremap ~= 1)
  end
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
  local index = #mapped + 1
  mapped[index] = { lhs = lhs, before = before }
  vim.keymap.set("i", lhs, function()
    if not action(inline) then
      return former(index)
    end
    mapped[index].acted_at = uv.now()
    return ""
  end, { expr = true, replace_keycodes = false, desc = description })
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

---Restore the previous mappings.
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
