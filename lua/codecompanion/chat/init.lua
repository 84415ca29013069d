---Chats: open, show, hide, resume, close; the way of the host's events to the right one.
---
---Lua holds no messages and decides nothing: it draws what the host reports and sends what the user does.

local api = vim.api
local severity = require("codecompanion.severity")

local M = {}

---@type table<integer, CodeCompanion.Chat>
local by_buffer = {}
---@type CodeCompanion.Chat[]
local chats = {}
---@type CodeCompanion.Chat?
local last
local subscribed = false

---The chat of a buffer (0 or nil: the current one).
---@param bufnr? integer
---@return CodeCompanion.Chat?
function M.by_buffer(bufnr)
  if not bufnr or bufnr == 0 then
    bufnr = api.nvim_get_current_buf()
  end
  return by_buffer[bufnr]
end

---The chat in use: that of the current buffer, otherwise the last one.
---@return CodeCompanion.Chat?
function M.current()
  return M.by_buffer() or last
end

---All open chats, oldest first.
---@return CodeCompanion.Chat[]
function M.list()
  return vim.list_slice(chats)
end

---@param event table
local function on_event(event)
  local queue = require("codecompanion.chat.wire.queue")
  if event.type == "host_exit" then
    for _, chat in ipairs(chats) do
      queue.push(chat, event)
    end
    return
  end
  for _, chat in ipairs(chats) do
    if chat.id == event.chat then
      queue.push(chat, event)
      return
    end
  end
end

local function subscribe()
  if subscribed then
    return
  end
  subscribed = true
  require("codecompanion.host").subscribe(on_event)
  local say = require("codecompanion.say")
  if not say.draw then
    say.draw = function(...)
      require("codecompanion.chat.wire.events") -- puts its own in this place
      say.draw(...)
    end
  end
  require("codecompanion.chat.buffer.paint").setup()
  require("codecompanion.chat.buffer.paint").warm()
  require("codecompanion.chat.buffer.highlights").define()
  require("codecompanion.chat.question.attention").setup()
  require("codecompanion.chat.window.tabline").adopt()
  require("codecompanion.chat.wire.installing").setup()
  vim.treesitter.language.register("markdown", "codecompanion")
  local paste = vim.paste
  vim.paste = function(lines, phase)
    local chat = M.by_buffer()
    if chat and phase < 2 then
      require("codecompanion.chat.ui.guard").pasted(chat)
    end
    return paste(lines, phase)
  end
  local group = api.nvim_create_augroup("codecompanion.chat", {})
  local define = require("codecompanion.chat.buffer.highlights").define
  api.nvim_create_autocmd("ColorScheme", { group = group, callback = define })
  api.nvim_create_autocmd("CmdlineEnter", {
    group = group,
    pattern = ":",
    callback = function()
      require("codecompanion.chat.lists.resume_list").prefetch()
    end,
  })
  if require("codecompanion.chat.state.options").display().window.sticky then
    local from
    api.nvim_create_autocmd("TabLeave", {
      group = group,
      callback = function()
        from = api.nvim_get_current_tabpage()
      end,
    })
    api.nvim_create_autocmd("TabEnter", {
      group = group,
      callback = function()
        if last and from then
          require("codecompanion.chat.window").follow_tab(last, from)
        end
      end,
    })
  end
  api.nvim_create_autocmd("VimLeavePre", {
    group = group,
    callback = function()
      for _, chat in ipairs(chats) do
        require("codecompanion.chat.wire.draft").save(chat)
      end
    end,
  })
end

---Fill the buffer of a chat: options, keys, autocmds, an empty input. What Vim forgets with the text is set again.
---@param chat CodeCompanion.Chat
---@param bufnr integer
local function furnish(chat, bufnr)
  if chat.bufnr and chat.bufnr ~= bufnr then
    by_buffer[chat.bufnr] = nil
  end
  by_buffer[bufnr] = chat
  require("codecompanion.chat.buffer.text").take(chat, bufnr)
  require("codecompanion.chat.ui.watch").set(chat)
  require("codecompanion.chat.ui.keymaps").set(chat)
  vim.bo[bufnr].filetype = "codecompanion"
  -- not through `events`: what draws messages is loaded once the chat has been painted
  require("codecompanion.chat.draw.activity").draw(chat)
  require("codecompanion.chat.state.status").publish(chat)
  require("codecompanion.chat.wire.draft").hint(chat)
