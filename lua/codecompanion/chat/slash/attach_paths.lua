---Paths for `/file` and `/image`: completion, and a picker.

local attaching = require("codecompanion.chat.sources.attach_to_chat")
local choose = require("codecompanion.screen.choose")
local live = require("codecompanion.chat.sources.live_attachments")
local literal = require("codecompanion.system.literal_paths")
local is_image = require("codecompanion.system.image_names")
local life = require("codecompanion.chat.life")
local project_files = require("codecompanion.project_files")
local registry = require("codecompanion.chat.state.open_chats")
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

local M = {}

local IN_CLIPBOARD = "the image in the clipboard"

---Maximum number of completions; typing more narrows them down.
local MAX_OFFERED = 200

---Return paths that match `lead`; spaces are written `\ `.
---@param lead string
---@return string[]
function M.complete(lead)
  return vim.tbl_map(function(path)
    return (path:gsub(" ", "\\ "))
  end, project_files.fitting((lead:gsub("\\ ", " ")), MAX_OFFERED))
end

---@param path string
---@return boolean
local function is_readable(path)
  return vim.fn.filereadable(literal.absolute(path)) == 1
end

---Split an argument into words; a space within a word is written `\\ `.
---@param argument string
---@return string[]
function M.words(argument)
  local found = {}
  for word in argument:gsub("\\ ", "\0"):gmatch("%S+") do
    found[#found + 1] = (word:gsub("%z", " "))
  end
  return found
end

---Return the paths of an argument: one path with spaces, or several words, each of which may be a pattern such as
---`src/*.lua`.
---@param argument string
---@return string[] paths
---@return string[] missing
local function parse(argument)
  if is_readable(argument) then
    return { argument }, {}
  end
  local found, missing = {}, {}
  for _, word in ipairs(M.words(argument)) do
    if is_readable(word) then
      found[#found + 1] = word
    else
      local matches = word:find("[*?%[]") and vim.tbl_filter(is_readable, literal.matching(word)) or {}
      vim.list_extend(found, matches)
      missing[#missing + 1] = #matches == 0 and word or nil
    end
  end
  return found, missing
end

---@param chat CodeCompanion.Chat
---@param kind "file"|"image"
---@param path string
---@param is_live? boolean nil uses the configuration
local function attach(chat, kind, path, is_live)
  attaching.attach(chat, { kind = kind, path = literal.absolute(path), live = is_live })
end

---Attach the paths of an argument; if one of them cannot be read, nothing is attached.
---@param chat CodeCompanion.Chat
---@param kind "file"|"image"
---@param argument string
---@param refuse fun(reason: string)
---@param accept? fun(path: string): boolean
---@param wanted? string Description of accepted files
---@param is_live? boolean
local function attach_all(chat, kind, argument, refuse, accept, wanted, is_live)
  local found, missing = parse(argument)
  local wrong = vim.tbl_filter(function(path)
    return accept ~= nil and not accept(path)
  end, found)
  if #missing > 0 then
    return refuse(("Nothing was attached: no readable file %s."):format(table.concat(missing, ", ")))
  end
  if #wrong > 0 then
    return refuse(("Nothing was attached: %s is not %s."):format(table.concat(wrong, ", "), wanted))
  end
  for _, path in ipairs(found) do
    attach(chat, kind, path, is_live)
  end
end

---Attach files to the current chat, or to a new one.
---@param paths string[]
function M.attach_to_current(paths)
  local chat, missing = registry.current(), {}
  if chat then
    life.show(chat)
  else
    chat = life.open()
  end
  for _, path in ipairs(paths) do
    if is_readable(path) then
      attach(chat, "file", path)
    else
      missing[#missing + 1] = path
    end
  end
  if #missing > 0 then
    say.chat(chat, ("Not attached: no readable file %s."):format(table.concat(missing, ", ")), severity.WARN)
  end
end

---Let the user choose among files that `accept` returns true for.
---@param chat CodeCompanion.Chat
---@param kind "file"|"image"
---@param accept fun(path: string): boolean
---@param is_live? boolean
---@param pasted? string The image in the clipboard, as a file: the first choice
local function pick(chat, kind, accept, is_live, pasted)
  project_files.all(function(paths)
    local choices = vim.tbl_filter(accept, paths)
    if pasted and #choices == 0 then
      return attach(chat, kind, pasted)
    elseif pasted then
      table.insert(choices, 1, IN_CLIPBOARD)
    elseif #choices == 0 then
      say.chat(chat, ("No %s found below %s."):format(kind, vim.fn.getcwd()), severity.WARN)
      return
    end
    local prompt = kind == "file" and "Attach files" or "Attach images"
    local options = { prompt = prompt, kind = "codecompanion." .. kind }
    choose.select_many(choices, options, function(chosen)
      for _, path in ipairs(chosen or {}) do
        attach(chat, kind, path == IN_CLIPBOARD and pasted or path, is_live)
      end
    end)
  end)
end

---`/file`: attach the paths of an argument, a PDF as a document; without one the user chooses.
---@param chat CodeCompanion.Chat
---@param argument string
---@param refuse fun(reason: string)
function M.attach_files(chat, argument, refuse)
  local is_live
  is_live, argument = live.option(argument)
  if argument ~= "" then
    return attach_all(chat, "file", argument, refuse, nil, nil, is_live)
  end
  pick(chat, "file", function()
    return true
  end, is_live)
end

---Return completions after `/file`: the options, and paths.
---@param lead string
---@return string[]
function M.complete_files(lead)
  return vim.list_extend(vim.startswith(lead, "-") and live.options(lead) or {}, M.complete(lead))
end

---Return images that match `lead`, and folders.
---@param lead string
---@return string[]
function M.complete_images(lead)
  return vim.tbl_filter(function(path)
    return is_image(path) or path:sub(-1) == "/"
  end, M.complete(lead))
end

---`/image`: attach images, like `/file`; without a path the clipboard's image is also offered.
---@param chat CodeCompanion.Chat
---@param argument string
---@param refuse fun(reason: string)
function M.attach_images(chat, argument, refuse)
  if argument ~= "" then
    return attach_all(chat, "image", argument, refuse, is_image, "an image (png, jpg, jpeg, gif, webp)")
  end
  require("codecompanion.chat.sources.clipboard").read(function(pasted)
    pick(chat, "image", is_image, nil, pasted)
  end)
end

return M
