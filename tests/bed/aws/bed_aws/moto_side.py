"""moto: the AWS that is no stand-in, and typed handles to its state in this process."""

import os
from functools import cache

# The AMI catalogue costs seconds and nothing here looks at an image.
os.environ["MOTO_EC2_LOAD_DEFAULT_AMIS"] = "false"

import moto.backends
import moto.core.responses
from moto.ec2 import ec2_backends
from moto.ec2.models import EC2Backend
from moto.events.models import EventPattern, EventsBackend, events_backends
from moto.iam.models import IAMBackend, iam_backends
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.scheduler.models import EventBridgeSchedulerBackend, scheduler_backends
from moto.secretsmanager.models import SecretsManagerBackend, secretsmanager_backends
from moto.sns.models import SNSBackend, sns_backends
from moto.sqs.models import SQSBackend, sqs_backends
from moto.ssm.models import SimpleSystemManagerBackend, ssm_backends
from moto.sts.models import STSBackend, sts_backends

# Which rules let an event through is the ruler's to say; moto hands nothing on.
EventPattern.matches_event = lambda pattern, event: False
# For each request moto reads its own folder and lists a class's methods: a third of a DescribeInstances.
_modules = tuple(moto.backends.list_of_moto_modules())
moto.backends.list_of_moto_modules = lambda: _modules
moto.core.responses.method_names_from_class = cache(moto.core.responses.method_names_from_class)


class Moto:
    """One account in one Region."""

    def __init__(self, account: str, region: str) -> None:
        self.account = account
        self.region = region
        self.ec2: EC2Backend = ec2_backends[account][region]
        self.events: EventsBackend = events_backends[account][region]
        self.iam: IAMBackend = iam_backends[account]["aws"]
        self.scheduler: EventBridgeSchedulerBackend = scheduler_backends[account][region]
        self.secretsmanager: SecretsManagerBackend = secretsmanager_backends[account][region]
        self.sns: SNSBackend = sns_backends[account][region]
        self.sqs: SQSBackend = sqs_backends[account][region]
        self.ssm: SimpleSystemManagerBackend = ssm_backends[account][region]
        self.sts: STSBackend = sts_backends[account]["aws"]

    def application(self) -> DomainDispatcherApplication:
        return DomainDispatcherApplication(create_backend_app)

    def arn(self, service: str, resource: str) -> str:
        return f"arn:aws:{service}:{self.region}:{self.account}:{resource}"

    def function(self, name: str) -> str:
        return self.arn("lambda", f"function:{name}")

    def session(self, access_key_id: str) -> str:
        """The name of a caller's session, which is that of its function."""
        caller = self.sts.get_assumed_role_from_access_key(access_key_id)
        return caller.session_name if caller else ""
