"""The commands of scripts/release: pack, sums, unpack, sbom, changes, measured, version."""

from __future__ import annotations

import argparse
import json
import sys
from datetime import date
from pathlib import Path

from release_bundle import bundle, measured, sbom, sums, version
from release_bundle.elf import ARCHITECTURES
from release_bundle.errors import ReleaseError

ROOT = Path(__file__).parents[2]


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except ReleaseError as wrong:
        print(f"scripts/release: {wrong}", file=sys.stderr)
        return 1
    return 0


def _pack(options: argparse.Namespace) -> None:
    number = version.of_workspace(ROOT)
    packed = bundle.pack(ROOT, dict(options.built), number, _changes_of(number), options.into)
    print(f"{packed}: {packed.stat().st_size / 1e6:.1f} MB")


def _sums(options: argparse.Namespace) -> None:
    sums.write(options.folder)
    print((options.folder / sums.NAME).read_text(), end="")


def _unpack(options: argparse.Namespace) -> None:
    bundle.unpack(options.bundle, options.architecture, options.into)


def _changes(_: argparse.Namespace) -> None:
    print(_changes_of(version.of_workspace(ROOT)), end="")


def _measured(_: argparse.Namespace) -> None:
    results = json.loads((ROOT / f"{measured.PAGE}.json").read_text())
    measured.check(results["circumstances"], date.today(), measured.sources(ROOT))


def _sbom(options: argparse.Namespace) -> None:
    bill = sbom.of(json.loads(options.written.read_text()), sbom.crates(sys.stdin.read()))
    print(sbom.without_place(json.dumps(bill, indent=1), str(ROOT)))


def _version(_: argparse.Namespace) -> None:
    print(version.of_workspace(ROOT))


def _changes_of(number: str) -> str:
    return version.changes((ROOT / "CHANGELOG.md").read_text(), number)


def _built(text: str) -> tuple[str, Path]:
    architecture, is_given, folder = text.partition("=")
    if not is_given or architecture not in ARCHITECTURES:
        raise argparse.ArgumentTypeError(f"{text!r} is not {' or '.join(f'{one}=FOLDER' for one in ARCHITECTURES)}")
    return architecture, Path(folder)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/release", description="Packs a release, and takes one apart.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    pack = commands.add_parser("pack", help="write the bundle from built binaries")
    pack.add_argument(
        "built", nargs="+", type=_built, metavar="ARCHITECTURE=FOLDER", help="what `sam build` made for it"
    )
    pack.add_argument("--into", type=Path, default=Path("dist"))
    pack.set_defaults(run=_pack)

    write = commands.add_parser("sums", help="write SHA256SUMS over all files of a folder")
    write.add_argument("folder", type=Path)
    write.set_defaults(run=_sums)

    take = commands.add_parser(
        "unpack", help="take the binaries of an architecture out of a bundle, if its sum is right"
    )
    take.add_argument("bundle", type=Path)
    take.add_argument("architecture", choices=ARCHITECTURES)
    take.add_argument("into", type=Path)
    take.set_defaults(run=_unpack)

    bill = commands.add_parser(
        "sbom", help="what cargo-cyclonedx wrote, less what `cargo tree`, which is read, does not have"
    )
    bill.add_argument("written", type=Path)
    bill.set_defaults(run=_sbom)

    commands.add_parser("changes", help="what the changelog says of this version").set_defaults(run=_changes)
    commands.add_parser("measured", help="refuse a page of measurements that is old, or of another bench").set_defaults(
        run=_measured
    )
    commands.add_parser("version", help="the workspace's version").set_defaults(run=_version)
    return parser
