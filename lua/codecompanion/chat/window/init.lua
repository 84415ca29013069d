---Where a chat is shown: vertical, horizontal, float, tab or buffer.

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

---The window-local options of a chat window.
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
    statusline = shown.is_plain_statusline() and shown.STATUSLINE or "", -- a status line of the user's own stays
    winbar = shown.wants_winbar(win) and shown.WINBAR or nil,
  }, config.opts or {})
  for name, value in pairs(values) do
    -- one that is so already is left alone: to set 'foldlevel' closes what the user opened. But Neovim 0.12 gives a
    -- float its status line only when the option is set, not when it takes it over from the last window of its buffer.
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

---Place the virtual text of a chat again: there is more room, or less.
---@param chat CodeCompanion.Chat
function M.refit(chat)
  if api.nvim_buf_is_loaded(chat.bufnr) then
    activity.draw(chat)
    hint.draw(chat)
    if next(chat.context_items) then -- a new chat need not wait for modules that have nothing to place
      require("codecompanion.chat.draw.context_block").refit(chat)
    end
    if next(chat.changes) then
      require("codecompanion.chat.draw.card").refit(chat)
    end
  end
end

---The editor has another size: floats take the room there is, splits what `layout.resized` says. One that the user made
---wider than it was opened is not made narrower.
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

---Follow the sizes of editor and windows, from the first chat window on.
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
      M.refit(chat)
      if args.event == "WinResized" then
        view.follow(chat, view.followers(chat)) -- a window that opens below leaves only the input in sight
      end
    end
  end)
  api.nvim_create_autocmd({ "VimResized", "WinResized", "WinClosed" }, { group = group, callback = refit_all })
  -- by name: every edit of ours sets options, and a callback for each of them would be felt
  local bars = { "laststatus", "winbar", "statusline" }
  api.nvim_create_autocmd("OptionSet", { group = group, pattern = bars, callback = refit_all })
end

---A window began to show the chat: dress it, unless it is dressed.
---@param chat CodeCompanion.Chat
---@param win integer
function M.entered(chat, win)
  if vim.w[win].codecompanion_chat == chat.bufnr then
    return
  elseif api.nvim_win_get_config(win).relative == "" then
    return M.dress(chat, win)
  end
  -- a float that is being opened shows the buffer it was opened from for a moment
  vim.schedule(function()
    if api.nvim_win_is_valid(win) and api.nvim_win_get_buf(win) == chat.bufnr then
      M.dress(chat, win)
    end
  end)
end

---@return integer[] wins The vertical splits of chats in this tab page
local function chat_splits()
  return vim.tbl_filter(function(win)
    local is_chat = registry.by_buffer(api.nvim_win_get_buf(win)) ~= nil
    return is_chat and vim.w[win].codecompanion_layout == "vertical"
  end, api.nvim_tabpage_list_wins(0))
end

---The split of another chat, where one more beside it would leave too little for each: the chats then share it.
---@param config table
---@return integer? win
local function shared_split(config)
  local splits = chat_splits()
  if config.layout == "vertical" and not layout.has_room_for(config, #splits + 1) then
    return splits[#splits]
  end
end

---Whether splits of chats keep their width while others are made equal ('equalalways'); an option of the user's counts.
---@param wins integer[]
---@param keep boolean
local function keep_width(wins, keep)
  if (options.display().window.opts or {}).winfixwidth == nil then
    for _, win in ipairs(wins) do
      api.nvim_set_option_value("winfixwidth", keep, { scope = "local", win = win })
    end
  end
end

---Show the chat in a split of the size that was asked for: Neovim makes all windows equal when there is one more. A
---second chat shares with the first, and Neovim 0.12 would take all of its width from there.
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

---Give a window that shows a chat another buffer. 'winfixbuf' keeps others out of it, not the chats.
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

---Show the chat and put the cursor there.
---@param chat CodeCompanion.Chat
---@param wish? string A layout other than the configured one
---@return integer win
function M.open(chat, wish)
  local present = shown.visible(chat)[1]
  if present then
    api.nvim_set_current_win(present)
    return present
  end
  local config = vim.tbl_extend("force", options.display().window, wish and { layout = wish } or {})
  config.layout = layout.with_room(config)
  if config.layout == "buffer" and vim.wo.winfixbuf then
    config.layout = "float" -- this window is for its buffer only
  end
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
    chat.replaced = api.nvim_get_current_buf()
    api.nvim_set_current_buf(chat.bufnr)
    covering.survive_quit(chat)
  elseif config.layout == "float" then
    api.nvim_open_win(chat.bufnr, true, layout.float(config))
  else
    open_split(chat, config)
  end
  local win = api.nvim_get_current_win()
  api.nvim_win_set_var(win, "codecompanion_layout", config.layout)
  if vim.w[win].codecompanion_chat ~= chat.bufnr then -- most are dressed already: they have begun to show the chat
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

---The chat moves along when the user changes the tab page (`display.chat.window.sticky`).
---@param chat CodeCompanion.Chat
---@param from integer Tab page that was left
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

---Take the chat off the screen of this tab page; the buffer stays.
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
      M.put(win, chat.replaced)
    elseif #others > 0 or #api.nvim_list_tabpages() > 1 then
      api.nvim_win_close(win, true)
    else
      api.nvim_win_call(win, vim.cmd.enew)
    end
  end
  chat.replaced, chat.hiding = nil, nil
end

return M
