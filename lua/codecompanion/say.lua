---One sentence for the user, without ever ending in a hit-enter prompt (lesson 38).

local PREFIX = "codecompanion: "
local REPEATED_MS = 500
local MORE = "… (:CodeCompanion log)"
local HIGHLIGHTS = {
  [vim.log.levels.ERROR] = "ErrorMsg",
  [vim.log.levels.WARN] = "WarningMsg",
}

---Whether `vim.notify` is Neovim's own: it writes to the command line, where two messages in a row, or one that is too
---long, stop the editor until a key is pressed.
---@return boolean
local function is_builtin_notify()
  local source = debug.getinfo(vim.notify, "S").source
  return source:find("^@vim/") ~= nil or source:find("^=?%?") ~= nil -- 0.12 has no names in its own modules
end

---What does not fit the command line can be read in the log.
---@param line string
local function append_to_log(line)
  local uv = vim.uv or vim.loop
  local path = require("codecompanion.host").log_path()
  pcall(vim.fn.mkdir, vim.fs.dirname(path), "p")
  local descriptor = uv.fs_open(path, "a", 384) -- 0600
  if descriptor then
    uv.fs_write(descriptor, os.date("%Y-%m-%d %H:%M:%S ") .. line .. "\n")
    uv.fs_close(descriptor)
  end
end

local last, last_at = "", 0

---What was said a moment ago is not said again: one event may reach several who report it.
---@param line string
---@return boolean
local function is_repeated(line)
  local now = (vim.uv or vim.loop).now()
  local repeated = line == last and now - last_at < REPEATED_MS
  last, last_at = line, now
  return repeated
end

---@param text string
---@return string
local function one_line(text)
  return vim.trim((text:gsub("%s*\n%s*", " ")))
end

---The first of several ways to say the same that fits the command line; who speaks is left out before a word is cut.
---@param texts string[]
---@return string
local function fitting(texts)
  for _, prefix in ipairs({ PREFIX, "" }) do
    for _, text in ipairs(texts) do
      local line = prefix .. one_line(text)
      if vim.fn.strdisplaywidth(line) <= vim.v.echospace then
        return line
      end
    end
  end
  return one_line(texts[#texts])
end

---@param text string|string[] What to say; a list says the same in fewer and fewer words, for narrow screens
---@param level integer? A value of `vim.log.levels`
return function(text, level)
  vim.schedule(function()
    local whole = type(text) == "table" and text[1] or text --[[@as string]]
    local line = PREFIX .. one_line(whole)
    if is_repeated(line) then
      return
    end
    if not is_builtin_notify() then
      vim.notify(line, level or vim.log.levels.INFO, { title = "codecompanion" })
      return
    end
    if #vim.api.nvim_list_uis() > 0 then
      vim.cmd.redraw() -- forgets the message before, so that this one has the line for itself
      if type(text) == "table" then
        line = fitting(text)
      end
      if vim.fn.strdisplaywidth(line) > vim.v.echospace then
        append_to_log(line)
        line = vim.fn.strcharpart(line, 0, math.max(vim.v.echospace - #MORE, 20)) .. MORE
      end
    end
    vim.api.nvim_echo({ { line, HIGHLIGHTS[level] } }, true, {})
  end)
end
