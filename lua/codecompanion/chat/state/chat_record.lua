---What the buffer knows of a chat: where things are drawn and what waits. The chat itself is in the host.

local new_id = require("codecompanion.values.new_id")
local options = require("codecompanion.chat.state.chat_options")

local M = {}

local made = 0

---@class CodeCompanion.Chat
---@field id string Opaque id, the same in the host
---@field name string What it is called before it has a title
---@field bufnr integer
---@field title string
---@field adapter string
---@field model string
---@field other_model? string The model that wrote the newest reply, if the server answered with another one
---@field window integer Context window in tokens
---@field state string
---@field label string
---@field meter? table
---@field attached "no"|"opening"|"yes" Whether the running host knows the chat
---@field notices CodeCompanion.Notice[] What was said in the buffer
---@field exported? boolean Its text has just been written to a file
---@field is_opening? boolean What is said now is said whenever the chat is opened
---@field closed? boolean Its buffer is gone for good
---@field known boolean The chat exists in the history
---@field read_only boolean
---@field shown? string What is shown of the reply that a host was receiving when it ended
---@field clearing? boolean The user has asked to clear it
---@field being_drawn? CodeCompanion.Drawn What is drawn now
---@field keys_shown? boolean The line under the cursor shows the keys of a cleared result
---@field just_cleared? boolean It was cleared, and nothing has been sent since
---@field yolo boolean
---@field touched boolean Something was written into it
---@field header boolean The model's header of this turn stands
---@field tail_kind? string Kind of the block that was drawn last
---@field rows_below? integer Rows of virtual text below the input
---@field hint_mark? integer Extmark of what the newest notice says can be done
---@field before_header? string Kind of the block above the model's last header
---@field submit_id integer
---@field outgoing CodeCompanion.Outgoing[]
---@field nonce string What makes the keys of its submits unique
---@field asked_again? integer How often the host was started again to ask whether messages were stored
---@field cut? boolean The last reply ended before its end marker
---@field approvals table[]
---@field put_away table<string, CodeCompanion.Approval> Open questions while the chat is being drawn again
---@field seeks_approval? boolean The cursor goes to the next question that is drawn
---@field follows? { win: integer, below: integer, col: integer } Where the cursor waits for the next question
---@field announced table<string, boolean> Calls whose question the user was told about
---@field approval_maps? table<string, table> While a question is open: what its keys mean elsewhere
---@field stream? CodeCompanion.Stream
---@field draft CodeCompanion.Draft
---@field queue CodeCompanion.Queue
---@field restore CodeCompanion.Restore
---@field folds table<integer, CodeCompanion.Fold>
---@field items table<integer, table>
---@field calls table<string, table>
---@field roles table<integer, string>
---@field parts table[] Items of the reply that is arriving
---@field by_message table<string, table[]> The items of a message, in the order they were drawn
---@field gone table<string, string> Messages that are not sent any more, by the kind of change that took them out
---@field runs_drawn integer Lines that say what is folded because it is gone
---@field refreshing? thread What is folded is being brought up to date, in slices
---@field cleared table<string, boolean|integer> Messages that are sent shorter than they were written, see `blocks`
---@field lost table<string, true> Messages that name what has left the request
---@field marked? boolean The host has said what is cleared since the buffer was emptied
---@field changes table<string, CodeCompanion.Change> Edits and compactions that are drawn
---@field edits table<integer, CodeCompanion.Change> The edits among them by the mark that has their line
---@field answers_replaced CodeCompanion.Replaced[] Answers that another one counts in place of
---@field next_undo? string Id of the change that can be undone
---@field next_redo? string Id of the change that can be redone
---@field undo_kind? string Kind of the change that can be undone
---@field tools_listed? { at: integer, listed?: table } The tools as the host listed them last
---@field folds_version integer Counts the changes of `folds`
---@field fold_lines? { stamp: string, folds: CodeCompanion.Fold[], lines: integer[] } Where they begin
---@field folds_kept table<integer|"latest", string> What they were when a window was left, and when the last one was
---@field fold_states table<string, boolean> What the user opened and closed, by the folds' keys
---@field guarded? boolean The cursor is on what was sent, or on the header of the input: keys that write lead there
---@field damaged? boolean Something changed it all the same: it is about to be drawn again
---@field bounds? integer[] First row of the transcript, and the row after it
---@field awaiting? "redrawn"|"chat_opened" Nothing is drawn until this event comes
---@field places? table<integer, table> Where the cursors were in the drawing before
---@field pieces table<integer, table>
---@field unpainted integer
---@field context_items table<integer, table>
---@field context_shown? table[] What the context block lists
---@field just_detached? string What stood in the input when an attachment was taken out, until something else happens
---@field undo_soon? boolean It is to come back once the host has taken it out
---@field editing boolean The machine edits the buffer
---@field compaction? table
---@field warning_level? "warning"|"critical" How full the context window was last said to be
---@field retry? table
---@field wait? { since: integer, timer: uv.uv_timer_t, on: string, shown: string } How long it waits, and for what
---@field view? integer[] Cursor when it was hidden, nil at the input
---@field when_drawn? fun(chat: CodeCompanion.Chat) Called once, when the newest piece of it is drawn
---@field bar? { of: table, text: string } The status line or winbar that was made last, and what it was made of
---@field hiding? integer The window that is being closed, or given another buffer
---@field replaced? integer Buffer it took the place of

