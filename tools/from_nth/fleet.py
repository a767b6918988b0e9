"""The values of several clusters for one stack: what they agree on, and what contradicts itself."""

from __future__ import annotations

from dataclasses import dataclass

from .installation import Installation
from .template import Parameter
from .values import Unusable

EVERY_CLUSTER = "every cluster"
OF_THE_WEBHOOK = (
    *("webhookURL", "webhookURLSecretName", "webhookHeaders", "webhookProxy", "webhookTemplate"),
    *("webhookTemplateConfigMapName", "webhookTemplateConfigMapKey"),
)


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
    def webhook(self) -> tuple[object, ...]:
        return (*(self.nth[key] for key in OF_THE_WEBHOOK), str(self.nth.referred.get("webhookURL")))


@dataclass(frozen=True)
class Part:
    name: str
    parameters: dict[str, str]


@dataclass(frozen=True)
class Contradiction:
    parameter: str
    # What each wants.
    values: dict[str, str]
    why: str


def joined(sources: list[Source]) -> list[Source]:
    found: dict[str, Source] = {}
    seen: set[str] = set()
    for one in sources:
        if twice := seen & set(one.clusters):
            raise Unusable(f"{', '.join(sorted(twice))} is named twice; which of the two counts?")
        seen |= set(one.clusters)
        key = repr((one.nth.given, one.nth.unknown))
        first = found.get(key, one)
        found[key] = Source(first.file, first.nth, tuple(dict.fromkeys((*first.clusters, *one.clusters))))
    return list(found.values())


def merged(
    parts: list[Part], sources: list[Source], template: dict[str, Parameter], by_hand: dict[str, str]
) -> tuple[dict[str, str], list[Contradiction]]:
    """The stack's parameters without those that contradict themselves, and these."""
    together: dict[str, str] = {}
    contradictions = []
    for name in dict.fromkeys(name for part in parts for name in part.parameters):
        given = {part.name: part.parameters[name] for part in parts if name in part.parameters}
        by_all = len(given) == len(parts)
        default = (template[name].default if name in template else None) or ""
        if name in by_hand:
            together[name] = by_hand[name]
        elif name == "Hooks" or (name == "Clusters" and by_all):
            together[name] = ",".join(dict.fromkeys(word for value in given.values() for word in value.split(",")))
        elif len(wanted := {*given.values()} | (set() if by_all else {default})) == 1:
            (together[name],) = wanted
        else:
            contradictions.append(_contradiction(name, given, [part.name for part in parts], default))
    if "Webhook" in together and "Webhook" not in by_hand and len({one.webhook for one in sources}) > 1:
        del together["Webhook"]
        own = dict.fromkeys((one.name for one in sources), "not the same webhook (not shown)")
        contradictions.append(Contradiction("Webhook", own, "A stack has one document. Choose it: --set Webhook=/spillway/webhook"))
    return together, contradictions


def _contradiction(name: str, given: dict[str, str], who: list[str], default: str) -> Contradiction:
    missing, why = f'{default or "empty"} (the default)', f"A stack has one value. Choose it: --set {name}=VALUE"
    if name == "Clusters":
        missing = EVERY_CLUSTER
        why = "A cluster that the stack no longer names is ignored. Name all of them: --set Clusters=NAME,NAME"
    elif name == "DryRun":
        why = "A dry run would end the draining of the clusters that are live. --live drains in all of them"
    return Contradiction(name, {one: given.get(one, missing) for one in who}, why)


def render(contradictions: list[Contradiction]) -> str:
    out = [f"CONTRADICTIONS ({len(contradictions)})"]
    for one in contradictions:
        out.append(f"  {one.parameter}")
        for value in dict.fromkeys(one.values.values()):
            whose = [who for who, its in one.values.items() if its == value]
            out.append(f"    {', '.join(whose)}: {value}")
        out.append(f"      {one.why}")
    return "\n".join(out) + "\n"
