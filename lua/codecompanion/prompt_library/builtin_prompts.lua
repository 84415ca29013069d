---The built-in prompts, written like a user's entries in `prompt_library`. Only a few for daily use.

---Return words about the prompt's subject: the selection, which is attached anyway, or the current file.
---@param words string
---@return fun(context: CodeCompanion.PromptContext): string
local function about(words)
  return function(context)
    if context.is_visual or context.bufnr == 0 then
      return words
    end
    return words .. "\n\n#{buffer}"
  end
end

---@type table<string, table>
return {
  explain = {
    name = "Explain",
    description = "What this code does, and what is easy to miss",
    opts = { alias = "explain", auto_submit = true },
    parameters = { { name = "focus", description = "What about it", optional = true } },
    prompts = {
      {
        role = "user",
        content = about([[
Explain this code to somebody who knows the language but not the project. ${parameters.focus}

1. In one or two sentences: what it is for.
2. How it works, in the order in which it runs. Quote a line only where its wording matters.
3. What is easy to miss: assumptions, side effects, edge cases, what happens on errors.

Do not restate the code line by line, and do not propose changes.]]),
      },
    },
  },
  fix = {
    name = "Fix diagnostics",
    description = "Find the cause of what is reported here, and mend it",
    opts = { alias = "fix", auto_submit = true },
    prompts = {
      {
        role = "user",
        content = about([[
Mend what the diagnostics of this file report.

#{diagnostics}

- Find the cause first. Several diagnostics may have one; say which.
- Make the smallest change that removes the cause. Do not silence a diagnostic, and do not change what works.
- If a diagnostic is wrong, or the right fix is a decision, say so instead of changing anything.
- At the end say what was changed and why, in a few sentences.]]),
      },
    },
  },
  tests = {
    name = "Tests",
    description = "Write tests for this code, as this project writes them",
    opts = { alias = "tests", auto_submit = true },
    parameters = { { name = "what", description = "What shall be tested", optional = true } },
    prompts = {
      {
        role = "user",
        content = about([[
Write tests for this code. ${parameters.what}

- Look at the tests that exist in this project first: same framework, same place, same style, same helpers.
- Test what it promises to whoever calls it: ordinary use, limits, empty and wrong input, errors. Not its inside.
- Each test is about one thing, and its name says which. No test that cannot fail.
- If the code is hard to test or you find a bug, say so; do not change the code.]]),
      },
    },
  },
  commit = {
    name = "Commit message",
    description = "Write the message of the staged changes into the commit buffer",
    opts = { alias = "commit", is_slash_cmd = false },
    run = function()
      require("codecompanion.headless.commit_message").run()
    end,
  },
  review = {
    name = "Review",
    description = "Review the changes of the working tree",
    opts = { alias = "review", auto_submit = true, stop_context_insertion = true },
    parameters = {
      {
        name = "changes",
        description = "Which changes",
        choices = { "staged", "unstaged", "branch" },
        default = "unstaged",
      },
    },
    prompts = {
      {
        role = "user",
        content = [[
Review these changes as a colleague would who has to maintain them.

#{diff:${parameters.changes}}

- Look for what is wrong first: bugs, broken callers, missing cases, races, security, data loss. Read the code around
  a change where the diff does not show enough.
- Then what will hurt later: unclear names, duplication, missing or useless tests.
- Give each finding as `file:line`, what happens and how to mend it, the most serious first. No taste, no praise.
- If there is nothing to say about a change, say nothing about it. If all is well, say so in one sentence.]],
      },
    },
  },
}
