---The entry point to the chats, for commands, the public API and Vim's own ways to open a buffer. No module below
---requires it.
---
---For the rooms below and their order see `doc/dev/rooms.md`. Lua stores no messages and makes no decisions: it draws
---the host's events and sends the user's actions.

local api = vim.api
local life = require("codecompanion.chat.life")
local registry = require("codecompanion.chat.state.open_chats")

local M = {
  by_buffer = registry.by_buffer,
  current = registry.current,
  list = registry.list,
  open = life.open,
  show = life.show,
  hide = life.hide,
  toggle = life.toggle,
  close = life.close,
}

function life.furnish(chat)
  vim.schedule(function() -- not needed before the first redraw
    require("codecompanion.chat.prompts.prompt_commands").begin()
    require("codecompanion.chat.question.approval_keys").map_to_hint(chat)
  end)
  require("codecompanion.chat.ui.keymaps").set(chat)
  require("codecompanion.chat.ui.automatic_menu").set(chat)
  require("codecompanion.chat.ui.enter_runs_command").set(chat)
  api.nvim_create_autocmd("CompleteDone", {
    group = "codecompanion.chat." .. chat.bufnr,
    buffer = chat.bufnr,
    callback = function()
      require("codecompanion.chat.ui.complete_input").done(chat, vim.v.completed_item)
    end,
  })
end

---Return the most recently used chat.
---@return CodeCompanion.Chat?
function M.last_chat()
  return registry.last
end

---Resume a stored chat; without an id the user chooses one.
---@param id? string Id or title of a stored chat, or "last"
---@param opts? { layout?: string, check?: boolean, hidden?: boolean } `check`: ask the host first whether the chat
---exists; `hidden`: show no window
function M.resume(id, opts)
  require("codecompanion.chat.life.resume").resume(id, opts)
end

---Restore a checkpoint as a new chat; the old one is unchanged.
---@param id? string Id of a chat (uses its best checkpoint) or of a checkpoint; without it the user chooses one
function M.restore(id)
  require("codecompanion.chat.life.resume").restore(id)
end

---Fill the buffer of a chat when it is read (`:e`, `:b` after `:bd`, a session file).
---@param bufnr integer
function M.read(bufnr)
  local id = require("codecompanion.chat.buffer.buffer_name").id_of(bufnr)
  if not id then
    require("codecompanion.say").line("No chat has this name; :CodeCompanionChat Resume lists your chats")
    return
  end
  life.fill(bufnr, id)
end

---Handle a buffer that was named without being read, as in session files (`:file`).
---@param bufnr integer
function M.named(bufnr)
  if vim.g.SessionLoad == 1 then
    -- `:file` prints a line per buffer, and two chats would cause a prompt. The session file sets 'shortmess' itself
    -- and restores the user's value at its end.
    vim.opt.shortmess:append("F")
  end
  if not registry.by_buffer(bufnr) and api.nvim_buf_is_loaded(bufnr) then
    M.read(bufnr)
    -- The window showed the buffer before it became a chat, so no event follows.
    vim.schedule(function()
      local chat = registry.by_buffer(bufnr)
      for _, win in ipairs(chat and vim.fn.win_findbuf(bufnr) or {}) do
        require("codecompanion.chat.window").entered(chat, win)
      end
    end)
  end
end

---Show a chat that waits for an answer, with the cursor on the question (`:CodeCompanion approval`).
function M.go_to_approval()
  local questions = require("codecompanion.chat.state.questions")
  for _, chat in ipairs(registry.list()) do
    if questions.waits(chat) then
      life.show(chat)
      chat.seeks_approval = #chat.approvals == 0 -- its buffer was unloaded and is being drawn
      require("codecompanion.chat.question.approval").go_to_next(chat)
      return
    end
  end
  require("codecompanion.say").line(require("codecompanion.chat.question.approval_keys").NONE)
end

---Return lines of a file, formatted for a message: their location and a fence.
---@param lines string[]
---@param range { [1]: integer, [2]: integer } 1-based line numbers
---@param path? string Defaults to the current buffer's file
---@return string
function M.quoted(lines, range, path)
  path = path or api.nvim_buf_get_name(0)
  local filetype = api.nvim_buf_get_name(0) == path and vim.bo.filetype or vim.filetype.match({ filename = path }) or ""
  local fence = require("codecompanion.chat.draw.blocks").fence(table.concat(lines, "\n"))
  local shown = path ~= "" and vim.fn.fnamemodify(path, ":.") or "(no file)"
  local text = { ("%s:%d-%d"):format(shown, range[1], range[2]), fence .. filetype }
  vim.list_extend(text, lines)
  return table.concat(vim.list_extend(text, { fence, "" }), "\n")
end

---Add a selection to the draft of the current chat (a new one if there is none) and show it.
---@param lines string[]
---@param range { [1]: integer, [2]: integer } 1-based line numbers
---@param path? string Defaults to the current buffer's file
function M.add_selection(lines, range, path)
  if require("codecompanion.editor_context.send_code").refuses("A selection") then
    return
  end
  local text = M.quoted(lines, range, path)
  local chat = registry.current() or life.open()
  life.load(chat)
  local present = require("codecompanion.chat.buffer.chat_text").input_text(chat)
  if present ~= "" and present:sub(-1) ~= "\n" then
    present = present .. "\n"
  end
  require("codecompanion.chat.wire.draft").set(chat, present .. text)
  life.show(chat)
  require("codecompanion.chat.buffer.scroll").cursor_to_input(chat)
end

---Compact the current chat.
---@param instructions? string Instructions for the summary
---@param opts? { ask?: boolean } Ask first; off by default
function M.compact(instructions, opts)
  local chat = registry.current()
  if not chat then
    return require("codecompanion.say").line("No chat is open; :CodeCompanionChat opens one")
  end
  require("codecompanion.chat.lists.compact_question").compact(chat, instructions or "", not (opts and opts.ask))
end

return M
