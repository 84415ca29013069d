---`:CodeCompanion trust`: shows the files of a folder that instruct the model or start programs, the user's decisions
---about them, and keys to decide. In a chat it shows the chat's folder, elsewhere Neovim's working folder.

local api = vim.api
local fit = require("codecompanion.text.fit")
local float = require("codecompanion.screen.float")
local host = require("codecompanion.host")
local keys = require("codecompanion.pages.trust_page_keys")
local load_page = require("codecompanion.pages.load_page")
local numbers = require("codecompanion.text.numbers")
local say = require("codecompanion.say")
local scratch = require("codecompanion.screen.scratch_buffer")
local severity = require("codecompanion.severity")
local uv = vim.uv or vim.loop
local visible = require("codecompanion.text.visible_characters")

local M = {}

local DIMMED = "codecompanion.trust"

---Delay in milliseconds before keys on the page can make a decision.
M.UNREAD_MS = 500

---@class CodeCompanion.TrustFile A file of a folder in its current state
---@field kind string
---@field label string
---@field path string
---@field sha256 string
---@field text string
---@field does string
---@field is_trusted boolean
---@field runs boolean
---@field leads_out boolean
---@field has_changed boolean
---@field cut integer Number of characters not shown

---@class CodeCompanion.TrustShown
---@field folder string
---@field why ""|"user"|"setup"|"off"
---@field since string
---@field identity string
---@field files CodeCompanion.TrustFile[]
---@field others { path: string, kind: string, since: string, here: boolean }[]
---@field waiting integer
---@field silenced boolean
---@field problem string

---@class CodeCompanion.TrustLine
---@field file? CodeCompanion.TrustFile
---@field path? string The path of another decision
---@field is_beginning? boolean

---@class CodeCompanion.TrustPlace
---@field chat string Chat id, or "" for none
---@field cwd string

---@param text string Text from a folder
---@return string
local function shown(text)
  return visible.line((text:gsub("%s+", " "))).text
end

---@param path string
---@return string
local function short(path)
  return vim.fn.fnamemodify(path, ":~")
end

---@param now CodeCompanion.TrustShown
---@return string
local function state_of(now)
  if now.why == "off" then
    return "Every folder is trusted: `trust.enabled` is false in setup()."
  elseif now.why == "setup" then
    return "Trusted by `trust.folders` in setup()."
  elseif now.why == "user" then
    return "Trusted" .. (now.since ~= "" and (" since %s."):format(now.since) or ".")
  end
  return "Not trusted."
end

---@param file CodeCompanion.TrustFile
---@return string
local function head_of(file)
  local parts = { file.label, file.does }
  if file.leads_out then
    table.insert(parts, 2, "outside the folder")
  end
  if file.has_changed then
    table.insert(parts, 2, "changed since you trusted it")
  end
  return ("%s %s"):format(file.is_trusted and "✓" or "·", table.concat(parts, " · "))
end

---@param text string
---@return string
local function beginning(text)
  text = text:gsub("^%-%-%-\n.-\n%-%-%-\n", "") -- front matter
  for line in vim.gsplit(text, "\n", { plain = true }) do
    if line:find("%S") then
      return line
    end
  end
  return "(empty)"
end

