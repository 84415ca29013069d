---Manages the life cycle of a chat in the editor: open, show, hide, resume, close. Also dispatches the host's events to
---chats.
---
---The file is longer than others because it contains every way to open or close a chat.

local api = vim.api
local activity = require("codecompanion.chat.draw.activity")
local attention = require("codecompanion.chat.question.attention")
local buffer = require("codecompanion.chat.buffer.chat_text")
local choice = require("codecompanion.adapters.default_adapter")
local draft = require("codecompanion.chat.wire.draft")
local folds = require("codecompanion.chat.buffer.folds")
local highlights = require("codecompanion.chat.buffer.chat_highlights")
local hint = require("codecompanion.chat.buffer.input_hint")
local host = require("codecompanion.host")
local installing = require("codecompanion.chat.wire.install_notice")
local name = require("codecompanion.chat.buffer.buffer_name")
local new_chat = require("codecompanion.chat.life.show_new_chat")
local options = require("codecompanion.chat.state.chat_options")
local paint = require("codecompanion.chat.buffer.markdown_colours")
local pasting = require("codecompanion.chat.life.pasting")
local record = require("codecompanion.chat.state.chat_record")
local registry = require("codecompanion.chat.state.open_chats")
local say = require("codecompanion.say")
local shown = require("codecompanion.chat.buffer.shown")
local status = require("codecompanion.chat.state.chat_status")
local tabline = require("codecompanion.chat.window.tabline")
local unsent = require("codecompanion.chat.wire.unsent_text")
local view = require("codecompanion.chat.buffer.scroll")
local watch = require("codecompanion.chat.life.buffer_autocmds")
local window = require("codecompanion.chat.window")

local M = {}

local subscribed = false

---Adds keys and completion to a new chat buffer. `chat/init.lua` sets it, because the action of a key may open another
---chat.
---@type fun(chat: CodeCompanion.Chat)?
M.furnish = nil

---Open a chat in the host.
---@param chat CodeCompanion.Chat
---@param opts? { adapter?: string, model?: string }
local function attach(chat, opts)
  require("codecompanion.chat.state.session").attach(chat, opts)
  vim.schedule(function()
    require("codecompanion.chat.wire.events") -- loaded while the host starts, not before the first redraw
  end)
end

---@param event table
local function on_event(event)
  local queue = require("codecompanion.chat.wire.event_queue")
  if event.type == "host_exit" then
    for _, chat in ipairs(registry.list()) do
      queue.push(chat, event)
    end
    return
  end
  local chat = registry.by_id(event.chat)
  if chat then
    queue.push(chat, event)
  end
end

---Subscribe to events of the host and the editor, once.
function M.subscribe()
  if subscribed then
    return
  end
  subscribed = true
  host.subscribe(on_event)
  if not say.draw then
    say.draw = function(...)
      require("codecompanion.chat.wire.events") -- replaces this with its own handler
      say.draw(...)
    end
  end
  paint.setup()
  paint.warm()
  highlights.define()
  attention.setup()
  tabline.adopt()
  installing.setup()
  vim.treesitter.language.register("markdown", "codecompanion")
  pasting.listen()
  local group = api.nvim_create_augroup("codecompanion.chat", {})
  local define = highlights.define
  api.nvim_create_autocmd("ColorScheme", { group = group, callback = define })
  api.nvim_create_autocmd("CmdlineEnter", {
    group = group,
    pattern = ":",
    callback = function()
      require("codecompanion.chat.lists.resume_list").prefetch()
    end,
  })
  if options.display().window.sticky then
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
        if registry.last and from then
          window.follow_tab(registry.last, from)
        end
      end,
    })
  end
  api.nvim_create_autocmd("VimLeavePre", {
    group = group,
    callback = function()
      for _, chat in ipairs(registry.list()) do
        draft.save(chat)
      end
    end,
  })
end

