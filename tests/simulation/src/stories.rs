//! What AWS does with instances, and the notices that it gives of it.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::aws::{Action, ActionResult, GROUP, HOOK, Instance, Then};
use crate::draw::{Naming, Owner, Plot, Story};
use crate::world::World;

const SPOT_NOTICE: Duration = Duration::from_secs(120);
const TERMINATE: &str = "EC2 Instance-terminate Lifecycle Action";
const LAUNCH: &str = "EC2 Instance-launch Lifecycle Action";

/// The id of the instance of that number.
pub(crate) fn instance_id(number: usize) -> String {
    format!("i-{number:017x}")
}

impl World {
    /// Everything is there as it is when the world begins.
    pub(crate) fn set_up(&mut self) {
        for number in 0..self.plan.nodes {
            let (id, dns_name) = (instance_id(number), format!("ip-10-0-0-{number}.ec2.internal"));
            let node = match self.plan.names[number] {
                Naming::DnsName => dns_name.clone(),
                Naming::InstanceId => id.clone(),
                Naming::Other => format!("worker-{number}"),
            };
            self.add_instance(&id, &node, &dns_name);
        }
        let nodes: Vec<String> = self.cluster.nodes.keys().cloned().collect();
        for app in 0..self.plan.apps.len() {
            let planned = self.plan.apps[app].clone();
            if planned.owner == Owner::DaemonSet {
                for node in &nodes {
                    self.make_pod(app, None, Some(node.clone()));
                }
                continue;
            }
            for number in 0..planned.pods {
                let at = if planned.on_first_node { 0 } else { number % nodes.len() };
                let ordinal = (planned.owner == Owner::StatefulSet).then_some(number);
                self.make_pod(app, ordinal, Some(nodes[at].clone()));
            }
            self.count_budgets(app);
        }
        for story in self.plan.stories.clone() {
            self.soon(story.begins, move |world| world.tell(&story));
        }
        for act in self.plan.people.clone() {
            self.soon(act.at, move |world| world.act(act));
        }
        for at in self.plan.compactions.clone() {
            self.later(at, |world| world.cluster.compact());
        }
    }

    /// An instance with its node.
    pub(crate) fn add_instance(&mut self, id: &str, node: &str, dns_name: &str) {
        self.join(node, &format!("aws:///us-east-1a/{id}"), &format!("{id}-0"));
        self.aws.instances.insert(id.to_owned(), Instance::running(node, dns_name));
    }

    /// Has something happen after a time that everybody waits for.
    fn soon(&mut self, after: Duration, what: impl FnOnce(&mut Self) + Send + 'static) {
        self.busy += 1;
        self.later(after, move |world| {
            what(world);
            world.busy -= 1;
        });
    }

    fn tell(&mut self, story: &Story) {
        let id = instance_id(story.node);
        if self.aws.instances[&id].state() != "running" || self.waits(&id) {
            return;
        }
        self.note(|| format!("{:?} of {id}", story.what));
        let delay = story.delay;
        match story.what {
            Plot::Spot => {
                let detail = json!({"instance-id": id, "instance-action": "terminate"});
                self.give_notice("aws.ec2", "EC2 Spot Instance Interruption Warning", &detail, delay);
                self.soon(SPOT_NOTICE, move |world| world.terminate(&id, delay));
            }
            Plot::Terminate => self.begin_action(&id, TERMINATE, Then::End, delay),
            Plot::WarmPool { back_after } => self.begin_action(&id, TERMINATE, Then::Stop(back_after), delay),
            Plot::Rebalance => {
                let detail = json!({"instance-id": id});
                self.give_notice("aws.ec2", "EC2 Instance Rebalance Recommendation", &detail, delay);
            }
            Plot::Stop { stops_after, starts_after } => {
                self.state_changes(&id, "stopping", delay);
                self.soon(stops_after, move |world| {
                    world.stop(&id, delay);
                    if let Some(after) = starts_after {
                        world.soon(after, move |world| {
                            world.start(&id, delay);
                        });
                    }
                });
            }
            Plot::ShutDown => self.terminate(&id, delay),
            Plot::Maintenance { starts_after, reboots, called_off_after } => {
                self.announce(&id, starts_after, reboots, called_off_after, delay);
            }
        }
    }

