"""The way of a notice, from EventBridge to the receipt, and what it was for one drain."""

from __future__ import annotations

from collections import Counter
from xml.etree.ElementTree import Element

from receipt_timeline.drain import Drain
from receipt_timeline.markup import element
from receipt_timeline.words import day_and_clock, duration

from . import drawing


def way(drain: Drain) -> str:
    fates = ", ".join(f"{number} {fate}" for fate, number in Counter(pod.fate.value for pod in drain.leaving).items())
    claimed, hook = duration(drain.step_ms("claimed") or 0), drain.hook
    stations = [
        ("EventBridge", "a rule invokes the function", drain.noticed and day_and_clock(drain.noticed), ""),
        ("notice", "which instance goes, why and when", drain.kind, ""),
        ("instance", "EC2 gives its tags and its DNS name", f"{drain.instance_type} in {drain.zone}", ""),
        ("decision", "whose node, and what to do", f"{drain.managed_by}: {drain.decision}", "or ignored, with the reason"),
        ("cluster", "EKS gives its endpoint; a token signs in", drain.cluster, ""),
        ("node", "found, claimed and cordoned by one patch", f"cordoned after {claimed}", "or joined: another notice has the claim"),
        ("drain", "evict the pods, watch, wait", f"{fates}, in {duration(drain.drained_ms or 0)}",
         f"continued in the next invocation: {len(drain.invocations)} in all"),
        ("lifecycle hook", "heartbeats hold the instance", hook and f"{len(hook.heartbeats_ms)} of them, then {hook.result}", ""),
        ("receipt", "one line in the log; metrics and messages are made of it", drain.ending, ""),
    ]  # fmt: skip
    return drawing("way", *(_station(number, *station) for number, station in enumerate(stations)))


def _station(number: int, name: str, what: str, here: str | None, otherwise: str) -> Element:
    title = element("h2", element("small", str(number) if number else ""), name)
    parts = [element("p", what), element("p", here or "", class_="here"), element("p", otherwise, class_="otherwise")]
    return element("section", title, *(part for part in parts if part.text))
