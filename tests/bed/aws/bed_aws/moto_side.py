"""moto: the AWS that is no stand-in, and typed handles to its state in this process."""

import os
from dataclasses import dataclass

# The AMI catalogue costs seconds and nothing here looks at an image.
os.environ["MOTO_EC2_LOAD_DEFAULT_AMIS"] = "false"

from moto.autoscaling.models import AutoScalingBackend, autoscaling_backends
from moto.ec2 import ec2_backends
from moto.ec2.models import EC2Backend
from moto.elbv2.models import ELBv2Backend, elbv2_backends
from moto.events.models import EventsBackend, events_backends
from moto.iam.models import IAMBackend, iam_backends
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.scheduler.models import EventBridgeSchedulerBackend, scheduler_backends
from moto.secretsmanager.models import SecretsManagerBackend, secretsmanager_backends
from moto.sns.models import SNSBackend, sns_backends
from moto.sqs.models import SQSBackend, sqs_backends
from moto.ssm.models import SimpleSystemManagerBackend, ssm_backends
from moto.sts.models import STSBackend, sts_backends


@dataclass(frozen=True)
class Moto:
    """One account in one Region."""

    account: str
    region: str

    @property
    def autoscaling(self) -> AutoScalingBackend:
        return autoscaling_backends[self.account][self.region]

    @property
    def ec2(self) -> EC2Backend:
        return ec2_backends[self.account][self.region]

    @property
    def elbv2(self) -> ELBv2Backend:
        return elbv2_backends[self.account][self.region]

    @property
    def events(self) -> EventsBackend:
        return events_backends[self.account][self.region]

    @property
    def iam(self) -> IAMBackend:
        return iam_backends[self.account]["aws"]

    @property
    def scheduler(self) -> EventBridgeSchedulerBackend:
        return scheduler_backends[self.account][self.region]

    @property
    def secretsmanager(self) -> SecretsManagerBackend:
        return secretsmanager_backends[self.account][self.region]

    @property
    def sns(self) -> SNSBackend:
        return sns_backends[self.account][self.region]

    @property
    def sqs(self) -> SQSBackend:
        return sqs_backends[self.account][self.region]

    @property
    def ssm(self) -> SimpleSystemManagerBackend:
        return ssm_backends[self.account][self.region]

    @property
    def sts(self) -> STSBackend:
        return sts_backends[self.account]["aws"]

    def application(self) -> DomainDispatcherApplication:
        return DomainDispatcherApplication(create_backend_app)
