---The keys of `completion.keymaps`, in Insert mode, as long as completion is on. While there is no suggestion a key
---does what it did before.

local uv = vim.uv or vim.loop

local M = {}

local AGAIN_MS = 1500 -- a key that is pressed once more so soon is meant for a suggestion
local ALT = vim.keycode("<M-x>"):sub(1, -2) -- how a key with Alt and nothing else begins

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

---@type { lhs: string, before: table, acted_at: number? }[] What is mapped, and what was before
local mapped = {}

---@param keys string
---@param is_remapped boolean
local function feed(keys, is_remapped)
  vim.api.nvim_feedkeys(keys, is_remapped and "mi" or "ni", true)
end

---Do what Neovim does with a key that is not mapped. With Alt it reads `<M-x>` as `<Esc>x`, mappings included, but only
---when it was typed; what a mapping gives back was not, and would be inserted as `x`. Nothing, when it has just taken a
---word and is pressed once more than there are words: nobody wants to leave Insert mode then.
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

---Call what a key called before, now that it may change the text. The keys of `former` call it.
---@param index integer
function M.call(index)
  mapped[index].before.callback()
end

---Do what a key did before.
---@param index integer Which of `mapped`
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
