//! One notice, from the bus to its receipt: given, delivered by a rule, worked on by the function, and
//! what it came to.

use std::io::Write as _;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Api;
use kube::api::ListParams;
use serde_json::Value;
use spillway_bed::audit::{AuditLog, Request};
use spillway_bed::aws::{Call, Delivered};
use spillway_bed::lambda::{Delivery, Lambda};
use spillway_bed::life_like::LifeLike;
use spillway_bed::{BedError, TestNode, World};
use spillway_receipt::{Ending, Receipt};

use super::live::Live;
use super::receipt::{calls_in_words, gone, in_words, instance_may_go, last_in};
use super::scene::{Tone, short};
use super::screen::Screen;
use super::{DemoError, notice, picture, table};

/// From a spot notice to the end of the instance, as AWS has it.
const SPOT_WINDOW: Duration = Duration::from_mins(2);

/// What the function logs, in the bed's folder for logs.
pub(super) const LOG: &str = "function.log";

/// Whose notice it is.
pub(super) enum Act {
    /// EC2 takes the first node's spot instance back.
    Spot,
    /// Auto Scaling terminates the second node's instance, past a hook.
    Terminate,
    /// A file's event, about the first node.
    File(Value),
}

impl Act {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Spot => "the spot notice",
            Self::Terminate => "the terminate notice",
            Self::File(_) => "the file's notice",
        }
    }

    pub(super) fn title(&self, cluster: &LifeLike) -> String {
        let [first, second, _] = &cluster.nodes;
        match self {
            Self::Spot => format!("EC2 takes back the spot instance of {}", short(&first.name)),
            Self::Terminate => format!("Auto Scaling terminates the instance of {}", short(&second.name)),
            Self::File(event) => {
                format!("A notice from a file: {}", event["detail-type"].as_str().unwrap_or("no type"))
            }
        }
    }
}

/// What is on before a notice comes.
pub(super) struct Stage<'a> {
    pub(super) screen: &'a Screen,
    pub(super) world: &'a World,
    pub(super) cluster: LifeLike,
    pub(super) lambda: Lambda,
}

