"""moto: the AWS that is no stand-in, and typed handles to its state in this process."""

import os

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


class Moto:
    """One account in one Region."""

    def __init__(self, account: str, region: str) -> None:
        self.account = account
        self.region = region
        self.autoscaling: AutoScalingBackend = autoscaling_backends[account][region]
        self.ec2: EC2Backend = ec2_backends[account][region]
        self.elbv2: ELBv2Backend = elbv2_backends[account][region]
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
