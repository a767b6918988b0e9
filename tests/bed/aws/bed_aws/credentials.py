"""Temporary credentials of a role: moto's STS gives them out, and they are looked up here when a call is checked."""

from hashlib import sha256

from moto.sts.models import AssumedRole

from bed_aws.moto_side import Moto


class Credentials:
    def __init__(self, moto: Moto) -> None:
        self._moto = moto

    def assume(self, role: str, session: str) -> AssumedRole:
        return self._moto.sts.assume_role(
            region_name=self._moto.region,
            role_session_name=session,
            role_arn=f"arn:aws:iam::{self._moto.account}:role/{role}",
            policy="",
            # STS's longest, so that a bed that a person keeps up does not expire.
            duration=12 * 3600,
            external_id="",
        )

    def find(self, access_key_id: str) -> AssumedRole | None:
        return self._moto.sts.get_assumed_role_from_access_key(access_key_id)


def user_id(role: AssumedRole) -> str:
    """A role keeps its id; moto makes up another one for each question."""
    return f"AROA{sha256(role.role_arn.encode()).hexdigest()[:17].upper()}:{role.session_name}"
