---`:CodeCompanion memory`: shows the memory of a project (the user's entries, notes of models, summaries of earlier
---chats), and keys to open, search and delete it. In a chat it shows the chat's project, elsewhere that of Neovim's
---working folder.

local api = vim.api
local choose = require("codecompanion.screen.choose")
local confirm = require("codecompanion.screen.confirm")
local float = require("codecompanion.screen.float")
local host = require("codecompanion.host")
local load_page = require("codecompanion.pages.load_page")
local numbers = require("codecompanion.text.numbers")
local say = require("codecompanion.say")
local scratch = require("codecompanion.screen.scratch_buffer")
local severity = require("codecompanion.severity")
local visible = require("codecompanion.text.visible_characters")

local M = {}

local FOOTER = { "⏎ open", "s search", "d delete", "e edit your own", "a all projects", "q close" }
local NARROW_FOOTER = { "⏎ open", "s search", "d delete", "q" }
local NARROW = 60
local DIMMED = "codecompanion.memory"
local NOTHING = {
  "Nothing is remembered yet.",
  "",
  "You can write entries (e), the model writes notes with the tool `memory`, and compactions write summaries.",
  "See :help codecompanion-memory",
}

---@class CodeCompanion.MemoryEntry
---@field path string
---@field line integer
---@field origin "you"|"model"|"compaction"
---@field scope "user"|"project"
---@field is_private boolean
---@field title string
---@field first string First line of the entry
---@field time number Seconds since the epoch
---@field can_delete boolean

---@class CodeCompanion.MemoryShown
---@field folder string
---@field user string The user's own file, or "" if unused
---@field project string The project's file, or "" if unused
---@field unused? string[] Why files of the user or the project are unused
---@field of integer
---@field others integer Number of entries of other projects
---@field entries CodeCompanion.MemoryEntry[]

---@class CodeCompanion.MemoryPlace
---@field chat string Chat id, or "" for none
---@field cwd string
---@field query string
---@field everything boolean

---@class CodeCompanion.MemoryLine
---@field entry? CodeCompanion.MemoryEntry
---@field is_first_line? boolean

---@param text string
---@return string
local function shown(text)
  return visible.line((text:gsub("%s+", " ")), true).text
end

---@param entry CodeCompanion.MemoryEntry
---@return string
local function head_of(entry)
  local parts = { os.date("%Y-%m-%d", math.floor(entry.time)), entry.origin, entry.title }
  if entry.is_private then
    table.insert(parts, 3, "private")
  end
  return shown(table.concat(parts, " · "))
end

