---Shows the reports `/cost` and `/trace`: Markdown that the host writes from the log of a chat, in its own window
---(R-356, R-357).
---
---There is one report window at a time. It follows the chat with a short delay. The report is updated line by line, so
---that cursor and folds are kept.

local api = vim.api
local float = require("codecompanion.screen.float")
local host = require("codecompanion.host")
local life = require("codecompanion.chat.life")
local page = require("codecompanion.chat.reports.report_page")
local registry = require("codecompanion.chat.state.open_chats")
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")
local window = require("codecompanion.chat.window")
local scratch = require("codecompanion.screen.scratch_buffer")

local M = {}

local REFRESH_AFTER_MS = 150
local MIN_ROWS = 10
local SHARE_OF_ROWS = 0.6

---@class CodeCompanion.Report
---@field chat string Chat id
---@field verb "show_cost"|"show_trace"
---@field bufnr? integer nil until the host has answered
---@field turn? integer The turn shown; nil follows the newest one
---@field timer? uv.uv_timer_t Delays the next update
---@field shown integer Number of the visible turn
---@field turns integer Number of turns
---@field is_from_cost? boolean Closing the trace shows the cost again
---@field beside? CodeCompanion.Chat The chat that was visible before; closing the report shows it again

---@type table<integer, CodeCompanion.Report>
local reports = {}

local STATUSLINE = "%<%f%=  %{%v:lua.require'codecompanion.chat.reports'.hints()%}  %P "
local HINTS = { show_cost = "<CR> trace of a turn", show_trace = "[t ]t other turns" }
local ROOM_FOR_HINTS = 60

---Return the keys of a report for its status line, as many as fit.
---@return string
function M.hints()
  local win = vim.g.statusline_winid or api.nvim_get_current_win()
  local report = reports[api.nvim_win_get_buf(win)]
  local wide = report and api.nvim_win_get_width(win) >= ROOM_FOR_HINTS
  return (wide and HINTS[report.verb] .. " · " or "") .. (report and report.is_from_cost and "q back" or "q close")
end

---Return the window of this tab page that shows a report.
---@return integer?
local function report_window()
  for _, win in ipairs(api.nvim_tabpage_list_wins(0)) do
    if reports[api.nvim_win_get_buf(win)] then
      return win
    end
  end
end

---Show the buffer of a report, in place of the report in this tab page if there is one.
---@param bufnr integer
---@return integer win
local function show(bufnr)
  vim.cmd.stopinsert() -- a report is not editable
  local win = report_window()
  if win then
    window.put(win, bufnr)
    api.nvim_set_current_win(win)
  else
    local height = math.max(MIN_ROWS, math.floor(vim.o.lines * SHARE_OF_ROWS))
    win = api.nvim_open_win(bufnr, true, { split = "below", win = -1, height = height })
  end
  page.dress(win, STATUSLINE)
  return win
end

---Return the width available to the report: that of its window, or of the window it will get.
---@param bufnr? integer
---@return integer columns
local function width_of(bufnr)
  local win = bufnr and vim.fn.bufwinid(bufnr) or -1
  return win == -1 and vim.o.columns or api.nvim_win_get_width(win) - vim.fn.getwininfo(win)[1].textoff
end

---Return whether charts are drawn without Braille: the Linux console has no such characters, and if characters of
---ambiguous width are wide, the lines around the chart would not fit.
---@return boolean
local function needs_ascii()
  return vim.o.ambiwidth == "double" or vim.env.TERM == "linux"
end

---@param report CodeCompanion.Report
---@param turn? integer
---@param on_result fun(result: table)
---@param refuse? fun(reason: string)
local function ask(report, turn, on_result, refuse)
  local payload = { chat = report.chat, width = width_of(report.bufnr), turn = turn }
  if report.verb == "show_cost" then
    payload.ascii = needs_ascii()
  end
  host.request(report.verb, payload, function(err, result)
    if err and refuse then
      return refuse(err)
    elseif err then
      return say.line(err, severity.ERROR)
    end
    if report.bufnr and not api.nvim_buf_is_valid(report.bufnr) then
      return
    end
    report.shown, report.turns = result.turn or 0, result.turns or 0
    on_result(result)
  end)
end

local NAMES = { show_cost = "Cost", show_trace = "Trace" }

---Return the title of a report: its kind, and the title of its chat.
---@param report CodeCompanion.Report
---@return string
local function name_of(report)
  local title = ""
  for _, chat in ipairs(registry.list()) do
    title = chat.id == report.chat and chat.title or title
  end
  return NAMES[report.verb] .. (title ~= "" and " · " .. title or "")
end

---@param report CodeCompanion.Report
local function refresh(report)
  if vim.fn.bufwinid(report.bufnr) ~= -1 then
    ask(report, report.turn, function(result)
      page.draw(report.bufnr, result.text, result.spans)
      scratch.name(report.bufnr, name_of(report))
    end)
  end
end

---Keep showing this turn; if it is the newest, keep following the newest one.
---@param report CodeCompanion.Report
---@param result table
local function stay(report, result)
  report.turn = result.turn and result.turn < result.turns and result.turn or nil
end

