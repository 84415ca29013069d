---`/buffer [names or numbers]`: attaches the current text of buffers, including unsaved changes.

local api = vim.api
local attaching = require("codecompanion.chat.sources.attach_to_chat")
local choose = require("codecompanion.screen.choose")
local live = require("codecompanion.chat.sources.live_attachments")
local named = require("codecompanion.files.named_buffers")
local paths = require("codecompanion.chat.slash.attach_paths")

local M = {}

---@return integer[]
local function candidates()
  return vim.tbl_filter(function(bufnr)
    return vim.bo[bufnr].buflisted and vim.bo[bufnr].buftype == "" and api.nvim_buf_get_name(bufnr) ~= ""
  end, api.nvim_list_bufs())
end

---@param chat CodeCompanion.Chat
---@param bufnr integer
---@param is_live? boolean nil uses the configuration
local function send(chat, bufnr, is_live)
  vim.fn.bufload(bufnr)
  attaching.attach(chat, {
    kind = "buffer",
    path = api.nvim_buf_get_name(bufnr),
    text = require("codecompanion.files.loaded_files").text(bufnr),
    live = is_live,
  })
end

---@param argument string
---@return integer[] buffers
---@return string[] problems
local function parse(argument)
  local buffers = candidates()
  local whole = named.find(argument, buffers)
  if whole then
    return { whole }, {}
  end
  local found, problems = {}, {}
  for _, word in ipairs(paths.words(argument)) do
    local bufnr, problem = named.find(word, buffers)
    if bufnr then
      found[#found + 1] = bufnr
    else
      problems[#problems + 1] = problem
    end
  end
  return found, problems
end

---Return names of buffers that contain `lead`; spaces are written `\\ `.
---@param lead string
---@return string[]
function M.complete(lead)
  if vim.startswith(lead, "-") then
    return live.options(lead)
  end
  return vim.tbl_map(function(name)
    return (name:gsub(" ", "\\ "))
  end, named.containing((lead:gsub("\\ ", " ")), candidates()))
end

---Attach the buffers named by an argument; without one the user chooses.
---@param chat CodeCompanion.Chat
---@param argument string
---@param refuse fun(reason: string)
function M.attach(chat, argument, refuse)
  local is_live
  is_live, argument = live.option(argument)
  local buffers = candidates()
  if #buffers == 0 then
    return refuse("Nothing to attach: no open buffer has a file.")
  end
  if argument ~= "" then
    local found, problems = parse(argument)
    if #problems > 0 then
      return refuse(("Nothing was attached: %s."):format(table.concat(problems, "; ")))
    end
    for _, bufnr in ipairs(found) do
      send(chat, bufnr, is_live)
    end
    return
  end
  local options = { prompt = "Attach buffers", kind = "codecompanion.buffer", format_item = named.name }
  choose.select_many(buffers, options, function(chosen)
    for _, bufnr in ipairs(chosen or {}) do
      send(chat, bufnr, is_live)
    end
  end)
end

return M