    fn waits(&self, id: &str) -> bool {
        self.aws.actions.values().any(|action| action.instance == id && action.result.is_none())
    }

    fn give_notice(&mut self, source: &str, detail_type: &str, detail: &Value, delay: Duration) {
        let event = self.event(source, detail_type, detail);
        self.deliver(&event, delay);
    }

    /// An instance is in another state, and EC2 says so.
    fn state_changes(&mut self, id: &str, state: &'static str, delay: Duration) {
        self.note(|| format!("instance {id} is {state}"));
        self.aws.instances.get_mut(id).expect("it is there").becomes(state);
        self.give_notice(
            "aws.ec2",
            "EC2 Instance State-change Notification",
            &json!({"instance-id": id, "state": state}),
            delay,
        );
    }

    fn announce(&mut self, id: &str, after: Duration, reboots: bool, called_off: Option<Duration>, delay: Duration) {
        let starts = self.second() + SignedDuration::try_from(after).unwrap_or_default();
        let what = if reboots { "AWS_EC2_INSTANCE_REBOOT" } else { "AWS_EC2_INSTANCE_RETIREMENT" };
        let health = |status: &str| {
            json!({"eventArn": format!("arn:aws:health:us-east-1::event/{what}_{id}"), "service": "EC2",
                "eventTypeCode": format!("{what}_SCHEDULED"), "eventTypeCategory": "scheduledChange",
                "startTime": starts.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string(), "statusCode": status,
                "affectedEntities": [{"entityValue": format!("arn:aws:ec2:us-east-1:1:instance/{id}")}]})
        };
        self.give_notice("aws.health", "AWS Health Event", &health("upcoming"), delay);
        let (id, closed) = (id.to_owned(), health("closed"));
        if let Some(off) = called_off.filter(|off| *off < after) {
            return self.soon(off, move |world| world.give_notice("aws.health", "AWS Health Event", &closed, delay));
        }
        self.soon(after, move |world| {
            if !reboots {
                return world.terminate(&id, delay);
            }
            let instance = world.aws.instances.get_mut(&id).expect("it is there");
            if instance.state() == "running" {
                instance.kubelet_runs = false;
                let node = instance.node.clone();
                world.miss_kubelet(&node);
                let boots = world.ms(20_000..90_000);
                world.soon(boots, move |world| world.boot(&id));
            }
        });
    }

    /// A group takes an instance out of service, or into it, and waits for its hook.
    fn begin_action(&mut self, instance: &str, detail_type: &str, then: Then, delay: Duration) {
        let token = format!("token-{}", self.aws.actions.len());
        let (transition, from, to) = match then {
            Then::End => ("TERMINATING", "AutoScalingGroup", "EC2"),
            Then::Stop(_) => ("TERMINATING", "AutoScalingGroup", "WarmPool"),
            Then::Serve => ("LAUNCHING", "WarmPool", "AutoScalingGroup"),
        };
        let detail = json!({"LifecycleActionToken": token, "AutoScalingGroupName": GROUP, "LifecycleHookName": HOOK,
            "EC2InstanceId": instance, "LifecycleTransition": format!("autoscaling:EC2_INSTANCE_{transition}"),
            "Origin": from, "Destination": to});
        let since = Instant::now();
        let until = since + self.plan.hook_timeout;
        let in_all = since + self.plan.hook_timeout * 100;
        let instance = instance.to_owned();
        self.aws.actions.insert(token.clone(), Action { instance, then, since, until, in_all, result: None });
        self.watch_action(&token);
        self.give_notice("aws.autoscaling", detail_type, &detail, delay);
    }

