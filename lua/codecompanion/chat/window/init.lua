---Opens and manages the windows of chats: vertical, horizontal, float, tab or buffer.

local api = vim.api
local activity = require("codecompanion.chat.draw.activity")
local anchors = require("codecompanion.chat.buffer.anchors")
local covering = require("codecompanion.chat.window.covering")
local folds = require("codecompanion.chat.buffer.folds")
local hint = require("codecompanion.chat.buffer.input_hint")
local layout = require("codecompanion.chat.window.layout")
local options = require("codecompanion.chat.state.chat_options")
local registry = require("codecompanion.chat.state.open_chats")
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")
local shown = require("codecompanion.chat.buffer.shown")
local view = require("codecompanion.chat.buffer.scroll")

local M = {}

---Set the window-local options of a chat window.
---@param chat CodeCompanion.Chat
---@param win integer
function M.dress(chat, win)
  local config = options.display().window
  local values = vim.tbl_extend("force", {
    foldcolumn = "0",
    foldenable = true,
    foldlevel = 0,
    foldmethod = "manual",
    foldtext = "v:lua.require'codecompanion.chat.buffer.folds'.text()",
    list = false,
    number = false,
    relativenumber = false,
    signcolumn = "no",
  }, shown.bars(win), config.opts or {})
  for name, value in pairs(values) do
    -- an option that already has its value is not set: setting 'foldlevel' closes folds opened by the user. But Neovim
    -- 0.12 gives a float its status line only when the option is set, not when it is copied from its buffer's last
    -- window
    local is_so, present = pcall(api.nvim_get_option_value, name, { scope = "local", win = win })
    local ok, problem = is_so and present == value and name ~= "statusline", nil
    if not ok then
      ok, problem = pcall(api.nvim_set_option_value, name, value, { scope = "local", win = win })
    end
    if not ok then
      say.once(("display.chat.window.opts.%s: %s"):format(name, problem), severity.WARN)
    end
  end
  api.nvim_win_call(win, function()
    vim.opt_local.fillchars:append({ fold = " " })
    vim.opt_local.winhighlight:append({ Folded = "CodeCompanionFold" })
  end)
  api.nvim_win_set_var(win, "codecompanion_chat", chat.bufnr)
  if not folds.are_kept(chat, win) then
    folds.apply(chat, win)
  end
  M.watch_sizes()
  M.refit(chat)
end

---Reposition the virtual text of a chat after a resize.
---@param chat CodeCompanion.Chat
function M.refit(chat)
  if api.nvim_buf_is_loaded(chat.bufnr) then
    activity.draw(chat)
    hint.draw(chat)
    if next(chat.context_items) then -- do not load modules that have nothing to draw in a new chat
      require("codecompanion.chat.draw.context_block").refit(chat)
    end
    if next(chat.changes) then
      require("codecompanion.chat.draw.card").refit(chat)
    end
    if #chat.approvals > 0 then
      require("codecompanion.chat.question.approval").refit(chat)
    end
  end
end

---Handle a resized editor: floats use the available space, splits follow `layout.resized`. A split that the user has
---widened is not narrowed.
local function resize()
  local config = options.display().window
  for _, win in ipairs(api.nvim_list_wins()) do
    local opened_as = vim.w[win].codecompanion_layout
    if opened_as == "float" and api.nvim_win_get_config(win).relative ~= "" then
      api.nvim_win_set_config(win, layout.float(config))
    elseif opened_as == "vertical" then
      local width, was = api.nvim_win_get_width(win), vim.w[win].codecompanion_width
      local wanted = layout.resized(config, width)
      if wanted and (not was or width <= was or wanted > width) then
        api.nvim_win_set_width(win, wanted)
        api.nvim_win_set_var(win, "codecompanion_width", api.nvim_win_get_width(win))
      end
    end
  end
end

local watching = false

