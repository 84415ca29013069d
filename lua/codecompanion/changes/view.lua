---A whole change in a tab page of its own: the proposed text with its added lines marked, the removed ones between
---them. A proposal that is asked about can be edited there: a skipped hunk is an edit, too, `u` takes it in again.
---
---The hunks are those of `hunks.lua`, worked out again after every edit: Vim's diff mode and 'diffopt' have no say.

local api = vim.api
local counts = require("codecompanion.files.counts").text
local draw = require("codecompanion.changes.draw")
local fit = require("codecompanion.screen.fit")
local float = require("codecompanion.screen.float")
local hunks = require("codecompanion.changes.hunks")
local keys = require("codecompanion.changes.keys")
local say = require("codecompanion.say")
local undo_tree = require("codecompanion.changes.undo_tree")

---@class CodeCompanion.ChangeViewOptions
---@field title string What the change is: `Edit`
---@field path string "" for a text without a file
---@field filetype? string That of the path when not given
---@field before CodeCompanion.Text
---@field after CodeCompanion.Text
---@field line? integer Line of `after` to go to; the first hunk when not given
---@field is_editable? boolean
---@field words? table<string, string> What a verb is called here: `reject…`
---@field actions? table<string, fun()> What the keys that decide do, by verb
---@field on_close? fun() The windows are closed; the text stays for the next time
---@field on_write? fun() `:w` in the proposal

---@class CodeCompanion.ChangeView
---@field options CodeCompanion.ChangeViewOptions
---@field bufnr integer
---@field win? integer While it is open
---@field from? integer Window that the user came from
---@field hunks CodeCompanion.Hunk[] Between `before` and the text as it is now
---@field ends table<integer, CodeCompanion.Text> The text after a skip, by its undo state: what lines do not say
---@field actions table<string, fun(rows?: { [1]: integer, [2]: integer })> What the verbs do here
---@field note? string Said in place of the keys: it is over
local View = {}
View.__index = View

local M = {}

---@type table<integer, CodeCompanion.ChangeView>
local by_buffer = setmetatable({}, { __mode = "v" })

local GROUP = "codecompanion.changes.view."
local MAX_COLOURED_BYTES = 1024 * 1024
local REDRAW_MS, REST = 30, 4
---Rows that are left above the first hunk.
local ROWS_ABOVE = 3

---Whether the text that is shown is the one before the change: nothing is left of a deleted file.
---@return boolean
function View:_shows_removed()
  return #self.options.after.lines == 0 and not self.options.is_editable
end

---@return CodeCompanion.Text
function View:_shown()
  return self:_shows_removed() and self.options.before or self.options.after
end

---@return integer bufnr
function View:_make_buffer()
  local options, bufnr = self.options, api.nvim_create_buf(false, true)
  local bo, path = vim.bo[bufnr], vim.fn.fnamemodify(self.options.path, ":~:.")
  local name = ("proposal://%s"):format(path ~= "" and path or "[No Name]")
  pcall(api.nvim_buf_set_name, bufnr, vim.fn.bufexists(name) == 0 and name or ("%s#%d"):format(name, bufnr))
  bo.swapfile, bo.bufhidden = false, options.is_editable and "hide" or "wipe"
  bo.undolevels = -1
  api.nvim_buf_set_lines(bufnr, 0, -1, false, self:_shown().lines)
  bo.undolevels = api.nvim_get_option_value("undolevels", { scope = "global" })
  bo.buftype, bo.modified = options.is_editable and "acwrite" or "nofile", false
  bo.modifiable = options.is_editable == true
  return bufnr
end

---Colours of the language, and tabs and indentation as in the file where it is open. FileType is not fired: plugins
---for the language, its servers and linters have nothing to do here, and some take seconds.
function View:_colour()
  local file = self.options.path ~= "" and vim.fn.bufnr("^" .. vim.fn.escape(self.options.path, "[]{}*?,\\") .. "$")
    or -1
  if file > 0 and api.nvim_buf_is_loaded(file) then
    for _, option in ipairs({ "tabstop", "shiftwidth", "softtabstop", "expandtab" }) do
      vim.bo[self.bufnr][option] = vim.bo[file][option]
    end
  end
  local filetype = self.options.filetype or vim.filetype.match({ filename = self.options.path, buf = self.bufnr }) or ""
  if filetype ~= "" and #hunks.joined(self:_shown()) <= MAX_COLOURED_BYTES then
    api.nvim_buf_call(self.bufnr, function()
      vim.cmd("noautocmd let &l:filetype = " .. vim.fn.string(filetype))
    end)
    float.highlight(self.bufnr, filetype)
  end
