"""Least privilege in the cluster: the rights of deploy/ are those that the function was seen to use, by the API servers' audit logs
of the whole suite. A right that no request has used fails by name; a request without a right fails by itself.

    python tests/rights/cluster.py FOLDER     FOLDER has what the test bed wrote: SPILLWAY_RIGHTS
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
FUNCTION = "assumed-role/spillway-drain/"


def given() -> set[str]:
    """The rights of all ClusterRoles in deploy/, as `verb resource`."""
    files = [ROOT / "deploy/rbac.yaml", *sorted((ROOT / "deploy/optional").glob("*.yaml"))]
    objects = [thing for file in files for thing in yaml.safe_load_all(file.read_text()) if thing]
    rules = [rule for thing in objects if thing["kind"] == "ClusterRole" for rule in thing["rules"]]
    return {f"{verb} {resource}" for rule in rules for resource in rule.get("resources", []) for verb in rule["verbs"]}


def right(event: dict[str, Any]) -> str | None:
    """The right that a request of the function used, if it is one and was answered well."""
    about, code = event.get("objectRef", {}), event.get("responseStatus", {}).get("code", 500)
    if FUNCTION not in event["user"].get("username", "") or code >= 400 or "resource" not in about:
        return None
    resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
    return f"{event['verb']} {resource}"


def used(lines: Iterable[str]) -> set[str]:
    # Most lines are of the control plane itself.
    rights = {right(json.loads(line)) for line in lines if FUNCTION in line}
    return {right for right in rights if right}


def main(folder: Path) -> int:
    seen: set[str] = set()
    for file in sorted(folder.glob("*.audit*")):
        with file.open() as lines:
            seen |= used(lines)
    unused = sorted(given() - seen)
    print(f"{len(given()) - len(unused)} of {len(given())} rights in the cluster are used")
    print("\n".join(f"nobody uses the right to {right}" for right in unused), file=sys.stderr)
    return 1 if unused else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