---Prepare the buffer of a chat: options, keys, autocommands, an empty input. Settings that Vim drops with the text are
---restored.
---@param chat CodeCompanion.Chat
---@param bufnr integer
local function furnish(chat, bufnr)
  registry.give_buffer(chat, bufnr)
  buffer.take(chat, bufnr)
  watch.set(chat, M)
  if M.furnish then
    M.furnish(chat)
  end
  vim.bo[bufnr].filetype = "codecompanion"
  -- not through `events`: the modules that draw messages are loaded once the chat is visible
  activity.draw(chat)
  status.publish(chat)
  hint.draw(chat)
end

---@param id? string A stored chat; nil creates a new one
---@param bufnr? integer
---@param begin? fun(chat: CodeCompanion.Chat) Called before the buffer is created
---@return CodeCompanion.Chat
local function create(id, bufnr, begin)
  local chat = record.new(id)
  registry.add(chat)
  if begin then
    begin(chat)
  end
  M.subscribe()
  bufnr = bufnr or name.buffer_of(chat.id)
  if not bufnr then
    bufnr = api.nvim_create_buf(false, false)
    registry.give_buffer(chat, bufnr) -- first, so that the event of its name is ignored
    vim.b[bufnr].editorconfig = false -- a chat is not a file in the folder
  end
  name.give(chat, bufnr)
  furnish(chat, bufnr)
  return chat
end

---Show the buffer of an open chat in place of a buffer with another of its names, such as an earlier title.
---@param chat CodeCompanion.Chat
---@param bufnr integer
local function show_instead(chat, bufnr)
  vim.schedule(function() -- Vim is still reading the buffer
    M.load(chat)
    for _, win in ipairs(vim.fn.win_findbuf(bufnr)) do
      window.put(win, chat.bufnr)
    end
    if api.nvim_buf_is_valid(bufnr) then
      api.nvim_buf_delete(bufnr, { force = true })
    end
  end)
end

---Fill a buffer named after a chat: an open chat is redrawn, any other one is loaded from the history.
---@param bufnr integer
---@param id string
function M.fill(bufnr, id)
  local chat = registry.by_id(id)
  if chat and chat.bufnr ~= bufnr then
    return show_instead(chat, bufnr)
  elseif chat then
    furnish(chat, bufnr)
  else
    chat = create(id, bufnr)
    chat.stored = true
    registry.last = registry.last or chat
  end
  require("codecompanion.chat.wire.redraw_chat").redraw(chat)
  vim.schedule(function()
    -- Vim restores the cursor by line number afterwards
    if api.nvim_buf_is_loaded(chat.bufnr) then
      require("codecompanion.chat.buffer.cursor_places").settle_partly(chat)
    end
  end)
end

---Load the text of a chat into its buffer, which may have been unloaded.
---@param chat CodeCompanion.Chat
function M.load(chat)
  if not api.nvim_buf_is_loaded(chat.bufnr) then
    vim.fn.bufload(chat.bufnr)
  end
end

---Return an unused chat with an empty draft.
---@return CodeCompanion.Chat?
local function unused()
  for _, chat in ipairs(registry.list()) do
    if not chat.stored and api.nvim_buf_is_loaded(chat.bufnr) and not new_chat.has_content(chat) then
      return chat
    end
  end
end

---Open a new chat. It is drawn first; the host is asked afterwards. With `reuse`, an unused chat with an empty draft
---is shown instead.
---@param opts? { adapter?: string, model?: string, layout?: string, text?: string, hidden?: boolean, reuse?: boolean }
---@return CodeCompanion.Chat
function M.open(opts)
  opts = opts or {}
  local waiting = opts.reuse and unused()
  if waiting then
    registry.last = waiting
    new_chat.show(waiting, opts.layout)
    if opts.text and opts.text ~= "" then
      draft.set(waiting, opts.text)
    end
    return waiting
  end
  local chat = create()
  registry.last = chat
  if opts.text and opts.text ~= "" then
    draft.set(chat, opts.text)
  end
  if not opts.hidden then
    unsent.give_back(chat)
    new_chat.show(chat, opts.layout)
  end
  vim.schedule(function()
    choice.when_known(require("codecompanion.config").options, function()
      attach(chat, opts)
    end)
  end)
  return chat
