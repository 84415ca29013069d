---Defines the subcommands of `:CodeCompanion`, by name; `command_list.lua` describes them.

local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

---@class CodeCompanion.Subcommand
---@field run fun(arguments: string[], range?: { [1]: integer, [2]: integer }) range: 1-based lines
---@field arguments? string[]|fun(lead: string): string[] Possible arguments

---Show the problems in the configuration, including the host's findings if a host can run.
local function show_problems()
  local host = require("codecompanion.host")
  local function open(is_complete)
    local findings = require("codecompanion.config.findings")
    local function shown(of_prompts)
      findings.open(require("codecompanion.config").findings(), is_complete, of_prompts)
    end
    if not is_complete then
      return shown(require("codecompanion.prompt_library").problems())
    end
    require("codecompanion.prompt_library").read_problems(shown)
  end
  if host.status() == "ready" or not require("codecompanion.install").can_start() then
    return open(host.status() == "ready")
  end
  local unsubscribe
  unsubscribe = host.subscribe(function(event)
    if event.type == "host_ready" or event.type == "host_exit" then
      unsubscribe()
      open(event.type == "host_ready")
    end
  end)
  host.start()
end

---Run `:CodeCompanion complete {on|off|status}`.
---@param arguments string[]
local function complete(arguments)
  local inline, what = require("codecompanion.inline"), (arguments[1] or "status"):lower()
  inline.begin()
  if what == "on" then
    inline.enable()
  elseif what == "off" then
    inline.disable()
  elseif what ~= "status" then
    return say.line("Usage: :CodeCompanion complete [on|off|status]", severity.ERROR)
  end
  require("codecompanion.inline.completion_status").tell(what == "status")
end

---@param name "accept"|"reject"|"skip"|"always"
---@return fun(arguments: string[], range?: { [1]: integer, [2]: integer })
local function decide(name)
  return function(_, range)
    require("codecompanion.commands.decide").run(name, range)
  end
end

---@type table<string, CodeCompanion.Subcommand>
return {
  accept = {
    run = decide("accept"),
  },
  reject = {
    run = decide("reject"),
  },
  skip = {
    run = decide("skip"),
  },
  always = {
    run = decide("always"),
  },
  reopen = {
    run = function()
      require("codecompanion.commands.decide").reopen()
    end,
  },
  complete = {
    arguments = { "off", "on", "status" },
    run = complete,
  },
  mcp = {
    run = function()
      local chat = require("codecompanion.chat.state.open_chats").by_buffer()
      require("codecompanion.pages.mcp_page").open(chat and chat.id)
    end,
  },
  trust = {
    arguments = { "file", "folder", "revoke" },
    run = function(arguments)
      local chat = require("codecompanion.chat.state.open_chats").by_buffer()
      require("codecompanion.pages.trust_page").run(arguments, chat and chat.id)
    end,
  },
  memory = {
    run = function(arguments)
      local chat = require("codecompanion.chat.state.open_chats").by_buffer()
      require("codecompanion.pages.memory_page").open(chat and chat.id, table.concat(arguments, " "))
    end,
  },
  index = {
    arguments = { "--rebuild", "status" },
    run = function(arguments)
      require("codecompanion.pages.index_page").run(arguments)
    end,
  },
  chat = {
    run = function()
      require("codecompanion.chat").open()
    end,
  },
  toggle = {
    run = function()
      require("codecompanion.chat").toggle()
    end,
  },
  cancel = {
    run = function()
      require("codecompanion.commands.cancel").run()
    end,
  },
  commit = {
    run = function()
      require("codecompanion.headless.commit_message").run()
    end,
  },
  approval = {
    run = function()
      require("codecompanion.chat").go_to_approval()
    end,
  },
  approvals = {
    run = function()
      local chat = require("codecompanion.chat").current()
      if not chat then
        return say.line("No chat is open; :CodeCompanionChat opens one")
      end
      require("codecompanion.chat.lists.grants").open(chat)
    end,
  },
  audit = {
    arguments = { "all", "export" },
    run = function(arguments)
      require("codecompanion.pages.audit_page").run(require("codecompanion.chat").current(), arguments)
    end,
  },
  export = {
    arguments = { "html", "md" },
    run = function(arguments)
      local chat = require("codecompanion.chat").current()
      if not chat then
        return say.line("No chat is open; :CodeCompanionChat opens one")
      end
      require("codecompanion.commands.export").run(chat, arguments)
    end,
  },
  resume = {
    run = function(arguments)
      require("codecompanion.chat").resume(table.concat(arguments, " "), { check = true })
    end,
  },
  restore = {
    run = function(arguments)
      require("codecompanion.chat").restore(arguments[1])
    end,
  },
  edits = {
    run = function()
      require("codecompanion.edit_in_place").open_chat()
    end,
  },
  install = {
    arguments = { "mcp", "sdk", "semantic" },
    run = function(arguments)
      local install, extras = require("codecompanion.install"), require("codecompanion.host.install_extra")
      if install.extras[arguments[1]] then
        return install.add(arguments[1], extras.restart_host)
      end
      if arguments[1] then
        return say.line("Usage: :CodeCompanion install [mcp|sdk|semantic]", severity.ERROR)
      end
      install.run_visibly(extras.restart_host)
    end,
  },
  adapter = {
    run = function()
      require("codecompanion.chat.life.choose_adapter").open()
    end,
  },
  login = {
    arguments = { "chatgpt", "copilot" },
    run = function(arguments)
      require("codecompanion.pages.login_page").start(arguments[1])
    end,
  },
  logout = {
    arguments = { "chatgpt", "copilot" },
    run = function(arguments)
      require("codecompanion.pages.login_page").forget(arguments[1])
    end,
  },
  restart = {
    run = function()
      require("codecompanion.host").restart()
    end,
  },
  stop = {
    run = function()
      require("codecompanion.host").stop()
    end,
  },
  log = {
    arguments = { "install" },
    run = function(arguments)
      local is_of_install = arguments[1] == "install"
      local path = is_of_install and require("codecompanion.install").log_path()
        or require("codecompanion.system.log").path()
      if not (vim.uv or vim.loop).fs_stat(path) then
        return say.line("The log is empty: " .. path)
      end
      require("codecompanion.system.literal_paths").open(path, "tabedit")
      vim.bo.readonly, vim.bo.autoread = true, true
      vim.cmd.normal({ "G", bang = true })
    end,
  },
  health = {
    run = function()
      vim.cmd.checkhealth("codecompanion")
    end,
  },
  problems = {
    run = show_problems,
  },
  help = {
    arguments = function(lead)
      return require("codecompanion.commands.manual").topics(lead)
    end,
    run = function(arguments)
      require("codecompanion.commands.manual").open(table.concat(arguments, " "))
    end,
  },
}
