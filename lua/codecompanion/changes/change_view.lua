---Shows the diff of a change in its own tab page: the proposed text with its added lines highlighted and the removed
---lines between them. A proposal that awaits a decision can be edited there: skipping a hunk is an edit, and `u` undoes
---it.
---
---The hunks come from `hunks.lua` and are recomputed after every edit, independent of diff mode and 'diffopt'.

local api = vim.api
local draw = require("codecompanion.changes.draw_hunks")
local float = require("codecompanion.screen.float")
local hunks = require("codecompanion.changes.hunks")
local keys = require("codecompanion.changes.decision_keys")
local say = require("codecompanion.say")
local proposed_text = require("codecompanion.changes.proposed_text")
local view_keys = require("codecompanion.changes.change_view_keys")

---@class CodeCompanion.ChangeViewOptions
---@field title string Kind of change: `Edit`
---@field path string "" for text without a file
---@field filetype? string Defaults to the filetype of the path
---@field before CodeCompanion.Text
---@field after CodeCompanion.Text
---@field line? integer Line of `after` to go to; defaults to the first hunk
---@field is_editable? boolean
---@field words? table<string, string|false> Labels of verbs in this view: `reject…`; false: not offered
---@field actions? table<string, fun()> Actions of the decision keys, by verb
---@field on_close? fun() Called when the windows are closed; the text is kept for next time
---@field on_write? fun() Called on `:w` in the proposal

---@class CodeCompanion.ChangeView
---@field options CodeCompanion.ChangeViewOptions
---@field proposed? CodeCompanion.ProposedText Set once the view has been opened
---@field bufnr? integer Buffer with the proposed text
---@field win? integer Set while the view is open
---@field from? integer Window to return to
---@field actions table<string, fun(rows?: { [1]: integer, [2]: integer })> Actions of the verbs in this view
---@field note? string Shown in place of the keys once the decision is made
local View = {}
View.__index = View

local M = {}

---@type table<integer, CodeCompanion.ChangeView>
local by_buffer = setmetatable({}, { __mode = "v" })

local GROUP = "codecompanion.changes.view."
local MAX_COLOURED_BYTES = 1024 * 1024
local REDRAW_MS, REST = 30, 4
---Number of rows kept free above the first hunk.
local ROWS_ABOVE = 3

---Set syntax colours, tab width and indentation as in the file's open buffer. FileType is not fired: language plugins,
---LSP servers and linters are not needed here, and some take seconds.
function View:_colour()
  local file = self.options.path ~= "" and require("codecompanion.system.literal_paths").buffer_of(self.options.path)
    or -1
  if file > 0 and api.nvim_buf_is_loaded(file) then
    for _, option in ipairs({ "tabstop", "shiftwidth", "softtabstop", "expandtab" }) do
      vim.bo[self.bufnr][option] = vim.bo[file][option]
    end
  end
  local filetype = self.options.filetype or vim.filetype.match({ filename = self.options.path, buf = self.bufnr }) or ""
  if filetype ~= "" and #hunks.joined(self.proposed:shown()) <= MAX_COLOURED_BYTES then
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

---Return the proposal as edited by the user, or nil if it is unchanged.
---@return string?
function View:edited_text()
  return self.proposed and self.proposed:edited()
end

---Compute the hunks and draw them.
function View:_draw()
  if not self.bufnr or not api.nvim_buf_is_loaded(self.bufnr) then
    return
  end
  local proposed = self.proposed
  proposed:refresh()
  if proposed:shows_removed() then
    local placed = vim.tbl_map(function(hunk)
      return { first = hunk.first, count = hunk.count, lines = hunk.lines, is_conflict = false }
    end, proposed.hunks)
    draw.draw(self.bufnr, { { first = 0, hunks = placed, hint = {}, in_gutter = true } })
  else
    draw.draw_result(self.bufnr, proposed.before.lines, proposed.hunks)
  end
  self:label()
end

---Redraw with a debounce, which is longer after a slow redraw.
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