end

---@return boolean
function View:is_open()
  return self.win ~= nil and api.nvim_win_is_valid(self.win)
end

---The text as it is now. Whether it ends with a newline, and whether one empty line is a text, the lines of a buffer do
---not say: it is as it came, or as the newest skip has left it.
---@return CodeCompanion.Text
function View:_text()
  local newest, state = self.options.after, 0
  if not self.options.is_editable or not self.bufnr or not api.nvim_buf_is_loaded(self.bufnr) then
    return newest
  end
  local changes = next(self.ends) ~= nil and undo_tree.changes(self.bufnr) or {}
  for at, text in pairs(self.ends) do
    if at > state and changes[at] == "made" then
      newest, state = text, at
    end
  end
  local lines = api.nvim_buf_get_lines(self.bufnr, 0, -1, false)
  if #lines == 1 and lines[1] == "" then
    lines = undo_tree.state(self.bufnr) == state and newest.lines or {}
  end
  return { lines = lines, eol = newest.eol ~= false }
end

---The proposal as the user left it, nil when it is as it came.
---@return string? text
function View:edited_text()
  local text = hunks.joined(self:_text())
  return text ~= hunks.joined(self.options.after) and text or nil
end

---Work out the hunks and draw them.
function View:_draw()
  if not api.nvim_buf_is_loaded(self.bufnr) then
    return
  end
  self.hunks = hunks.between(self.options.before, self:_text())
  if self:_shows_removed() then
    local placed = vim.tbl_map(function(hunk)
      return { first = hunk.first, count = hunk.count, lines = hunk.lines, is_conflict = false }
    end, self.hunks)
    draw.draw(self.bufnr, { { first = 0, hunks = placed, hint = {}, in_gutter = true } })
  else
    draw.draw_result(self.bufnr, self.options.before.lines, self.hunks)
  end
  self:_label()
end

---Draw soon, once for all edits until then, and longer after a drawing that took long.
function View:_draw_soon()
  if self.is_due then
    return
  end
  self.is_due = true
  vim.defer_fn(function()
    local start = (vim.uv or vim.loop).hrtime()
    self.is_due = false
    self:_draw()
    self.cost = ((vim.uv or vim.loop).hrtime() - start) / 1e6
  end, math.max(REDRAW_MS, math.floor(REST * (self.cost or 0))))
end

---`+3 −7 · 2 hunks`
---@return string
function View:_size()
  local sum = { added = 0, removed = 0 }
  for _, hunk in ipairs(self.hunks) do
    sum.added, sum.removed = sum.added + #hunk.lines, sum.removed + hunk.count
  end
  local size = counts(sum)
  return #self.hunks > 1 and ("%s · %d hunks"):format(size, #self.hunks) or size
end

---Head the window with what it shows and the keys there is room for, the most needed first.
function View:_label()
  if not self:is_open() then
    return
  elseif self.note then
    vim.wo[self.win].winbar = "%<" .. (" %s · q back"):format(self.note):gsub("%%", "%%%%")
    return
  end
  local width, options = api.nvim_win_get_width(self.win), self.options
  local size = self:_size()
  local name = vim.fn.fnamemodify(options.path, ":~:.")
  local room = width - api.nvim_strwidth(("%s  %s "):format(options.title, size)) - 2
  local text = (" %s %s  %s"):format(options.title, fit.path(name, math.max(12, room)), size)
  for _, hint in ipairs(self:_hints()) do
    local longer = text .. " · " .. hint
    if api.nvim_strwidth(longer) >= width then
      break
    end
    text = longer
  end
  vim.wo[self.win].winbar = "%<" .. text:gsub("%%", "%%%%")
end

