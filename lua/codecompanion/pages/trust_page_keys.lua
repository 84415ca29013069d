---Keys of the trust page: only those that do something there are shown.

local float = require("codecompanion.screen.float")

local M = {}

---@param now CodeCompanion.TrustShown
---@param is_wanted fun(file: CodeCompanion.TrustFile): boolean
---@return boolean
local function has_file(now, is_wanted)
  return vim.iter(now.files):any(is_wanted)
end

---@class CodeCompanion.TrustKey
---@field [1] string Key
---@field [2] string Label in the footer
---@field [3] string Label in a narrow footer
---@field [4] string Description
---@field works fun(now: CodeCompanion.TrustShown): boolean Whether it does anything on the page

---@type CodeCompanion.TrustKey[]
local KEYS = {
  {
    "T",
    "trust folder",
    "folder",
    "Trust the folder",
    works = function(now)
      return now.why == ""
        or has_file(now, function(file)
          return not file.is_trusted and not file.leads_out
        end)
    end,
  },
  {
    "t",
    "this file",
    "file",
    "Trust the file under the cursor until it changes",
    works = function(now)
      return now.waiting > 0
    end,
  },
  {
    "K",
    "read it",
    "read",
    "Read the file under the cursor",
    works = function(now)
      return #now.files > 0
    end,
  },
  {
    "x",
    "revoke",
    "revoke",
    "Revoke trust in the file under the cursor, else in the folder",
    works = function(now)
      local elsewhere = vim.iter(now.others):any(function(one)
        return not one.here
      end)
      return elsewhere
        or now.why == "user"
        or (now.why == "" and has_file(now, function(file)
          return file.is_trusted
        end))
    end,
  },
  {
    "n",
    "not now",
    "not now",
    "Not now: remind me when the files change",
    works = function(now)
      return now.waiting > 0 and not now.silenced
    end,
  },
}

---@param key string
---@return string
function M.description(key)
  return vim.iter(KEYS):find(function(one)
    return one[1] == key
  end)[4]
end

---Return the keys that do something on the page.
---@param now CodeCompanion.TrustShown
---@return CodeCompanion.TrustKey[]
local function working(now)
  return vim.tbl_filter(function(key)
    return key.works(now)
  end, KEYS)
end

---Return the hints for the keys that do something.
---@param now CodeCompanion.TrustShown
---@param width integer
---@return string[]
function M.footer(now, width)
  local function labels(column, last)
    local found = vim.tbl_map(function(key)
      return key[1] .. " " .. key[column]
    end, working(now))
    return vim.list_extend(found, last)
  end
  local whole = labels(2, { "g? keys", "q close" })
  local fits = vim.api.nvim_strwidth(table.concat(whole, " · ")) + 2 <= width
  return fits and whole or labels(3, { "q" })
end

---List the keys that do something.
---@param title string
---@param now CodeCompanion.TrustShown
function M.show(title, now)
  local rows = vim.tbl_map(function(key)
    return { keys = key[1], text = key[4] }
  end, working(now))
  float.show_keys(title, vim.list_extend(rows, { { keys = "q", text = "Close" } }))
end

return M