impl Stage<'_> {
    /// The cluster as a table.
    pub(super) async fn show(&self) -> Result<(), BedError> {
        let client = self.world.admin();
        let all = ListParams::default();
        let listing = || BedError::kubernetes("list what is in the cluster");
        let pods = Api::<Pod>::all(client.clone()).list(&all).await.map_err(listing())?;
        let budgets = Api::<PodDisruptionBudget>::all(client).list(&all).await.map_err(listing())?;
        self.screen.show(&table::nodes(&self.cluster.nodes, &self.cluster.group));
        self.screen.gap();
        self.screen.show(&table::pods(&self.cluster.nodes, &pods.items, &budgets.items));
        self.screen.gap();
        Ok(())
    }

    /// Answers whether the function did what it is for.
    pub(super) async fn play(&self, act: Act) -> Result<bool, DemoError> {
        let aws = self.world.aws_side();
        let [first, second, _] = &self.cluster.nodes;
        match act {
            Act::Spot => {
                let mut live = self.live(first).await?;
                let delivered = aws.interrupt(&first.instance_id, SPOT_WINDOW).await?;
                let delivered = delivered.first().ok_or(DemoError::NoRule("spot notice"))?;
                let window = SPOT_WINDOW.as_secs();
                let given = format!("gives notice: {} goes in {window} s", first.instance_id);
                let receipt = self.work_on(&mut live, delivered, &[("EC2", given)]).await?;
                if receipt.is_some() {
                    let text = format!("The instance goes {window} s after the notice; nobody waits for that here.");
                    self.screen.say(&text);
                }
                Ok(is_drained(receipt.as_ref()))
            }
            Act::Terminate => {
                let mut live = self.live(second).await?;
                let delivered = aws.terminate(&second.instance_id).await?;
                let delivered = delivered.first().ok_or(DemoError::NoRule("terminate notice"))?;
                let held = self.held(second).await?;
                let receipt = self.work_on(&mut live, delivered, &[("Auto Scaling", held)]).await?;
                Ok(is_drained(receipt.as_ref()))
            }
            Act::File(event) => self.file(event, first).await,
        }
    }

    async fn file(&self, event: Value, node: &TestNode) -> Result<bool, DemoError> {
        let aws = self.world.aws_side();
        let mut live = self.live(node).await?;
        let (mut event, mut changed) = notice::fit(&event, node, Timestamp::now());
        let mut given = Vec::new();
        if notice::is_of_terminate_hook(&event)
            && let Some(real) = aws.terminate(&node.instance_id).await?.first()
        {
            changed.push(notice::fit_hook(&mut event, real));
            given.push(("Auto Scaling", self.held(node).await?));
        }
        for text in changed {
            self.screen.say(&format!("Changed: {text}"));
        }
        let delivered = aws.send_notice(&event).await?;
        let Some(delivered) = delivered.first() else {
            self.screen.show_quietly(&notice::shown(&event));
            self.screen.say("No rule of template.yaml lets this event through: the function is not invoked.");
            return Ok(true);
        };
        Ok(self.work_on(&mut live, delivered, &given).await?.is_some())
    }

    async fn live(&self, node: &TestNode) -> Result<Live<'_>, BedError> {
        Live::begin(self.screen, self.world, node, self.audit()).await
    }

    fn audit(&self) -> AuditLog {
        AuditLog::of_user(&self.world.audit_log, "assumed-role/spillway-drain/spillway-drain")
    }

    async fn held(&self, node: &TestNode) -> Result<String, BedError> {
        let state = self.world.aws_side().instance(&node.instance_id).await?;
        let hooks: Vec<&str> = state.actions.iter().map(|action| action.hook.as_str()).collect();
        let state = state.lifecycle_state.as_deref().unwrap_or_default();
        Ok(format!("hook {} holds the instance: {state}", hooks.join(", ")))
    }

    /// From the event to the receipt; none if the function failed.
    async fn work_on(
        &self,
        live: &mut Live<'_>,
        delivered: &Delivered,
        given: &[(&str, String)],
    ) -> Result<Option<Receipt>, DemoError> {
        let Self { screen, lambda, .. } = self;
        let Delivered { rule, event } = delivered;
        screen.say(&format!("The event, as rule {rule} of template.yaml delivers it to the function:"));
        screen.show_quietly(&notice::shown(event));
        screen.gap();

        screen.say("Seconds since the notice, whose time AWS gives in whole seconds:");
        live.notice_given(notice::time(event).unwrap_or_else(Timestamp::now));
        for (who, what) in given {
            live.tell(Tone::Cloud, who, what);
        }
        let before = self.asked().await?;
        let is_cold = lambda.process_ids().is_empty();
        let start = if is_cold { "starts the function (a cold start)" } else { "thaws the function's process" };
        live.tell(Tone::Cloud, "Lambda", &format!("{start} and invokes it"));
        let delivery = live.during(lambda.invoke_async(event)).await??;
        self.keep_log(&delivery)?;

        let Some((receipt, written)) = last_in(&delivery.last.logs) else {
            screen.say_in(Tone::Bad, &format!("The function wrote no receipt: {}", failure(&delivery)));
            screen.show(&delivery.last.logs);
            return Ok(None);
        };
        let ending = receipt.ending.map_or("begun", Ending::as_str);
        live.until_gone(gone(&receipt)).await?;
        live.tell(Tone::Cloud, "Lambda", &format!("has the answer, {ending}, and freezes the process"));
        let went_well = delivery.last.result.is_ok();
        if went_well {
            live.until_settled(instance_may_go(&receipt)).await?;
        }

        screen.gap();
        let tone = if went_well { Tone::Good } else { Tone::Bad };
        screen.say_in(tone, &format!("The receipt: {ending}: {}", receipt.reason));
        screen.show(&in_words(&receipt));
        let (mut calls, mut requests) = self.asked().await?;
        screen.show(&calls_in_words(&calls.split_off(before.0.len()), &requests.split_off(before.1.len())));
        match picture::draw(&written, rule).await {
            Ok(file) => screen.say(&format!("As a picture, for a browser: {}", file.display())),
            Err(error) => screen.say(&format!("There is no picture of it: {}", error.story())),
        }
        screen.gap();
        if !went_well {
            self.show_failure(&delivery, &written);
        }
        Ok(went_well.then_some(receipt))
    }

    /// What the function has asked of AWS and of the API server so far.
    async fn asked(&self) -> Result<(Vec<Call>, Vec<Request>), BedError> {
        let calls = self.world.aws_side().calls(Some(self.lambda.access_key_id())).await?;
        Ok((calls, self.audit().requests()?))
    }

    fn show_failure(&self, delivery: &Delivery, written: &Value) {
        let screen = self.screen;
        screen.say_in(Tone::Bad, &format!("The function failed: {}", failure(delivery)));
        if delivery.failure_record.is_some() {
            let attempts = delivery.failed.len() + 1;
            screen.say(&format!(
                "Lambda tried {attempts} times (it waits minutes between them, the bed less), and has put the \
                 event with the error into the failure queue."
            ));
        }
        screen.say("The receipt as it was written:");
        let text = serde_json::to_string_pretty(written).unwrap_or_default();
        screen.show_quietly(&text.lines().map(str::to_owned).collect::<Vec<_>>());
    }

    /// Beside the bed's own logs, for when they are kept.
    fn keep_log(&self, delivery: &Delivery) -> Result<(), BedError> {
        let writing = || BedError::io("write the function's log");
        let path = self.world.logs.join(LOG);
        let mut file = std::fs::File::options().create(true).append(true).open(path).map_err(writing())?;
        for line in delivery.failed.iter().chain([&delivery.last]).flat_map(|outcome| &outcome.logs) {
            writeln!(file, "{line}").map_err(writing())?;
        }
        Ok(())
    }
}

fn is_drained(receipt: Option<&Receipt>) -> bool {
    receipt.is_some_and(|receipt| receipt.ending == Some(Ending::Drained))
}

fn failure(delivery: &Delivery) -> String {
    delivery.last.result.as_ref().err().map_or_else(String::new, ToString::to_string)
}
