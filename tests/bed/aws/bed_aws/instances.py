"""EC2 instances in moto: run for a test, stopped, started and ended as EC2 does it, with its events."""

from dataclasses import dataclass
from datetime import datetime
from threading import Condition
from typing import Any

from moto.ec2.exceptions import InvalidInstanceIdError
from moto.ec2.models import EC2Backend
from moto.ec2.models.instances import Instance
from moto.ec2.utils import filter_dict_attribute_mapping, passes_filter_dict

from bed_aws.errors import BedError
from bed_aws.moto_side import Moto
from bed_aws.notices import Event, Notices

CODES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}
NEXT = {
    "pending": ("running", "shutting-down"),
    "running": ("stopping", "shutting-down"),
    "stopping": ("stopped", "shutting-down"),
    "stopped": ("pending", "shutting-down"),
    "shutting-down": ("terminated",),
    "terminated": (),
}
REBOOTED = "rebooted"
# moto knows none of these filters; it looks them up here.
filter_dict_attribute_mapping["capacity-reservation-id"] = "capacity_reservation_id"
filter_dict_attribute_mapping["instance-lifecycle"] = "lifecycle"
filter_dict_attribute_mapping["event.code"] = "event_codes"
# No instance has a scheduled event until a test says so.
Instance.events = ()
# moto names an instance in its status by an attribute that it does not have.
Instance.instance_id = property(lambda instance: instance.id)
Instance.event_codes = property(lambda instance: [event["Code"] for event in instance.events])
_unfiltered = EC2Backend.describe_instance_status


def _instance_status(backend: EC2Backend, ids: list[str], stopped_too: bool, filters: list[dict[str, Any]]) -> list[Instance]:
    """moto passes over most filters of DescribeInstanceStatus, though it knows them elsewhere."""
    wanted = {one["name"]: one["values"] for one in filters}
    return [one for one in _unfiltered(backend, ids, stopped_too, None) if passes_filter_dict(one, wanted)]


EC2Backend.describe_instance_status = _instance_status


@dataclass(frozen=True)
class CapacityReservation:
    id: str
    lifecycle: str | None = None
    """What EC2 calls the lifecycle of an instance in it: `capacity-block`, `interruptible-capacity-reservation`."""


@dataclass(frozen=True)
class Change:
    """What an instance's node notices: `running`, `stopped`, `terminated`, and a reboot, which is no state of EC2's."""

    instance: Instance
    what: str


class ResourceNamed(Instance):
    """An instance of a subnet whose host names are resource names; moto only knows names made of the address."""

    @property
    def private_dns_name(self) -> str:
        domain = "ec2.internal" if self.region_name == "us-east-1" else f"{self.region_name}.compute.internal"
        return f"{self.id}.{domain}"


