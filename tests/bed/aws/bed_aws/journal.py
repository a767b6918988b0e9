"""Every AWS call that came in, in order: what the tests count."""

import sys
import time
from dataclasses import asdict, dataclass, field
from typing import Any

from werkzeug import Response

from bed_aws.call import Call


@dataclass
class Entry:
    access_key_id: str
    service: str
    action: str
    at: float = field(default_factory=time.time)
    status: int = 0
    """0: not answered yet, or the connection was dropped."""

    def answered(self, response: Response) -> None:
        self.status = response.status_code
        why = response.get_data(as_text=True) if self.status >= 400 else ""
        print(f"{self.access_key_id} {self.service}:{self.action} {self.status} {why}".rstrip(), file=sys.stderr)


class Journal:
    def __init__(self) -> None:
        self._entries: list[Entry] = []

    def open(self, call: Call) -> Entry:
        entry = Entry(call.access_key_id, call.service, call.action)
        self._entries.append(entry)
        return entry

    def calls(self, access_key_id: str | None = None) -> list[dict[str, Any]]:
        return [asdict(entry) for entry in list(self._entries) if access_key_id in (None, entry.access_key_id)]
