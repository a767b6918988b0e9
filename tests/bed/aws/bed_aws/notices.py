"""A notice's way over the bus: what the product's rules let through, and the notices that AWS itself would send."""

import json
import uuid
from collections import defaultdict
from datetime import UTC, datetime
from threading import Condition
from typing import Any

from bed_aws.call import Call
from bed_aws.errors import BedError
from bed_aws.moto_side import Moto
from bed_aws.ruler import Ruler

Event = dict[str, Any]
# An event and its rule.
Deliveries = list[dict[str, Any]]


class Notices:
    def __init__(self, moto: Moto, ruler: Ruler) -> None:
        self._moto = moto
        self._ruler = ruler
        self._arrived = Condition()
        self._put_by: defaultdict[str, list[Event]] = defaultdict(list)
        self._kept: defaultdict[str, Deliveries] = defaultdict(list)

    def put(self, event: Event) -> Deliveries:
        """Puts an event on the default bus; answers which rules let it through, with the event as a target gets it.

        PutEvents gives every event an id, an account, a Region and a time of its own. In a real notice AWS sets those, so
        the caller's are kept: moto says whether it may be put, the rules get the original.
        """
        whole = {**self._envelope(), **event}
        if not isinstance(whole.get("detail"), dict):
            raise BedError("EventBridge carries only events whose detail is an object")
        detail = json.dumps(whole["detail"])
        kind = {"Source": whole.get("source"), "DetailType": whole.get("detail-type")}
        outcome = self._accept({**kind, "Detail": detail})
        if "EventId" not in outcome:
            raise BedError(f"{outcome['ErrorCode']}: {outcome['ErrorMessage']}")
        # The rules that are switched on and let it through.
        of_the_bus = self._moto.events.event_buses["default"].rules
        rules = [rule for rule in self._ruler.rules_for(whole) if of_the_bus[rule].state == "ENABLED"]
        return [{"rule": rule, "event": whole} for rule in rules]

    def answer(self, call: Call) -> dict[str, Any] | None:
        """A caller's own PutEvents. The function's rules take AWS' sources only, which are AWS'."""
        if call.action != "PutEvents":
            return None
        outcomes = [self._sent(call.access_key_id, entry) for entry in call.asked["Entries"]]
        return {"FailedEntryCount": sum("ErrorCode" in outcome for outcome in outcomes), "Entries": outcomes}

    def _sent(self, access_key_id: str, entry: dict[str, Any]) -> dict[str, str]:
        if entry.get("Source", "").startswith("aws."):
            return {"ErrorCode": "NotAuthorizedForSourceException", "ErrorMessage": "Not authorized for the source."}
        outcome = self._accept(entry)
        if "EventId" in outcome:
            own = {"id": outcome["EventId"], "source": entry["Source"], "detail-type": entry["DetailType"]}
            rest = {"resources": entry.get("Resources", []), "detail": json.loads(entry["Detail"])}
            self._put_by[access_key_id].append({**self._envelope(), **own, **rest})
        return outcome

    def events(self, access_key_id: str) -> list[Event]:
        """Every event that a caller has put on the bus, as a target of a rule would get it, whether or not there is one."""
        return list(self._put_by[access_key_id])

    def keep(self, sender: str, delivered: Deliveries) -> None:
        """Keeps what came of somebody's events until the test takes it: a caller's, or AWS' own about an instance."""
        with self._arrived:
            self._kept[sender] += delivered
            self._arrived.notify_all()

    def take(self, sender: str, most: int | None = None, wait_s: float = 0) -> Deliveries:
        """What has been kept since the last time, the oldest first; waited for when there is nothing yet."""
        with self._arrived:
            self._arrived.wait_for(lambda: self._kept[sender], wait_s)
            kept = self._kept[sender]
            taken, self._kept[sender] = kept[:most], kept[most:] if most is not None else []
            return taken

    def _accept(self, entry: dict[str, Any]) -> dict[str, str]:
        """What PutEvents answers for an entry."""
        [outcome] = self._moto.events.put_events([entry])
        return outcome

    def _envelope(self) -> Event:
        """What EventBridge adds to every event."""
        return {
            "version": "0",
            "id": str(uuid.uuid4()),
            "account": self._moto.account,
            "time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "region": self._moto.region,
        }

    def about(self, instance_id: str, detail_type: str, **detail: str) -> Event:
        """An event of EC2 about an instance."""
        return {
            "detail-type": detail_type,
            "source": "aws.ec2",
            "resources": [self._moto.arn("ec2", f"instance/{instance_id}")],
            "detail": {"instance-id": instance_id, **detail},
        }
