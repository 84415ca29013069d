---Finds the programs that the plugin starts, but never in the user's working folder, to which an empty or relative PATH
---entry refers.

local uv = vim.uv or vim.loop

local M = {}

---Folder that programs start in, because tools such as uv read settings from their working folder.
M.FOLDER = vim.fn.has("win32") == 1 and vim.fs.normalize("~") or "/"

---@param path string
---@return boolean
local function is_absolute(path)
  return path:find("^[/\\]") ~= nil or path:find("^%a:[/\\]") ~= nil
end

---@param path string
---@param folder string
---@return boolean
local function is_within(path, folder)
  return path == folder or vim.startswith(path, folder:gsub("/$", "") .. "/")
end

---Return the folder that programs must not come from; nil for the home folder and its parents, which contain the user's
---own programs.
---@return string? folder Real path
local function workspace()
  local cwd, home = uv.fs_realpath(uv.cwd() or ""), uv.fs_realpath(vim.fs.normalize("~"))
  return cwd and not (home and is_within(home, cwd)) and cwd or nil
end

---@param name string A name to find on the PATH, or a path
---@return string path Absolute path, or "" if not found
function M.find(name)
  if name:find("[/\\]") then
    local path = vim.fs.normalize(name)
    return is_absolute(path) and vim.fn.exepath(path) or ""
  end
  local kept_out = workspace()
  local separator = vim.fn.has("win32") == 1 and ";" or ":"
  for _, folder in ipairs(vim.split(vim.env.PATH or "", separator, { plain = true, trimempty = true })) do
    local real = is_absolute(folder) and uv.fs_realpath(folder)
    if real and not (kept_out and is_within(real, kept_out)) then
      local path = vim.fn.exepath(vim.fs.normalize(folder, { expand_env = false }) .. "/" .. name)
      if path ~= "" then
        return path
      end
    end
  end
  return ""
end

return M
