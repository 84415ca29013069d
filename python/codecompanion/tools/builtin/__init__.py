"""The tools that come with the plugin."""

from codecompanion.tools.builtin.code_search import CODE_SEARCH
from codecompanion.tools.builtin.create_file import CREATE_FILE
from codecompanion.tools.builtin.delete_file import DELETE_FILE
from codecompanion.tools.builtin.file_search import FILE_SEARCH
from codecompanion.tools.builtin.get_diagnostics import GET_DIAGNOSTICS
from codecompanion.tools.builtin.grep_search import GREP_SEARCH
from codecompanion.tools.builtin.insert_edit import INSERT_EDIT
from codecompanion.tools.builtin.memory import MEMORY
from codecompanion.tools.builtin.read_file import READ_FILE
from codecompanion.tools.builtin.recall import RECALL
from codecompanion.tools.builtin.run_command import RUN_COMMAND
from codecompanion.tools.tool import Tool

BUILTIN_TOOLS: tuple[Tool, ...] = (
    READ_FILE,
    FILE_SEARCH,
    GREP_SEARCH,
    CODE_SEARCH,
    GET_DIAGNOSTICS,
    INSERT_EDIT,
    CREATE_FILE,
    DELETE_FILE,
    RUN_COMMAND,
    MEMORY,
    RECALL,
)
"""In the order the model is told of them, which never changes within a chat (prompt cache).

`recall` comes last: it is offered only once something was taken out of the chat.
"""
