---Shows hints in an empty input: how to send, and the intro of an empty chat.

local api = vim.api
local anchors = require("codecompanion.chat.buffer.anchors")
local choice = require("codecompanion.adapters.default_adapter")
local fit = require("codecompanion.text.fit")
local keys = require("codecompanion.chat.state.configured_keys")
local options = require("codecompanion.chat.state.chat_options")
local registry = require("codecompanion.chat.state.open_chats")
local title = require("codecompanion.chat.state.chat_title")
local view = require("codecompanion.chat.buffer.scroll")

local M = {}

local MIN_TITLE = 16 -- cells of the title of an earlier chat
local UNSENT = 4 -- 1 is the sending hint, 2 and 3 belong to `draft`

---Marks of the input, including those of `draft`.
M.ns = api.nvim_create_namespace("codecompanion.chat.hint")

---Return the hint of an empty input: how to send, or that another Neovim owns the chat and when sending will work.
---@param chat CodeCompanion.Chat
---@return string
local function words(chat)
  if not chat.read_only then
    local all = keys.hint(math.huge)
    return fit.certainly_fits(chat, api.nvim_strwidth(all) + 1) and all or keys.hint(fit.narrowest(chat) - 1)
  end
  local width = fit.narrowest(chat) - 1
  local send, owned = keys.keys("send", "n")[1], "open in another Neovim"
  local when = send and ("%s · %s sends once it is closed there"):format(owned, send) or owned
  return api.nvim_strwidth(when) <= width and when or fit.cut(owned, width)
end

local NO_MODEL = "No model is set up: %s chooses one."

---@type table<CodeCompanion.Chat, { name: string, text: string? }> Result for the adapter of each chat
local found = setmetatable({}, { __mode = "k" })

