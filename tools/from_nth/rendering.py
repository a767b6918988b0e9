"""Whether a webhook's template works: the announcer's own code renders it, if its program is here."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

NAME = "announce-preview"


@dataclass(frozen=True)
class Rendered:
    """What came of it."""

    # Why it failed; nothing if it did not.
    failed: str = ""


def program() -> str | None:
    """As it was built, beside this tool or by Cargo; nothing is built for it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    target = Path(os.environ.get("CARGO_TARGET_DIR") or cache / "spillway/target")
    folders = [Path(__file__).parents[1] / "bin", target / "release", target / "debug"]
    return shutil.which(NAME, path=os.pathsep.join(map(str, folders)))


@functools.cache
def of(template: str) -> Rendered | None:
    """None if nobody can tell here."""
    if not (found := program()):
        return None
    run = subprocess.run([found, "--template", "-"], input=template, capture_output=True, text=True, check=False)
    return Rendered(run.stderr.strip() if run.returncode else "")
