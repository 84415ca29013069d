---A change that cannot be taken back because later changes overlap: the file now between its text before and after the
---change, as a diff in a tab page. `do` in the file takes back the text under the cursor.

local api = vim.api

local float = require("codecompanion.screen.float")
local session = require("codecompanion.chat.state.session")
local scratch = require("codecompanion.screen.scratch")

local M = {}

---Wider than this the texts stand side by side, below it one above the other.
local SIDE_BY_SIDE = 120

---@param label string
---@param text string
---@param change { path: string, change_id: string }
---@return integer bufnr
local function make_buffer(label, text, change)
  local bufnr = scratch.new(vim.split((text:gsub("\n$", "")), "\n", { plain = true }))
  pcall(api.nvim_buf_set_name, bufnr, ("%s://%s#%s"):format(label, change.path, change.change_id))
  return bufnr
end

---@param bufnr integer
---@param where string How the window is split off
---@param label string
---@return integer win
local function show(bufnr, where, label)
  vim.cmd(("%s sbuffer %d"):format(where, bufnr))
  vim.wo.winbar = "%< " .. label:gsub("%%", "%%%%")
  vim.cmd.diffthis()
  return api.nvim_get_current_win()
end

---`do` would ask which of the two others is meant.
---@param file integer
---@param before integer
local function map_take_back(file, before)
  local own = vim.fn.maparg("do", "n", false, true)
  vim.keymap.set("n", "do", function()
    vim.cmd(("silent diffget %d | diffupdate"):format(before))
  end, { buffer = file, desc = "Take back the text under the cursor" })
  api.nvim_create_autocmd("BufWipeout", {
    buffer = before,
    once = true,
    callback = function()
      pcall(vim.keymap.del, "n", "do", { buffer = file })
      if own.buffer == 1 then
        vim.fn.mapset("n", false, own)
      end
    end,
  })
end

---@param change { path: string, change_id: string, before: string, after: string }
local function open(change)
  local file = vim.fn.bufadd(change.path)
  vim.bo[file].buflisted = true
  local before, after = make_buffer("before", change.before, change), make_buffer("after", change.after, change)
  local beside = vim.o.columns >= SIDE_BY_SIDE and "vertical " or ""
  show(before, "tab", "before the change · q close")
  local name = vim.fn.fnamemodify(change.path, ":t")
  local win = show(file, "rightbelow " .. beside, ("%s now · do takes the old text back · :w saves"):format(name))
  show(after, "rightbelow " .. beside, "after the change · q close")
  local filetype = vim.bo[file].filetype
  local tab = api.nvim_get_current_tabpage()
  for _, bufnr in ipairs({ before, after }) do
    float.highlight(bufnr, filetype)
    vim.keymap.set("n", "q", function()
      if api.nvim_tabpage_is_valid(tab) and #api.nvim_list_tabpages() > 1 then
        vim.cmd(("tabclose %d"):format(api.nvim_tabpage_get_number(tab)))
      end
    end, { buffer = bufnr, nowait = true, desc = "Close" })
  end
  map_take_back(file, before)
  api.nvim_set_current_win(win)
  vim.cmd("normal! gg")
  if vim.fn.diff_hlID(1, 1) == 0 then
    vim.cmd("silent! normal! ]c")
  end
end

---@param chat CodeCompanion.Chat
---@param conflict { path: string, changes: string[] }
function M.open(chat, conflict)
  local payload = { change_id = conflict.changes[1], texts = true }
  session.request(chat, "show_change", payload, function(shown)
    open({ path = conflict.path, change_id = payload.change_id, before = shown.before, after = shown.after })
  end)
end

return M
