"""Which processor a Linux binary is for."""

from __future__ import annotations

from pathlib import Path

from release_bundle.errors import ReleaseError

# e_machine of the ELF header, by Lambda's name of the architecture.
MACHINES = {"arm64": 183, "x86_64": 62}
ARCHITECTURES = tuple(MACHINES)


def expect(binary: Path, architecture: str) -> None:
    """Refuses a binary that Lambda could not start on this architecture."""
    if not binary.is_file():
        raise ReleaseError(
            f"{binary}: there is no binary for {architecture}; a release needs {', '.join(ARCHITECTURES)}"
        )
    with binary.open("rb") as file:
        header = file.read(20)
    if len(header) < 20 or header[:4] != b"\x7fELF":
        raise ReleaseError(f"{binary}: it is no Linux binary (ELF)")
    machine = int.from_bytes(header[18:20], "little")
    if machine != MACHINES[architecture]:
        named = {number: name for name, number in MACHINES.items()}.get(machine, f"ELF machine {machine}")
        raise ReleaseError(f"{binary}: it is for {named}; {architecture} was asked for")