---Watch the sizes of the editor and its windows, starting with the first chat window.
function M.watch_sizes()
  if watching then
    return
  end
  watching = true
  local group = api.nvim_create_augroup("codecompanion.window", {})
  api.nvim_create_autocmd("VimResized", { group = group, callback = resize })
  local give_way = vim.schedule_wrap(function()
    covering.give_way(M.hide)
  end)
  api.nvim_create_autocmd("WinEnter", { group = group, callback = give_way })
  local refit_all = vim.schedule_wrap(function(args)
    for _, chat in ipairs(registry.list()) do
      shown.update_bars(chat)
      M.refit(chat)
      if args.event == "WinResized" then
        view.follow(chat, view.followers(chat)) -- a window that opens below would leave only the input visible
      end
    end
  end)
  api.nvim_create_autocmd({ "VimResized", "WinResized", "WinClosed" }, { group = group, callback = refit_all })
  -- by name: every machine edit sets options, and a callback for each would be slow
  local bars = { "laststatus", "winbar", "statusline" }
  api.nvim_create_autocmd("OptionSet", { group = group, pattern = bars, callback = refit_all })
end

---Set up a window that starts to show the chat, unless that was already done.
---@param chat CodeCompanion.Chat
---@param win integer
function M.entered(chat, win)
  if vim.w[win].codecompanion_chat == chat.bufnr then
    return
  elseif api.nvim_win_get_config(win).relative == "" then
    return M.dress(chat, win)
  end
  -- a float that is being opened briefly shows the previous buffer
  vim.schedule(function()
    if api.nvim_win_is_valid(win) and api.nvim_win_get_buf(win) == chat.bufnr then
      M.dress(chat, win)
    end
  end)
end

---@return integer[] wins The vertical splits with chats in this tab page
local function chat_splits()
  return vim.tbl_filter(function(win)
    local is_chat = registry.by_buffer(api.nvim_win_get_buf(win)) ~= nil
    return is_chat and vim.w[win].codecompanion_layout == "vertical"
  end, api.nvim_tabpage_list_wins(0))
end