---Show the title and as many keys as fit in the winbar, the most important first.
---@param words? table<string, string|false> New labels of verbs
function View:label(words)
  self.options.words = words or self.options.words
  if not self:is_open() then
    return
  end
  local text = self.note and (" %s · q back"):format(self.note)
    or view_keys.winbar(self.options, self.bufnr, self.proposed.hunks, api.nvim_win_get_width(self.win))
  vim.wo[self.win].winbar = "%<" .. text:gsub("%%", "%%%%")
end

---@param rows? { [1]: integer, [2]: integer } Selected rows
function View:skip_hunk(rows)
  if not vim.bo[self.bufnr].modifiable then
    return say.hint("This change cannot be edited")
  end
  self:_draw()
  local row = api.nvim_win_get_cursor(0)[1] - 1
  local indices
  if rows then
    indices = self.proposed:on_rows(rows[1], rows[2])
  else
    indices = self.proposed:on_rows(row, row)
    indices = #indices > 1 and { indices[1] } or indices
    indices = #indices == 0 and #self.proposed.hunks == 1 and { 1 } or indices
  end
  if #indices == 0 then
    return say.hint("No hunk on this line" .. keys.hint({ { "next_hunk", "goes to the next one" } }, " · "))
  end
  self.proposed:skip(indices)
  self:_draw()
  local count = #indices == 1 and "Hunk skipped" or ("%d hunks skipped"):format(#indices)
  say.hint(count .. " · u undoes it")
end