---@param now CodeCompanion.MemoryShown
---@param place CodeCompanion.MemoryPlace
---@return string[] lines
---@return CodeCompanion.MemoryLine[] about The subject of each line
local function page(now, place)
  local lines, about = {}, {}
  for _, entry in ipairs(now.entries) do
    lines[#lines + 1], about[#about + 1] = head_of(entry), { entry = entry }
    if entry.first ~= "" and entry.first ~= entry.title then
      lines[#lines + 1], about[#about + 1] = "    " .. shown(entry.first), { entry = entry, is_first_line = true }
    end
  end
  if #lines == 0 then
    lines = place.query ~= "" and { ("No entry contains the words “%s”."):format(shown(place.query)) }
      or vim.deepcopy(NOTHING)
  end
  local more = vim.tbl_map(function(sentence)
    local hint = vim.startswith(sentence, "Not used until trusted") and " · :CodeCompanion trust" or ""
    return shown(sentence) .. hint
  end, now.unused or {})
  if now.of > #now.entries then
    more[#more + 1] = ("%s older ones are not listed; s searches them."):format(numbers.short(now.of - #now.entries))
  end
  if now.others > 0 then
    more[#more + 1] = ("%d more in other projects; a lists them."):format(now.others)
  end
  if #more > 0 then
    vim.list_extend(lines, { "", unpack(more) })
  end
  return lines, about
end

---@param bufnr integer
---@param about CodeCompanion.MemoryLine[]
local function dim(bufnr, about)
  scratch.colour(bufnr, DIMMED, function(_, number)
    return about[number] and about[number].is_first_line and "Comment" or nil
  end)
end

---@param width integer
---@return string[]
local function footer(width)
  return width < NARROW and NARROW_FOOTER or FOOTER
end

---@param path string
---@param line integer
local function open_file(path, line)
  require("codecompanion.screen.open_file").file(path)
  pcall(api.nvim_win_set_cursor, 0, { line, 0 })
end

---Return the obstacle to creating a folder, or "".
---@param folder string
---@return string
local function obstacle(folder)
  local found = folder
  while not vim.uv.fs_lstat(found) and vim.fs.dirname(found) ~= found do
    found = vim.fs.dirname(found)
  end
  return vim.fn.isdirectory(found) == 1 and "" or found
end

---Open a memory file for the user to edit. A new file starts with an example, and saving it creates its folder. A
---cloned repository may contain anything at this path: reading a FIFO would block the editor.
---@param path string
local function edit(path)
  local there = vim.uv.fs_stat(path)
  if there and there.type ~= "file" then
    return say.line(("Cannot edit %s: it is not a regular file"):format(shown(path)), severity.WARN)
  end
  local folder = vim.fs.dirname(path)
  local in_the_way = obstacle(folder)
  if in_the_way ~= "" then
    return say.line(shown(("Cannot create the folder %s: %s is a file"):format(folder, in_the_way)), severity.WARN)
  end
  open_file(path, 1)
  api.nvim_create_autocmd("BufWritePre", {
    buffer = 0,
    callback = function()
      vim.fn.mkdir(folder, "p")
    end,
    desc = "Create the folder of the user's own entries",
  })
  if api.nvim_buf_line_count(0) == 1 and api.nvim_buf_get_lines(0, 0, 1, false)[1] == "" then
    api.nvim_buf_set_lines(0, 0, -1, false, { "## [style] A title", "Something every chat should know." })
  end
end

---@param now CodeCompanion.MemoryShown
local function edit_own(now)
  local files = vim.tbl_filter(function(file)
    return file.path ~= ""
  end, { { path = now.project, label = "for this project" }, { path = now.user, label = "for every project" } })
  if #files == 0 then
    return say.hint("context.memories.enabled is false: your own entries are not used")
  end
  choose.select(files, {
    prompt = "Edit your own entries",
    kind = "codecompanion.memory_file",
    format_item = function(file)
      return ("%s · %s"):format(vim.fn.fnamemodify(file.path, ":~"), file.label)
    end,
  }, function(file)
    if file then
      edit(file.path)
    end
  end)
end

---Show the result or the error, and reload the list in either case, because another Neovim may have changed it.
---@param done fun()
---@return fun(err: string?, sentence: string?)
local function said_then(done)
  local say_it = say.answer()
  return function(err, sentence)
    say_it(err, sentence)
    done()
  end
end

---@param entry CodeCompanion.MemoryEntry
---@param done fun()
local function delete(entry, done)
  if not entry.can_delete then
    return say.hint("This entry is in your own file: ⏎ opens it there")
  end
  local question = ("Delete “%s”?"):format(shown(entry.title))
  confirm.ask(question, { { key = "y", label = "yes" }, { key = "n", label = "no" } }, function(key)
    if key == "y" then
      host.request("delete_memory", { path = entry.path }, said_then(done))
    end
  end)
end

---@param place CodeCompanion.MemoryPlace
---@return string
local function title_of(place)
  local of = place.everything and "Memory of all projects" or "Memory"
  return place.query ~= "" and ("%s: %s"):format(of, shown(place.query)) or of
end

---@param place CodeCompanion.MemoryPlace
---@param done fun(now: CodeCompanion.MemoryShown)
local function load(place, done)
  load_page.ask(title_of(place), "show_memory", place, done)
end

---@param place CodeCompanion.MemoryPlace
---@param now CodeCompanion.MemoryShown
local function show(place, now)
  local lines, about = page(now, place)
  local bufnr, win = float.open({ title = title_of(place), lines = lines, footer = footer, hanging = 4 })
  vim.bo[bufnr].filetype = "codecompanion_memory"
  dim(bufnr, about)
  vim.wo[win].cursorline = true
  local function again(changes)
    local other = vim.tbl_extend("force", place, changes)
    load(other, function(later)
      scratch.close(win)
      show(other, later)
    end)
  end
  local function on_entry(key, description, act)
    scratch.map(bufnr, key, description, function()
      local line = about[api.nvim_win_get_cursor(win)[1]]
      if line and line.entry then
        act(line.entry)
      end
    end)
  end
  on_entry("<CR>", "Open the file of the entry", function(entry)
    scratch.close(win)
    open_file(entry.path, entry.line)
  end)
  local function reload()
    load(place, function(later)
      if api.nvim_win_is_valid(win) then
        lines, about = page(later, place)
        float.update(win, lines)
        dim(bufnr, about)
      end
    end)
  end
  on_entry("d", "Delete the entry", function(entry)
    delete(entry, reload)
  end)
  scratch.map(bufnr, "u", "Restore the last deleted entry", function()
    host.request("restore_memory", vim.empty_dict(), said_then(reload))
  end)
  scratch.map(bufnr, "s", "Search the memory", function()
    choose.input({ prompt = "Search the memory: ", default = place.query }, function(given)
      if given then
        again({ query = vim.trim(given) })
      end
    end)
  end)
  scratch.map(bufnr, "a", "List the memory of all projects, or of this one", function()
    again({ everything = not place.everything })
  end)
  scratch.map(bufnr, "e", "Edit your own entries", function()
    scratch.close(win)
    edit_own(now)
  end)
end

---Show the memory of a chat's project, or of Neovim's working folder.
---@param chat? string Chat id
---@param query? string Search terms; nil shows everything
function M.open(chat, query)
  local place = { chat = chat or "", cwd = vim.fn.getcwd(), query = query or "", everything = false }
  load(place, function(now)
    show(place, now)
  end)
end

return M
