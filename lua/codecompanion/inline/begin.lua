---Begins with completion at the cursor when `setup()` says so: with the first Insert mode, and nothing of it is loaded
---before.

---@param opts any What was given to `setup()`, not checked yet
return function(opts)
  local inline = package.loaded["codecompanion.inline"]
  if inline then
    return vim.schedule(inline.reconfigure)
  end
  local group = vim.api.nvim_create_augroup("codecompanion.complete", {})
  if type(opts.completion) ~= "table" or opts.completion.enabled ~= true then
    return
  end
  vim.api.nvim_create_autocmd("InsertEnter", {
    group = group,
    once = true,
    desc = "Begin with completion at the cursor",
    callback = vim.schedule_wrap(function()
      require("codecompanion.inline").start()
    end),
  })
end
