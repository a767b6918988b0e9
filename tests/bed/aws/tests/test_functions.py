"""How a function is invoked comes from the template."""

from bed_aws.functions import Functions
from bed_aws.template import TemplateError
from tests.side import OnTheSide, temporary_folder


class Limits(OnTheSide):
    def test_what_lambda_would_not_take_is_refused(self) -> None:
        template = temporary_folder(self) / "template.yaml"
        for config in ("MaximumRetryAttempts: 3", "MaximumEventAgeInSeconds: 59"):
            drain = f"Drain: {{Type: AWS::Serverless::Function, Properties: {{EventInvokeConfig: {{{config}}}}}}}"
            template.write_text(f"Resources:\n  {drain}")
            with self.assertRaisesRegex(TemplateError, "Lambda takes"):
                Functions(template)
