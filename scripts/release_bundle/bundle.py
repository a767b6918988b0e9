"""What a release holds, and its making."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from release_bundle import plain, samconfig, sums, template, zipapp
from release_bundle.archive import Entry, package, tar_gz
from release_bundle.elf import ARCHITECTURES, expect
from release_bundle.errors import ReleaseError
from release_bundle.version import repository

# As they are in the project, below the bundle's folder.
FOLDERS = ("deploy", "docs", "events", "terraform", "tools")
FILES = ("LICENSE", "README.md")
# What only the project itself needs.
LEFT_OUT = {"tests", "__pycache__"}
# For each architecture, a folder like `sam build` makes it: FUNCTION/bootstrap.
Built = dict[str, Path]


def file_name(version: str) -> str:
    return f"spillway-{version}.tar.gz"


def pack(root: Path, built: Built, version: str, changes: str, into: Path) -> Path:
    """Writes the bundle of a version, and says where it is."""
    missing = [architecture for architecture in ARCHITECTURES if architecture not in built]
    if missing:
        raise ReleaseError(f"no binaries for {' and '.join(missing)}: a release needs {' and '.join(ARCHITECTURES)}")

    written = (root / "template.yaml").read_text().replace("OWNER/spillway", repository(root))
    binaries = template.binaries(written)
    for architecture in ARCHITECTURES:
        for function in binaries:
            expect(built[architecture] / function / "bootstrap", architecture)

    entries = dict(_of_the_project(root))
    entries["CHANGELOG.md"] = Entry(changes.encode())
    entries["samconfig.toml"] = Entry(samconfig.of((root / "samconfig.toml").read_text()).encode())
    for architecture in ARCHITECTURES:
        released = template.of(written, architecture, version)
        entries[template.name(architecture)] = Entry(released.encode())
        entries[plain.name(architecture)] = Entry(plain.of(released).encode())
        for function, binary in binaries.items():
            bootstrap = built[architecture] / function / "bootstrap"
            entries[template.package(architecture, binary)] = Entry(package(bootstrap.read_bytes()))
    entries[zipapp.NAME] = zipapp.of(entries)

    into.mkdir(parents=True, exist_ok=True)
    bundle = into / file_name(version)
    bundle.write_bytes(tar_gz(f"spillway-{version}", entries))
    return bundle


def unpack(bundle: Path, architecture: str, into: Path) -> None:
    """Takes the binaries of one architecture out of a released bundle: FUNCTION/bootstrap, as `sam build` has them."""
    sums.check(bundle)
    into.mkdir(parents=True, exist_ok=True)
    with tarfile.open(bundle) as tar:
        top = tar.getnames()[0].partition("/")[0]
        try:
            written = tar.extractfile(f"{top}/{template.name(architecture)}")
        except KeyError:
            raise ReleaseError(f"{bundle.name}: it has nothing for {architecture}") from None
        assert written is not None, "a template is a file"
        for function, packaged in template.packages(written.read().decode()).items():
            zipped = tar.extractfile(f"{top}/{packaged}")
            assert zipped is not None, "a package is a file"
            with zipfile.ZipFile(io.BytesIO(zipped.read())) as file:
                bootstrap = into / function / "bootstrap"
                bootstrap.parent.mkdir(exist_ok=True)
                bootstrap.write_bytes(file.read("bootstrap"))
                bootstrap.chmod(0o755)
            expect(bootstrap, architecture)


def _of_the_project(root: Path) -> Iterator[tuple[str, Entry]]:
    published = repository(root).encode()
    for folder in FOLDERS:
        for path in (root / folder).rglob("*"):
            if path.is_file() and not LEFT_OUT & set(path.relative_to(root).parts):
                yield str(path.relative_to(root)), _entry(path, published)
    for file in FILES:
        yield file, _entry(root / file, published)


def _entry(path: Path, published: bytes) -> Entry:
    content = path.read_bytes()
    if path.suffix == ".md":
        content = content.replace(b"OWNER/spillway", published)
    return Entry(content, executable=bool(path.stat().st_mode & 0o100))
