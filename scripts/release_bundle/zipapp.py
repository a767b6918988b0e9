"""The command spillway as one file, which Python 3.9 runs without an installation."""

from __future__ import annotations

from release_bundle.archive import Entry, zipped

NAME = "tools/spillway.pyz"
PROGRAM, SHEBANG = "tools/spillway", b"#!/usr/bin/env python3\n"
# tools/cli/files.py unpacks this folder.
FOLDER = "spillway-files"
FILES = ("template.yaml", "samconfig.toml", "docs/doctor.md", "docs/troubleshooting.md", "deploy/rbac.yaml", "deploy/cloudformation/spot-interruption.yaml")
FOLDERS = ("deploy/optional/",)


def of(entries: dict[str, Entry]) -> Entry:
    """The program, its modules and the files that it reads, from those of a bundle."""
    modules = {path[len("tools/") :]: one for path, one in entries.items() if path.startswith("tools/") and path.endswith((".py", ".txt"))}
    files = {f"{FOLDER}/{path}": one for path, one in entries.items() if path in FILES or path.startswith(FOLDERS)}
    return Entry(SHEBANG + zipped({"__main__.py": entries[PROGRAM], **modules, **files}), executable=True)
