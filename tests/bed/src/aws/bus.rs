//! The event bus: what the template's rules make of events, whoever puts them there; the invocations that the function asks
//! for, at once and by schedules.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{Timestamp, Unit};
use reqwest::Method;
use serde_json::{Value, json};

use super::{Aws, DeadLetter, Delivered, Refusal, Schedule};
use crate::error::BedError;

/// Longer than any test lets a schedule wait.
const WAIT: Duration = Duration::from_mins(1);

impl Aws {
    /// Puts an event on the bus; answers what the template's rules made of it.
    pub async fn send_notice(&self, event: &Value) -> Result<Vec<Delivered>, BedError> {
        self.deliveries("notices", &json!({"event": event})).await
    }

    /// The same while Lambda answers so. No time passes: what has been refused for a minute comes at once, and its `time`
    /// should be a minute ago.
    pub async fn send_refused_notice(&self, event: &Value, refusals: &[Refusal]) -> Result<Vec<Delivered>, BedError> {
        self.deliveries("notices", &json!({"event": event, "refusals": refusals})).await
    }

    /// What EventBridge has put into the function's failure queue.
    pub async fn dead_letters(&self) -> Result<Vec<DeadLetter>, BedError> {
        self.call(Method::GET, "dead-letters?queue=Failures", None).await
    }

    /// A spot notice of this moment for an instance, as the function's rule delivers it.
    pub async fn spot_notice(&self, id: &str, instance_id: &str) -> Result<Value, BedError> {
        let mut event: Value = serde_json::from_str(include_str!("../../../../events/spot-interruption.json"))
            .expect("the sample is JSON: a test of the product reads it");
        let now = Timestamp::now();
        event["id"] = json!(id);
        event["time"] = json!(now.round(Unit::Second).unwrap_or(now).to_string());
        event["detail"]["instance-id"] = json!(instance_id);
        let delivered = self.send_notice(&event).await?.into_iter().next();
        let nobody = || BedError::NotMeasured { wanted: "a drain".to_owned(), seen: format!("no rule for {event}") };
        delivered.map(|delivered| delivered.event).ok_or_else(nobody)
    }

    /// Somebody else's rule on the bus, which leads to a target by its ARN.
    pub async fn put_rule(&self, name: &str, pattern: &Value, target: &str) -> Result<(), BedError> {
        let body = json!({"name": name, "pattern": pattern, "target": target});
        self.post::<Value>("rules", &body).await.map(drop)
    }

    pub async fn delete_rule(&self, name: &str) -> Result<(), BedError> {
        self.call::<Value>(Method::DELETE, &format!("rules?name={name}"), None).await.map(drop)
    }

    /// Switches a rule on or off, for everybody in the world: `ENABLED` or `DISABLED`.
    pub async fn switch_rule(&self, name: &str, state: &str) -> Result<(), BedError> {
        self.post::<Value>("rule-states", &json!({"name": name, "state": state})).await.map(drop)
    }

    /// What has come to the function since the last time: of the events that a caller has put on the bus, those that a rule lets
    /// through, and what it has invoked the function with itself or by a schedule, all by its access key id; or what AWS has
    /// sent about an instance, by its id.
    pub async fn take_deliveries(&self, sender: &str) -> Result<Vec<Delivered>, BedError> {
        self.deliveries("deliveries", &json!({"sender": sender})).await
    }

    /// Waits for the next of these.
    pub async fn wait_for_delivery(&self, sender: &str) -> Result<Delivered, BedError> {
        let body = json!({"sender": sender, "most": 1, "wait_s": WAIT.as_secs()});
        let delivered = self.deliveries("deliveries", &body).await?.pop();
        delivered.ok_or_else(|| BedError::Waited {
            what: format!("an invocation of {sender}"),
            waited_s: WAIT.as_secs(),
            last: "none".to_owned(),
        })
    }

    /// Every event that a caller has put on the bus, as a rule's target would get it, whether or not a rule let it through.
    pub async fn events(&self, access_key_id: &str) -> Result<Vec<Value>, BedError> {
        self.call(Method::GET, &format!("events?access_key_id={access_key_id}"), None).await
    }

    /// What a caller has scheduled and Scheduler still keeps, the earliest first.
    pub async fn schedules(&self, access_key_id: &str) -> Result<Vec<Schedule>, BedError> {
        self.call(Method::GET, &format!("schedules?access_key_id={access_key_id}"), None).await
    }

    /// The function's variables that refer to a part of its stack, such as its schedule group.
    pub(crate) async fn variables(&self) -> Result<BTreeMap<String, String>, BedError> {
        self.call(Method::GET, "variables", None).await
    }
}
