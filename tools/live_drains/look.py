"""Reads the drains of a cluster, and remembers pods from one look to the next."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from .api_server import ApiServer
from .claim import claim_on
from .drains import Drain, drain_of

AT_ONCE = 8


class Watched:
    def __init__(self, name: str, api_server: ApiServer) -> None:
        self._name, self._api_server = name, api_server
        # The most pods that were ever there of a drain whose events do not say how many had to leave.
        self._most: dict[tuple[str, str], int] = {}
        self._looks = 0

    def look(self) -> list[Drain]:
        api_server = self._api_server
        # A claim cordons; of an uncordoned node it counts no longer.
        nodes = api_server.list("/api/v1/nodes", only_metadata=True, fieldSelector="spec.unschedulable=true")
        claimed = [node for node in nodes if claim_on(node["metadata"])]
        drains: list[Drain] = []
        if claimed:
            budgets = api_server.list("/apis/policy/v1/poddisruptionbudgets")
            ours = "involvedObject.kind=Node,reportingComponent=spillway"
            events = api_server.list("/api/v1/namespaces/default/events", fieldSelector=ours)
            with ThreadPoolExecutor(AT_ONCE) as pool:
                pods = list(pool.map(self._pods_on, claimed))
            found = (drain_of(self._name, node, on_it, budgets, events) for node, on_it in zip(claimed, pods))
            drains = [drain for drain in found if drain is not None]
        self._looks += 1
        return [self._with_what_was_seen(drain) for drain in drains]

    def _pods_on(self, node: dict[str, Any]) -> list[Any]:
        return self._api_server.list(
            "/api/v1/pods", only_metadata=True, fieldSelector=f"spec.nodeName={node['metadata']['name']}", resourceVersion="0"
        )

    def _with_what_was_seen(self, drain: Drain) -> Drain:
        key = (drain.node, drain.claim.event)
        self._most[key] = max(drain.left, self._most.get(key, 0))
        # A first look cannot know what had gone before it.
        return drain if drain.pods is not None or self._looks < 2 else replace(drain, pods=self._most[key])
