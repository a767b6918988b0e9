"""How a function is invoked comes from the template."""

from bed_aws.functions import Functions
from bed_aws.template import TemplateError
from tests.side import OnTheSide, bed, temporary_folder


class Limits(OnTheSide):
    def test_what_the_template_says_of_the_roles_function_and_nothing_of_others(self) -> None:
        limits = bed("GET", "functions?role=spillway-drain")
        expected = {"maximum_retry_attempts": 1, "maximum_event_age_s": 600, "reserved_concurrency": None}
        self.assertEqual(limits, expected)
        for role in ("spillway-announcer", "somebody-else"):
            self.assertEqual(set(bed("GET", f"functions?role={role}").values()), {None})

    def test_what_lambda_would_not_take_is_refused(self) -> None:
        template = temporary_folder(self) / "template.yaml"
        for config in ("MaximumRetryAttempts: 3", "MaximumEventAgeInSeconds: 59"):
            drain = f"Drain: {{Type: AWS::Serverless::Function, Properties: {{EventInvokeConfig: {{{config}}}}}}}"
            template.write_text(f"Resources:\n  {drain}")
            with self.assertRaisesRegex(TemplateError, "Lambda takes"):
                Functions(template)
