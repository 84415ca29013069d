"""`python -m codecompanion`: the command line."""

import sys

from codecompanion.cli.__main__ import run_program

sys.exit(run_program())