---Go to a turn, or report that it does not exist.
---@param report CodeCompanion.Report
---@param turn integer
local function go_to(report, turn)
  if turn < 1 or turn > report.turns then
    local which = turn < 1 and "first" or "last"
    return say.hint(("This is the %s turn."):format(which))
  end
  ask(report, turn, function(result)
    stay(report, result)
    page.draw(report.bufnr, result.text, result.spans)
    api.nvim_win_set_cursor(vim.fn.bufwinid(report.bufnr), { 1, 0 })
  end)
end

---@param report CodeCompanion.Report
local function close(report)
  local win = vim.fn.bufwinid(report.bufnr)
  if win ~= -1 and #api.nvim_tabpage_list_wins(0) > 1 then
    api.nvim_win_close(win, true)
  end
  if api.nvim_buf_is_valid(report.bufnr) then
    api.nvim_buf_delete(report.bufnr, { force = true })
  end
  -- A floating chat was hidden for the report.
  if report.beside and api.nvim_buf_is_valid(report.beside.bufnr) then
    life.show(report.beside)
  end
end

local open

---@param report CodeCompanion.Report
local function set_keys(report)
  local function map(keys, desc, action)
    scratch.map(report.bufnr, keys, desc, action)
  end
  map({ "q", "<Esc>" }, report.is_from_cost and "Go back to the cost" or "Close", function()
    if report.is_from_cost then
      return M.cost({ id = report.chat }, report.shown)
    end
    close(report)
  end)
  if report.verb == "show_trace" then
    map("[t", "Previous turn", function()
      go_to(report, report.shown - vim.v.count1)
    end)
    map("]t", "Next turn", function()
      go_to(report, report.shown + vim.v.count1)
    end)
    return
  end
  map("<CR>", "Trace the turn on this line", function()
    local turn = api.nvim_get_current_line():match("^|%s*(%d+)%s*|") -- only turn rows begin with a number
    if turn then
      open({ id = report.chat }, "show_trace", { turn = tonumber(turn), is_from_cost = true })
    end
  end)
end

---@param report CodeCompanion.Report
function M.forget(report)
  reports[report.bufnr] = nil
  report.timer:close()
end

---Stop updates; open reports keep their content.
function M.stop()
  vim.iter(vim.tbl_values(reports)):each(M.forget)
end

---Update the report after events of its chat, which are already in the log.
---@param report CodeCompanion.Report
local function follow(report)
  local group = api.nvim_create_augroup("codecompanion.report." .. report.bufnr, {})
  local timer = assert(vim.uv.new_timer())
  report.timer = timer
  local function soon()
    timer:start(
      REFRESH_AFTER_MS,
      0,
      vim.schedule_wrap(function()
        if reports[report.bufnr] then
          refresh(report)
        end
      end)
    )
  end
  api.nvim_create_autocmd("User", {
    group = group,
    pattern = "CodeCompanion*",
    callback = function(args)
      if type(args.data) == "table" and args.data.chat == report.chat then
        soon()
      end
    end,
  })
  api.nvim_create_autocmd("VimResized", { group = group, callback = soon })
  api.nvim_create_autocmd("BufWipeout", {
    group = group,
    buffer = report.bufnr,
    once = true,
    callback = function()
      M.forget(report)
      vim.schedule(function()
        pcall(api.nvim_del_augroup_by_id, group)
      end)
    end,
  })
end

---@return integer bufnr
local function new_buffer()
  local bufnr = scratch.new({})
  vim.bo[bufnr].swapfile = false
  vim.bo[bufnr].filetype = "markdown"
  float.highlight(bufnr, "markdown")
  return bufnr
end

---Open a report once the host has written it; after a failure no window is opened.
---@param chat { id: string }
---@param verb "show_cost"|"show_trace"
---@param opts? { turn?: integer, is_from_cost?: boolean, refuse?: fun(reason: string), shown?: fun() }
function open(chat, verb, opts)
  opts = opts or {}
  local report = { chat = chat.id, verb = verb, shown = 0, turns = 0, is_from_cost = opts.is_from_cost }
  ask(report, opts.turn, function(result)
    report.bufnr = new_buffer()
    stay(report, result)
    page.draw(report.bufnr, result.text, result.spans)
    local here = api.nvim_get_current_buf()
    local current, replaced = registry.by_buffer(here), reports[here]
    report.beside = current and current.id == report.chat and current or replaced and replaced.beside or nil
    show(report.bufnr)
    scratch.name(report.bufnr, name_of(report))
    reports[report.bufnr] = report
    set_keys(report)
    follow(report)
    if opts.shown then
      opts.shown()
    end
  end, opts.refuse)
end

---Show the cost of the chat.
---@param chat { id: string }
---@param turn? integer The turn whose row gets the cursor
function M.cost(chat, turn)
  open(chat, "show_cost", {
    shown = turn and function()
      vim.fn.search(("^|\\s*%d\\s*|"):format(turn), "w")
    end or nil,
  })
end

---Show a turn of the chat.
---@param chat { id: string }
---@param argument string Number of the turn; "" = the newest
---@param refuse? fun(reason: string) Called with the reason for a failure; by default the command line shows it
function M.trace(chat, argument, refuse)
  local given = vim.trim(argument)
  local turn = given ~= "" and tonumber(given, 10) or nil
  if given ~= "" and not turn then
    local reason = ("%q is not a turn number; /trace alone shows the newest turn"):format(given)
    return (refuse or say.line)(reason .. (refuse and "." or ""))
  end
  open(chat, "show_trace", { turn = turn, refuse = refuse })
end

return M
