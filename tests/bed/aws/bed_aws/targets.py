"""Target groups in moto, as a load balancer's controller in a cluster has them: with the cluster's tag, and an instance in them."""

from bed_aws.moto_side import Moto

# The port of a Service on each node.
NODE_PORT = 30080


class Targets:
    def __init__(self, moto: Moto) -> None:
        self._moto = moto
        self._groups: dict[str, str] = {}
        """Their ARNs by their instances."""

    def register(self, instance_id: str, cluster: str) -> None:
        """A target group of its own for an instance."""
        vpc = self._moto.ec2.get_instance(instance_id).vpc_id
        group = self._moto.elbv2.create_target_group(
            name=instance_id, protocol="TCP", port="1", vpc_id=vpc, target_type="instance"
        )
        self._moto.elbv2.add_tags([group.arn], [{"Key": "elbv2.k8s.aws/cluster", "Value": cluster}])
        self._moto.elbv2.register_targets(group.arn, [{"Id": instance_id, "Port": NODE_PORT}])
        self._groups[instance_id] = group.arn

    def deregister(self, instance_id: str) -> None:
        """It is drained there, and taken out."""
        self._moto.elbv2.deregister_targets(self._groups.pop(instance_id), [{"Id": instance_id}])