    /// A heartbeat: the action waits for its whole timeout again.
    pub(crate) fn hold_action(&mut self, token: &str) {
        let timeout = self.plan.hook_timeout;
        if let Some(action) = self.aws.actions.get_mut(token) {
            action.until = (Instant::now() + timeout).min(action.in_all);
        }
        self.watch_action(token);
    }

    /// Ends the action when its time is over, if nothing holds it until then.
    fn watch_action(&mut self, token: &str) {
        let until = self.aws.actions[token].until;
        let (token, after) = (token.to_owned(), until - Instant::now());
        self.soon(after, move |world| {
            let action = &world.aws.actions[&token];
            if action.result.is_none() && action.until <= Instant::now() {
                world.end_action(&token, ActionResult::Expired);
            }
        });
    }

    /// An action waits no longer: the group goes on.
    pub(crate) fn end_action(&mut self, token: &str, result: ActionResult) {
        let Some(action) = self.aws.actions.get_mut(token) else { return };
        let (instance, then) = (action.instance.clone(), action.then);
        action.result = Some(result);
        self.note(|| format!("the lifecycle action {token} of {instance} is over: {result:?}"));
        let (after, delay) = (self.ms(1000..5000), self.ms(100..3000));
        self.soon(after, move |world| match then {
            Then::End => world.terminate(&instance, delay),
            Then::Serve => {}
            Then::Stop(back_after) => {
                world.stop(&instance, delay);
                world.soon(back_after, move |world| {
                    if world.start(&instance, delay) {
                        world.begin_action(&instance, LAUNCH, Then::Serve, delay);
                    }
                });
            }
        });
    }

    /// An instance stops: its kubelet with it.
    fn stop(&mut self, id: &str, delay: Duration) {
        let instance = self.aws.instances.get_mut(id).expect("it is there");
        if !matches!(instance.state(), "running" | "stopping") {
            return;
        }
        instance.kubelet_runs = false;
        let node = instance.node.clone();
        self.miss_kubelet(&node);
        self.state_changes(id, "stopped", delay);
    }

    /// A stopped instance runs again, and its kubelet with it, a while later. Whether it was stopped.
    fn start(&mut self, id: &str, delay: Duration) -> bool {
        let is_stopped = self.aws.instances[id].state() == "stopped";
        if is_stopped {
            self.state_changes(id, "running", delay);
            let (id, after) = (id.to_owned(), self.ms(10_000..90_000));
            self.soon(after, move |world| world.boot(&id));
        }
        is_stopped
    }

    /// The kubelet of an instance begins to report.
    fn boot(&mut self, id: &str) {
        let instance = self.aws.instances.get_mut(id).expect("it is there");
        if instance.state() == "running" {
            instance.kubelet_runs = true;
            instance.boots += 1;
            let (node, boot) = (instance.node.clone(), format!("{id}-{}", instance.boots));
            self.kubelet_is_back(&node, &boot);
        }
    }

    /// An instance ends: its kubelet with it, and its node some time later.
    fn terminate(&mut self, id: &str, delay: Duration) {
        let instance = self.aws.instances.get_mut(id).expect("it is there");
        if matches!(instance.state(), "shutting-down" | "terminated") {
            return;
        }
        instance.kubelet_runs = false;
        let node = instance.node.clone();
        let waiting = self.aws.actions.values_mut().filter(|action| action.instance == id && action.result.is_none());
        waiting.for_each(|action| action.result = Some(ActionResult::Gone));
        self.state_changes(id, "shutting-down", delay);
        self.miss_kubelet(&node);
        let (ended, left, id) = (self.ms(1000..60_000), self.ms(1000..90_000), id.to_owned());
        self.soon(ended, move |world| {
            world.state_changes(&id, "terminated", delay);
            world.soon(left, move |world| {
                let is_its = world.cluster.nodes.get(&node).is_some_and(|node| {
                    node["spec"]["providerID"].as_str().is_some_and(|provider_id| provider_id.ends_with(&id))
                });
                if is_its {
                    world.remove_node(&node);
                }
            });
        });
    }
}
