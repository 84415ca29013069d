---Keeps the adapter and model that the user chose last, for new chats of later Neovim sessions.

local M = {}

---@class CodeCompanion.KeptModel
---@field adapter? string nil: none was chosen
---@field model string "" = the adapter's default

---@type CodeCompanion.KeptModel? The choice in the file when it was first needed, or that of this session
local kept

---@return string
local function path()
  return vim.fn.stdpath("state") .. "/codecompanion/model.json"
end

---@return CodeCompanion.KeptModel
function M.read()
  if not kept then
    local is_read, lines = pcall(vim.fn.readfile, path())
    local is_json, found = pcall(vim.json.decode, is_read and table.concat(lines) or "")
    found = is_json and type(found) == "table" and found or {}
    kept = {
      adapter = type(found.adapter) == "string" and found.adapter or nil,
      model = type(found.model) == "string" and found.model or "",
    }
  end
  return kept
end

---@param adapter string
---@param model? string
function M.write(adapter, model)
  kept = { adapter = adapter, model = model or "" }
  pcall(vim.fn.mkdir, vim.fs.dirname(path()), "p", 448) -- 0700
  pcall(vim.fn.writefile, { vim.json.encode(kept) }, path())
end

return M
