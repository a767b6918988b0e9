//! Account and Region of the function.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    pub account: String,
    pub region: String,
}

impl Home {
    /// Reads account and Region from the function's ARN: `arn:aws:lambda:REGION:ACCOUNT:function:NAME`.
    #[must_use]
    pub fn of_function(arn: &str) -> Self {
        let part = |at| arn.split(':').nth(at).unwrap_or_default().to_owned();
        Self { account: part(4), region: part(3) }
    }
}
