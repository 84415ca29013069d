---Where a chat is shown: vertical, horizontal, float, tab or buffer.

local api = vim.api
local folds = require("codecompanion.chat.folds")
local options = require("codecompanion.chat.options")

local M = {}

---@param size number|fun(): number
---@param whole integer
---@return integer
local function cells(size, whole)
  if type(size) == "function" then
    size = size()
  end
  size = size <= 1 and size * whole or size
  return math.max(1, math.floor(size))
end

---@param config table display.chat.window
---@return table
local function float_config(config)
  local columns, rows = vim.o.columns, vim.o.lines - vim.o.cmdheight - 1
  local width = math.min(cells(config.width, columns), columns - 2)
  local height = math.min(cells(config.height, rows), rows - 2)
  return {
    relative = config.relative,
    width = math.max(10, width),
    height = math.max(3, height),
    row = math.max(0, math.floor((rows - height) / 2)),
    col = math.max(0, math.floor((columns - width) / 2)),
    border = config.border,
    title = " CodeCompanion ",
  }
end

---@param config table
---@return table
local function split_config(config)
  if config.layout == "horizontal" then
    local side = config.position == "top" and "above"
      or config.position == "bottom" and "below"
      or (vim.o.splitbelow and "below" or "above")
    return { split = side, win = -1, height = cells(config.height, vim.o.lines) }
  end
  local side = config.position == "left" and "left"
    or config.position == "right" and "right"
    or (vim.o.splitright and "right" or "left")
  return { split = side, win = config.full_height and -1 or 0, width = cells(config.width, vim.o.columns) }
end

---The windows of this tab page that show the chat.
---@param chat CodeCompanion.Chat
---@return integer[]
function M.visible(chat)
  return vim.tbl_filter(function(win)
    return api.nvim_win_get_buf(win) == chat.bufnr
  end, api.nvim_tabpage_list_wins(0))
end

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
    foldtext = "v:lua.require'codecompanion.chat.folds'.text()",
    list = false,
    number = false,
    relativenumber = false,
    signcolumn = "no",
    statusline = vim.go.statusline == api.nvim_get_option_info2("statusline", {}).default
        and "%{%v:lua.require'codecompanion.chat.status'.line()%}"
      or "", -- a status line of the user's own stays
  }, config.opts or {})
  for name, value in pairs(values) do
    local ok, problem = pcall(api.nvim_set_option_value, name, value, { scope = "local", win = win })
    if not ok then
      vim.notify_once(("display.chat.window.opts.%s: %s"):format(name, problem), vim.log.levels.WARN)
    end
  end
  api.nvim_win_call(win, function()
    vim.opt_local.fillchars:append({ fold = " " })
    vim.opt_local.winhighlight:append({ Folded = "CodeCompanionFold" })
  end)
  api.nvim_win_set_var(win, "codecompanion_chat", chat.bufnr)
  folds.apply(chat, win)
end

---A window began to show the chat: dress it, unless it is dressed.
---@param chat CodeCompanion.Chat
---@param win integer
function M.entered(chat, win)
  if vim.w[win].codecompanion_chat ~= chat.bufnr then
    M.dress(chat, win)
  end
end

---Show the chat and put the cursor there.
---@param chat CodeCompanion.Chat
---@param layout? string
---@return integer win
function M.open(chat, layout)
  local shown = M.visible(chat)[1]
  if shown then
    api.nvim_set_current_win(shown)
    return shown
  end
  local config = vim.tbl_extend("force", options.display().window, layout and { layout = layout } or {})
  if config.layout == "tab" then
    vim.cmd(("tab sbuffer %d"):format(chat.bufnr))
  elseif config.layout == "here" then
    api.nvim_win_set_buf(0, chat.bufnr)
  elseif config.layout == "buffer" then
    chat.replaced = api.nvim_get_current_buf()
    api.nvim_set_current_buf(chat.bufnr)
  elseif config.layout == "float" then
    api.nvim_open_win(chat.bufnr, true, float_config(config))
  else
    api.nvim_open_win(chat.bufnr, true, split_config(config))
  end
  local win = api.nvim_get_current_win()
  M.dress(chat, win)
  if chat.view then
    pcall(api.nvim_win_set_cursor, win, chat.view)
  else
    require("codecompanion.chat.outgoing").cursor_to_input(chat, win)
  end
  require("codecompanion.chat.view").follow(chat, require("codecompanion.chat.view").followers(chat))
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
  if not api.nvim_tabpage_is_valid(from) or #M.visible(chat) > 0 then
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
  for _, win in ipairs(M.visible(chat)) do
    folds.remember(chat, win)
    chat.view = nil
    local cursor = api.nvim_win_get_cursor(win)
    if cursor[1] - 1 < require("codecompanion.chat.buffer").position(chat, "header") then
      chat.view = cursor
    end
    local others = vim.tbl_filter(function(other)
      return other ~= win and api.nvim_win_get_config(other).relative == ""
    end, api.nvim_tabpage_list_wins(0))
    if chat.replaced and api.nvim_buf_is_valid(chat.replaced) then
      api.nvim_win_set_buf(win, chat.replaced)
    elseif #others > 0 or #api.nvim_list_tabpages() > 1 then
      api.nvim_win_close(win, true)
    else
      api.nvim_win_call(win, vim.cmd.enew)
    end
  end
  chat.replaced = nil
end

return M
