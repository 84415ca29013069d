"""`:CodeCompanion audit`: shows the audit log, or writes it to a file as JSON Lines."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from codecompanion.errors import InputError
from codecompanion.formats.plural import counted
from codecompanion.reports.audit_page import audit_page
from codecompanion.session.services import Services
from codecompanion.store.audit import read_audit
from codecompanion.wire.requests import ShowAudit


def show_audit(services: Services, request: ShowAudit) -> dict[str, Any]:
    """Show the audit log or write it to a file; return `{title, text, said}`. Blocks.

    Raises: InputError: the log is empty, or the file cannot be written.
    """
    folder = services.audit.folder
    if folder is None:
        raise InputError("No audit log: the data folder cannot be used.")
    audit = read_audit(folder, request.of)
    if not request.file:
        text = audit_page(audit.records, audit.broken, str(folder), datetime.now().astimezone().tzinfo)  # type: ignore[arg-type]
        return {"title": "Audit", "text": text, "said": ""}
    target = Path(request.file).expanduser()
    try:
        with target.open("x", encoding="utf-8", newline="\n") as file:
            file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in audit.records)
    except FileExistsError as error:
        raise InputError(f"{target} already exists; choose another name") from error
    except OSError as error:
        raise InputError(f"cannot write to {target} ({error.strerror})") from error
    broken = f" The log was changed or damaged: {audit.broken}." if audit.broken else ""
    said = f"Wrote {counted(len(audit.records), 'record')} to {target}.{broken}"
    return {"title": "Audit", "text": "", "said": said}