---@param now CodeCompanion.TrustShown
---@return string[] lines
---@return CodeCompanion.TrustLine[] about The subject of each line
local function page(now)
  local lines, about = {}, {}
  local function put(text, what)
    lines[#lines + 1], about[#about + 1] = shown(text):gsub("^ ", ""), what or {}
  end
  put(state_of(now) .. (now.why == "" and " Text from its files turns “always” off in approvals." or ""))
  if now.problem ~= "" then
    put(now.problem)
  end
  if now.waiting > 0 then
    local what = now.why == "" and "the folder or the file" or "the file"
    put(("%s (·) not loaded until you trust %s:"):format(numbers.counted(now.waiting, "file"), what))
  elseif #now.files == 0 then
    put("The folder has no rules, MCP servers, prompts or memories.")
  else
    put("Everything is loaded.")
  end
  for _, file in ipairs(now.files) do
    put(head_of(file), { file = file })
    lines[#lines + 1], about[#about + 1] = "    " .. shown(beginning(file.text)), { file = file, is_beginning = true }
  end
  local elsewhere = vim.tbl_filter(function(one)
    return not one.here
  end, now.others)
  for index, one in ipairs(elsewhere) do
    if index == 1 then
      put("", {})
      put("Trusted elsewhere:")
    end
    lines[#lines + 1] = ("  %s · %s · %s"):format(shown(short(one.path)), one.kind, one.since)
    about[#about + 1] = { path = one.path }
  end
  return lines, about
end

---@param bufnr integer
---@param about CodeCompanion.TrustLine[]
local function dim_beginnings(bufnr, about)
  scratch.colour(bufnr, DIMMED, function(_, number)
    return about[number] and about[number].is_beginning and "Comment" or nil
  end)
end

---@param place CodeCompanion.TrustPlace
---@return table
local function request_of(place)
  local folders = require("codecompanion.prompt_library.prompt_folders")
  return { chat = place.chat, cwd = place.cwd, folders = folders.configured(), own_folder = folders.own() }
end

---@param place CodeCompanion.TrustPlace
---@param done fun(now: CodeCompanion.TrustShown)
local function load(place, done)
  load_page.ask("Trust", "show_trust", request_of(place), done)
end

---@param place CodeCompanion.TrustPlace
---@param decision table
---@param done? fun(is_done: boolean)
local function change(place, decision, done)
  local payload = vim.tbl_extend("force", request_of(place), decision)
  host.request("change_trust", payload, function(err, sentence)
    say.line(err or sentence, err and severity.ERROR or nil)
    if done then
      done(err == nil)
    end
  end)
end

---@param files CodeCompanion.TrustFile[]
---@return table[]
local function hashes(files)
  return vim.tbl_map(function(file)
    return { path = file.path, sha256 = file.sha256 }
  end, files)
end

---Show the text of a file: trust applies to the text shown.
---@param file CodeCompanion.TrustFile
local function read(file)
  local lines = {}
  for _, line in ipairs(vim.split(file.text, "\n", { plain = true })) do
    lines[#lines + 1] = visible.line(line).text
  end
  if file.cut > 0 then
    lines[#lines + 1] = ("… %s more in %s"):format(numbers.counted(file.cut, "character"), short(file.path))
  end
  local count = numbers.counted(#lines, "line")
  float.open({ title = shown(file.label), lines = lines, footer = { count, "q close" } })
end

---@param place CodeCompanion.TrustPlace
---@param now CodeCompanion.TrustShown
---@param clear_of? fun(): CodeCompanion.Rows?
local function show(place, now, clear_of)
  local lines, about = page(now)
  local title = "Trust: " .. fit.path(shown(short(now.folder)), math.min(60, math.max(10, vim.o.columns - 14)))
  local bufnr, win = float.open({
    title = title,
    lines = lines,
    hanging = 4,
    clear_of = clear_of,
    footer = function(width)
      return keys.footer(now, width)
    end,
  })
  dim_beginnings(bufnr, about)
  vim.wo[win].cursorline = true
  local shown_at = math.huge -- until it is drawn
  local function has_appeared()
    vim.schedule(function()
      shown_at = uv.now()
    end)
  end
  has_appeared()
  local function reload()
    load(place, function(later)
      if not vim.deep_equal(hashes(later.files), hashes(now.files)) or later.identity ~= now.identity then
        has_appeared()
      end
      now = later
      if api.nvim_win_is_valid(win) then
        lines, about = page(later)
        float.update(win, lines)
        dim_beginnings(bufnr, about)
      end
    end)
  end
  scratch.map(bufnr, "g?", "Show the keys", function()
    keys.show(title, now)
  end)
  local function on(key, act)
    scratch.map(bufnr, key == "K" and { "K", "<CR>" } or key, keys.description(key), function()
      act(about[api.nvim_win_get_cursor(win)[1]] or {})
    end)
  end
  ---Map a key that decides; it is ignored if it was pressed before the page could be read.
  local function on_decision(key, act)
    on(key, function(line)
      if uv.now() - shown_at < M.UNREAD_MS then
        shown_at = uv.now() -- a key that is held down never decides
        return say.hint("Read the page first, then press the key again")
      end
      act(line)
    end)
  end
  local function of_folder(what, files, done)
    change(place, { what = what, folder = now.folder, identity = now.identity, files = hashes(files) }, done or reload)
  end
  on_decision("T", function()
    of_folder("folder", now.files, function(is_trusted)
      if not is_trusted then
        return reload()
      elseif api.nvim_win_is_valid(win) then
        scratch.close(win)
        require("codecompanion.screen.closed_page").note()
      end
    end)
  end)
  on_decision("t", function(line)
    if not line.file then
      return say.hint(#now.files > 0 and "Move to a file to trust it alone; T trusts the folder" or "No file to trust")
    end
    of_folder("files", { line.file })
  end)
  on("K", function(line)
    if line.file then
      read(line.file)
    end
  end)
  on_decision("x", function(line)
    local file = line.file and line.file.is_trusted and now.why == "" and line.file.path
    change(place, { what = "revoke", path = line.path or file or now.folder }, reload)
  end)
  on_decision("n", function()
    if now.waiting == 0 then
      return say.hint("Everything is loaded already")
    end
    of_folder("silence", {})
  end)
end

---@param chat? string Chat id
---@return CodeCompanion.TrustPlace
local function place_of(chat)
  return { chat = chat or "", cwd = vim.fn.getcwd() }
end

---Show the files of a chat's folder, or of Neovim's working folder. If the host has to start first, the user can go on
---typing.
---@param chat? string Chat id
---@param clear_of? fun(): CodeCompanion.Rows? Returns rows of the screen that stay readable if possible
function M.open(chat, clear_of)
  local place, has_typed = place_of(chat), false
  local typing = api.nvim_create_namespace("")
  vim.on_key(function(_, typed)
    has_typed = has_typed or (typed ~= nil and typed ~= "")
  end, typing)
  load(place, function(now)
    if has_typed or api.nvim_get_mode().mode ~= "n" then
      return say.line("The trust page is ready; :CodeCompanion trust shows it")
    end
    show(place, now, clear_of)
  end, function()
    vim.on_key(nil, typing)
  end)
end

---Return the `:checkhealth` text for Neovim's working folder; wait for the host for up to `limit_ms`.
---@param limit_ms integer
---@return string? text
function M.examine(limit_ms)
  local text
  local place = place_of()
  host.request("show_trust", request_of(place), function(err, now)
    text = err or ("%s: %s"):format(short(now.folder), state_of(now))
    if not err and now.waiting > 0 then
      text = ("%s Not loaded: %s (:CodeCompanion trust)"):format(text, numbers.counted(now.waiting, "file"))
    end
  end)
  vim.wait(limit_ms, function()
    return text ~= nil
  end, 20)
  return text
end

---Run `:CodeCompanion trust [folder|file {path}|revoke [path]]`.
---@param arguments string[]
---@param chat? string Chat id
function M.run(arguments, chat)
  local what, path = (arguments[1] or ""):lower(), table.concat(vim.list_slice(arguments, 2), " ")
  if what == "" then
    return M.open(chat)
  elseif what == "folder" and path == "" then
    return change(place_of(chat), { what = "folder" })
  elseif what == "file" and path ~= "" then
    return change(place_of(chat), { what = "files", path = vim.fs.normalize(path) })
  elseif what == "revoke" then
    return change(place_of(chat), { what = "revoke", path = path ~= "" and vim.fs.normalize(path) or "" })
  end
  say.line("Usage: :CodeCompanion trust [folder|file {path}|revoke [path]]", severity.ERROR)
end

return M
