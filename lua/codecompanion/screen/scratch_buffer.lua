---Creates buffers that only display text and have their own keys: floats, lists, reports, help.

local api = vim.api

local M = {}

---@type table<integer, { key: string, text: string }[]> Mapped keys with their descriptions, by buffer
local mapped = {}

---Remove the ruler, which Neovim draws on the command line for a float and leaves there when the float closes.
---@param bufnr integer
local function clear_ruler(bufnr)
  local win = vim.fn.bufwinid(bufnr)
  local is_float = win > 0 and api.nvim_win_get_config(win).relative ~= ""
  if is_float and vim.o.ruler and vim.o.cmdheight > 0 and vim.o.laststatus < 3 then
    require("codecompanion.say").nothing()
  end
end

---@param lines string[]
---@return integer bufnr The buffer, which is deleted when no window shows it
function M.new(lines)
  local bufnr = api.nvim_create_buf(false, true)
  vim.bo[bufnr].bufhidden = "wipe"
  mapped[bufnr] = {}
  api.nvim_create_autocmd("BufWipeout", {
    buffer = bufnr,
    once = true,
    callback = function()
      mapped[bufnr] = nil
      clear_ruler(bufnr)
    end,
  })
  M.write(bufnr, lines)
  require("codecompanion.screen.open_file").only_files(bufnr)
  return bufnr
end

---Name a buffer after the title of its page, for status and tab lines; a slash would turn it into a path. A page with
---the same title keeps the name.
---@param bufnr integer
---@param title string
function M.name(bufnr, title)
  local name, before = vim.trim((title:gsub("%s+", " "):gsub("/", "∕"))), api.nvim_buf_get_name(bufnr)
  if vim.fs.basename(before) == name or not pcall(api.nvim_buf_set_name, bufnr, name) then
    return
  end
  for _, other in ipairs(before ~= "" and api.nvim_list_bufs() or {}) do
    if api.nvim_buf_get_name(other) == before then
      api.nvim_buf_delete(other, { force = true }) -- Neovim keeps a buffer for the old name
    end
  end
end

---Replace the text.
---@param bufnr integer
---@param lines string[]
function M.write(bufnr, lines)
  vim.bo[bufnr].modifiable = true
  api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
  vim.bo[bufnr].modifiable = false
end

---Highlight the lines: the whole screen line, or the text between two bytes.
---@param bufnr integer
---@param name string Name of the namespace
---@param group_of fun(line: string, number: integer): string?, integer?, integer? Group, first byte, last byte
function M.colour(bufnr, name, group_of)
  local ns = api.nvim_create_namespace(name)
  api.nvim_buf_clear_namespace(bufnr, ns, 0, -1)
  for number, line in ipairs(api.nvim_buf_get_lines(bufnr, 0, -1, false)) do
    local group, first, last = group_of(line, number)
    if group and first then
      api.nvim_buf_set_extmark(bufnr, ns, number - 1, first, { end_col = last, hl_group = group })
    elseif group then
      api.nvim_buf_set_extmark(bufnr, ns, number - 1, 0, { line_hl_group = group })
    end
  end
end

---@param bufnr integer
---@param keys string|string[]
---@param desc string
---@param action fun()
function M.map(bufnr, keys, desc, action)
  local known = mapped[bufnr] or {}
  for _, key in ipairs(type(keys) == "table" and keys or { keys }) do
    vim.keymap.set("n", key, action, { buffer = bufnr, nowait = true, desc = desc })
    local before = vim.iter(known):find(function(one)
      return one.key == key
    end)
    if before then
      before.text = desc
    else
      known[#known + 1] = { key = key, text = desc }
    end
  end
end

---Return the keys that `map` has mapped in a buffer with their descriptions, one row per action, oldest first.
---@param bufnr integer
---@return { keys: string, text: string }[]
function M.described(bufnr)
  local rows, by_text = {}, {}
  for _, one in ipairs(mapped[bufnr] or {}) do
    local row = by_text[one.text]
    if row then
      row.keys = row.keys .. " " .. one.key
    else
      by_text[one.text] = { keys = one.key, text = one.text }
      rows[#rows + 1] = by_text[one.text]
    end
  end
  return rows
end

---Map keys that act on the item under the cursor; without an item they do nothing.
---@generic T
---@param bufnr integer
---@param win integer
---@param at fun(line: integer): T?
---@return fun(keys: string|string[], desc: string, action: fun(item: T))
function M.keys(bufnr, win, at)
  return function(keys, desc, action)
    M.map(bufnr, keys, desc, function()
      local item = at(api.nvim_win_get_cursor(win)[1])
      if item ~= nil then
        action(item)
      end
    end)
  end
end

---Close the window and return the focus to the previous window, which is not always Neovim's choice.
---@param win integer
---@param from? integer
function M.close(win, from)
  if api.nvim_win_is_valid(win) then
    api.nvim_win_close(win, true)
  end
  if from and api.nvim_win_is_valid(from) then
    api.nvim_set_current_win(from)
  end
end

return M
