---Enables completion at the cursor if configured in `setup()`; its modules are loaded on the first Insert mode.

local GROUP = "codecompanion.complete"

---@param opts any Argument of `setup()`, not checked yet
return function(opts)
  local inline = package.loaded["codecompanion.inline"]
  if inline then
    return vim.schedule(inline.reconfigure)
  end
  local group = vim.api.nvim_create_augroup(GROUP, {})
  if type(opts.completion) ~= "table" or opts.completion.enabled ~= true then
    return
  end
  local begin = vim.schedule_wrap(function()
    vim.api.nvim_create_augroup(GROUP, {})
    require("codecompanion.inline").start()
  end)
  local has_begun = false
  vim.api.nvim_create_autocmd("ModeChanged", {
    group = group,
    pattern = { "*:i*", "i*:*" },
    desc = "Start completion at the cursor",
    callback = function()
      -- Call this immediately, because the first insertion may be into a block of lines.
      require("codecompanion.inline.eligible").on_mode(vim.v.event.old_mode, vim.v.event.new_mode)
      if not has_begun then
        has_begun = true
        begin()
      end
    end,
  })
end
