---Creates and resets the editor's state of a chat: drawn content with its marks, and pending work. The chat itself is
---in the host.

local new_id = require("codecompanion.values.new_id")
local options = require("codecompanion.chat.state.chat_options")

local M = {}

---Number of bytes in a chat id.
M.ID_BYTES = 6

---@class CodeCompanion.Chat
---@field id string Opaque id, the same as in the host
---@field bufnr integer
---@field title string
---@field buffer_name? string The name of its buffer
---@field adapter string
---@field model string
---@field other_model? string The model that wrote the newest reply, if the server answered with another one
---@field is_adapter_chosen? boolean The user chose its adapter, or it is a stored chat
---@field window integer Context window in tokens
---@field state string
---@field label string
---@field meter? table
---@field attached "no"|"opening"|"yes" Whether the running host has opened the chat
---@field notices CodeCompanion.Notice[] Notices shown in the buffer
---@field exported? boolean Its text was just written to a file
---@field is_opening? boolean Notices shown now are repeated whenever the chat is opened
---@field closed? boolean Its buffer was deleted permanently
---@field known boolean The chat exists in the history
---@field read_only boolean
---@field shown? string The visible part of a reply that was streaming when the host exited
---@field clearing? boolean The user has asked to clear it
---@field being_drawn? CodeCompanion.Drawn Set while it is being drawn
---@field keys_shown? boolean A line shows keys at its right edge
---@field newest_edit? string Call of the last file change since the last message
---@field just_cleared? boolean It was cleared, and nothing has been sent since
---@field yolo boolean
---@field touched boolean It has content
---@field earlier? string Title of an earlier chat of this folder, shown while this chat is empty
---@field instead_of? CodeCompanion.Chat The chat with content that it replaced or covered when it was opened
---@field header boolean The model's header of this turn is drawn
---@field tail_kind? string Kind of the last drawn block
---@field rows_below? integer Rows of virtual text below the input
---@field hint_mark? integer Extmark of the newest notice's hint
---@field before_header? string Kind of the block above the model's last header
---@field submit_id integer
---@field outgoing CodeCompanion.Outgoing[]
---@field nonce string Makes the keys of its messages unique
---@field asked_again? integer Number of times the host was restarted to ask whether messages were stored
---@field cut? boolean The last reply ended without its end marker
---@field approvals table[]
---@field put_away table<string, CodeCompanion.Approval> Open questions while the chat is being redrawn
---@field seeks_approval? boolean The cursor goes to the next drawn question
---@field follows? { win: integer, below: integer, col: integer } Position where the cursor waits for the next question
---@field announced table<string, boolean> Calls whose question was announced
---@field no_always table<string, string> For each reason not to offer "always", the call whose block shows it
---@field approval_maps? table<string, table> The mappings that the approval keys replace while a question is open
---@field automatic_menu? CodeCompanion.AutomaticMenu
---@field stream? CodeCompanion.Stream
---@field draft CodeCompanion.Draft
---@field queue CodeCompanion.Queue
---@field restore CodeCompanion.Restore
---@field folds table<integer, CodeCompanion.Fold>
---@field items table<integer, table>
---@field calls table<string, table>
---@field roles table<integer, string>
---@field parts table[] Items of the streaming reply
---@field by_message table<string, table[]> The items of a message in drawing order
---@field gone table<string, string> Messages that are no longer sent, with the kind of change that removed them
---@field runs_drawn integer Number of fold lines of removed messages
---@field refreshing? thread Coroutine that updates the folds in slices
---@field cleared table<string, boolean|integer> Messages that are sent shortened, see `blocks`
---@field lost table<string, true> Messages that refer to text no longer in the request
---@field marked? boolean The host has reported cleared messages since the buffer was emptied
---@field changes table<string, CodeCompanion.Change> Drawn edits and compactions
---@field edits table<integer, CodeCompanion.Change> The edits among `changes`, by the mark that has their line
---@field answers_replaced CodeCompanion.Replaced[] Answers that a newer one replaces
---@field next_undo? string Id of the change that can be undone
---@field next_redo? string Id of the change that can be redone
---@field undo_kind? string Kind of the change that can be undone
---@field tools_listed? { at: integer, listed?: table } The tools as last listed by the host
---@field folds_version integer Incremented on each change of `folds`
---@field fold_lines? { stamp: string, folds: CodeCompanion.Fold[], lines: integer[] } The first lines of the folds
---@field folds_kept table<integer|"latest", string> State of the folds when each window was left, and the latest state
---@field fold_states table<string, boolean> Folds that the user opened or closed, by key
---@field guarded? boolean The cursor is on sent text or on the input header: keys that insert text act in the input
---@field damaged? boolean The transcript was changed despite its protection and will be redrawn
---@field bounds? integer[] First row of the transcript, and the row after it
---@field awaiting? "redrawn"|"chat_opened" Nothing is drawn until this event arrives
---@field places? table<integer, table> Positions of the cursors in the previous drawing
---@field pieces table<integer, table>
---@field unpainted integer
---@field context_items table<integer, table>
---@field context_shown? table[] The items of the context block
---@field just_detached? string Text of the input when an attachment was removed, until the next action
---@field undo_soon? boolean The attachment must be restored once the host has removed it
---@field editing boolean A machine edit of the buffer is in progress
---@field compaction? table
---@field warning_level? "warning"|"critical" The last announced fill level of the context window
---@field retry? table
---@field wait? { since: integer, timer: uv.uv_timer_t, on: string, shown: string } Start and reason of the current wait
---@field view? integer[] Cursor position when the chat was hidden; nil if it was in the input
---@field when_drawn? fun(chat: CodeCompanion.Chat) Called once, when its newest piece is drawn
---@field bar? { of: table, text: string } Cached status line or winbar, and its inputs
---@field hiding? integer The window that is being closed or given another buffer
---@field replaced? integer Buffer that the chat replaced

---@return CodeCompanion.Restore
local function nothing_to_restore()
  return { queue = {}, drawn = 0, size = 0, last = false, running = false, noted = {} }
end

---@param id? string A stored chat; nil creates a new one
---@return CodeCompanion.Chat
function M.new(id)
  return {
    id = id or new_id(M.ID_BYTES),
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
    no_always = {},
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

---Reset all drawing state (the chat was cleared); the draft and messages being sent are kept.
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
