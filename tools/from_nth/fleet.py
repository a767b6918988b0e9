"""The values of several clusters for one stack: what they agree on, what contradicts itself, and the steps to change over."""

from __future__ import annotations

from dataclasses import dataclass

from . import sam
from .installation import Installation
from .report import setting
from .template import Parameters
from .values import Unusable

EVERY_CLUSTER = "every cluster"
OF_THE_WEBHOOK = (
    *("webhookURL", "webhookURLSecretName", "webhookHeaders", "webhookProxy", "webhookTemplate"),
    *("webhookTemplateConfigMapName", "webhookTemplateConfigMapKey"),
)
# Wider, and the eye loses the line.
WIDEST = 110


@dataclass(frozen=True)
class Source:
    """The values of one cluster, or of several that have the same."""

    file: str
    nth: Installation
    # Empty if nobody has said whose they are.
    clusters: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return ", ".join(self.clusters) or self.file

    @property
    def webhook(self) -> str:
        return repr([*(self.nth[key] for key in OF_THE_WEBHOOK), self.nth.referred.get("webhookURL")])

    @property
    def guide(self) -> str:
        """Section of docs/from-nth.md for the end of the change-over, by NTH's mode and the tags of its queue."""
        by_group = self.nth.queue_mode and self.nth["checkTagBeforeDraining"]
        return "queue-mode-one-group-at-a-time" if by_group else "imds-mode-or-all-at-once"


@dataclass(frozen=True)
class Contradiction:
    parameter: str
    # The value that each wants.
    values: dict[str, str]
    why: str


def joined(sources: list[Source]) -> list[Source]:
    found: dict[str, Source] = {}
    seen: set[str] = set()
    for one in sources:
        if twice := seen & set(one.clusters):
            raise Unusable(f"{', '.join(sorted(twice))} is named twice; which of the two counts?")
        seen |= set(one.clusters)
        key = repr(one.nth.given)
        first = found.get(key, one)
        found[key] = Source(first.file, first.nth, tuple(dict.fromkeys((*first.clusters, *one.clusters))))
    return list(found.values())


def merged(
    parts: dict[str, dict[str, str]], sources: list[Source], template: Parameters, by_hand: dict[str, str]
) -> tuple[dict[str, str], list[Contradiction]]:
    """The stack's parameters without those that contradict themselves, and these."""
    together: dict[str, str] = {}
    contradictions = []
    for name in dict.fromkeys(name for its in parts.values() for name in its):
        given = {part: its[name] for part, its in parts.items() if name in its}
        by_all = len(given) == len(parts)
        default = template[name].get("Default", "")
        if name in by_hand:
            together[name] = by_hand[name]
        elif name == "Hooks" or (name == "Clusters" and by_all):
            together[name] = ",".join(dict.fromkeys(word for value in given.values() for word in value.split(",")))
        elif name == "Webhook" and by_all and len({one.webhook for one in sources}) > 1:
            own = dict.fromkeys((one.name for one in sources), "not the same webhook (not shown)")
            why = "A stack has one document. Choose it: --set Webhook=/spillway/webhook"
            contradictions.append(Contradiction(name, own, why))
        elif len(wanted := {*given.values()} | (set() if by_all else {default})) == 1:
            (together[name],) = wanted
        else:
            missing, why = f'{default or "empty"} (the default)', f"A stack has one value. Choose it: --set {name}=VALUE"
            if name == "Clusters":
                missing = EVERY_CLUSTER
                why = "A cluster that the stack no longer names is ignored. Name all of them: --set Clusters=NAME,NAME"
            elif name == "DryRun":
                why = "A dry run would end the draining of the clusters that are live. --live drains in all of them"
            contradictions.append(Contradiction(name, {part: given.get(part, missing) for part in parts}, why))
    return together, contradictions


def render(contradictions: list[Contradiction]) -> str:
    out = [f"CONTRADICTIONS ({len(contradictions)})"]
    for one in contradictions:
        out.append(f"  {one.parameter}")
        for value in dict.fromkeys(one.values.values()):
            whose = [who for who, its in one.values.items() if its == value]
            out.append(f"    {', '.join(whose)}: {value}")
        out.append(f"      {one.why}")
    return "\n".join(out) + "\n"


def closing(parameters: dict[str, str], sources: list[Source]) -> str:
    """The parameters and the steps of the change-over, in the order of docs/from-nth.md."""
    pairs = [f"  {setting(name, value, WIDEST)}" for name, value in parameters.items()]
    clusters = " ".join(cluster for one in sources for cluster in one.clusters) or "NAME"
    files = [("nth-values.yaml" if one.file == "-" else one.file, one.clusters or ("NAME",)) for one in sources]
    if len(files) == 1:
        words = "".join(f"--cluster {cluster} " for cluster in files[0][1]) + files[0][0]
    else:
        words = " ".join(f"{cluster}={file}" for file, its in files for cluster in its)
    tool, deploy = "tools/spillway from-nth --samconfig samconfig.toml", f"sam deploy --config-env {sam.ENVIRONMENT}"
    steps = [
        f"{tool} {words} && {deploy}      # a dry run",
        f"tools/spillway enroll --cluster {clusters}",
        "tools/spillway doctor, and the receipts of real notices",
        f"{tool} --live {words} && {deploy}",
        "tools/spillway doctor",
    ]
    for guide in dict.fromkeys(one.guide for one in sources):
        whose = [one.name for one in sources if one.guide == guide]
        steps.append(f"docs/from-nth.md#{guide}{': ' + ', '.join(whose) if len(whose) < len(sources) else ''}")
    lines = ["", f"PARAMETERS ({len(pairs)})", *pairs, "", "To change over, in this order:"]
    lines += [f"  {number}. {step}" for number, step in enumerate(steps, start=1)]
    return "\n".join([*lines, "What each parameter does: docs/settings.md", ""])
