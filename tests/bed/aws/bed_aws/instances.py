"""EC2 instances in moto: started for a test, and seen to when they are gone."""

from threading import Condition
from typing import Any

from moto.ec2.exceptions import InvalidInstanceIdError
from moto.ec2.models.instances import Instance

from bed_aws.errors import BedError
from bed_aws.moto_side import Moto


class ResourceNamed(Instance):
    """An instance of a subnet whose host names are resource names; moto only knows names made of the address."""

    @property
    def private_dns_name(self) -> str:
        domain = "ec2.internal" if self.region_name == "us-east-1" else f"{self.region_name}.compute.internal"
        return f"{self.id}.{domain}"


class Instances:
    def __init__(self, moto: Moto) -> None:
        self._moto = moto
        self._running: dict[str, Instance] = {}
        self._terminated: list[Instance] = []
        self._changed = Condition()

    def launch(self, zone: str | None, spot: bool, tags: dict[str, str], name_form: str) -> Instance:
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
                lifecycle="spot" if spot else None,
                tags={"instance": tags},
            )
            instance = reservation.instances[0]
            if name_form == "resource":
                instance.__class__ = ResourceNamed
            self._running[instance.id] = instance
        return instance

    def get(self, instance_id: str) -> Instance:
        try:
            return self._moto.ec2.get_instance(instance_id)
        except InvalidInstanceIdError:
            raise BedError(f"no instance {instance_id}", 404) from None

    def terminate(self, instance_id: str) -> None:
        if self.get(instance_id).state != "terminated":
            self._moto.ec2.terminate_instances([instance_id])
        self.collect()

    def collect(self) -> None:
        """Finds the instances that have gone, whoever ended them."""
        with self._changed:
            gone = [instance for instance in self._running.values() if instance.state == "terminated"]
            for instance in gone:
                del self._running[instance.id]
            self._terminated += gone
            self._changed.notify_all()

    def terminated(self, since: int, wait_s: float) -> list[Instance]:
        """The instances that went after the first `since`, waited for when there is none yet."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._terminated) > since, wait_s)
            return self._terminated[since:]


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
