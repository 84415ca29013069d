---Opens Neovim's completion menu when `/`, `@`, `@{` or `#{` is typed in the input, unless a completion plugin is
---active, which then shows the entries of its source (`completion/`). Nothing is selected or inserted
---until the user chooses an entry. While the menu is open, `<CR>` accepts the selected entry; if none is selected, it
---closes the menu and acts as usual.

local api = vim.api

local completion = require("codecompanion.chat.ui.complete_input")

local M = {}

---@class CodeCompanion.AutomaticMenu
---@field opened? { [1]: integer, [2]: integer } 0-based row and byte column of the text completed last
---@field show fun() Open the menu, or open it again with new entries
---@field former? { where: table, completeopt: string, enter?: table } 'completeopt' and the buffer's mapping of
---`<CR>` before the menu was opened

local OMNIFUNC = "v:lua.require'codecompanion.chat.ui.complete_input'.omnifunc"
local COMPLETEOPT = { "menuone", "noinsert", "noselect" }
---Flags of the user's 'completeopt' that also apply to this menu.
local KEPT = { "fuzzy", "nosort", "popup", "preview" }

---Return whether blink.cmp, if loaded, is enabled in the current buffer.
---@return boolean
local function is_blink_enabled()
  if not package.loaded["blink.cmp"] then
    return false
  end
  local ok, is_enabled = pcall(function()
    return require("blink.cmp.config").enabled()
  end)
  return not ok or is_enabled ~= false
end

---Return whether nvim-cmp, if loaded, is enabled in the current buffer.
---@return boolean
local function is_cmp_enabled()
  local cmp = package.loaded.cmp
  if not cmp then
    return false
  end
  local ok, is_enabled = pcall(function()
    local enabled = cmp.get_config().enabled
    return type(enabled) == "function" and enabled() or enabled
  end)
  return not ok or is_enabled ~= false
end

---Return whether Neovim 0.12 completes the current buffer with 'omnifunc' while the user types.
---@return boolean
local function is_neovim_automatic()
  local ok, is_on = pcall(api.nvim_get_option_value, "autocomplete", {}) -- unknown before 0.12
  return ok and is_on and vim.list_contains(vim.split(vim.bo.complete, ","), "o")
end

---@return boolean
local function is_coc_enabled()
  return vim.g.coc_enabled == 1 and vim.b.coc_suggest_disable ~= 1
end

---Return whether the menu of Neovim completes the current buffer.
---@return boolean
local function is_ours()
  if vim.bo.omnifunc ~= OMNIFUNC or is_neovim_automatic() then
    return false
  end
  local provider = require("codecompanion.config").options.interactions.chat.opts.completion_provider
  if provider then
    return provider == "default"
  end
  return not is_blink_enabled() and not is_cmp_enabled() and not is_coc_enabled()
end

---Return whether the text before the cursor ends with characters that open the menu.
---@param before string
---@return boolean
local function is_trigger(before)
  return before == "/" or before:find("[#@]{$") ~= nil or before:find("@$") ~= nil
end

---Return whether a menu is open, or about to be drawn. Neovim 0.12 with 'autocomplete' is in the mode `keyword` also
---without a menu.
---@return boolean
local function is_completing()
  local mode = vim.fn.complete_info({ "mode" }).mode
  return vim.fn.pumvisible() == 1 or (mode ~= "" and mode ~= "keyword")
end

---Restore 'completeopt' and the mapping of `<CR>`.
---@param chat CodeCompanion.Chat
local function restore(chat)
  local former = chat.automatic_menu.former
  if not former or not api.nvim_buf_is_valid(chat.bufnr) then
    return
  end
  chat.automatic_menu.former = nil
  api.nvim_set_option_value("completeopt", former.completeopt, former.where)
  api.nvim_buf_call(chat.bufnr, function()
    pcall(vim.keymap.del, "i", "<CR>", { buffer = chat.bufnr })
    if former.enter then
      vim.fn.mapset("i", false, former.enter)
    end
  end)
end

