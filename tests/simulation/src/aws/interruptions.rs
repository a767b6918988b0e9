//! Interruptions of instances, and their notices.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::{AfterHook, Aws, AwsEvent, Notice};
use crate::fact::Fact;
use crate::plan::{Cause, Interruption, instance_id};

const SPOT_NOTICE: Duration = Duration::from_secs(120);

impl Aws {
    /// Interrupts an instance that is in use.
    pub(super) fn interrupt(&mut self, interruption: &Interruption) {
        let Interruption { node, cause, delay, .. } = *interruption;
        let id = instance_id(node);
        // EC2 takes a spot instance whatever its group does with it.
        let is_held = self.waits(&id) && !(cause == Cause::Spot && self.plan.replaces());
        if self.state(&id) != "running" || is_held {
            return;
        }
        self.effects.fact(Fact::Interruption { instance: id.clone(), cause });
        match cause {
            Cause::Spot => {
                let detail = json!({"instance-id": id, "instance-action": "terminate"});
                let detail_type = "EC2 Spot Instance Interruption Warning";
                self.mark_spot_request(&id);
                self.notify(&Notice { source: "aws.ec2", detail_type, detail, delay });
                self.effects.after(SPOT_NOTICE, AwsEvent::Terminates { id, delay });
            }
            Cause::Terminate => self.begin_action(&id, AfterHook::Terminate, delay),
            Cause::WarmPool { back_after } => self.begin_action(&id, AfterHook::WarmPool(back_after), delay),
            Cause::Rebalance => {
                let (detail_type, detail) = ("EC2 Instance Rebalance Recommendation", json!({"instance-id": id}));
                self.notify(&Notice { source: "aws.ec2", detail_type, detail, delay });
            }
            Cause::Stop { stops_after, starts_after } => {
                self.change_state(&id, "stopping", delay);
                self.effects.after(stops_after, AwsEvent::Stops { id, starts_after, delay });
            }
            Cause::ShutDown => self.terminate(&id, delay),
            Cause::Maintenance { starts_after, reboots, called_off_after } => {
                let starts = self.clock.second() + SignedDuration::try_from(starts_after).unwrap_or_default();
                let maintenance = maintenance(&id, starts, reboots);
                let notice = |status: &str| {
                    let mut detail = maintenance.clone();
                    detail["statusCode"] = json!(status);
                    Notice { source: "aws.health", detail_type: "AWS Health Event", detail, delay }
                };
                self.notify(&notice("upcoming"));
                match called_off_after.filter(|called_off| *called_off < starts_after) {
                    Some(after) => {
                        let notice = notice("closed");
                        self.effects.after(after, AwsEvent::CallsOff { id, starts, notice });
                    }
                    None if reboots => self.effects.after(starts_after, AwsEvent::Reboots { id }),
                    None => self.effects.after(starts_after, AwsEvent::Terminates { id, delay }),
                }
            }
        }
    }
}

/// Detail of an event of AWS Health, without its status.
fn maintenance(id: &str, starts: Timestamp, reboots: bool) -> serde_json::Value {
    let kind = if reboots { "AWS_EC2_INSTANCE_REBOOT" } else { "AWS_EC2_INSTANCE_RETIREMENT" };
    json!({"eventArn": format!("arn:aws:health:us-east-1::event/{kind}_{id}"), "service": "EC2",
        "eventTypeCode": format!("{kind}_SCHEDULED"), "eventTypeCategory": "scheduledChange",
        "startTime": starts.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string(),
        "affectedEntities": [{"entityValue": format!("arn:aws:ec2:us-east-1:1:instance/{id}")}]})
}
