---Recognises image files that models can read, by their names.

local EXTENSIONS = { png = true, jpg = true, jpeg = true, gif = true, webp = true }

---@param path string
---@return boolean
return function(path)
  return EXTENSIONS[(path:match("%.(%w+)$") or ""):lower()] == true
end
