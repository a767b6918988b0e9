//! Replacement of an instance: the state of its group, its spot request, and the request to the group.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use spillway_drainer::doubles::aws::AwsCall;
use tokio::time::Instant;

use super::actions::group;
use super::{AfterHook, Aws, AwsAnswer};
use crate::fact::Fact;
use crate::lambda::AttemptId;
use crate::plan::Plan;

/// Longest lag of a spot request's status behind the notice, in milliseconds: the function reads it for ten seconds.
const LAG_MS: u64 = 8_000;

impl Plan {
    /// Returns `true` if groups have the tag and the function replaces instances.
    pub(crate) fn replaces(&self) -> bool {
        self.setting("SPILLWAY_REPLACE").is_some_and(|value| value != "off")
    }
}

impl Aws {
    /// EC2 interrupts a spot instance: the request has its new status a while later.
    pub(super) fn mark_spot_request(&mut self, id: &str) {
        if self.plan.replaces() {
            let lag = self.dice.ms(0..LAG_MS);
            self.marked.insert(id.to_owned(), (Instant::now() + lag, self.clock.second()));
        }
    }

    /// Members of the description of an instance by which its group takes part.
    pub(super) fn replacement_members(&self, id: &str) -> (String, &'static str) {
        if self.plan.replaces() {
            let request = format!("<spotInstanceRequestId>sir-{id}</spotInstanceRequestId>");
            (request, "<item><key>spillway:replace</key><value>true</value></item>")
        } else {
            (String::new(), "")
        }
    }

    /// Answers a call of a replacement. `None`: the call is none.
    pub(super) fn answer_replacement(&mut self, by: AttemptId, call: &AwsCall) -> Option<AwsAnswer> {
        let answer = match call.name.as_str() {
            "DescribeAutoScalingGroups" if call.parameter("IncludeInstances") == Some("true") => {
                self.described_group(call.parameter("AutoScalingGroupNames.member.1").unwrap_or_default())
            }
            "DescribeLifecycleHooks" if call.parameter("LifecycleHookNames.member.1").is_none() => {
                "<LifecycleHooks><member><LifecycleHookName>spillway</LifecycleHookName><LifecycleTransition>\
                 autoscaling:EC2_INSTANCE_TERMINATING</LifecycleTransition></member></LifecycleHooks>"
                    .to_owned()
            }
            "DescribeScalingActivities" => "<Activities></Activities>".to_owned(),
            "DescribeSpotInstanceRequests" => {
                let request = call.parameter("SpotInstanceRequestId.1").unwrap_or_default();
                return Some((200, self.spot_request(request.trim_start_matches("sir-"))));
            }
            "TerminateInstanceInAutoScalingGroup" => {
                self.replace(by, call);
                "<Activity></Activity>".to_owned()
            }
            _ => return None,
        };
        let name = &call.name;
        Some((200, format!("<{name}Response><{name}Result>{answer}</{name}Result></{name}Response>")))
    }

    fn described_group(&self, name: &str) -> String {
        let of_group = self.instances.iter().filter(|(_, instance)| group(instance.node.cluster) == name);
        let instances = of_group.filter(|(_, instance)| instance.state() != "terminated").map(|(id, instance)| {
            let state = if self.waits(id) {
                "Terminating:Wait"
            } else if instance.state() == "running" {
                "InService"
            } else {
                "Terminating"
            };
            format!("<member><InstanceId>{id}</InstanceId><LifecycleState>{state}</LifecycleState></member>")
        });
        let instances: String = instances.collect();
        format!(
            "<AutoScalingGroups><member><AutoScalingGroupName>{name}</AutoScalingGroupName><DesiredCapacity>3\
             </DesiredCapacity><Tags><member><Key>spillway:replace</Key><Value>true</Value></member></Tags><Instances>\
             {instances}</Instances></member></AutoScalingGroups>"
        )
    }

    fn spot_request(&self, id: &str) -> String {
        let marked = self.marked.get(id).filter(|(since, _)| *since <= Instant::now());
        let (code, updated) = match marked {
            Some((_, updated)) => ("marked-for-termination", *updated),
            None => ("fulfilled", Timestamp::UNIX_EPOCH + SignedDuration::from_secs(1)),
        };
        format!(
            "<DescribeSpotInstanceRequestsResponse><spotInstanceRequestSet><item><status><code>{code}</code><updateTime>\
             {updated}</updateTime></status></item></spotInstanceRequestSet></DescribeSpotInstanceRequestsResponse>"
        )
    }

    /// A group terminates an instance by request, past its hook.
    fn replace(&mut self, by: AttemptId, call: &AwsCall) {
        let instance = call.parameter("InstanceId").unwrap_or_default().to_owned();
        let is_confirmed = self.marked.get(&instance).is_some_and(|(since, _)| *since <= Instant::now());
        let decrements = call.parameter("ShouldDecrementDesiredCapacity") != Some("false");
        let is_in_service = self.state(&instance) == "running" && !self.waits(&instance);
        self.effects.fact(Fact::Replaced { by, instance: instance.clone(), is_confirmed, decrements });
        if is_in_service {
            let delay: Duration = self.dice.ms(100..3000);
            self.begin_action(&instance, AfterHook::Terminate, delay);
        }
    }
}
