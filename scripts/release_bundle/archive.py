"""Archives that depend on their contents alone: no clock, no owner, no order of the disk."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from dataclasses import dataclass

# The earliest day that a zip can tell.
DAY = (1980, 1, 1, 0, 0, 0)
DAY_AS_UNIX_TIME = 315_532_800


@dataclass(frozen=True)
class Entry:
    """A file of an archive."""

    contents: bytes
    executable: bool = False

    @property
    def mode(self) -> int:
        return 0o755 if self.executable else 0o644


def package(bootstrap: bytes) -> bytes:
    """The zip that Lambda takes for a function of `provided.al2023`: one executable file."""
    return zipped({"bootstrap": Entry(bootstrap, executable=True)})


def zipped(entries: dict[str, Entry]) -> bytes:
    """A zip of these files by their paths."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as file:
        for path, entry in sorted(entries.items()):
            info = zipfile.ZipInfo(path, DAY)
            # Unix, so that Lambda sees the file's mode: https://en.wikipedia.org/wiki/ZIP_(file_format), "version made by".
            info.create_system = 3
            info.external_attr = (0o100000 | entry.mode) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(info, entry.contents, compresslevel=9)
    return written.getvalue()


def tar_gz(folder: str, entries: dict[str, Entry]) -> bytes:
    """A tar of these files by their paths below one folder."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path, entry in sorted(entries.items()):
            info = tarfile.TarInfo(f"{folder}/{path}")
            info.size, info.mode, info.mtime = len(entry.contents), entry.mode, DAY_AS_UNIX_TIME
            info.uname = info.gname = "root"
            tar.addfile(info, io.BytesIO(entry.contents))
    return gzip.compress(plain.getvalue(), compresslevel=9, mtime=0)
