//! Watching how others drain their node: what leaves when, what blocks it, what is lost. Nothing is written, and no later
//! invocation goes on with it.

use kube::ResourceExt as _;
use spillway_core::decision::Reason;
use spillway_core::drain::deadline::{Termination, Window};
use spillway_core::outcome::{Observed, Outcome};
use spillway_receipt::{Counts, Fate};

use super::Next;
use super::claim::unclaimed;
use super::drain::{so_far, still_there};
use super::dry_run::find_node;
use crate::context::{Context, Target};
use crate::drain;
use crate::failure::Failure;
use crate::publish::publish_blockage;
use crate::receipt::record::Record;

/// Watches the drain of the target's node.
pub(crate) async fn observe(context: &Context, target: &Target<'_>, record: &mut Record) -> Result<Next, Failure> {
    let Target { attempt, instance, cluster, managed_by, .. } = target;
    let (window, invocation) = (attempt.window(), attempt.invocation);
    record.window = Some(window);
    let Some((client, node)) = find_node(context, target, window).await? else {
        let reason = Reason::NoNode { cluster: (*cluster).clone(), provider_id: instance.provider_id() };
        return Ok(Outcome::Ignored(reason).into());
    };
    if let Some(why) = target.claimant().barred_from(&node) {
        return unclaimed(why, target, record).await;
    }
    let name = node.name_any();
    record.found(&name);
    let so_far = so_far(context, attempt, &name, record);
    let publish = async |news| publish_blockage(&so_far, news, context, None, invocation).await;
    let watched = drain::observe::observe(&client, (&node, instance), window, invocation.clock, publish);
    let drain::observe::Observed { report, is_deleted } = Box::pin(watched).await.map_err(|error| {
        let doing = format!("list the pods of node {name}");
        Failure::Kubernetes { doing, cluster: (*cluster).clone(), error }
    })?;
    record.observed(&report, is_deleted || goes_within(window), |at| attempt.ms_until(at));
    let Counts { moved, lost, unconfirmed } = Counts::of(&record.pods, &[]);
    let remaining = record.pods.iter().filter(|pod| pod.fate == Fate::Remaining).count();
    let observed = Observed {
        node: name,
        managed_by: *managed_by,
        gone: moved,
        all: moved + lost + unconfirmed + remaining,
        left: still_there(record),
        is_deleted,
    };
    Ok(Outcome::Observed(observed).into())
}

/// Whether the instance goes by the end of the window, and the pods that are left go with it.
fn goes_within(window: Window) -> bool {
    match window.instance_goes {
        Termination::At(at) => at <= window.end,
        Termination::Soon { .. } => true,
        Termination::AtTheLatest(_) | Termination::Unknown => false,
    }
}