end

---Hide a chat, which keeps running.
---@param chat CodeCompanion.Chat
function M.hide(chat)
  draft.save(chat)
  window.hide(chat)
end

---Show the last chat, or hide it if it is visible; open a new one if there is none.
---@param opts? { layout?: string }
---@return CodeCompanion.Chat
function M.toggle(opts)
  local chat = registry.current()
  if not chat then
    return M.open(opts)
  end
  if #shown.visible(chat) > 0 then
    M.hide(chat)
  else
    M.load(chat)
    window.open(chat, opts and opts.layout)
  end
  return chat
end

---Show a chat.
---@param chat CodeCompanion.Chat
---@param layout? string
function M.show(chat, layout)
  registry.last = chat
  M.load(chat)
  window.open(chat, layout)
end

---Open a stored chat, which may already be open, and show it unless `hidden` is set.
---@param id string
---@param opts? { layout?: string, hidden?: boolean }
function M.open_stored(id, opts)
  local present, is_hidden = registry.by_id(id), opts and opts.hidden
  if present and is_hidden then
    registry.last = present
    return
  elseif present then
    return M.show(present, opts and opts.layout)
  end
  local is_asked = host.status() == "ready"
  local chat = create(id, nil, function(made)
    made.stored = true
    if is_asked then
      attach(made) -- a running host reads the chat while its window is created
    end
  end)
  registry.last = chat
  if not is_hidden then
    window.open(chat, opts and opts.layout)
  end
  if not is_asked then
    vim.schedule(function()
      attach(chat)
    end)
  end
end

---Show a stored chat in the windows of another one, which stays open.
---@param chat CodeCompanion.Chat
---@param id string Id of the stored chat
---@return CodeCompanion.Chat target
function M.replace(chat, id)
  local target = registry.by_id(id)
  if not target then
    target = create(id)
    target.stored = true
    vim.schedule(function()
      attach(target)
    end)
  end
  target.replaced, chat.replaced = target.replaced or chat.replaced, nil
  for _, win in ipairs(vim.fn.win_findbuf(chat.bufnr)) do
    folds.remember(chat, win)
    window.put(win, target.bufnr)
    view.cursor_to_input(target, win)
  end
  registry.last = target
  return target
end

---Show the next (1) or previous (-1) chat in this chat's window.
---@param chat CodeCompanion.Chat
---@param step 1|-1
function M.cycle(chat, step)
  local chats = registry.list()
  if #chats < 2 then
    return say.hint("No other chat is open · /resume lists earlier ones")
  end
  for index, other in ipairs(chats) do
    if other == chat then
      local target = chats[(index - 1 + step) % #chats + 1]
      folds.remember(chat, api.nvim_get_current_win())
      M.load(target)
      window.put(0, target.bufnr)
      registry.last = target
      return new_chat.went_on(chat)
    end
  end
end

---Close a chat (by default the current one): its buffer is deleted, its history and draft are kept.
---@param chat? CodeCompanion.Chat
function M.close(chat)
  chat = chat or registry.current()
  if not chat then
    return
  end
  draft.save(chat)
  window.hide(chat)
  if api.nvim_buf_is_valid(chat.bufnr) then
    api.nvim_buf_delete(chat.bufnr, { force = true })
  end
end

---Close a chat in the host after its buffer was deleted.
---@param chat CodeCompanion.Chat
function M.forget(chat)
  if not registry.remove(chat) then
    return
  end
  chat.closed = true
  local was_busy = status.is_busy(chat)
  draft.close(chat)
  activity.stop_retry(chat)
  if chat.attached ~= "no" then
    host.notify("close_chat", { chat = chat.id })
  end
  if was_busy and vim.v.exiting == vim.NIL then
    local back = ":CodeCompanionChat Resume reopens it."
    say.line({ "Chat closed, its turn stopped; " .. back, "Chat closed; " .. back })
  end
  require("codecompanion.chat.state.autocmds").fire(chat, "ChatClosed")
end

return M
