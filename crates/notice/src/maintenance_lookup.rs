//! Payload of the maintenance lookup: the function asks EC2 for maintenance that AWS Health has not announced.

use serde::Deserialize;

pub const KEY: &str = "spillway-maintenance-lookup";

#[derive(Debug, Deserialize)]
pub(crate) struct MaintenanceLookup {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{home, sample};
    use super::super::{Incoming, read};
    use super::KEY;

    #[test]
    fn lookup_is_the_only_key_of_its_payload() {
        assert_eq!(read(sample("maintenance-lookup"), &home()).unwrap(), Incoming::MaintenanceLookup);
        assert_eq!(
            read(json!({KEY: null}), &home()).unwrap_err().to_string(),
            "cannot read the notice: at spillway-maintenance-lookup: it is no JSON object"
        );
        assert!(read(json!({KEY: {}, "source": "aws.ec2"}), &home()).is_err(), "one key too many");
    }
}
