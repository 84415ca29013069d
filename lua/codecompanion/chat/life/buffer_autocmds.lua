---Sets the autocommands of a chat buffer, which handle changes to its text and to the windows that show it.

local api = vim.api

local draft = require("codecompanion.chat.wire.draft")
local folds = require("codecompanion.chat.buffer.folds")
local name = require("codecompanion.chat.buffer.buffer_name")
local paint = require("codecompanion.chat.buffer.markdown_colours")
local window = require("codecompanion.chat.window")

local M = {}

---@param chat CodeCompanion.Chat
---@param life { fill: fun(bufnr: integer, id: string), forget: fun(chat: CodeCompanion.Chat) } `life/init.lua`
function M.set(chat, life)
  local group = api.nvim_create_augroup("codecompanion.chat." .. chat.bufnr, {})

  ---@param events string|string[]
  ---@param callback fun(args: table)
  local function on(events, callback)
    api.nvim_create_autocmd(events, { group = group, buffer = chat.bufnr, callback = callback })
  end

  on({ "TextChangedI", "TextChangedP" }, function()
    draft.changed(chat, true)
  end)
  on("TextChanged", function()
    draft.changed(chat, false)
    if not chat.damaged then
      require("codecompanion.chat.wire.attachments").check(chat)
    end
  end)
  on("InsertLeave", function()
    draft.changed(chat, false)
    draft.save(chat)
    if not chat.damaged then
      require("codecompanion.chat.wire.attachments").check(chat)
    end
  end)
  on("BufLeave", function()
    draft.save(chat)
  end)
  on({ "BufWinEnter", "WinEnter" }, function()
    window.entered(chat, api.nvim_get_current_win())
    paint.guard(chat)
  end)
  on("BufWinLeave", function()
    require("codecompanion.chat.question.attention").hidden(chat)
    for _, win in ipairs(vim.fn.win_findbuf(chat.bufnr)) do
      if win ~= chat.hiding then -- the state of its folds was just read
        folds.remember(chat, win)
      end
      pcall(api.nvim_win_del_var, win, "codecompanion_chat")
    end
  end)
  on({ "CursorMoved", "CursorMovedI", "BufEnter", "WinEnter", "InsertLeave" }, function()
    require("codecompanion.chat.life.transcript_guard").update(chat)
    local view_marks = package.loaded["codecompanion.chat.draw.view_marks"] -- loaded once the host has sent an event
    if view_marks then
      view_marks.show_keys(chat)
    end
  end)
  on({ "WinLeave", "BufLeave" }, function()
    if chat.keys_shown then
      require("codecompanion.chat.draw.view_marks").show_keys(chat, true)
    end
  end)
  on("InsertCharPre", function()
    require("codecompanion.chat.life.transcript_guard").typed(chat)
  end)
  on("BufWriteCmd", function(args)
    draft.save(chat)
    vim.bo[chat.bufnr].modified = false
    if not vim.startswith(args.match, "codecompanion://") then
      name.export(chat, args.match)
    end
  end)
  on("BufFilePost", function()
    name.keep(chat)
  end)
  on("BufReadCmd", function(args)
    if not vim.startswith(args.match, "codecompanion://") then -- `:file x | e`, before the name is restored
      life.fill(chat.bufnr, chat.id)
    end
  end)
  on("BufUnload", function()
    -- `:e`, `:bd`: the chat continues in the host, and is redrawn when the buffer is read
    require("codecompanion.chat.buffer.cursor_places").remember(chat)
    require("codecompanion.chat.question.approval").put_away(chat)
    draft.keep(chat)
  end)
  on("BufWipeout", function()
    api.nvim_del_augroup_by_id(group)
    life.forget(chat)
  end)
  on({ "BufModifiedSet", "QuitPre" }, function()
    vim.bo[chat.bufnr].modified = false
  end)
  api.nvim_buf_attach(chat.bufnr, false, {
    on_lines = function(_, bufnr, _, first, last)
      if chat.editing then
        return -- `buffer.edit` does it once for all its changes
      end
      -- nothing needs to be written: the draft is saved while it is typed
      if vim.bo[bufnr].modified then
        vim.bo[bufnr].modified = false
      end
      require("codecompanion.chat.life.transcript_guard").changed(chat, first, last)
    end,
  })
end

return M
