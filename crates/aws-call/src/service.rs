//! AWS services that are called without an SDK client, and their endpoints.

use crate::partition::dns_suffix;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    Lambda,
    SecretsManager,
    Sns,
    Sqs,
    Ssm,
}

impl Service {
    /// Returns the SDK's service id, a part of variable names such as `AWS_ENDPOINT_URL_SECRETS_MANAGER`.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::Lambda => "Lambda",
            Self::SecretsManager => "Secrets Manager",
            Self::Sns => "SNS",
            Self::Sqs => "SQS",
            Self::Ssm => "SSM",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lambda => "lambda",
            Self::SecretsManager => "secretsmanager",
            Self::Sns => "sns",
            Self::Sqs => "sqs",
            Self::Ssm => "ssm",
        }
    }

    pub(crate) fn endpoint(self, region: &str, fips: bool) -> String {
        // In GovCloud these services have a single endpoint, which supports FIPS without `-fips` in its name.
        let is_fips_anyway = region.starts_with("us-gov-") && matches!(self, Self::Sns | Self::Sqs | Self::Ssm);
        let fips = if fips && !is_fips_anyway { "-fips" } else { "" };
        format!("https://{}{fips}.{region}.{}", self.name(), dns_suffix(region))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_region_has_its_endpoint() {
        assert_eq!(Service::Sns.endpoint("eu-west-1", false), "https://sns.eu-west-1.amazonaws.com");
        assert_eq!(Service::Sns.endpoint("cn-north-1", false), "https://sns.cn-north-1.amazonaws.com.cn");
        assert_eq!(Service::Lambda.endpoint("us-east-1", true), "https://lambda-fips.us-east-1.amazonaws.com");
    }

    /// Expected values are from the SDK's endpoint rules.
    #[test]
    fn fips_suffix_is_used_where_there_is_another_endpoint() {
        assert_eq!(Service::Sns.endpoint("us-east-2", true), "https://sns-fips.us-east-2.amazonaws.com");
        for (service, expected) in [
            (Service::Sns, "https://sns.us-gov-west-1.amazonaws.com"),
            (Service::Sqs, "https://sqs.us-gov-west-1.amazonaws.com"),
            (Service::Ssm, "https://ssm.us-gov-west-1.amazonaws.com"),
            (Service::SecretsManager, "https://secretsmanager-fips.us-gov-west-1.amazonaws.com"),
        ] {
            assert_eq!(service.endpoint("us-gov-west-1", true), expected);
        }
    }
}
