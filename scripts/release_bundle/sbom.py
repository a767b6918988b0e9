"""A function's bill of materials: what cargo-cyclonedx writes, less what the function is not made of.

It takes the features of the whole workspace together, the test bed's too. What goes into a binary says
`cargo tree`, which takes the features of one package.
"""

from __future__ import annotations

from typing import Any

from release_bundle.errors import ReleaseError

# Where the workspace is, for whoever reads it elsewhere.
ANYWHERE = "path+file:///spillway"


def crates(tree: str) -> set[tuple[str, str]]:
    """Name and version of each line of `cargo tree --prefix none`: `serde v1.0.0 (proc-macro) (*)`."""
    found = (line.split()[:2] for line in tree.splitlines() if line.strip())
    return {(name, version.removeprefix("v")) for name, version in found}


def of(written: dict[str, Any], tree: set[tuple[str, str]]) -> dict[str, Any]:
    """The bill with the crates of the tree alone."""
    components = [one for one in written["components"] if (one["name"], one["version"]) in tree]
    root = written["metadata"]["component"]
    here = {(one["name"], one["version"]) for one in (*components, root)}
    if lost := tree - here:
        raise ReleaseError(
            f"{root['name']}: its bill of materials lacks {', '.join(' '.join(one) for one in sorted(lost))}"
        )
    kept = {one["bom-ref"] for one in (*components, root)}
    dependencies = [
        {**one, **({"dependsOn": [ref for ref in one["dependsOn"] if ref in kept]} if "dependsOn" in one else {})}
        for one in written["dependencies"]
        if one["ref"] in kept
    ]
    return {**written, "components": components, "dependencies": dependencies}


def without_place(text: str, root: str) -> str:
    """Without the folder in which it was made."""
    return text.replace(f"path+file://{root}", ANYWHERE)
