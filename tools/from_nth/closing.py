"""Steps of the change-over, in the order of docs/from-nth.md."""

from __future__ import annotations

from . import sam
from .fleet import Source
from .report import setting

# Wider, and the eye loses the line.
WIDEST = 110
FILE = "nth-values.yaml"


def closing(parameters: dict[str, str], sources: list[Source]) -> str:
    pairs = [f"  {setting(name, value, WIDEST)}" for name, value in parameters.items()]
    clusters = " ".join(cluster for one in sources for cluster in one.clusters) or "NAME"
    tool = "tools/spillway from-nth --samconfig samconfig.toml"
    deploy = f"sam deploy --config-env {sam.ENVIRONMENT}"
    steps = [
        f"{tool} {words(sources)} && {deploy}      # a dry run",
        f"tools/spillway enroll --cluster {clusters}",
        "tools/spillway doctor, and the receipts of real notices",
        f"{tool} --live {words(sources)} && {deploy}",
        "tools/spillway doctor",
    ]
    endings = [(ending(one), one) for one in sources]
    for each in dict.fromkeys(steps for steps, _ in endings):
        whose = [one for steps, one in endings if steps == each]
        of = f"{', '.join(one.name for one in whose)}: " if len(whose) < len(sources) else ""
        steps += [of + step.format(clusters=" ".join(cluster for one in whose for cluster in one.clusters) or "NAME") for step in each]
    out = ["", f"PARAMETERS ({len(pairs)})", *(pairs or ["  None that this version has."])]
    out += ["", "To change over, in this order (docs/from-nth.md has the whole way):"]
    out += [f"  {number}. {step}" for number, step in enumerate(steps, start=1)]
    return "\n".join([*out, "What each parameter does: docs/settings.md"]) + "\n"


def words(sources: list[Source]) -> str:
    if len(sources) == 1:
        named = "".join(f"--cluster {cluster} " for cluster in sources[0].clusters) or "--cluster NAME "
        return named + file(sources[0])
    return " ".join(f"{cluster}={file(one)}" for one in sources for cluster in one.clusters)


def file(source: Source) -> str:
    return FILE if source.file == "-" else source.file


def ending(source: Source) -> tuple[str, ...]:
    """Last steps: they depend on NTH's mode and on the tags of its queue."""
    nth = source.nth
    if not nth.queue_mode:
        return (
            "tools/spillway enroll --cluster {clusters} --groups: NTH completed no hooks in IMDS mode, so there may be none",
            "a drill, and then uninstall NTH: until then both act on each node",
        )
    if nth["checkTagBeforeDraining"]:
        return ("group by group: Spillway's tag on, then NTH's tag off", "uninstall NTH, when no instance has its tag any more")
    return ("a drill: both act on each node, because NTH's queue reads no tags", "uninstall NTH, and remove its rules, queue and hooks")
