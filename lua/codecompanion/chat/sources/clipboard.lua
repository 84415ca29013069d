---Reads the image in the clipboard with a platform-specific program, for `/paste`.

local attaching = require("codecompanion.chat.sources.attach_to_chat")
local own_programs = require("codecompanion.system.programs")

local uv = vim.uv or vim.loop

local M = {}

local TIME_LIMIT_MS = 10000
local MAX_BYTES = 20000000
local KEPT_S = 86400
local PNG = "\137PNG\r\n\26\n"

---PowerShell script that prints the image as base64, because the program's output is text in some code page.
local POWERSHELL = "Add-Type -AssemblyName System.Windows.Forms,System.Drawing;"
  .. "$i=[System.Windows.Forms.Clipboard]::GetImage();"
  .. "if($i){$m=New-Object System.IO.MemoryStream;"
  .. "$i.Save($m,[System.Drawing.Imaging.ImageFormat]::Png);"
  .. "[Convert]::ToBase64String($m.ToArray())}"

---@class CodeCompanion.ClipboardProgram
---@field command string[]
---@field wanted boolean Whether the program can work here
---@field base64? boolean

---@return CodeCompanion.ClipboardProgram[]
local function programs()
  local env = vim.env
  return {
    { command = { "pngpaste", "-" }, wanted = vim.fn.has("mac") == 1 },
    {
      command = { "powershell.exe", "-NoProfile", "-STA", "-Command", POWERSHELL },
      wanted = vim.fn.has("wsl") == 1,
      base64 = true,
    },
    { command = { "wl-paste", "--no-newline", "--type", "image/png" }, wanted = (env.WAYLAND_DISPLAY or "") ~= "" },
    {
      command = { "xclip", "-selection", "clipboard", "-target", "image/png", "-out" },
      wanted = (env.DISPLAY or "") ~= "",
    },
  }
end

---Return the program to use.
---@return CodeCompanion.ClipboardProgram? program
---@return string? why Why no program was found
local function find()
  local missing = {}
  for _, program in ipairs(programs()) do
    local path = program.wanted and own_programs.find(program.command[1]) or ""
    if path ~= "" then
      program.command[1] = path
      return program
    elseif program.wanted then
      missing[#missing + 1] = program.command[1]
    end
  end
  if #missing > 0 then
    local names = table.concat(missing, " or ")
    return nil, ("Cannot read images from the clipboard: %s is not installed."):format(names)
  end
  return nil, "The clipboard cannot be read here; attach the file with /image."
end

---Delete images pasted days ago, and return the path of a new file.
---@return string
local function fresh_path()
  local folder = vim.fn.stdpath("cache") .. "/codecompanion/pasted"
  vim.fn.mkdir(folder, "p", tonumber("700", 8))
  for name in vim.fs.dir(folder) do
    local path = folder .. "/" .. name
    local status = uv.fs_stat(path)
    if status and os.time() - status.mtime.sec > KEPT_S then
      uv.fs_unlink(path)
    end
  end
  return ("%s/%s-%d.png"):format(folder, os.date("%Y%m%d-%H%M%S"), uv.hrtime() % 1000000)
end

---@param bytes string
---@return string? path
---@return string? why
local function write(bytes)
  local path = fresh_path()
  local file, why = uv.fs_open(path, "wx", tonumber("600", 8))
  if not file then
    return nil, ("%s cannot be written: %s"):format(path, why)
  end
  local written
  written, why = uv.fs_write(file, bytes)
  uv.fs_close(file)
  return written == #bytes and path or nil, why
end

---@param program CodeCompanion.ClipboardProgram
---@param result vim.SystemCompleted
---@return string? path
---@return string? why
local function image_of(program, result)
  local bytes = result.stdout or ""
  if program.base64 then
    local ok, decoded = pcall(vim.base64.decode, (bytes:gsub("%s", "")))
    bytes = ok and decoded or ""
  end
  if result.signal ~= 0 then
    return nil, ("%s did not answer in time."):format(vim.fs.basename(program.command[1]))
  elseif not vim.startswith(bytes, PNG) then
    return nil, "No image in the clipboard."
  elseif #bytes > MAX_BYTES then
    local text = "The image in the clipboard is %.1f MB, over the limit of %d MB."
    return nil, text:format(#bytes / 1e6, MAX_BYTES / 1e6)
  end
  return write(bytes)
end

---Save the image in the clipboard as a file.
---@param done fun(path?: string, why?: string) Called once
function M.read(done)
  local program, missing = find()
  if not program then
    return done(nil, missing)
  end
  local options = { timeout = TIME_LIMIT_MS, cwd = own_programs.FOLDER }
  local started = pcall(vim.system, program.command, options, function(result)
    vim.schedule(function()
      local path, why = image_of(program, result)
      done(path, why or "Cannot save the image from the clipboard.")
    end)
  end)
  if not started then
    done(nil, ("%s cannot be started."):format(vim.fs.basename(program.command[1])))
  end
end

---Attach the image in the clipboard.
---@param chat CodeCompanion.Chat
---@param _ string
---@param refuse fun(reason: string)
function M.paste(chat, _, refuse)
  M.read(function(path, why)
    if not path then
      return refuse(why or "")
    end
    attaching.attach(chat, { kind = "image", path = path }, refuse)
  end)
end

return M