---Return the split of another chat to reuse if a further split would leave too little space for both.
---@param config table
---@return integer? win
local function shared_split(config)
  local splits = chat_splits()
  if config.layout == "vertical" and not layout.has_room_for(config, #splits + 1) then
    return splits[#splits]
  end
end

---Set whether splits of chats keep their width when windows are equalised ('equalalways'); the user's option takes
---precedence.
---@param wins integer[]
---@param keep boolean
local function keep_width(wins, keep)
  if (options.display().window.opts or {}).winfixwidth == nil then
    for _, win in ipairs(wins) do
      api.nvim_set_option_value("winfixwidth", keep, { scope = "local", win = win })
    end
  end
end

---Open a split of the requested size, although Neovim equalises all windows when one is added. A second chat shares the
---space of the first one; Neovim 0.12 would take all of its width from the first.
---@param chat CodeCompanion.Chat
---@param config table
local function open_split(chat, config)
  local others, wanted = chat_splits(), layout.split(config)
  keep_width(others, false)
  local win = api.nvim_open_win(chat.bufnr, true, wanted)
  if wanted.width and #others == 0 then
    api.nvim_win_set_width(win, wanted.width)
    keep_width({ win }, true)
  end
  if vim.o.equalalways and config.layout == "vertical" then
    vim.cmd("horizontal wincmd =")
  end
  keep_width(others, true)
  if config.layout == "vertical" then
    keep_width({ win }, true)
    api.nvim_win_set_var(win, "codecompanion_width", api.nvim_win_get_width(win))
  end
end

---Show another buffer in a chat window. 'winfixbuf' blocks other buffers, not chats.
---@param win integer 0 = the current one
---@param bufnr integer
function M.put(win, bufnr)
  local fixed = vim.wo[win].winfixbuf
  vim.wo[win].winfixbuf = false
  api.nvim_win_set_buf(win, bufnr)
  if fixed then
    vim.wo[win].winfixbuf = true
  end
end

---Show the chat and move the cursor to it.
---@param chat CodeCompanion.Chat
---@param layout_name? string A layout that overrides the configured one
---@return integer win
function M.open(chat, layout_name)
  local present = shown.visible(chat)[1]
  if present then
    api.nvim_set_current_win(present)
    return present
  end
  local config = vim.tbl_extend("force", options.display().window, layout_name and { layout = layout_name } or {})
  local here = api.nvim_get_current_win()
  local layout_used, taken = layout.with_room(config)
  config.layout = layout_used
  local shared = shared_split(config)
  if shared then
    folds.remember(assert(registry.by_buffer(api.nvim_win_get_buf(shared))), shared)
    M.put(shared, chat.bufnr)
    api.nvim_set_current_win(shared)
  elseif config.layout == "tab" then
    vim.cmd(("tab sbuffer %d"):format(chat.bufnr))
  elseif config.layout == "here" then
    M.put(0, chat.bufnr)
  elseif config.layout == "buffer" then
    taken = taken or here
    chat.replaced = api.nvim_win_get_buf(taken)
    M.put(taken, chat.bufnr)
    api.nvim_set_current_win(taken)
    covering.survive_quit(chat)
  elseif config.layout == "float" then
    api.nvim_open_win(chat.bufnr, true, layout.float(config))
  else
    open_split(chat, config)
  end
  local win = api.nvim_get_current_win()
  if win ~= taken or api.nvim_win_get_config(win).relative == "" then -- else a float that shows another chat
    api.nvim_win_set_var(win, "codecompanion_layout", config.layout)
    api.nvim_win_set_var(win, "codecompanion_opened_from", here)
  end
  if vim.w[win].codecompanion_chat ~= chat.bufnr then -- usually done when it starts to show the chat
    M.dress(chat, win)
  end
  if chat.view then
    pcall(api.nvim_win_set_cursor, win, chat.view)
  else
    view.cursor_to_input(chat, win)
  end
  view.follow(chat, view.followers(chat))
  if options.display().start_in_insert_mode then
    vim.cmd.startinsert({ bang = true })
  end
  return win
end

---Show the chat in the new tab page when the user changes tab pages (`display.chat.window.sticky`).
---@param chat CodeCompanion.Chat
---@param from integer The previous tab page
function M.follow_tab(chat, from)
  local here = api.nvim_get_current_win()
  if not api.nvim_tabpage_is_valid(from) or #shown.visible(chat) > 0 then
    return
  end
  for _, win in ipairs(api.nvim_tabpage_list_wins(from)) do
    if api.nvim_win_get_buf(win) == chat.bufnr and #api.nvim_tabpage_list_wins(from) > 1 then
      folds.remember(chat, win)
      api.nvim_win_close(win, true)
      M.open(chat)
      api.nvim_set_current_win(here)
      return
    end
  end
end

---Hide the chat in this tab page; the buffer is kept.
---@param chat CodeCompanion.Chat
function M.hide(chat)
  for _, win in ipairs(shown.visible(chat)) do
    folds.remember(chat, win)
    chat.hiding = win
    chat.view = nil
    local cursor = api.nvim_win_get_cursor(win)
    if cursor[1] - 1 < anchors.position(chat, "header") then
      chat.view = cursor
    end
    local others = vim.tbl_filter(function(other)
      return other ~= win and api.nvim_win_get_config(other).relative == ""
    end, api.nvim_tabpage_list_wins(0))
    if chat.replaced and api.nvim_buf_is_valid(chat.replaced) then
      local from = vim.w[win].codecompanion_opened_from
      M.put(win, chat.replaced)
      if win == api.nvim_get_current_win() and vim.list_contains(others, from) then
        api.nvim_set_current_win(from)
      end
    elseif #others > 0 or #api.nvim_list_tabpages() > 1 then
      api.nvim_win_close(win, true)
    else
      api.nvim_win_call(win, vim.cmd.enew)
    end
  end
  chat.replaced, chat.hiding = nil, nil
end

return M