---Handle `<CR>` in the menu: accept the selected entry, or close the menu and type the key again.
---@param chat CodeCompanion.Chat
local function press_enter(chat)
  local closes = is_completing()
  if closes and vim.fn.complete_info({ "selected" }).selected >= 0 then
    return api.nvim_feedkeys(vim.keycode("<C-y>"), "ni", false)
  end
  restore(chat)
  api.nvim_feedkeys(vim.keycode("<CR>"), "mi", false)
  if closes then
    api.nvim_feedkeys(vim.keycode("<C-e>"), "ni", false)
  end
end

---Set 'completeopt' and map `<CR>` for the next menu. The option is set in the buffer, or globally where it has no
---local value (Neovim 0.10).
---@param chat CodeCompanion.Chat
local function prepare(chat)
  if chat.automatic_menu.former then
    return
  end
  local is_local = api.nvim_get_option_info2("completeopt", {}).global_local
  local own = is_local and vim.bo[chat.bufnr].completeopt or vim.go.completeopt
  local kept = vim.tbl_filter(function(flag)
    return vim.list_contains(KEPT, flag)
  end, vim.split(own ~= "" and own or vim.go.completeopt, ","))
  local where = is_local and { buf = chat.bufnr } or {}
  local enter = vim.fn.maparg("<CR>", "i", false, true)
  chat.automatic_menu.former = { where = where, completeopt = own, enter = enter.buffer == 1 and enter or nil }
  api.nvim_set_option_value("completeopt", table.concat(vim.list_extend(kept, COMPLETEOPT), ","), where)
  vim.keymap.set("i", "<CR>", function()
    press_enter(chat)
  end, { buffer = chat.bufnr, desc = "Accept the selected entry" })
end

---@param chat CodeCompanion.Chat
local function show(chat)
  prepare(chat)
  local is_active = vim.fn.complete_info({ "mode" }).mode ~= ""
  api.nvim_feedkeys(vim.keycode(is_active and "<C-e><C-x><C-o>" or "<C-x><C-o>"), "ni", false)
end

---Open the menu if the typed character asks for it, or if a character was deleted where the menu was open.
---@param chat CodeCompanion.Chat
---@param is_typed boolean A character was typed, not deleted or pasted
local function open(chat, is_typed)
  local opened = chat.automatic_menu.opened
  local cursor = api.nvim_win_get_cursor(0)
  local row, before = cursor[1] - 1, api.nvim_get_current_line():sub(1, cursor[2])
  if not (is_typed and is_trigger(before)) and (is_typed or not opened) then
    return
  elseif vim.fn.reg_executing() ~= "" or vim.fn.reg_recording() ~= "" or is_completing() or not is_ours() then
    return
  end
  local from, items = completion.items(chat, row, before)
  if from and #items > 0 and (is_typed or vim.deep_equal(opened, { row, from })) then
    chat.automatic_menu.opened = { row, from }
    show(chat)
  end
end

---Open the menu automatically in a chat's buffer.
---@param chat CodeCompanion.Chat
function M.set(chat)
  local group, is_typed = "codecompanion.chat." .. chat.bufnr, false
  chat.automatic_menu = {
    show = function()
      show(chat)
    end,
  }

  ---@param event string|string[]
  ---@param callback fun()
  local function on(event, callback)
    api.nvim_create_autocmd(event, { group = group, buffer = chat.bufnr, callback = callback })
  end

  ---@param forget boolean Do not reopen the menu where the last one was
  local function closed(forget)
    if not is_completing() then
      chat.automatic_menu.opened = not forget and chat.automatic_menu.opened or nil
      restore(chat)
    end
  end

  on("InsertCharPre", function()
    is_typed = true
  end)
  on("TextChangedI", function()
    local typed = is_typed
    is_typed = false
    closed(false) -- for lack of entries, which is not an event
    open(chat, typed)
  end)
  on("TextChangedP", function()
    is_typed = false
  end)
  on("CompleteDone", function()
    local word = vim.v.completed_item.word
    if word and not word:find("[/:]$") then
      chat.automatic_menu.opened = nil -- nothing follows this entry
    end
    vim.schedule(function() -- it may open again with the files of the project
      closed(true)
    end)
  end)
  on({ "InsertLeave", "BufLeave" }, function()
    closed(true)
  end)
end

return M
