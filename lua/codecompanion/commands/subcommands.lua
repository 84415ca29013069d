---Defines the subcommands of `:CodeCompanion`, by name.

local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

---@class CodeCompanion.Subcommand
---@field description string
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
    description = "accept the proposed change or tool call; with a range, the hunks in it",
    run = decide("accept"),
  },
  reject = {
    description = "reject the proposed change or tool call",
    run = decide("reject"),
  },
  skip = {
    description = "skip the hunk under the cursor; with a range, the hunks in it",
    run = decide("skip"),
  },
  always = {
    description = "accept, and choose what to allow from now on",
    run = decide("always"),
  },
  reopen = {
    description = "propose a rejected change again; text typed since then is kept",
    run = function()
      require("codecompanion.commands.decide").reopen()
    end,
  },
  complete = {
    description = "turn completion at the cursor `on` or `off`, or show its `status`",
    arguments = { "off", "on", "status" },
    run = complete,
  },
  mcp = {
    description = "show the MCP servers of the chat's folder, or of the current one: their state, their tools,"
      .. " keys to start and stop them and to turn tools on or off",
    run = function()
      local chat = require("codecompanion.chat.state.open_chats").by_buffer()
      require("codecompanion.pages.mcp_page").open(chat and chat.id)
    end,
  },
  trust = {
    description = "review the folder's files: those that instruct the model or start programs; `folder` trusts all,"
      .. " `file {path}` one file until it changes, `revoke [path]` revokes the trust",
    arguments = { "file", "folder", "revoke" },
    run = function(arguments)
      local chat = require("codecompanion.chat.state.open_chats").by_buffer()
      require("codecompanion.pages.trust_page").run(arguments, chat and chat.id)
    end,
  },
  memory = {
    description = "list the project's memory: your own entries, notes by models and summaries of earlier"
      .. " chats; with words, search it",
    run = function(arguments)
      local chat = require("codecompanion.chat.state.open_chats").by_buffer()
      require("codecompanion.pages.memory_page").open(chat and chat.id, table.concat(arguments, " "))
    end,
  },
  index = {
    description = "index the code in the current folder; `--rebuild` starts from scratch, `status` shows the state",
    arguments = { "--rebuild", "status" },
    run = function(arguments)
      require("codecompanion.pages.index_page").run(arguments)
    end,
  },
  chat = {
    description = "open a chat",
    run = function()
      require("codecompanion.chat").open()
    end,
  },
  toggle = {
    description = "show or hide the last chat",
    run = function()
      require("codecompanion.chat").toggle()
    end,
  },
  cancel = {
    description = "stop requests outside of chats: edits in place, a command line, a commit message",
    run = function()
      require("codecompanion.commands.cancel").run()
    end,
  },
  commit = {
    description = "write a commit message: for the staged changes, into the commit buffer",
    run = function()
      require("codecompanion.headless.commit_message").run()
    end,
  },
  approval = {
    description = "go to the pending approval",
    run = function()
      require("codecompanion.chat").go_to_approval()
    end,
  },
  approvals = {
    description = "list the given approvals, and revoke them",
    run = function()
      local chat = require("codecompanion.chat").current()
      if not chat then
        return say.line("No chat is open; :CodeCompanionChat opens one")
      end
      require("codecompanion.chat.lists.grants").open(chat)
    end,
  },
  audit = {
    description = "show the audit log of this chat, or with `all` of every chat; `export {file}` writes JSON lines",
    arguments = { "all", "export" },
    run = function(arguments)
      require("codecompanion.pages.audit_page").run(require("codecompanion.chat").current(), arguments)
    end,
  },
  export = {
    description = "export the chat to a file: `html` or `md`, and a path",
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
    description = "resume a stored chat",
    run = function(arguments)
      require("codecompanion.chat").resume(table.concat(arguments, " "), { check = true })
    end,
  },
  restore = {
    description = "restore a chat from a checkpoint",
    run = function(arguments)
      require("codecompanion.chat").restore(arguments[1])
    end,
  },
  edits = {
    description = "open the chat of the last edit in place",
    run = function()
      require("codecompanion.edit_in_place").open_chat()
    end,
  },
  install = {
    description = "recreate the Python environment; `semantic` adds the packages for local embedding models,"
      .. " `mcp` those for MCP servers, `sdk` the official clients of OpenAI and Anthropic",
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
    description = "choose a model from the adapters, listed with their requirements",
    run = function()
      require("codecompanion.chat.life.choose_adapter").open()
    end,
  },
  login = {
    description = "log in to `chatgpt` or `copilot`, in a browser",
    arguments = { "chatgpt", "copilot" },
    run = function(arguments)
      require("codecompanion.pages.login_page").start(arguments[1])
    end,
  },
  logout = {
    description = "delete the stored login",
    arguments = { "chatgpt", "copilot" },
    run = function(arguments)
      require("codecompanion.pages.login_page").forget(arguments[1])
    end,
  },
  restart = {
    description = "restart the Python process",
    run = function()
      require("codecompanion.host").restart()
    end,
  },
  stop = {
    description = "stop the Python process; the next action starts it again",
    run = function()
      require("codecompanion.host").stop()
    end,
  },
  log = {
    description = "open the log file",
    run = function()
      local path = require("codecompanion.system.log").path()
      if not (vim.uv or vim.loop).fs_stat(path) then
        return say.line("The log is empty: " .. path)
      end
      require("codecompanion.system.literal_paths").open(path, "tabedit")
      vim.bo.readonly, vim.bo.autoread = true, true
      vim.cmd.normal({ "G", bang = true })
    end,
  },
  health = {
    description = "check the installation and the configuration",
    run = function()
      vim.cmd.checkhealth("codecompanion")
    end,
  },
  problems = {
    description = "list the problems of the configuration",
    run = show_problems,
  },
  help = {
    description = "open the manual, at an option, a tag or words if given",
    arguments = function(lead)
      return require("codecompanion.commands.manual").topics(lead)
    end,
    run = function(arguments)
      require("codecompanion.commands.manual").open(table.concat(arguments, " "))
    end,
  },
}
