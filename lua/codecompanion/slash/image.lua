---`/image [path]`: attach an image to the next request.

local paths = require("codecompanion.slash.paths")

local EXTENSIONS = { png = true, jpg = true, jpeg = true, gif = true, webp = true }

---@param path string
---@return boolean
local function is_image(path)
  return EXTENSIONS[(path:match("%.(%w+)$") or ""):lower()] == true
end

---@type CodeCompanion.SlashCommand
return {
  name = "image",
  description = "Attach images",
  argument = "[paths]",
  many = true,
  complete = function(lead)
    return vim.tbl_filter(function(path)
      return is_image(path) or path:sub(-1) == "/"
    end, paths.complete(lead))
  end,
  run = function(chat, argument, refuse)
    if argument ~= "" then
      return paths.attach_all(chat, "image", argument, refuse, is_image, "an image (png, jpg, jpeg, gif, webp)")
    end
    paths.pick(chat, "image", is_image)
  end,
}