class Instances:
    def __init__(self, moto: Moto, notices: Notices) -> None:
        self._moto = moto
        self._notices = notices
        self._living: dict[str, Instance] = {}
        self._changes: list[Change] = []
        self._changed = Condition()

    def launch(
        self,
        zone: str | None,
        spot: bool,
        reserved: CapacityReservation | None,
        tags: dict[str, str],
        name_form: str,
    ) -> Instance:
        if name_form not in ("ip", "resource"):
            raise BedError(f"name_form is ip or resource, not {name_form}")
        with self._changed:
            subnets = self._moto.ec2.get_default_subnets()
            subnet = subnets.get(zone or min(subnets))
            if subnet is None:
                raise BedError(f"no zone {zone}; there are {', '.join(sorted(subnets))}")
            reservation = self._moto.ec2.run_instances(
                image_id="ami-12345678",
                count=1,
                user_data=None,
                security_group_names=[],
                instance_type="m7g.large",
                is_instance_type_default=False,
                region_name=self._moto.region,
                subnet_id=subnet.id,
                lifecycle="spot" if spot else reserved and reserved.lifecycle,
                tags={"instance": tags},
            )
            instance = reservation.instances[0]
            instance.capacity_reservation_id = reserved and reserved.id
            if spot:
                instance.spot_instance_request_id = instance.id.replace("i-", "sir-")
            if name_form == "resource":
                instance.__class__ = ResourceNamed
            self._living[instance.id] = instance
        return instance

    def get(self, instance_id: str) -> Instance:
        try:
            return self._moto.ec2.get_instance(instance_id)
        except InvalidInstanceIdError:
            raise BedError(f"no instance {instance_id}", 404) from None

    def change(self, instance_id: str, state: str) -> list[dict[str, Any]]:
        """Takes an instance to its next state; answers what the rules made of EC2's event."""
        instance = self.get(instance_id)
        with self._changed:
            if state not in NEXT[instance.state]:
                raise BedError(f"{instance_id} is {instance.state}: from there it does not become {state}", 409)
            if state == "terminated":
                self._moto.ec2.terminate_instances([instance_id])
                self._living.pop(instance_id)
            instance._state.name, instance._state.code = state, CODES[state]
            self._note(instance, state)
        return self._notices.put(state_change(self._moto, instance_id, state))

    def go_through(self, instance_id: str, *states: str) -> list[dict[str, Any]]:
        return [delivery for state in states for delivery in self.change(instance_id, state)]

    def terminate(self, instance_id: str) -> None:
        """Ends an instance, whatever state it is in; EC2's events are kept for whoever asks for this instance's."""
        with self._changed:
            ending = {"shutting-down": ("terminated",), "terminated": ()}
            way = ending.get(self.get(instance_id).state, ("shutting-down", "terminated"))
            self._notices.keep(instance_id, self.go_through(instance_id, *way))

    def reboot(self, instance_id: str) -> None:
        """EC2 sends no event of it."""
        instance = self.get(instance_id)
        with self._changed:
            if instance.state != "running":
                raise BedError(f"{instance_id} is {instance.state}: only what runs is rebooted", 409)
            self._note(instance, REBOOTED)

    def announce(self, instance_id: str, events: list[dict[str, Any]]) -> None:
        """EC2 names these scheduled events of an instance, as it describes them, and sends no event of it."""
        instance = self.get(instance_id)
        instance.events = [{**event, "NotBefore": datetime.fromisoformat(event["NotBefore"])} for event in events]

    def collect(self) -> None:
        """Finds the instances that were ended by a call to EC2."""
        with self._changed:
            gone = [instance for instance in self._living.values() if instance.state == "terminated"]
            for instance in gone:
                del self._living[instance.id]
                self._note(instance, "terminated")
        for instance in gone:
            for state in ("shutting-down", "terminated"):
                self._notices.keep(instance.id, self._notices.put(state_change(self._moto, instance.id, state)))

    def changes(self, since: int, wait_s: float) -> list[Change]:
        """What has changed after the first `since`, waited for when there is nothing yet."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._changes) > since, wait_s)
            return self._changes[since:]

    def _note(self, instance: Instance, what: str) -> None:
        if what in ("running", "stopped", "terminated", REBOOTED):
            self._changes.append(Change(instance, what))
            self._changed.notify_all()


def state_change(moto: Moto, instance_id: str, state: str) -> Event:
    return {
        "detail-type": "EC2 Instance State-change Notification",
        "source": "aws.ec2",
        "resources": [f"arn:aws:ec2:{moto.region}:{moto.account}:instance/{instance_id}"],
        "detail": {"instance-id": instance_id, "state": state},
    }


def provider_id(instance: Instance) -> str:
    return f"aws:///{instance.availability_zone}/{instance.id}"


def described(instance: Instance) -> dict[str, Any]:
    return {
        "instance_id": instance.id,
        "private_dns_name": instance.private_dns_name,
        "zone": instance.availability_zone,
        "provider_id": provider_id(instance),
        "private_ip": instance.private_ip,
    }
