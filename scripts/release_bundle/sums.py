"""SHA256SUMS, as sha256sum writes and checks it."""

from __future__ import annotations

import hashlib
from pathlib import Path

from release_bundle.errors import ReleaseError

NAME = "SHA256SUMS"


def write(folder: Path) -> None:
    """Sums of all other files of a folder."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != NAME)
    (folder / NAME).write_text("".join(f"{sum_of(path)}  {path.name}\n" for path in files))


def check(file: Path) -> None:
    """Refuses a file that is not the one that the SHA256SUMS beside it speaks of."""
    try:
        lines = (file.parent / NAME).read_text().splitlines()
    except FileNotFoundError:
        raise ReleaseError(f"{file.parent / NAME}: it is missing; download it with {file.name}") from None
    sums = {name: value for value, name in (line.split("  ", 1) for line in lines)}
    if file.name not in sums:
        raise ReleaseError(f"{file.name}: {NAME} does not speak of it; take both from one release")
    if (here := sum_of(file)) != sums[file.name]:
        raise ReleaseError(
            f"{file.name}: its SHA-256 is {here}, {NAME} has {sums[file.name]}: it is not what was released, download it again"
        )


def sum_of(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