---Accept only the selected hunks, by skipping the others first.
---@param rows { [1]: integer, [2]: integer }
function View:_accept_only(rows)
  if not self.options.is_editable then
    return say.hint("Accept or reject single hunks in the buffer itself")
  end
  self:_draw()
  local wanted, others = self.proposed:on_rows(rows[1], rows[2]), {}
  if #wanted == 0 then
    return say.hint("No hunk in the selection")
  end
  for index in ipairs(self.proposed.hunks) do
    others[#others + 1] = not vim.list_contains(wanted, index) and index or nil
  end
  if #others > 0 then
    self.proposed:skip(others)
    self:_draw()
  end
  self.options.actions.accept_change()
end

---@param step 1|-1
function View:_go(step)
  self:_draw()
  local here = api.nvim_win_get_cursor(0)[1] - 1
  for at = step == 1 and 1 or #self.proposed.hunks, step == 1 and #self.proposed.hunks or 1, step do
    local row = self.proposed:row_of(at)
    if (row - here) * step > 0 then
      vim.cmd.normal({ "m'", bang = true })
      api.nvim_win_set_cursor(0, { row + 1, 0 })
      return say.hint(("hunk %d of %d"):format(at, #self.proposed.hunks))
    end
  end
  say.hint(step == 1 and "No hunk below" or "No hunk above")
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
    actions[verb] = function(rows)
      if rows and verb == "accept_change" then
        return self:_accept_only(rows)
      elseif rows and verb == "reject_change" then
        return self:skip_hunk(rows)
      end
      action()
    end
  end
  self.actions = actions
  keys.set(self.bufnr, actions, {
    {
      mode = "n",
      lhs = "g?",
      text = "Show the keys",
      action = function()
        view_keys.show(self.options, self.bufnr)
      end,
    },
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
  }, keys.OF_CHANGES)
end

function View:_watch()
  local group = api.nvim_create_augroup(GROUP .. self.bufnr, {})
  local function on(events, callback)
    api.nvim_create_autocmd(events, { group = group, buffer = self.bufnr, callback = callback })
  end
  on("BufReadCmd", function() -- `:e!` discards the edits
    self.proposed:as_it_came()
    self:_colour()
    self:_draw_soon()
  end)
  if self.options.is_editable then
    on("BufUnload", function()
      self.proposed:keep()
    end)
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
            vim.bo[self.bufnr].modified = false -- never block leaving Neovim
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

---Put the cursor on the first hunk, or on a given line, with its removed lines visible.
function View:_go_to_first()
  local line = self.options.line
  if not line and self.proposed.hunks[1] then
    line = self.proposed:row_of(1) + 1
  end
  line = math.max(1, math.min(line or 1, api.nvim_buf_line_count(self.bufnr)))
  api.nvim_win_set_cursor(self.win, { line, 0 })
  api.nvim_win_call(self.win, function()
    local removed = self.proposed.hunks[1] and self.proposed.hunks[1].count or 0
    if line > ROWS_ABOVE + 1 or removed == 0 then
      vim.fn.winrestview({ topline = math.max(1, line - ROWS_ABOVE) })
    end
    if vim.fn.line("w$") < line then -- a long hunk above the line
      vim.cmd.normal({ "zz", bang = true })
    end
  end)
end

---Open the view, or go to its tab page if it is already open.
function View:open()
  if self:is_open() then
    return api.nvim_set_current_win(self.win)
  end
  self.from = api.nvim_get_current_win()
  local is_fresh = not self.bufnr or not api.nvim_buf_is_loaded(self.bufnr)
  if is_fresh then
    if self.bufnr and api.nvim_buf_is_valid(self.bufnr) then -- unloaded
      api.nvim_buf_delete(self.bufnr, { force = true })
    end
    local options = self.options
    local kept = self.proposed and self.proposed.kept
    local is_editable, title = options.is_editable == true, options.title
    self.proposed = proposed_text.new(options.before, options.after, is_editable, options.path, title, kept)
    self.bufnr = self.proposed.bufnr
    by_buffer[self.bufnr] = self
  end
  vim.cmd(("tab sbuffer %d"):format(self.bufnr))
  self.win = api.nvim_get_current_win()
  local wo = vim.wo[self.win]
  wo.winfixbuf, wo.foldenable, wo.signcolumn, wo.list, wo.number = true, false, "yes:1", false, true
  if vim.go.statusline == api.nvim_get_option_info2("statusline", {}).default then
    wo.statusline = "%=%l,%c  %P " -- the winbar above names the file
  end
  if is_fresh then
    require("codecompanion.changes.change_highlights").define()
    self:_colour()
    self:_map_keys()
    self:_watch()
  end
  self:_draw()
  self:_go_to_first()
end

---Return to the previous window; edits are kept for next time.
function View:close()
  local win = self.win
  self.win = nil
  if win and api.nvim_win_is_valid(win) then
    if api.nvim_get_current_win() == win and self.from and api.nvim_win_is_valid(self.from) then
      api.nvim_set_current_win(self.from)
    end
    if not pcall(api.nvim_win_close, win, true) then -- the last window
      vim.wo[win].winfixbuf, vim.wo[win].winbar = false, ""
      api.nvim_win_call(win, function()
        vim.cmd("enew")
      end)
    end
  end
end

---Replace the keys with a note that nothing is left to decide.
---@param note string
function View:over(note)
  self.note = note
  self:label()
end

---Close the view and discard the edits.
function View:wipe()
  self:close()
  if self.bufnr and api.nvim_buf_is_valid(self.bufnr) then
    pcall(api.nvim_del_augroup_by_name, GROUP .. self.bufnr)
    api.nvim_buf_delete(self.bufnr, { force = true })
  end
end

---Return the view of a buffer.
---@param bufnr integer
---@return CodeCompanion.ChangeView?
function M.of(bufnr)
  return by_buffer[bufnr]
end

---@param options CodeCompanion.ChangeViewOptions
---@return CodeCompanion.ChangeView
function M.new(options)
  return setmetatable({ options = options }, View)
end

---Show a change.
---@param options CodeCompanion.ChangeViewOptions
---@return CodeCompanion.ChangeView
function M.open(options)
  local view = M.new(options)
  view:open()
  return view
end

---Show an applied change, which is read-only.
---@param texts { before: string, after: string } As returned by `show_change`
---@param path string
---@param line? integer Line of the file to go to
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
