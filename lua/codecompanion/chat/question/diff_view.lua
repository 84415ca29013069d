---The proposal of a file tool as a real diff: a tab page with what the user sees now and the proposal beside it, which
---can be edited; hunks are taken and left out with Vim's own `do`, `dp` and `u`. Closing the tab keeps the
---question open, and what was edited.
---
---Longer than other files because the tab page has one life, from opening to wiping, and each part undoes another.

local api = vim.api
local float = require("codecompanion.screen.float")
local keymaps = require("codecompanion.chat.state.keys")
local say = require("codecompanion.say")

local M = {}

---Wider than this two texts stand side by side, below it one above the other.
local SIDE_BY_SIDE = 100
local GROUP = "codecompanion.diff."
---So many lines below the first difference are to be seen.
local ROWS_BELOW = 12
local MAX_COLOURED_BYTES = 1024 * 1024

---@class CodeCompanion.DiffView
---@field left integer Buffer: what is there now
---@field right integer Buffer: the proposal
---@field lines string[] The proposal as it came
---@field eol boolean It ends with a newline
---@field wins integer[] While it is open
---@field from? integer Window that the user came from
---@field over? boolean The question is not open any more

---@param text string
---@return string[] lines
---@return boolean eol
local function split(text)
  local lines = vim.split(text, "\n", { plain = true })
  local eol = #lines > 1 and lines[#lines] == ""
  if eol then
    lines[#lines] = nil
  end
  return lines, eol
end

---@param kind "now"|"proposal"
---@param event table approval_requested
---@param lines string[]
---@return integer bufnr
local function make_buffer(kind, event, lines)
  local bufnr = api.nvim_create_buf(false, true)
  local bo = vim.bo[bufnr]
  local name = ("%s://%s"):format(kind, vim.fn.fnamemodify(event.path, ":."))
  pcall(api.nvim_buf_set_name, bufnr, vim.fn.bufexists(name) == 0 and name or (name .. "#" .. event.call_id))
  bo.swapfile, bo.bufhidden = false, "hide"
  bo.undolevels = -1
  api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
  bo.undolevels = api.nvim_get_option_value("undolevels", { scope = "global" })
  bo.buftype, bo.modified = kind == "now" and "nofile" or "acwrite", false
  bo.modifiable = kind == "proposal" and event.name ~= "delete_file"
  return bufnr
end

---@param view CodeCompanion.DiffView
---@param event table
local function colour(view, event)
  local filetype = vim.filetype.match({ filename = event.path, buf = view.right }) or ""
  if filetype == "" or #event.before + #event.after > MAX_COLOURED_BYTES then
    return
  end
  for _, bufnr in ipairs({ view.left, view.right }) do
    vim.bo[bufnr].filetype = filetype
    if vim.bo[bufnr].syntax == "" and not vim.treesitter.highlighter.active[bufnr] then
      float.highlight(bufnr, filetype)
    end
  end
end

---The text of the proposal as the user left it, nil when nothing was changed.
---@param approval table
---@return string?
function M.edited_text(approval)
  local view = approval.view
  if not view or not api.nvim_buf_is_loaded(view.right) then
    return nil
  end
  local lines = api.nvim_buf_get_lines(view.right, 0, -1, false)
  if vim.deep_equal(lines, view.lines) then
    return nil
  end
  if #lines == 1 and lines[1] == "" then
    return ""
  end
  return table.concat(lines, "\n") .. (view.eol and "\n" or "")
end

---@param view CodeCompanion.DiffView
---@return boolean
local function is_open(view)
  return view.wins[2] ~= nil and api.nvim_win_is_valid(view.wins[2])
end

---@param view CodeCompanion.DiffView
local function wipe(view)
  pcall(api.nvim_del_augroup_by_name, GROUP .. view.right)
  for _, bufnr in ipairs({ view.left, view.right }) do
    if api.nvim_buf_is_valid(bufnr) then
      api.nvim_buf_delete(bufnr, { force = true })
    end
  end
end

---Go back to where the user came from.
---@param chat CodeCompanion.Chat
---@param view CodeCompanion.DiffView
local function go_back(chat, view)
  local target = view.from and api.nvim_win_is_valid(view.from) and view.from or vim.fn.win_findbuf(chat.bufnr)[1]
  if target then
    api.nvim_set_current_win(target)
  end
end

---Close the windows; the proposal stays as it is for the next time, unless the question is over.
---@param chat CodeCompanion.Chat
---@param approval table
function M.close(chat, approval)
  local view = approval.view
  if not view then
    return
  end
  local wins = vim.tbl_filter(api.nvim_win_is_valid, view.wins)
  view.wins = {}
  if vim.list_contains(wins, api.nvim_get_current_win()) then
    go_back(chat, view)
  end
  for _, win in ipairs(wins) do
    if not pcall(api.nvim_win_close, win, true) then -- the last window there is
      vim.wo[win].winfixbuf, vim.wo[win].winbar = false, ""
      api.nvim_win_call(win, function()
        vim.cmd("diffoff | enew")
      end)
    end
  end
  if view.over then
    wipe(view)
    approval.view = nil
  end
end

---Head the windows with what they show and as many hints as fit, the most needed first.
---@param view CodeCompanion.DiffView
---@param parts { [1]: string[], [2]: string[] }
local function label(view, parts)
  for index, hints in ipairs(parts) do
    local win = view.wins[index]
    if win and api.nvim_win_is_valid(win) then
      local text = " " .. hints[1]
      for _, hint in ipairs(vim.list_slice(hints, 2)) do
        local longer = text .. " · " .. hint
        if api.nvim_strwidth(longer) >= api.nvim_win_get_width(win) then
          break
        end
        text = longer
      end
      vim.wo[win].winbar = "%<" .. text:gsub("%%", "%%%%")
    end
  end
end

---@param event table
---@return { [1]: string[], [2]: string[] }
local function titles(event)
  local deleted = event.name == "delete_file"
  local left = { event.before == "" and event.name == "create_file" and "no file yet" or "now" }
  local right = { deleted and "deleted" or "proposal" }
  local function key(name, words)
    local found = keymaps.keys(name, "n")[1]
    right[#right + 1] = found and ("%s %s"):format(found, words) or nil
  end
  key("approve_once", "accept")
  right[#right + 1] = "q back"
  key("reject", "reject")
  if not deleted then
    vim.list_extend(right, { "do skips hunk", "u undo", "]c next" })
  end
  left[2] = vim.fn.fnamemodify(event.path, ":.")
  return { left, right }
end

---@class CodeCompanion.DiffOwner What the keys of a diff do, and who is told of changes
---@field answer fun(chat: CodeCompanion.Chat, approval: table, name: string)
---@field mark_edited fun(chat: CodeCompanion.Chat, approval: table)
---@field abandon fun(chat: CodeCompanion.Chat)

---@param chat CodeCompanion.Chat
---@param approval table
---@param owner CodeCompanion.DiffOwner
local function map_keys(chat, approval, owner)
  local view = approval.view
  local actions = { "approve_once", "approve_always", "reject", "cancel_all" }
  for _, bufnr in ipairs({ view.left, view.right }) do
    local function map(key, run, desc)
      vim.keymap.set("n", key, function()
        if vim.v.count == 0 then
          run()
        end
      end, { buffer = bufnr, nowait = true, silent = true, desc = desc })
    end
    map("q", function()
      M.close(chat, approval)
    end, "Go back; the approval stays open")
    for _, name in ipairs(actions) do
      for _, key in ipairs(keymaps.keys(name, "n")) do
        map(key, function()
          owner.answer(chat, approval, name)
        end, "Approval")
      end
    end
  end
end

---The proposal was edited. Nothing keeps anybody from leaving Neovim; a skipped hunk does not fold away what is looked
---at, the whole text when it was the only one.
---@param bufnr integer
---@param view CodeCompanion.DiffView
local function changed(bufnr, view)
  if not api.nvim_buf_is_valid(bufnr) then
    return
  end
  vim.bo[bufnr].modified = false
  local is_free = api.nvim_get_mode().mode == "n" -- who types opens the fold by typing
  for _, win in ipairs(is_free and view.wins or {}) do
    if api.nvim_win_is_valid(win) then
      api.nvim_win_call(win, function()
        vim.cmd("silent! normal! zv")
      end)
    end
  end
end

---@param chat CodeCompanion.Chat
---@param approval table
---@param owner CodeCompanion.DiffOwner
local function watch(chat, approval, owner)
  local view = approval.view
  local group = api.nvim_create_augroup(GROUP .. view.right, {})
  local function on(events, bufnr, callback)
    api.nvim_create_autocmd(events, { group = group, buffer = bufnr, callback = callback })
  end
  on("BufWriteCmd", view.right, function()
    vim.bo[view.right].modified = false
    local key = keymaps.keys("approve_once", "n")[1] or "accepting"
    say.hint(("Kept in the proposal; %s accepts it and writes the file"):format(key))
  end)
  api.nvim_buf_attach(view.right, false, {
    on_lines = function(_, bufnr) -- also by `dp` from the other window, where no TextChanged comes
      vim.schedule(function()
        changed(bufnr, view)
      end)
    end,
  })
  api.nvim_create_autocmd("User", {
    group = group,
    pattern = "CodeCompanionChatClosed",
    callback = function(args)
      if args.data.chat == chat.id then
        owner.abandon(chat)
      end
    end,
  })
  on("BufWinLeave", view.right, function()
    vim.schedule(function()
      owner.mark_edited(chat, approval)
      if not is_open(view) and #view.wins > 0 then
        M.close(chat, approval) -- the other half means nothing alone
      end
    end)
  end)
end

---@param approval table
---@return CodeCompanion.DiffView
local function make(approval)
  local event = approval.event
  local lines, eol = split(event.after)
  local view = { lines = lines, eol = eol, wins = {} }
  view.left = make_buffer("now", event, (split(event.before)))
  view.right = make_buffer("proposal", event, lines)
  return view
end

---@param view CodeCompanion.DiffView
local function arrange(view)
  vim.cmd(("tab sbuffer %d"):format(view.left))
  local beside = vim.o.columns >= SIDE_BY_SIDE
  view.wins = { api.nvim_get_current_win() }
  vim.cmd(("rightbelow %s sbuffer %d"):format(beside and "vertical" or "", view.right))
  view.wins[2] = api.nvim_get_current_win()
end

---Put the cursor on the first difference.
local function to_first_change()
  vim.cmd("normal! gg")
  if vim.fn.diff_hlID(1, 1) == 0 and vim.fn.diff_filler(1) == 0 then
    vim.cmd("silent! normal! ]c")
  end
  local row = vim.fn.line(".")
  if vim.fn.line("w$") - row < ROWS_BELOW and vim.fn.line("w$") < vim.fn.line("$") then
    vim.fn.winrestview({ topline = math.max(1, row - 3) })
  end
end

---Whether there are texts to be compared.
---@param event table approval_requested
---@return boolean
function M.fits(event)
  return event.path ~= "" and event.before ~= event.after
end

---Show the diff, or go to the tab page that shows it.
---@param chat CodeCompanion.Chat
---@param approval table
---@param owner CodeCompanion.DiffOwner
function M.open(chat, approval, owner)
  local view = approval.view
  if view and is_open(view) then
    return api.nvim_set_current_win(view.wins[2])
  end
  local from = api.nvim_get_current_win()
  local fresh = not view or not api.nvim_buf_is_valid(view.right) or not api.nvim_buf_is_valid(view.left)
  if fresh then
    approval.view = make(approval)
    view = approval.view
  end
  view.from = from
  arrange(view)
  if fresh then
    colour(view, approval.event)
    map_keys(chat, approval, owner)
    watch(chat, approval, owner)
  end
  for _, win in ipairs(view.wins) do
    api.nvim_win_call(win, function()
      vim.wo.winfixbuf = true
      vim.cmd.diffthis()
    end)
  end
  label(view, titles(approval.event))
  to_first_change()
end

---The question is over: what shows it goes, unless the user is in it and did not answer; then it says so.
---@param chat CodeCompanion.Chat
---@param approval table
function M.closed(chat, approval)
  local view = approval.view
  if not view then
    return
  end
  view.over = true
  if is_open(view) and not approval.answered and vim.list_contains(view.wins, api.nvim_get_current_win()) then
    label(view, { { "now" }, { "This approval is over", "q back", "nothing was written" } })
    return
  end
  M.close(chat, approval)
end

return M
