"""The measured page: refused if it is old, or if another bench wrote it."""

from __future__ import annotations

import subprocess
from datetime import date
from pathlib import Path

from release_bundle.errors import ReleaseError

PAGE = "docs/contributing/measured/bench"
MOST_DAYS = 60


def sources(root: Path) -> str:
    """Git's hash of the bench, as `make bench` writes it into its results."""
    command = ["git", "-C", str(root), "rev-parse", "HEAD:bench"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def check(circumstances: dict[str, str], today: date, present: str) -> None:
    """Raises a ReleaseError if the circumstances of the page forbid a release."""
    age = (today - date.fromisoformat(circumstances["date"])).days
    written = circumstances["sources"]
    if age > MOST_DAYS:
        problem = f"is {age} days old, of at most {MOST_DAYS}"
    elif not written or not present.startswith(written):
        problem = f"was written by other sources of bench/ ({written})"
    elif "with changes" in circumstances["commit"]:
        problem = "was measured with changes that are in no commit"
    else:
        return
    raise ReleaseError(f"{PAGE}.md {problem}: `make bench` writes it anew")
