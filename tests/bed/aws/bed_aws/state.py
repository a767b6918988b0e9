"""Everything that has state, made once: what the AWS calls and the bed's own API both work on."""

from pathlib import Path

from bed_aws.announcing import Announcing, Plan
from bed_aws.autoscaling import AutoScaling
from bed_aws.bus import Bus
from bed_aws.credentials import Credentials
from bed_aws.eks import Eks
from bed_aws.failures import Failures
from bed_aws.faults import Faults
from bed_aws.functions import Functions
from bed_aws.iam import Iam
from bed_aws.instances import Instances
from bed_aws.invocations import Invocations
from bed_aws.journal import Journal
from bed_aws.limits import Limits
from bed_aws.moto_side import Moto
from bed_aws.notices import Notices
from bed_aws.pages import Pages
from bed_aws.queues import Queues
from bed_aws.ruler import Ruler
from bed_aws.scheduler import Scheduler
from bed_aws.sinks import Sinks
from bed_aws.stacks import Stacks
from bed_aws.targets import Targets


class State:
    def __init__(
        self,
        moto: Moto,
        variables: dict[str, str],
        functions: Functions,
        announcing: Plan,
        iam: Iam,
        ruler: Ruler,
        access: Path | None = None,
        template: Path | None = None,
    ) -> None:
        """`access`: where the access entries of each cluster are written. `template`: what the stack's parts were made of."""
        self.moto = moto
        self.functions = functions
        self.credentials = Credentials(moto)
        self.iam = iam
        self.bus = Bus(moto)
        self.notices = Notices(moto, ruler)
        self.instances = Instances(moto, self.notices)
        self.pages = Pages()
        self.autoscaling = AutoScaling(moto, self.instances, self.notices, self.pages)
        self.eks = Eks(moto, access)
        self.stacks = Stacks(moto, iam, variables, template)
        self.invocations = Invocations(moto, iam, self.notices)
        self.scheduler = Scheduler(moto, self.invocations)
        self.failures = Failures(moto)
        self.queues = Queues(moto)
        self.announcing = Announcing(announcing, moto)
        self.sinks = Sinks(moto)
        self.targets = Targets(moto)
        self.journal = Journal()
        self.faults = Faults()
        self.limits = Limits()