end

---@param id string
---@return CodeCompanion.Chat?
local function by_id(id)
  for _, chat in ipairs(chats) do
    if chat.id == id then
      return chat
    end
  end
end

---@param id? string A stored chat; a new one without it
---@param bufnr? integer
---@return CodeCompanion.Chat
local function create(id, bufnr)
  subscribe()
  local chat = require("codecompanion.chat.state.record").new(id)
  local name = require("codecompanion.chat.window.name")
  chats[#chats + 1] = chat
  bufnr = bufnr or name.buffer_of(chat.id)
  if not bufnr then
    bufnr = api.nvim_create_buf(false, false)
    by_buffer[bufnr] = chat -- its name is no news
    api.nvim_buf_set_name(bufnr, name.of(chat.id))
  end
  furnish(chat, bufnr)
  return chat
end

---Fill a buffer named after a chat: one that is open is drawn again, any other comes from the history.
---@param bufnr integer
---@param id string
function M.fill(bufnr, id)
  local chat = by_id(id)
  if chat then
    furnish(chat, bufnr)
  else
    chat = create(id, bufnr)
    chat.stored = true
    last = last or chat
  end
  require("codecompanion.chat.wire.redraw").redraw(chat)
  vim.schedule(function()
    -- Vim puts the cursor where it was by number once this is over
    if api.nvim_buf_is_loaded(chat.bufnr) then
      require("codecompanion.chat.wire.redraw").settle_partly(chat)
    end
  end)
end

---Have the text of a chat in its buffer, which may have been unloaded.
---@param chat CodeCompanion.Chat
local function load(chat)
  if not api.nvim_buf_is_loaded(chat.bufnr) then
    vim.fn.bufload(chat.bufnr)
  end
end

---A chat nobody has used yet, with an empty draft.
---@return CodeCompanion.Chat?
local function unused()
  for _, chat in ipairs(chats) do
    local empty = not chat.touched and not chat.stored and #chat.outgoing == 0
    empty = empty and api.nvim_buf_is_loaded(chat.bufnr)
    if empty and require("codecompanion.chat.buffer.text").input_text(chat) == "" then
      return chat
    end
  end
end

---Open a new chat. It is painted at once; the host is asked afterwards. With `reuse` one that nobody has used yet and
---whose draft is empty will do.
---@param opts? { adapter?: string, model?: string, layout?: string, text?: string, hidden?: boolean, reuse?: boolean }
---@return CodeCompanion.Chat
function M.open(opts)
  opts = opts or {}
  local waiting = opts.reuse and unused()
  if waiting then
    M.show(waiting, opts.layout)
    if opts.text and opts.text ~= "" then
      require("codecompanion.chat.wire.draft").set(waiting, opts.text)
    end
    return waiting
  end
  local chat = create()
  last = chat
  if opts.text and opts.text ~= "" then
    require("codecompanion.chat.wire.draft").set(chat, opts.text)
  end
  if not opts.hidden then
    require("codecompanion.chat.wire.unsent").give_back(chat)
    require("codecompanion.chat.window").open(chat, opts.layout)
  end
  vim.schedule(function()
    require("codecompanion.chat.state.session").attach(chat, opts)
  end)
  return chat
end

---Take a chat off the screen; it goes on.
---@param chat CodeCompanion.Chat
function M.hide(chat)
  require("codecompanion.chat.wire.draft").save(chat)
  require("codecompanion.chat.window").hide(chat)
end

---Show the last chat, or hide it when it is on the screen; opens one when there is none.
---@param opts? { layout?: string }
---@return CodeCompanion.Chat
function M.toggle(opts)
  local window = require("codecompanion.chat.window")
  local chat = M.current()
  if not chat then
    return M.open(opts)
  end
  if #window.visible(chat) > 0 then
    M.hide(chat)
  else
    load(chat)
    window.open(chat, opts and opts.layout)
  end
  return chat
end

---Show a chat.
---@param chat CodeCompanion.Chat
---@param layout? string
function M.show(chat, layout)
  last = chat
  load(chat)
  require("codecompanion.chat.window").open(chat, layout)
end

---So many hexadecimal digits are an id (`record.new_id`); anything shorter may be a title.
local ID_DIGITS = 16

---@param id string
---@param opts? { layout?: string }
local function resume_stored(id, opts)
  local open = by_id(id)
  if open then
    return M.show(open, opts and opts.layout)
  end
  local chat = create(id)
  last = chat
  require("codecompanion.chat.window").open(chat, opts and opts.layout)
  chat.stored = true
  vim.schedule(function()
    require("codecompanion.chat.state.session").attach(chat)
  end)
end

---Resume a stored chat; without an id the user chooses.
---@param id? string Id or title of a stored chat, or "last"
---@param opts? { layout?: string, check?: boolean } `check`: ask first whether there is a chat with this id
---@param refuse? fun(reason: string) Told that there is no such chat; otherwise it is said on the command line
function M.resume(id, opts, refuse)
  subscribe()
  if not id or id == "" or id == "last" then
    require("codecompanion.chat.lists.pickers").session(id == "last", function(chosen)
      resume_stored(chosen, opts)
    end)
    return
  end
  local is_id = #id >= ID_DIGITS and id:find("^%x+$") ~= nil
  if by_id(id) or (is_id and not (opts and opts.check)) then
    return resume_stored(id, opts)
  end
  local function show(found)
    if found then
      return resume_stored(found, opts)
    end
    local reason = ("No stored chat is called %q"):format(id)
    if refuse then
      return refuse(reason .. "; /resume lists them.")
    end
    require("codecompanion.say").line(reason, severity.WARN)
  end
  local list = require("codecompanion.chat.lists.resume_list")
  if not is_id then
    return list.find(id, show)
  end
  list.find_id(id, show, function()
    resume_stored(id, opts) -- the chat says what is wrong with the host
  end)
end

---Show a stored chat in the windows of another one, which stays open.
---@param chat CodeCompanion.Chat
---@param id string Id of a stored chat
---@return CodeCompanion.Chat target
function M.replace(chat, id)
  local target = vim.tbl_filter(function(other)
    return other.id == id
  end, chats)[1]
  if not target then
    target = create(id)
    target.stored = true
    vim.schedule(function()
      require("codecompanion.chat.state.session").attach(target)
    end)
  end
  target.replaced, chat.replaced = target.replaced or chat.replaced, nil
  for _, win in ipairs(vim.fn.win_findbuf(chat.bufnr)) do
    require("codecompanion.chat.buffer.folds").remember(chat, win)
    require("codecompanion.chat.window").put(win, target.bufnr)
    require("codecompanion.chat.wire.outgoing").cursor_to_input(target, win)
  end
  last = target
  return target
end

---Restore a chat from a checkpoint; it is a chat of its own, the old one stays as it is.
---@param id? string Id of a chat (the best there is of it), or of one of its checkpoints; without it the user chooses
---@param opts? { layout?: string }
---@param refuse? fun(reason: string) Told why not; otherwise it is said on the command line
function M.restore(id, opts, refuse)
  subscribe()
  if not id or id == "" then
    require("codecompanion.chat.lists.pickers").checkpoint("", function(chosen)
      M.restore(chosen, opts)
    end)
    return
  end
  local payload = { checkpoint = id, snapshot = require("codecompanion.editor").snapshot() }
  require("codecompanion.host").request("restore_chat", payload, function(err, restored)
    if err and refuse then
      return refuse(err)
    elseif err then
      return require("codecompanion.say").line(err, severity.ERROR)
    end
    resume_stored(restored.chat, opts)
  end)
end

---Put a selection into the draft of the current chat (a new one when there is none) and show it.
---@param lines string[]
---@param range { [1]: integer, [2]: integer } 1-based line numbers
---@param path? string The current buffer's file when not given
function M.add_selection(lines, range, path)
  path = path or api.nvim_buf_get_name(0)
  local filetype = api.nvim_buf_get_name(0) == path and vim.bo.filetype or vim.filetype.match({ filename = path }) or ""
  local fence = require("codecompanion.chat.draw.blocks").fence(table.concat(lines, "\n"))
  local shown = path ~= "" and vim.fn.fnamemodify(path, ":.") or "(no file)"
  local text = { ("%s:%d-%d"):format(shown, range[1], range[2]), fence .. filetype }
  vim.list_extend(text, lines)
  vim.list_extend(text, { fence, "" })
  local chat = M.current() or M.open()
  load(chat)
  local present = require("codecompanion.chat.buffer.text").input_text(chat)
  if present ~= "" and present:sub(-1) ~= "\n" then
    present = present .. "\n"
  end
  require("codecompanion.chat.wire.draft").set(chat, present .. table.concat(text, "\n"))
  M.show(chat)
  require("codecompanion.chat.wire.outgoing").cursor_to_input(chat)
end

---Compact the current chat.
---@param instructions? string What the summary should take care of
---@param opts? { ask?: boolean } Ask first (not by default)
function M.compact(instructions, opts)
  local chat = M.current()
  if not chat then
    return require("codecompanion.say").line("No chat to compact", severity.WARN)
  end
  require("codecompanion.chat.state.session").compact(chat, instructions or "", not (opts and opts.ask))
end

---The chat that was used last.
---@return CodeCompanion.Chat?
function M.last_chat()
  return last
end

---For status lines: what the chat of the current buffer, or the last one, is doing.
---@return string
function M.statusline()
  local chat = M.current()
  return chat and require("codecompanion.chat.state.status").component(chat.bufnr) or ""
end

---Show the next (1) or previous (-1) chat in the window of this one.
---@param chat CodeCompanion.Chat
---@param step 1|-1
function M.cycle(chat, step)
  if #chats < 2 then
    return
  end
  for index, other in ipairs(chats) do
    if other == chat then
      local target = chats[(index - 1 + step) % #chats + 1]
      require("codecompanion.chat.buffer.folds").remember(chat, api.nvim_get_current_win())
      load(target)
      require("codecompanion.chat.window").put(0, target.bufnr)
      last = target
      return
    end
  end
end

---Close a chat (the current one when not given): its buffer goes, its history and its draft stay.
---@param chat? CodeCompanion.Chat
function M.close(chat)
  chat = chat or M.current()
  if not chat then
    return
  end
  require("codecompanion.chat.wire.draft").save(chat)
  require("codecompanion.chat.window").hide(chat)
  if api.nvim_buf_is_valid(chat.bufnr) then
    api.nvim_buf_delete(chat.bufnr, { force = true })
  end
end

---The buffer of a chat is gone: give the chat back.
---@param chat CodeCompanion.Chat
function M.forget(chat)
  if not by_buffer[chat.bufnr] then
    return
  end
  by_buffer[chat.bufnr] = nil
  chat.closed = true
  chats = vim.tbl_filter(function(other)
    return other ~= chat
  end, chats)
  if last == chat then
    last = chats[#chats]
  end
  local was_busy = require("codecompanion.chat.state.status").is_busy(chat)
  require("codecompanion.chat.wire.draft").close(chat)
  require("codecompanion.chat.draw.activity").stop_retry(chat)
  if chat.attached ~= "no" then
    require("codecompanion.host").notify("close_chat", { chat = chat.id })
  end
  if was_busy and vim.v.exiting == vim.NIL then
    local back = ":CodeCompanionChat Resume brings it back."
    require("codecompanion.say").line({ "Chat closed, its turn stopped; " .. back, "Chat stopped; " .. back })
  end
  require("codecompanion.chat.state.autocmds").fire(chat, "ChatClosed")
end

return M