---@return CodeCompanion.Restore
local function nothing_to_restore()
  return { queue = {}, drawn = 0, size = 0, last = false, running = false, noted = {} }
end

---@param id? string A stored chat; a new one without it
---@return CodeCompanion.Chat
function M.new(id)
  made = made + 1
  return {
    id = id or new_id(),
    name = tostring(made),
    title = "",
    adapter = "",
    model = "",
    window = 0,
    state = "idle",
    label = "",
    attached = "no",
    known = false,
    read_only = false,
    yolo = options.chat().tools.opts.yolo == true,
    touched = false,
    header = false,
    submit_id = 0,
    outgoing = {},
    nonce = new_id(),
    approvals = {},
    announced = {},
    put_away = {},
    draft = { steps = { "" }, edits = { false }, at = 1, saved = "" },
    queue = { items = {}, head = 1, scheduled = false },
    restore = nothing_to_restore(),
    folds = {},
    items = {},
    calls = {},
    roles = {},
    parts = {},
    by_message = {},
    gone = {},
    cleared = {},
    lost = {},
    changes = {},
    edits = {},
    answers_replaced = {},
    fold_states = {},
    folds_version = 0,
    folds_kept = {},
    runs_drawn = 0,
    notices = {},
    pieces = {},
    unpainted = 0,
    context_items = {},
    editing = false,
  }
end

---Forget all that was drawn (the chat was cleared); the draft and what is on its way stay.
---@param chat CodeCompanion.Chat
function M.reset(chat)
  chat.folds_version, chat.fold_lines = chat.folds_version + 1, nil
  chat.folds, chat.items, chat.calls, chat.roles, chat.pieces = {}, {}, {}, {}, {}
  chat.answers_replaced, chat.runs_drawn, chat.refreshing = {}, 0, nil
  chat.parts, chat.by_message, chat.gone, chat.context_items, chat.context_fold = {}, {}, {}, {}, nil
  chat.context_shown, chat.just_detached, chat.undo_soon = nil, nil, nil
  chat.cleared, chat.marked, chat.hint_mark = {}, nil, nil
  chat.changes, chat.next_undo, chat.next_redo, chat.undo_kind = {}, nil, nil, nil
  chat.edits = {}
  chat.unpainted, chat.tail_kind, chat.header, chat.stream, chat.approvals = 0, nil, false, nil, {}
  chat.restore = nothing_to_restore()
end

return M
