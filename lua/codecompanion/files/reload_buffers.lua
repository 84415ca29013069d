---Reloads files that changed on disk and whose buffers have no unsaved changes, without a prompt and without
---'autoread'.
---
---A buffer with unsaved changes is left alone: its text exists nowhere else, and Neovim asks when it is written.

local api = vim.api
local buffers = require("codecompanion.files.loaded_files")

local M = {}

---Handle `FileChangedShell` during the check: take the default action, but show no message for a deleted file.
local function quietly()
  api.nvim_set_vvar("fcs_choice", vim.v.fcs_reason == "deleted" and "" or "ask")
end

---Decide how to handle a file whose buffer is empty. If it did not exist when the buffer was created, `:checktime`
---would prompt (W13); if it is only an empty line, nothing needs to be loaded.
---@param path string
---@param size integer
---@return "edit"|"nothing"
local function for_empty_buffer(path, size)
  local file = size <= 8 and io.open(path, "rb")
  if not file then
    return size == 0 and "nothing" or "edit"
  end
  local content = file:read("*a") or ""
  file:close()
  return content:find("[^\r\n%z\254\255\239\187\191]") and "edit" or "nothing"
end

---Reload one file if it changed on disk and has no unsaved changes.
---@param bufnr integer
function M.buffer(bufnr)
  local status = (vim.uv or vim.loop).fs_stat(api.nvim_buf_get_name(bufnr))
  if vim.bo[bufnr].modified or not status or status.type ~= "file" then
    return
  end
  if buffers.is_empty(bufnr) then
    if for_empty_buffer(api.nvim_buf_get_name(bufnr), status.size) == "edit" then
      api.nvim_buf_call(bufnr, function()
        vim.cmd("silent! keepalt edit!")
      end)
    end
    return
  end
  local autoread = vim.bo[bufnr].autoread
  api.nvim_buf_call(bufnr, function()
    if not autoread then
      vim.cmd("setlocal autoread")
    end
    pcall(vim.cmd, "silent checktime " .. bufnr)
    if not autoread then
      vim.cmd("setlocal autoread<")
      if vim.o.autoread then
        vim.cmd("setlocal noautoread")
      end
    end
  end)
end

---Suppress Neovim's warning about a buffer's file that was deleted with the user's consent.
---@param bufnr integer
local function expect_deletion(bufnr)
  local group = api.nvim_create_augroup("codecompanion_deleted_" .. bufnr, {})
  api.nvim_create_autocmd("FileChangedShell", {
    group = group,
    buffer = bufnr,
    desc = "The file was deleted by a tool of the chat",
    callback = quietly,
  })
  api.nvim_create_autocmd({ "BufWritePost", "BufUnload" }, {
    group = group,
    buffer = bufnr,
    once = true,
    callback = function()
      pcall(api.nvim_del_augroup_by_id, group)
    end,
  })
end

---Reload all loaded files that changed on disk and have no unsaved changes.
---@param deleted? string File just deleted by a tool; its buffer keeps the text
function M.all(deleted)
  for _, file in ipairs(buffers.open_files()) do
    if file.path == deleted then
      expect_deletion(file.bufnr)
    elseif api.nvim_buf_is_loaded(file.bufnr) then
      pcall(M.buffer, file.bufnr)
    end
  end
end

---Return the open files among the paths, with their contents; without paths, return all files with unsaved changes.
---@param paths string[]?
---@return table[]
function M.look(paths)
  local wanted = {}
  for _, path in ipairs(paths or {}) do
    wanted[path] = true
  end
  local found = {}
  for _, file in ipairs(buffers.open_files()) do
    if paths and wanted[file.path] then
      M.buffer(file.bufnr)
      found[#found + 1] = buffers.describe(file)
    elseif not paths and vim.bo[file.bufnr].modified then
      found[#found + 1] = buffers.describe(file)
    end
  end
  -- If two buffers show the same file through a link, the host uses the last one: put unsaved changes last.
  table.sort(found, function(a, b)
    return a.modified ~= b.modified and b.modified or a.modified == b.modified and a.buffer < b.buffer
  end)
  return found
end

return M
