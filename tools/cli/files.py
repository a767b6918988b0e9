"""Files of the project that the tools read: template, pages, manifests."""

from __future__ import annotations

import atexit
import functools
import re
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

# In the zipapp and in an installation, the files are in a folder of their own. pyproject.toml and scripts/release_bundle/zipapp.py have the list.
FOLDER = "spillway-files"


@functools.cache
def root() -> Path:
    """Folder that holds template.yaml, docs/ and deploy/: the checkout, the release, an installation, or the unpacked zipapp."""
    tools = Path(__file__).parents[1]
    if tools.is_file():
        unpacked = Path(tempfile.mkdtemp(prefix="spillway-"))
        atexit.register(shutil.rmtree, unpacked, ignore_errors=True)
        with zipfile.ZipFile(tools) as archive:
            archive.extractall(unpacked, [name for name in archive.namelist() if name.startswith(FOLDER)])
        return unpacked / FOLDER
    installed = Path(sys.prefix) / "share" / FOLDER
    return tools.parent if (tools.parent / "template.yaml").exists() else installed


def version() -> str:
    found = re.search(r"^    SemanticVersion: (.+)$", (root() / "template.yaml").read_text(), re.MULTILINE)
    return found[1] if found else "unknown"