---Return the message that an empty chat shows about its automatically chosen adapter.
---@param chat CodeCompanion.Chat
---@param is_seen boolean Whether the user sees the message before anything is sent
---@return string? text nil if the chat has another adapter
local function chosen(chat, is_seen)
  local config = require("codecompanion.config").options
  local made = choice.is_automatic(config) and choice.now(config)
  if not made or not made.is_usable or (chat.adapter ~= "" and chat.adapter ~= made.name) then
    return nil
  elseif chat.model ~= "" and made.model ~= "" and chat.model ~= made.model then
    return nil
  end
  made.is_told = made.is_told or (is_seen and #chat.outgoing == 0)
  return choice.sentence(made, keys.keys("change_adapter", "n")[1])
end

---Return the message that an empty chat shows about its adapter: why it was chosen, or that it lacks a model, a key or
---a login.
---@param chat CodeCompanion.Chat
---@param is_seen boolean
---@return string?
local function about_adapter(chat, is_seen)
  local config = require("codecompanion.config").options
  if chat.adapter == "" and choice.is_automatic(config) and not choice.now(config) then
    vim.schedule(function() -- not before the first redraw
      choice.make(config, function()
        if api.nvim_buf_is_loaded(chat.bufnr) then
          M.draw(chat, true)
        end
      end)
    end)
    return nil
  end
  local why = chosen(chat, is_seen)
  if why then
    return why
  end
  local name = chat.adapter ~= "" and chat.adapter or choice.reference(config)
  if not found[chat] or found[chat].name ~= name then
    local needs = require("codecompanion.adapters.readiness").of(name, config.adapters.http)
    local lacks = needs.state ~= "ready" and needs.state ~= "server"
    local key = keys.keys("change_adapter", "n")[1]
    local other = key and (" · %s chooses another one"):format(key) or ""
    local no_model = NO_MODEL:format(key or ":CodeCompanion adapter")
      .. (choice.is_automatic(config) and " A local server is used once it runs." or "")
    local text = needs.state == "offline" and no_model or ("%s: %s%s"):format(name, needs.text, other)
    found[chat] = { name = name, text = lacks and text or nil }
  end
  return found[chat].text
end

---Show below a long input that it was not sent, and why, when the notice above it is scrolled out of view.
---@param chat CodeCompanion.Chat
local function tell_unsent(chat)
  local said
  for _, notice in ipairs(chat.notices) do
    said = notice.holds_until == "input" and notice.text or said
  end
  local is_told = said ~= nil and view.input_fills_window(chat)
  local lines = is_told and fit.wrap("✗ " .. said, fit.narrowest(chat)) or {}
  chat.rows_below = #lines
  if #lines == 0 then
    api.nvim_buf_del_extmark(chat.bufnr, M.ns, UNSENT)
    return
  end
  api.nvim_buf_set_extmark(chat.bufnr, M.ns, api.nvim_buf_line_count(chat.bufnr) - 1, 0, {
    id = UNSENT,
    virt_lines = vim.tbl_map(function(line)
      return { { line, "CodeCompanionError" } }
    end, lines),
  })
  view.follow(chat, view.followers(chat)) -- Neovim keeps the cursor visible, but not virtual lines below it
end

---Return a line about the chats that are still open when a new one replaced another in its window, with the keys that
---go to them.
---@param chat CodeCompanion.Chat
---@return string?
function M.about_replaced(chat)
  local other, chats = chat.instead_of, registry.list()
  local others = vim.tbl_filter(function(one)
    return one ~= chat and (one == other or one.touched or #one.outgoing > 0)
  end, chats)
  local at = other and vim.iter(ipairs(chats)):find(function(_, one)
    return one == other
  end)
  if not at then
    return nil -- it was closed
  end
  if #others > 1 then
    local both = vim.list_slice(keys.keys("previous_chat", "n"), 1, 1)
    vim.list_extend(both, keys.keys("next_chat", "n"), 1, 1)
    local switch = #both > 0 and (" · %s switch"):format(table.concat(both, " ")) or ""
    return ("%d other chats open"):format(#others) .. switch
  end
  -- the keys open the chats in this order
  local is_next = chats[at % #chats + 1] ~= chat and chats[(at - 2) % #chats + 1] == chat
  local key = keys.keys(is_next and "next_chat" or "previous_chat", "n")[1]
  local before, after = "still open: ", key and (" · %s goes back"):format(key) or ""
  local room = fit.narrowest(chat) - api.nvim_strwidth(before .. after)
  return before .. fit.cut(title.shown(other.title), math.max(room, 8)) .. after
end

---Return the line in an empty chat that mentions the chat it replaced, or an earlier one.
---@param chat CodeCompanion.Chat
---@return string?
local function about_earlier(chat)
  local replaced = M.about_replaced(chat)
  if replaced then
    return replaced
  elseif chat.earlier then
    local before, after = "earlier: ", " · :CodeCompanionChat Resume"
    local width = fit.narrowest(chat)
    local room = width - api.nvim_strwidth(before .. after)
    if room < math.min(MIN_TITLE, api.nvim_strwidth(chat.earlier)) then
      return before .. fit.cut_words(chat.earlier, width - #before) .. "\n" .. after:gsub("^ · ", "")
    end
    return before .. fit.cut(chat.earlier, room) .. after
  end
end

---Show how to send while the draft is empty, and the intro while the chat is empty.
---@param chat CodeCompanion.Chat
---@param is_seen? boolean The user sees the message before anything is sent; always true once the host opened the chat
function M.draw(chat, is_seen)
  local row = anchors.position(chat, "input")
  local empty = row == api.nvim_buf_line_count(chat.bufnr) - 1
    and api.nvim_buf_get_lines(chat.bufnr, row, row + 1, false)[1] == ""
  tell_unsent(chat)
  if not empty then
    api.nvim_buf_del_extmark(chat.bufnr, M.ns, 1)
    return
  end
  local intro = options.display().intro_message
  local lines = {}
  local about = not chat.touched and about_adapter(chat, is_seen or chat.attached == "yes") or ""
  for _, text in ipairs(not chat.touched and { intro, about, about_earlier(chat) or "" } or {}) do
    for part in vim.gsplit(text, "\n", { trimempty = true }) do
      lines[1] = lines[1] or { { "", "CodeCompanionHint" } }
      for _, line in ipairs(fit.wrap(part, fit.narrowest(chat))) do
        lines[#lines + 1] = { { line, "CodeCompanionHint" } }
      end
    end
  end
  api.nvim_buf_set_extmark(chat.bufnr, M.ns, row, 0, {
    id = 1,
    virt_text = { { words(chat), "CodeCompanionHint" } },
    virt_text_pos = "right_align",
    hl_mode = "combine",
    virt_lines = #lines > 0 and lines or nil,
  })
end

return M
