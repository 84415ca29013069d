---Changes a loaded file: applies minimal hunks as one undo block, so that marks, folds, cursors and views are
---preserved, then saves it unless it had unsaved changes.

local api = vim.api
local buffers = require("codecompanion.files.loaded_files")
local reload = require("codecompanion.files.reload_buffers")

local M = {}

---@alias CodeCompanion.ReplacedRows { [1]: integer, [2]: integer, [3]: string[] } Rows [first, last), 0-based, and
---their replacement

---@param text string
---@return string[] lines
---@return boolean final_newline
local function split(text)
  local lines, from = {}, 1
  while true do
    local at = text:find("\n", from, true)
    if not at then
      break
    end
    lines[#lines + 1] = text:sub(from, at - 1)
    from = at + 1
  end
  local final = from > #text
  if not final then
    lines[#lines + 1] = text:sub(from)
  end
  return lines, final
end

---Return whether a buffer line equals a line in the host's encoding.
---@param raw string
---@param shown string
---@return boolean
local function is_same(raw, shown)
  return raw == shown or (raw:find("[\n\128-\255]") ~= nil and buffers.shown(raw) == shown)
end

---Return how many lines are equal at the beginning and at the end.
---@param old string[] As in the buffer
---@param new string[]
---@return integer head
---@return integer tail
local function common(old, new)
  local most, head, tail = math.min(#old, #new), 0, 0
  while head < most and is_same(old[head + 1], new[head + 1]) do
    head = head + 1
  end
  while tail < most - head and is_same(old[#old - tail], new[#new - tail]) do
    tail = tail + 1
  end
  return head, tail
end

---@param lines string[]
---@return string
local function joined(lines)
  return #lines == 0 and "" or (table.concat(lines, "\n") .. "\n")
end

---Return the differences, the lowest hunk first.
---@param old string[] As in the buffer
---@param new string[]
---@return CodeCompanion.ReplacedRows[]
local function hunks(old, new)
  local head, tail = common(old, new)
  local before = vim.tbl_map(buffers.shown, vim.list_slice(old, head + 1, #old - tail))
  local after = vim.list_slice(new, head + 1, #new - tail)
  local diff = vim.text and vim.text.diff or vim.diff
  ---@type integer[][]
  local found = diff(joined(before), joined(after), { result_type = "indices", algorithm = "histogram" })
  local result = {}
  for index = #found, 1, -1 do
    local first, count, new_first, new_count = unpack(found[index])
    local row = head + (count > 0 and first - 1 or first) -- an insertion names the line above it
    local lines = vim.list_slice(after, new_first, new_first + new_count - 1)
    for at, line in ipairs(lines) do
      lines[at] = (line:gsub("%z", "\n"))
    end
    result[#result + 1] = { row, row + count, lines }
  end
  return result
end

---Return the position of a row after one hunk is applied.
---@param row integer 0-based
---@param hunk CodeCompanion.ReplacedRows
---@return integer
local function moved(row, hunk)
  local first, last, count = hunk[1], hunk[2], #hunk[3]
  if row >= last then
    return row + count - (last - first)
  elseif row >= first then
    return math.min(row, first + math.max(count - 1, 0))
  end
  return row
end

---Return the views of all windows that show the buffer.
---@param bufnr integer
---@return table<integer, table>
local function views(bufnr)
  local found = {}
  for _, win in ipairs(vim.fn.win_findbuf(bufnr)) do
    found[win] = api.nvim_win_call(win, vim.fn.winsaveview)
  end
  return found
end

---@param saved table<integer, table>
---@param changes CodeCompanion.ReplacedRows[]
local function restore_views(saved, changes)
  for win, view in pairs(saved) do
    if api.nvim_win_is_valid(win) then
      for _, hunk in ipairs(changes) do
        view.lnum = moved(view.lnum - 1, hunk) + 1
        view.topline = moved(view.topline - 1, hunk) + 1
      end
      api.nvim_win_call(win, function()
        vim.fn.winrestview(view)
      end)
    end
  end
end

---Close the undo block, so that the next change starts a new one.
---@param bufnr integer
local function close_undo_block(bufnr)
  api.nvim_buf_call(bufnr, function()
    vim.cmd("let &l:undolevels = &l:undolevels")
  end)
end

---Replace the content of a buffer.
---@param bufnr integer
---@param text string
local function apply(bufnr, text)
  local new, final = split(text)
  local changes = hunks(buffers.raw_lines(bufnr), new)
  local saved = views(bufnr)
  close_undo_block(bufnr)
  for _, hunk in ipairs(changes) do
    api.nvim_buf_set_lines(bufnr, hunk[1], hunk[2], true, hunk[3])
  end
  -- Text inserted into an empty buffer goes above its single empty line.
  if api.nvim_buf_line_count(bufnr) > math.max(#new, 1) then
    api.nvim_buf_set_lines(bufnr, #new, -1, true, {})
  end
  restore_views(saved, changes)
  if #new > 0 and final ~= buffers.has_final_newline(bufnr) and (final or not vim.bo[bufnr].fixendofline) then
    vim.bo[bufnr].endofline = final
  end
end

---@param bufnr integer
---@return integer
local function undo_state(bufnr)
  return api.nvim_buf_call(bufnr, vim.fn.undotree).seq_cur
end

---Revert the change to a buffer that could not be saved, leaving no entry in the undo history if possible.
---@param bufnr integer
---@param text string The previous text
---@param state integer The previous undo state
local function take_back(bufnr, text, state)
  local saved = views(bufnr)
  api.nvim_buf_call(bufnr, function()
    local is_one_block = vim.fn.undotree().seq_cur == state + 1
    vim.cmd(is_one_block and "silent! undo!" or ("silent! undo " .. state))
  end)
  if buffers.text(bufnr) ~= text then -- undo is off ('undolevels')
    apply(bufnr, text)
  end
  restore_views(saved, {})
  vim.bo[bufnr].modified = false
end

---@return boolean
local function with_autocmds()
  local ok, config = pcall(require, "codecompanion.config")
  local chat = ok and config.options and config.options.interactions and config.options.interactions.chat
  return vim.tbl_get(chat or {}, "tools", "opts", "save_with_autocmds") ~= false
end

---Save a buffer like `:write`.
---@param bufnr integer
---@return string? problem
local function save(bufnr)
  local written = false
  local watch = api.nvim_create_autocmd("BufWritePost", {
    buffer = bufnr,
    callback = function()
      written = true
    end,
  })
  api.nvim_set_vvar("errmsg", "")
  local ok, err = pcall(api.nvim_buf_call, bufnr, function()
    -- `silent!`: a formatter's error does not prevent saving, as for the user; `!`: never prompts.
    vim.cmd(("silent! %skeepalt write!"):format(with_autocmds() and "" or "noautocmd "))
  end)
  pcall(api.nvim_del_autocmd, watch)
  if written or not vim.bo[bufnr].modified then
    return nil
  end
  local text = not ok and tostring(err) or vim.v.errmsg ~= "" and vim.v.errmsg or "it cannot be written"
  return (text:match("E%d+: [^\n]*") or text:match("^[^\n]*")):gsub("%.$", "")
end

---Answer the host's `change` question.
---@param fields { path: string, buffer: integer, tick: integer, text: string, save: boolean? }
---@return { state: string, text: string?, reason: string? }
function M.change(fields)
  local bufnr = fields.buffer
  if buffers.path_of(bufnr) == fields.path then
    reload.buffer(bufnr) -- do not overwrite changes made on disk since the host's check
  end
  -- a rename (`:file`, `:saveas`) or a folder replaced by a link changes the target of `:write`, but not `changedtick`
  local is_same_file = buffers.path_of(bufnr) == fields.path
  if not is_same_file or api.nvim_buf_get_changedtick(bufnr) ~= fields.tick then
    return { state = "stale" }
  end
  local was_modified, before, state = vim.bo[bufnr].modified, buffers.text(bufnr), undo_state(bufnr)
  apply(bufnr, fields.text)
  if was_modified or fields.save == false then
    close_undo_block(bufnr)
    return { state = "unsaved" }
  end
  local problem = save(bufnr)
  if problem then
    take_back(bufnr, before, state)
    local name = vim.fn.fnamemodify(fields.path, ":~:.")
    return { state = "refused", reason = ("%s was not written: %s. Nothing was changed."):format(name, problem) }
  end
  close_undo_block(bufnr)
  vim.schedule(reload.all) -- another buffer may contain the same file, by a link
  local text = buffers.text(bufnr)
  return { state = "written", text = text ~= fields.text and text or nil }
end

return M
