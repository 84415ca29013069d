---Returns an id that is unique across editors, for chats and other objects: 24 hexadecimal digits.

---@return string
return function()
  return (vim.uv.random(12):gsub(".", function(byte)
    return ("%02x"):format(byte:byte())
  end))
end
