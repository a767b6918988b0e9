//! `AWS Health Event`: EC2 will reboot, stop or retire instances, or such maintenance is over. Other AWS Health events are
//! ignored.
//!
//! AWS Health splits a long list of instances into pages, which are separate events.

mod entity;
pub(super) mod found;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::date::Date;
use super::envelope::{Envelope, quoted, unreadable};
use super::{Concerns, Deadline, Instances, Kind, Maintenance, NoticeError, Parsed, ParsedNotice};
use entity::Entity;

const REBOOT: &str = "REBOOT";

pub(super) const DETAIL_TYPE: &str = "AWS Health Event";

/// Fields that the function reads. The optional fields are missing in an older format, which AWS still documents.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HealthDetail {
    event_arn: String,
    service: String,
    event_type_code: String,
    event_type_category: String,
    event_scope_code: Option<String>,
    status_code: Option<String>,
    event_region: Option<String>,
    affected_account: Option<String>,
    backup_event: Option<String>,
    start_time: Option<Date>,
    affected_entities: Option<Vec<Value>>,
}

pub(super) fn read(envelope: &Envelope) -> Result<Parsed, NoticeError> {
    let detail: HealthDetail = envelope.detail()?;
    if let Some(why) = detail.is_not_ours(envelope)? {
        return Ok(Parsed::Nothing(why));
    }
    let instances = detail.instances()?;
    let is_affected = instances.values().any(|entity| !entity.is_resolved());
    let (kind, deadline) = match detail.status_code.as_deref() {
        Some("open" | "upcoming") | None if is_affected => {
            let Date(starts) = detail.start_time.ok_or_else(|| unreadable("detail.startTime", "it is missing"))?;
            (Kind::Maintenance, Deadline::Hard(starts))
        }
        // The maintenance is over for the resolved instances, and may be open for others.
        Some("open" | "upcoming" | "closed") | None => (Kind::MaintenanceOver, Deadline::Open),
        Some(other) => return Ok(Parsed::Nothing(format!("Spillway does not know the statusCode {}", quoted(other)))),
    };
    let maintenance = Maintenance {
        id: detail.id()?,
        reboots: detail.event_type_code.contains(REBOOT),
        starts: detail.start_time.map(|Date(starts)| starts),
    };
    let named = instances.into_iter().map(|(id, entity)| (id, entity.into_value()));
    let which = Concerns::Several(Instances::Named(named.collect()));
    Ok(Parsed::Of(which, ParsedNotice { maintenance: Some(maintenance), ..ParsedNotice::of(kind, deadline) }))
}

impl HealthDetail {
    /// Returns the reason why the event is ignored. `None` for scheduled maintenance of EC2 in this account and Region.
    fn is_not_ours(&self, envelope: &Envelope) -> Result<Option<String>, NoticeError> {
        let (account, region) = (envelope.account()?, envelope.region()?);
        let or = |given: &'_ Option<String>, handled: &str| given.clone().unwrap_or_else(|| handled.to_owned());
        for (field, given, handled) in [
            ("service", self.service.clone(), "EC2"),
            ("eventTypeCategory", self.event_type_category.clone(), "scheduledChange"),
            ("eventScopeCode", or(&self.event_scope_code, "ACCOUNT_SPECIFIC"), "ACCOUNT_SPECIFIC"),
            // AWS Health sends a copy of each event to another Region.
            ("backupEvent", or(&self.backup_event, "false"), "false"),
            ("eventRegion", or(&self.event_region, region), region),
            // AWS Health also sends a copy to the organization's administrator account.
            ("affectedAccount", or(&self.affected_account, account), account),
        ] {
            if given != handled {
                let (given, handled) = (quoted(&given), quoted(handled));
                return Ok(Some(format!(
                    "the {field} of this AWS Health event is {given}, and Spillway handles {handled}"
                )));
            }
        }
        // The end of a version's support is announced months ahead and stops no instance.
        let of_a_version = self.event_type_code.ends_with("PLANNED_LIFECYCLE_EVENT");
        Ok(of_a_version.then(|| format!("{} takes no instance away", quoted(&self.event_type_code))))
    }

    fn instances(&self) -> Result<BTreeMap<String, Entity>, NoticeError> {
        let mut instances = BTreeMap::new();
        for (at, value) in self.affected_entities.iter().flatten().enumerate() {
            let entity = Entity::read(value, &format!("detail.affectedEntities[{at}]"))?;
            if let Some(id) = entity.instance() {
                instances.insert(id.to_owned(), entity);
            }
        }
        Ok(instances)
    }

    /// Last part of the ARN `arn:aws:health:REGION::event/SERVICE/CODE/ID`. Some ARNs lack `SERVICE/CODE`.
    fn id(&self) -> Result<String, NoticeError> {
        match self.event_arn.rsplit_once('/') {
            Some((_, id)) if !id.is_empty() => Ok(id.to_owned()),
            _ => Err(unreadable("detail.eventArn", format!("{} is no event's", quoted(&self.event_arn)))),
        }
    }
}
