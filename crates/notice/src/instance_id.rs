//! EC2 instance id.

use std::fmt;

use serde::Deserialize;

use super::envelope::{self, NoticeError, quoted};

/// EC2 instance id: `i-` and 8 or 17 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct InstanceId(String);

impl InstanceId {
    /// Parses an id. `None` if malformed.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("i-")?;
        let hexadecimal = digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        (matches!(digits.len(), 8 | 17) && hexadecimal).then(|| Self(text.to_owned()))
    }

    pub(super) fn read(path: &str, text: &str) -> Result<Self, NoticeError> {
        Self::try_from(text.to_owned()).map_err(|why| envelope::unreadable(path, why))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for InstanceId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("{} is no instance id", quoted(&text)))
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_instance_ids_are_refused() {
        for id in ["i-0123456789abcdef0", "i-1a2b3c4d"] {
            assert_eq!(InstanceId::parse(id).unwrap().as_str(), id);
        }
        for text in
            ["", "i-", "i-123", "i-0123456789ABCDEF0", "mi-0123456789abcdef0", "i-0123456789abcdef0 ", "i-xyzxyzxy"]
        {
            assert_eq!(InstanceId::parse(text), None, "{text:?}");
        }
    }
}
