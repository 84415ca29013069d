---`/buffer [names or numbers]`: attach what a buffer holds now, unsaved changes included.

local api = vim.api
local choose = require("codecompanion.screen.choose")
local live = require("codecompanion.sources.live")
local paths = require("codecompanion.slash.paths")
local session = require("codecompanion.chat.state.session")

local M = {}

---@return integer[]
local function candidates()
  return vim.tbl_filter(function(bufnr)
    return vim.bo[bufnr].buflisted and vim.bo[bufnr].buftype == "" and api.nvim_buf_get_name(bufnr) ~= ""
  end, api.nvim_list_bufs())
end

---@param bufnr integer
---@return string
local function name_of(bufnr)
  return vim.fn.fnamemodify(api.nvim_buf_get_name(bufnr), ":.")
end

---@param chat CodeCompanion.Chat
---@param bufnr integer
---@param is_live? boolean As configured when nil
local function send(chat, bufnr, is_live)
  vim.fn.bufload(bufnr)
  session.notify(chat, "attach", {
    kind = "buffer",
    path = api.nvim_buf_get_name(bufnr),
    text = require("codecompanion.files.buffers").text(bufnr),
    live = is_live,
  })
end

---@param word string
---@return integer?
local function find(word)
  for _, bufnr in ipairs(candidates()) do
    if word == tostring(bufnr) or word == name_of(bufnr) or word == api.nvim_buf_get_name(bufnr) then
      return bufnr
    end
  end
end

---@param argument string
---@return integer[] buffers
---@return string[] missing
local function parse(argument)
  local whole = find(argument)
  if whole then
    return { whole }, {}
  end
  local found, missing = {}, {}
  for _, word in ipairs(paths.words(argument)) do
    local bufnr = find(word)
    if bufnr then
      found[#found + 1] = bufnr
    else
      missing[#missing + 1] = word
    end
  end
  return found, missing
end

---Names of buffers that contain `lead`; spaces are written `\\ `.
---@param lead string
---@return string[]
function M.complete(lead)
  if vim.startswith(lead, "-") then
    return live.options(lead)
  end
  local wanted = lead:gsub("\\ ", " ")
  return vim
    .iter(vim.tbl_map(name_of, candidates()))
    :filter(function(name)
      return name:find(wanted, 1, true) ~= nil
    end)
    :map(function(name)
      return (name:gsub(" ", "\\ "))
    end)
    :totable()
end

---Attach the buffers that an argument names; without one the user chooses.
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
    local found, missing = parse(argument)
    if #missing > 0 then
      return refuse(("Nothing was attached: no buffer %s."):format(table.concat(missing, ", ")))
    end
    for _, bufnr in ipairs(found) do
      send(chat, bufnr, is_live)
    end
    return
  end
  local options = { prompt = "Attach buffers", kind = "codecompanion.buffer", format_item = name_of }
  choose.select_many(buffers, options, function(chosen)
    for _, bufnr in ipairs(chosen or {}) do
      send(chat, bufnr, is_live)
    end
  end)
end

return M
