//! What goes wrong, and what makes it.

use std::time::Duration;

use spillway_bed::faults::{Fault, Means, Step};
use spillway_bed::gateway::{Gateway, Rule, Which};
use spillway_bed::lambda::Lambda;
use spillway_bed::proxy::{Mode, Proxy};
use spillway_bed::{BedError, World};
use tokio::time::sleep;

/// Something that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The next request of a step, or all of them for this long from the first.
    Request {
        step: Step,
        fault: Fault,
        lasts: Option<Duration>,
    },
    Network(Whose, Network),
    /// Of the executions that serve, the one of this number, counted round.
    Kill(usize),
    /// Of a program of the control plane.
    Restart(&'static str),
}

/// Before whom the network is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    Kubernetes,
    Aws,
}

/// What the network does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Network {
    /// Every connection is reset.
    Reset,
    /// A partition: connections stand, and nothing moves for this long.
    BlackHole(Duration),
    /// Connections are reset, and new ones refused for this long.
    Refusal(Duration),
}

impl Trouble {
    /// Without the step and the time: what the page counts.
    pub(super) fn in_words(self) -> String {
        match self {
            Self::Request { fault, .. } => fault.name.to_owned(),
            Self::Network(_, Network::Reset) => "all connections reset".to_owned(),
            Self::Network(_, Network::BlackHole(_)) => "partition".to_owned(),
            Self::Network(_, Network::Refusal(_)) => "all connections refused".to_owned(),
            Self::Kill(_) => "execution killed".to_owned(),
            Self::Restart(program) => format!("{program} killed and started again"),
        }
    }
}

/// What trouble is made with.
#[derive(Debug)]
pub(super) struct Troublemaker<'a> {
    pub(super) world: &'a World,
    pub(super) lambda: &'a Lambda,
    pub(super) kubernetes: &'a Gateway,
    pub(super) aws: &'a Gateway,
}

impl Troublemaker<'_> {
    /// Makes it, and waits until it is over. Answers whether there was anything to go wrong.
    pub(super) async fn make(&self, trouble: Trouble) -> Result<bool, BedError> {
        match trouble {
            Trouble::Request { step, fault, lasts } => {
                if let Means::Request(make) = fault.means {
                    let which = lasts.map_or(Which::Nth(1), Which::For);
                    // Both gateways have the same rules.
                    self.aws.rules().add(Rule::new(step.call, which, make(step)));
                }
            }
            Trouble::Network(whose, what) => break_network(self.network(whose), what).await?,
            Trouble::Kill(number) => return Ok(self.lambda.kill_one(|serving| number % serving)),
            Trouble::Restart(program) => self.world.restart(program),
        }
        Ok(true)
    }

    fn network(&self, whose: Whose) -> &Proxy {
        match whose {
            Whose::Kubernetes => self.kubernetes.network(),
            Whose::Aws => self.aws.network(),
        }
    }
}

async fn break_network(network: &Proxy, what: Network) -> Result<(), BedError> {
    let set = async |mode| network.set_mode(mode).await.map_err(BedError::io("set the network's mode"));
    match what {
        Network::Reset => network.reset(),
        Network::BlackHole(time) => {
            set(Mode::BlackHole).await?;
            sleep(time).await;
            set(Mode::Pass).await?;
        }
        Network::Refusal(time) => {
            set(Mode::Refuse).await?;
            network.reset();
            sleep(time).await;
            set(Mode::Pass).await?;
        }
    }
    Ok(())
}
