---Which files are images that models read, by their names.

local EXTENSIONS = { png = true, jpg = true, jpeg = true, gif = true, webp = true }

---@param path string
---@return boolean
return function(path)
  return EXTENSIONS[(path:match("%.(%w+)$") or ""):lower()] == true
end
