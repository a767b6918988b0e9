"""Everything that has state, made once: what the AWS calls and the bed's own API both work on."""

from pathlib import Path

from bed_aws import rules, template
from bed_aws.announcing import Announcing
from bed_aws.autoscaling import AutoScaling
from bed_aws.credentials import Credentials
from bed_aws.eks import Eks
from bed_aws.faults import Faults
from bed_aws.iam import Iam
from bed_aws.instances import Instances
from bed_aws.invocations import Invocations
from bed_aws.journal import Journal
from bed_aws.limits import Limits
from bed_aws.moto_side import Moto
from bed_aws.notices import Notices
from bed_aws.queues import Queues
from bed_aws.ruler import Ruler
from bed_aws.scheduler import Scheduler
from bed_aws.stacks import Stacks


class State:
    def __init__(self, moto: Moto, path: Path, access: Path, rights: Path | None = None) -> None:
        """`path`: the template. `access`: folder of the access entries. `rights`: record of what was asked for."""
        self.moto = moto
        self.template = template.read(path)
        self.credentials = Credentials(moto)
        self.iam = Iam(self.template, moto, rights)
        self.stacks = Stacks(self.template, moto, self.iam)
        self.bus = rules.Bus(moto)
        self.notices = Notices(moto, Ruler(rules.read(self.template)))
        self.instances = Instances(moto, self.notices)
        self.autoscaling = AutoScaling(moto, self.instances, self.notices)
        self.eks = Eks(moto, access)
        self.invocations = Invocations(moto, self.iam, self.notices)
        self.scheduler = Scheduler(moto, self.invocations)
        self.queues = Queues(moto)
        self.announcing = Announcing(self.template, moto)
        self.journal = Journal()
        self.faults = Faults()
        self.limits = Limits()
