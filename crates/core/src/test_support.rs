//! Fixtures for unit tests: settings, an instance, a notice, a time.

use std::collections::BTreeMap;

use jiff::Timestamp;
use spillway_notice::{Deadline, Hook, InstanceId, Kind, Maintenance, Notice};
use spillway_settings::Settings;

use crate::instance::{Instance, InstanceState};

/// Settings from the given environment variables. Every other setting has its default.
pub fn settings(variables: &[(&str, &str)]) -> Settings {
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Settings::from_variables(variables)
}

/// Id of the instance in the tests.
pub fn instance_id() -> InstanceId {
    InstanceId::parse("i-0123456789abcdef0").expect("it is an id")
}

/// Running instance without tags and without a DNS name.
pub fn instance() -> Instance {
    Instance {
        id: instance_id(),
        zone: "us-east-1a".to_owned(),
        private_dns_name: None,
        state: InstanceState::Up,
        type_name: None,
        spot_request: None,
        tags: BTreeMap::new(),
    }
}

/// Tags of an instance, or labels of a node.
pub fn tags(tags: &[(&str, &str)]) -> BTreeMap<String, String> {
    tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// Notice about the instance, sent when the clock began, without a hook.
pub fn notice(kind: Kind, deadline: Deadline) -> Notice {
    Notice {
        event_id: "e-1".to_owned(),
        kind,
        instance: instance_id(),
        zone: None,
        time: Timestamp::UNIX_EPOCH,
        deadline,
        hook: None,
        maintenance: None,
    }
}

/// Maintenance with the given id, a reboot.
pub fn maintenance(id: &str) -> Maintenance {
    Maintenance { id: id.to_owned(), reboots: true, starts: None }
}

/// Hook with the given name, of the group `workers`.
pub fn hook(name: &str) -> Hook {
    Hook { group: "workers".to_owned(), name: name.to_owned(), token: None }
}

/// Time in RFC 3339.
pub fn at(time: &str) -> Timestamp {
    time.parse().expect("a test writes a time")
}
