---Finds the files with unsaved changes that a command waiting for approval would read in their older version.

local api = vim.api
local fit = require("codecompanion.text.fit")
local files = require("codecompanion.files.loaded_files")
local registry = require("codecompanion.chat.state.open_chats")
local visible = require("codecompanion.text.visible_characters")

local M = {}

---Return the paths of the files that the tools of a chat have changed.
---@param chat CodeCompanion.Chat
---@return table<string, true>
local function changed_files(chat)
  local found = {}
  for _, item in pairs(chat.items) do
    if item.change then
      found[item.change.path] = true
    end
  end
  return found
end

---Return the unsaved files below the command's folder, or changed by a tool of the chat: those come first.
---@param chat CodeCompanion.Chat
---@param folder string
---@return string[] names
local function names_of(chat, folder)
  local by_tools, others, changed = {}, {}, changed_files(chat)
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    local path = vim.bo[bufnr].modified and files.path_of(bufnr)
    if path and (changed[path] or vim.startswith(path, folder .. "/")) then
      local list = changed[path] and by_tools or others
      list[#list + 1] = visible.line(vim.fs.basename(path)).text
    end
  end
  return vim.list_extend(by_tools, others)
end

---Return the warning about files whose unsaved changes a command would not see, or nil.
---@param chat CodeCompanion.Chat
---@param event table approval_requested event
---@return string?
function M.warning(chat, event)
  if (event.place or "") == "" or (event.cwd or "") == "" then
    return nil -- not a command
  end
  local names = names_of(chat, files.real_path(event.cwd))
  if #names == 0 then
    return nil
  end
  local many = #names > 1
  return ("%s%s not saved; the command uses the old %s (:wa saves %s)"):format(
    fit.squeeze(names[1], 20),
    many and (" and %d more are"):format(#names - 1) or " is",
    many and "files" or "file",
    many and "them" or "it"
  )
end

---Redraw the open approvals whose warning is out of date.
---@param redraw fun(chat: CodeCompanion.Chat, approval: CodeCompanion.Approval)
local function update(redraw)
  for _, chat in ipairs(registry.list()) do
    for _, approval in ipairs(chat.approvals) do
      local item = approval.item
      if M.warning(chat, approval.event) ~= item.unsaved then
        redraw(chat, approval)
      end
    end
  end
end

---Keep the warnings of open approvals up to date while the user changes and saves files.
---@param redraw fun(chat: CodeCompanion.Chat, approval: CodeCompanion.Approval)
function M.watch(redraw)
  api.nvim_create_autocmd({ "BufModifiedSet", "BufWritePost", "BufUnload" }, {
    group = api.nvim_create_augroup("codecompanion.chat.unsaved_files", {}),
    callback = function(args)
      if vim.bo[args.buf].buftype == "" then
        vim.schedule(function()
          update(redraw)
        end)
      end
    end,
  })
end

return M
