---Returns an id that is unique across editors: hexadecimal digits, two for each byte. Ids of chats are shorter, because
---the user sees them in the names of buffers.

---@param bytes? integer 12 by default
---@return string
return function(bytes)
  return (vim.uv.random(bytes or 12):gsub(".", function(byte)
    return ("%02x"):format(byte:byte())
  end))
end
