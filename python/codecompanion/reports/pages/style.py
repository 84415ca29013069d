"""Defines the style of all pages, for light and dark mode, phones and paper. Colour alone never carries meaning."""

from __future__ import annotations

LIGHT = """
  --paper: #ffffff; --raised: #f6f7f9; --ink: #1b1f24; --quiet: #59626d; --line: #d9dee4;
  --sent: #2563c9; --fill: #2563c926; --ghost: #8a939e; --limit: #59626d;
  --edit: #0b7a6b; --compaction: #b4460f; --fault: #b3261e; --me: #0b7a6b; --model: #2563c9;
"""
DARK = """
  --paper: #14161b; --raised: #1d2027; --ink: #e3e6ea; --quiet: #9ba6b2; --line: #343a44;
  --sent: #7fb0ff; --fill: #7fb0ff2e; --ghost: #79838f; --limit: #9ba6b2;
  --edit: #62d3bf; --compaction: #ffa66b; --fault: #ff8f86; --me: #62d3bf; --model: #7fb0ff;
"""
BASE = f"""
:root {{ color-scheme: light dark;{LIGHT}}}
@media screen and (prefers-color-scheme: dark) {{ :root {{{DARK}}} }}
* {{ box-sizing: border-box; }}
html {{ -webkit-text-size-adjust: 100%; }}
body {{
  margin: 0 auto; padding: 2rem clamp(1rem, 4vw, 3rem) 4rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}}
h1 {{ font-size: 1.6rem; line-height: 1.25; margin: 0 0 .4rem; letter-spacing: -.01em; }}
h2 {{ font-size: 1.15rem; margin: 2.4rem 0 .8rem; }}
p {{ margin: .5rem 0; max-width: 46rem; }}
.quiet, footer {{ color: var(--quiet); }}
footer {{ margin-top: 3rem; padding-top: 1rem; border-top: 1px solid var(--line); font-size: .875rem; }}
code, pre, kbd {{ font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }}
code {{ font-size: .9em; overflow-wrap: anywhere; }}
:focus-visible {{ outline: 2px solid var(--sent); outline-offset: 2px; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
caption {{ text-align: left; color: var(--quiet); font-size: .875rem; padding-bottom: .5rem; }}
th, td {{ padding: .35rem .75rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }}
th:first-child, td:first-child {{ text-align: left; padding-left: 0; }}
thead th {{ color: var(--quiet); font-weight: 500; border-bottom-color: var(--quiet); }}
tbody th {{ font-weight: 600; }}
@media print {{
  body {{ padding: 0; font-size: 10pt; max-width: none; }}
  h2 {{ break-after: avoid; }}
  .wide {{ overflow: visible; }}
}}
"""