---@return string[]
function View:_hints()
  local found = {}
  local function add(verb, words)
    local key = self.options.actions and self.options.actions[verb] and keys.of(verb, self.bufnr)
    found[#found + 1] = key and key .. " " .. words or nil
  end
  local words = self.options.words or {}
  add("accept_change", "accept")
  add("reject_change", words.reject_change or "reject")
  found[#found + 1] = "q back"
  local skip, next_key = keys.of("skip_hunk", self.bufnr), keys.of("next_hunk", self.bufnr)
  found[#found + 1] = self.options.is_editable and skip and skip .. " skip hunk" or nil
  add("always_accept", "always…")
  found[#found + 1] = #self.hunks > 1 and next_key and next_key .. " next" or nil
  return found
end

---The rows of a hunk in the text that is shown; a hunk that leaves no line there is at the line above.
---@param index integer
---@return integer first 0-based
---@return integer count Lines of it there are
function View:_place(index)
  local offset = 0
  if not self:_shows_removed() then
    for at = 1, index - 1 do
      offset = offset + #self.hunks[at].lines - self.hunks[at].count
    end
  end
  local hunk = self.hunks[index]
  return hunk.first + offset, self:_shows_removed() and hunk.count or #hunk.lines
end

---The hunk at a row, or those on the rows up to another one.
---@param from integer 0-based
---@param to integer
---@return integer[] indices
function View:_hunks_on(from, to)
  local found = {}
  for index in ipairs(self.hunks) do
    local first, count = self:_place(index)
    local last = first + count - 1
    if count == 0 then
      first, last = math.max(0, first - 1), first -- its removed lines are drawn between the two
    end
    found[#found + 1] = first <= to and from <= last and index or nil
  end
  return found
end

---Put the lines of hunks back as they were, as one step of undo.
---@param indices integer[]
function View:_skip(indices)
  local before = self.options.before
  undo_tree.close_block(self.bufnr)
  undo_tree.forget()
  local was_empty, left = #self:_text().lines == 0, {}
  for index, hunk in ipairs(self.hunks) do
    left[#left + 1] = not vim.list_contains(indices, index) and hunk or nil
  end
  for at = #indices, 1, -1 do
    local hunk = self.hunks[indices[at]]
    local first, count = self:_place(indices[at])
    local lines = vim.list_slice(before.lines, hunk.first + 1, hunk.first + hunk.count)
    api.nvim_buf_set_lines(self.bufnr, first, first + count, false, lines)
  end
  if was_empty then -- what is put into an empty buffer comes above its one empty line
    api.nvim_buf_set_lines(self.bufnr, -2, -1, false, {})
  end
  undo_tree.close_block(self.bufnr)
  self.ends[undo_tree.state(self.bufnr)] = hunks.apply(before, left)
  self:_draw()
end

---@param rows? { [1]: integer, [2]: integer } Selected ones
function View:skip_hunk(rows)
  if not vim.bo[self.bufnr].modifiable then
    return say.hint("This change cannot be edited")
  end
  self:_draw()
  local row = api.nvim_win_get_cursor(0)[1] - 1
  local indices
  if rows then
    indices = self:_hunks_on(rows[1], rows[2])
  else
    indices = self:_hunks_on(row, row)
    indices = #indices > 1 and { indices[1] } or indices
    indices = #indices == 0 and #self.hunks == 1 and { 1 } or indices
  end
  if #indices == 0 then
    return say.hint("No hunk on this line" .. keys.hint({ { "next_hunk", "goes to the next one" } }, " · "))
  end
  self:_skip(indices)
  local count = #indices == 1 and "Hunk skipped" or ("%d hunks skipped"):format(#indices)
  say.hint(count .. " · u takes " .. (#indices == 1 and "it" or "them") .. " in again")
end

---@param step 1|-1
function View:_go(step)
  self:_draw()
  local here = api.nvim_win_get_cursor(0)[1] - 1
  for at = step == 1 and 1 or #self.hunks, step == 1 and #self.hunks or 1, step do
    local row = self:_row_of(at)
    if (row - here) * step > 0 then
      vim.cmd.normal({ "m'", bang = true })
      api.nvim_win_set_cursor(0, { row + 1, 0 })
      return say.hint(("hunk %d of %d"):format(at, #self.hunks))
    end
  end
  say.hint(step == 1 and "No hunk below" or "No hunk above")
end

---@param index integer
---@return integer row 0-based, in the buffer
function View:_row_of(index)
  local first, count = self:_place(index)
  local row = count == 0 and math.max(0, first - 1) or first
  return math.min(row, api.nvim_buf_line_count(self.bufnr) - 1)
end

function View:_map_keys()
  local actions = {
    skip_hunk = function(rows)
      self:skip_hunk(rows)
    end,
    next_hunk = function()
      self:_go(1)
    end,
    previous_hunk = function()
      self:_go(-1)
    end,
  }
  for verb, action in pairs(self.options.actions or {}) do
    actions[verb] = function()
      action()
    end
  end
  self.actions = actions
  keys.set(self.bufnr, actions, {
    {
      mode = "n",
      lhs = "q",
      text = "Go back",
      action = function()
        if vim.v.count == 0 then
          self:close()
        end
      end,
    },
  })
end

function View:_watch()
  local group = api.nvim_create_augroup(GROUP .. self.bufnr, {})
  local function on(events, callback)
    api.nvim_create_autocmd(events, { group = group, buffer = self.bufnr, callback = callback })
  end
  if self.options.is_editable then
    on("BufWriteCmd", function()
      vim.bo[self.bufnr].modified = false
      if self.options.on_write then
        self.options.on_write()
      end
    end)
    api.nvim_buf_attach(self.bufnr, false, {
      on_lines = function()
        vim.schedule(function()
          if api.nvim_buf_is_valid(self.bufnr) then
            vim.bo[self.bufnr].modified = false -- nothing keeps anybody from leaving Neovim
          end
        end)
        self:_draw_soon()
      end,
    })
  end
  on("BufWinLeave", function()
    vim.schedule(function()
      if not self:is_open() then
        self.win = nil
        self:_closed()
      end
    end)
  end)
  api.nvim_create_autocmd({ "VimResized", "WinResized" }, {
    group = group,
    callback = function()
      if self:is_open() then
        self:_draw_soon()
      end
    end,
  })
end

function View:_closed()
  if self.options.on_close then
    self.options.on_close()
  end
end

---Put the cursor on the first hunk, or on a line, with its removed lines in sight.
function View:_go_to_first()
  local line = self.options.line
  if not line and self.hunks[1] then
    line = self:_row_of(1) + 1
  end
  line = math.max(1, math.min(line or 1, api.nvim_buf_line_count(self.bufnr)))
  api.nvim_win_set_cursor(self.win, { line, 0 })
  api.nvim_win_call(self.win, function()
    local removed = self.hunks[1] and self.hunks[1].count or 0
    if line > ROWS_ABOVE + 1 or removed == 0 then
      vim.fn.winrestview({ topline = math.max(1, line - ROWS_ABOVE) })
    end
    if vim.fn.line("w$") < line then -- a long hunk above the line
      vim.cmd.normal({ "zz", bang = true })
    end
  end)
end

---Open it, or go to the tab page where it is open.
function View:open()
  if self:is_open() then
    return api.nvim_set_current_win(self.win)
  end
  self.from = api.nvim_get_current_win()
  local is_fresh = not self.bufnr or not api.nvim_buf_is_valid(self.bufnr)
  if is_fresh then
    self.bufnr, self.ends = self:_make_buffer(), {}
    by_buffer[self.bufnr] = self
  end
  vim.cmd(("tab sbuffer %d"):format(self.bufnr))
  self.win = api.nvim_get_current_win()
  local wo = vim.wo[self.win]
  wo.winfixbuf, wo.foldenable, wo.signcolumn, wo.list = true, false, "yes:1", false
  if is_fresh then
    require("codecompanion.changes.highlights").define()
    self:_colour()
    self:_map_keys()
    self:_watch()
  end
  self:_draw()
  self:_go_to_first()
end

---Go back to where the user came from; what was edited stays for the next time.
function View:close()
  local win = self.win
  self.win = nil
  if win and api.nvim_win_is_valid(win) then
    if api.nvim_get_current_win() == win and self.from and api.nvim_win_is_valid(self.from) then
      api.nvim_set_current_win(self.from)
    end
    if not pcall(api.nvim_win_close, win, true) then -- the last window there is
      vim.wo[win].winfixbuf, vim.wo[win].winbar = false, ""
      api.nvim_win_call(win, function()
        vim.cmd("enew")
      end)
    end
  end
end

---Say in place of the keys that nothing is decided here any more.
---@param note string
function View:over(note)
  self.note = note
  self:_label()
end

---Close it, and forget what was edited.
function View:wipe()
  self:close()
  if self.bufnr and api.nvim_buf_is_valid(self.bufnr) then
    pcall(api.nvim_del_augroup_by_name, GROUP .. self.bufnr)
    api.nvim_buf_delete(self.bufnr, { force = true })
  end
end

---The view that a buffer shows.
---@param bufnr integer
---@return CodeCompanion.ChangeView?
function M.of(bufnr)
  return by_buffer[bufnr]
end

---@param options CodeCompanion.ChangeViewOptions
---@return CodeCompanion.ChangeView
function M.new(options)
  return setmetatable({ options = options, hunks = {}, ends = {} }, View)
end

---Show a change.
---@param options CodeCompanion.ChangeViewOptions
---@return CodeCompanion.ChangeView
function M.open(options)
  local view = M.new(options)
  view:open()
  return view
end

---Show a change that was made; nothing is decided there.
---@param texts { before: string, after: string } As the host answers `show_change`
---@param path string
---@param line? integer Of the file, to go to
function M.open_recorded(texts, path, line)
  M.open({
    title = "Changed",
    path = path,
    before = hunks.text(texts.before),
    after = hunks.text(texts.after),
    line = line,
  })
end

return M
