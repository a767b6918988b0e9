//! Entry of `affectedEntities` in an AWS Health event.

use serde::Deserialize;
use serde_json::Value;

use super::super::envelope::{self, NoticeError};

pub(super) struct Entity {
    fields: Fields,
    whole: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fields {
    entity_value: String,
    status: Option<String>,
}

impl Entity {
    pub(super) fn read(value: &Value, place: &str) -> Result<Self, NoticeError> {
        Ok(Self { fields: envelope::parse(value.clone(), place)?, whole: value.clone() })
    }

    pub(super) fn into_value(self) -> Value {
        self.whole
    }

    pub(super) fn is_resolved(&self) -> bool {
        self.fields.status.as_deref() == Some("RESOLVED")
    }

    /// Returns the instance id, not validated. `None` for another resource, such as a volume or a dedicated host.
    pub(super) fn instance(&self) -> Option<&str> {
        let value = self.fields.entity_value.as_str();
        let (kind, id) = match value.rsplit_once('/') {
            Some((path, id)) => (path.rsplit_once(':').map_or(path, |(_, kind)| kind), id),
            None => ("", value),
        };
        let begins_like_one = id.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("i-"));
        (kind == "instance" || begins_like_one).then_some(id)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn instance_is_recognized_by_its_arn_or_its_id() {
        let instance = |value: &str| {
            let entity = Entity::read(&json!({"entityValue": value}), "here").unwrap();
            entity.instance().map(str::to_owned)
        };
        for value in [
            "i-1234567890abcdef0",
            "arn:aws:ec2:us-east-1:123456789012:instance/i-1234567890abcdef0",
            "x/i-1234567890abcdef0",
        ] {
            assert_eq!(instance(value).as_deref(), Some("i-1234567890abcdef0"), "{value}");
        }
        for value in [
            "vol-1234567890abcdef0",
            "arn:aws:ec2:us-east-1:123456789012:volume/vol-1234567890abcdef0",
            "arn:aws:ec2:us-east-1:123456789012:dedicated-host/h-1234567890abcdef0",
            "mi-1234567890abcdef0",
            "arn:aws:ec2:us-east-1:123456789012:instance",
            "AWS_ACCOUNT",
            "",
            "ü",
        ] {
            assert_eq!(instance(value), None, "{value}");
        }
        // Malformed ids of instances: refused later, not skipped.
        for (value, id) in
            [("I-1234567890ABCDEF0", "I-1234567890ABCDEF0"), ("i-", "i-"), ("arn:aws:ec2:a:1:instance/x", "x")]
        {
            assert_eq!(instance(value).as_deref(), Some(id), "{value}");
        }
    }
}
