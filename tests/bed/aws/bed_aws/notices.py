"""A notice's way over the bus: what the product's rules let through, and the notices that AWS itself would send."""

import json
import uuid
from collections import defaultdict
from datetime import UTC, datetime
from threading import Condition
from typing import Any

from moto.core.exceptions import JsonRESTError
from werkzeug import Response

from bed_aws.call import Call
from bed_aws.errors import BedError
from bed_aws.moto_side import Moto
from bed_aws.ruler import Ruler

Event = dict[str, Any]


class Notices:
    def __init__(self, moto: Moto, ruler: Ruler) -> None:
        self._moto = moto
        self._ruler = ruler
        self._arrived = Condition()
        self._put_by: defaultdict[str, list[Event]] = defaultdict(list)
        self._kept: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)

    def put(self, event: Event) -> list[dict[str, Any]]:
        """Puts an event on the default bus; answers which rules let it through, with the event as a target gets it.

        PutEvents gives every event an id, an account, a Region and a time of its own. In a real notice AWS sets those, so
        the caller's are kept: moto says whether it may be put, the rules get the original.
        """
        whole = {**self.envelope(), **event}
        if not isinstance(whole.get("detail"), dict):
            raise BedError("EventBridge carries only events whose detail is an object")
        entry = {
            "Source": whole.get("source"),
            "DetailType": whole.get("detail-type"),
            "Detail": json.dumps(whole.get("detail")),
            "Resources": whole.get("resources", []),
        }
        outcome = self._accept(entry)
        if "EventId" not in outcome:
            raise BedError(f"{outcome['ErrorCode']}: {outcome['ErrorMessage']}")
        return [{"rule": rule, "event": whole} for rule in self._rules_for(whole)]

    def answer(self, call: Call) -> Response | None:
        """A caller's own PutEvents: what its events become is kept until the test takes it."""
        if call.action != "PutEvents":
            return None
        entries = json.loads(call.request.get_data())["Entries"]
        outcomes = [refused_source(entry) or self.send(call.access_key_id, entry) for entry in entries]
        failed = sum("ErrorCode" in outcome for outcome in outcomes)
        text = json.dumps({"FailedEntryCount": failed, "Entries": outcomes})
        return Response(text, mimetype="application/x-amz-json-1.1")

    def send(self, access_key_id: str, entry: dict[str, Any]) -> dict[str, str]:
        """Puts an entry of PutEvents on the bus on a caller's behalf; answers its outcome. The function's rules take AWS' sources only."""
        outcome = self._accept(entry)
        if "EventId" in outcome:
            event = self.envelope() | {
                "id": outcome["EventId"],
                "source": entry["Source"],
                "detail-type": entry["DetailType"],
                "resources": entry.get("Resources", []),
                "detail": json.loads(entry["Detail"]),
            }
            self._put_by[access_key_id].append(event)
        return outcome

    def events(self, access_key_id: str) -> list[Event]:
        """Every event that a caller has put on the bus, as a target of a rule would get it, whether or not there is one."""
        return list(self._put_by[access_key_id])

    def keep(self, sender: str, delivered: list[dict[str, Any]]) -> None:
        """Keeps what came of somebody's events until the test takes it: a caller's, or AWS' own about an instance."""
        if not delivered:
            return
        with self._arrived:
            self._kept[sender] += delivered
            self._arrived.notify_all()

    def take(self, sender: str, most: int | None, wait_s: float) -> list[dict[str, Any]]:
        """What has been kept since the last time, the oldest first; waited for when there is nothing yet."""
        with self._arrived:
            self._arrived.wait_for(lambda: self._kept[sender], wait_s)
            kept = self._kept[sender]
            taken, self._kept[sender] = kept[:most], kept[most:] if most is not None else []
            return taken

    def _accept(self, entry: dict[str, Any]) -> dict[str, str]:
        """What PutEvents answers for an entry."""
        try:
            [outcome] = self._moto.events.put_events([entry])
        except JsonRESTError as refused:
            raise BedError(str(refused)) from refused
        return outcome

    def _rules_for(self, event: Event) -> list[str]:
        """Those that are switched on and let it through."""
        of_the_bus = self._moto.events.event_buses["default"].rules
        return [rule for rule in self._ruler.rules_for(event) if of_the_bus[rule].state == "ENABLED"]

    def envelope(self) -> Event:
        """What EventBridge adds to every event."""
        return {
            "version": "0",
            "id": str(uuid.uuid4()),
            "account": self._moto.account,
            "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "region": self._moto.region,
        }


def refused_source(entry: dict[str, Any]) -> dict[str, str] | None:
    """AWS' own sources are AWS'."""
    if not entry.get("Source", "").startswith("aws."):
        return None
    return {"ErrorCode": "NotAuthorizedForSourceException", "ErrorMessage": "Not authorized for the source."}


def spot_interruption(region: str, account: str, instance_id: str) -> Event:
    return {
        "detail-type": "EC2 Spot Instance Interruption Warning",
        "source": "aws.ec2",
        "resources": [f"arn:aws:ec2:{region}:{account}:instance/{instance_id}"],
        "detail": {"instance-id": instance_id, "instance-action": "terminate"},
    }
