//! The faults: what they are called, where they can be, and what makes them.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use spillway_bed::gateway::{self, Answer};

use super::step::{Server, Step};

/// Longer than anything takes that is well, and shorter than every timeout.
const SLOW: Duration = Duration::from_secs(3);
/// What a busy API server asks for.
const RETRY_AFTER_S: u32 = 2;

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Fault {
    /// The API server refuses with this code.
    Refusal(u16),
    /// It is busy, and says when to come again or does not.
    Throttled {
        retry_after: bool,
    },
    /// A budget has no room.
    Budget,
    /// The token has grown too old.
    TokenExpired,
    /// AWS refuses.
    Aws(AwsRefusal),
    CutShort,
    Page,
    StreamReset,
    Silence,
    Slow,
    GoAway,
    /// The connection is reset.
    ConnectionReset,
    /// The server is down: connections are reset, then refused.
    Down,
    /// Nothing moves on any connection.
    BlackHole,
    /// The server comes back with a certificate of another authority.
    NewAuthority,
    /// The endpoint's name does not resolve.
    NoSuchName,
}

/// How AWS refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AwsRefusal {
    Throttled,
    Denied,
    Broken,
    Unavailable,
}

/// How long a fault lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Lasts {
    /// One request, or a few seconds of a connection.
    Once,
    ForEver,
}

impl Lasts {
    pub(super) const ALL: [Self; 2] = [Self::Once, Self::ForEver];

    pub(super) fn in_words(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::ForEver => "for ever",
        }
    }
}

/// What makes a fault.
#[derive(Debug, Clone)]
pub(crate) enum Means {
    /// The gateway, at a request.
    Request(gateway::Fault),
    /// The network, from a request on.
    Network(Network),
    /// What EKS shows, or the function's environment, from the start.
    Endpoint,
}

/// What the network does from a request on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Network {
    Reset,
    /// Down for so long when it is not for ever.
    Down(Duration),
    BlackHole(Duration),
    NewAuthority,
}

impl Fault {
    /// The faults that a step can meet.
    pub(crate) fn of(step: Step) -> Vec<Self> {
        let both = [
            Self::CutShort,
            Self::Page,
            Self::StreamReset,
            Self::Silence,
            Self::Slow,
            Self::ConnectionReset,
            Self::Down,
            Self::BlackHole,
        ];
        let refusals = [401, 403, 404, 409, 422].map(Self::Refusal);
        let broken = [500, 503, 504].map(Self::Refusal);
        let busy = [Self::Throttled { retry_after: false }, Self::Throttled { retry_after: true }];
        let mut faults = Vec::new();
        match step.server() {
            Server::Kubernetes => {
                faults.extend(refusals);
                faults.extend(busy);
                faults.extend((step == Step::Evict).then_some(Self::Budget));
                faults.extend((step == Step::Watch).then_some(Self::Refusal(410)));
                faults.extend(broken);
                faults.push(Self::TokenExpired);
                faults.extend(both);
                faults.extend([Self::GoAway, Self::NewAuthority]);
                // The name is asked for when the first connection is made.
                faults.extend((step == Step::Claim).then_some(Self::NoSuchName));
            }
            Server::Aws(_) => {
                let refusals = [AwsRefusal::Throttled, AwsRefusal::Denied, AwsRefusal::Broken, AwsRefusal::Unavailable];
                faults.extend(refusals.map(Self::Aws));
                faults.extend(both);
                faults.push(Self::NoSuchName);
            }
        }
        faults
    }

    pub(super) fn can_last(self, lasts: Lasts) -> bool {
        match self {
            // Of one request it is no more than a refused token.
            Self::TokenExpired => lasts == Lasts::Once,
            // The name is in the environment or in what EKS shows, from the start.
            Self::NoSuchName => lasts == Lasts::ForEver,
            _ => true,
        }
    }

    pub(crate) fn in_words(self) -> String {
        match self {
            Self::Refusal(code) => code.to_string(),
            Self::Throttled { retry_after: false } => "429".to_owned(),
            Self::Throttled { retry_after: true } => format!("429 with Retry-After {RETRY_AFTER_S}"),
            Self::Budget => "429 of a budget".to_owned(),
            Self::TokenExpired => "token expired".to_owned(),
            Self::Aws(AwsRefusal::Throttled) => "throttled".to_owned(),
            Self::Aws(AwsRefusal::Denied) => "denied".to_owned(),
            Self::Aws(AwsRefusal::Broken) => "500".to_owned(),
            Self::Aws(AwsRefusal::Unavailable) => "503".to_owned(),
            Self::CutShort => "body cut short".to_owned(),
            Self::Page => "body no data".to_owned(),
            Self::StreamReset => "request reset".to_owned(),
            Self::Silence => "no answer".to_owned(),
            Self::Slow => format!("{} s late", SLOW.as_secs()),
            Self::GoAway => "GOAWAY".to_owned(),
            Self::ConnectionReset => "connection reset".to_owned(),
            Self::Down => "server down".to_owned(),
            Self::BlackHole => "black hole".to_owned(),
            Self::NewAuthority => "new authority".to_owned(),
            Self::NoSuchName => "no such name".to_owned(),
        }
    }

    pub(crate) fn means(self, step: Step) -> Means {
        let request = match self {
            Self::Refusal(code) => gateway::Fault::Answer(Answer::kubernetes(code)),
            Self::Throttled { retry_after } => {
                gateway::Fault::Answer(Answer::throttled(retry_after.then_some(RETRY_AFTER_S)))
            }
            Self::Budget => gateway::Fault::Answer(Answer::held_by("web")),
            Self::TokenExpired => gateway::Fault::TokenExpires,
            Self::Aws(refusal) => gateway::Fault::Answer(refusal.answer(step)),
            Self::CutShort => gateway::Fault::CutShort,
            Self::Page => gateway::Fault::NotData,
            Self::StreamReset => gateway::Fault::Reset,
            Self::Silence => gateway::Fault::Silence,
            Self::Slow => gateway::Fault::Slow(SLOW),
            Self::GoAway => gateway::Fault::GoAway,
            Self::ConnectionReset => return Means::Network(Network::Reset),
            Self::Down => return Means::Network(Network::Down(Duration::from_secs(5))),
            // Longer than the connection's pings wait, so that it is given up.
            Self::BlackHole => return Means::Network(Network::BlackHole(Duration::from_secs(12))),
            Self::NewAuthority => return Means::Network(Network::NewAuthority),
            Self::NoSuchName => return Means::Endpoint,
        };
        Means::Request(request)
    }

    /// Words of which a receipt must have one, so that a person knows what it was. None for what no drain may fail of.
    pub(super) fn names(self) -> Vec<String> {
        let words: &[&str] = match self {
            Self::Refusal(code) => {
                return Answer::kubernetes(code).message().into_iter().collect();
            }
            Self::Throttled { .. } => &["Too many requests", "busy"],
            Self::Budget => &["PodDisruptionBudget web"],
            Self::TokenExpired => &["Unauthorized"],
            Self::Aws(AwsRefusal::Throttled) => &["is throttled"],
            Self::Aws(AwsRefusal::Denied) => &["is denied"],
            Self::Aws(AwsRefusal::Broken | AwsRefusal::Unavailable) => &["fails at AWS' end"],
            Self::NewAuthority => &["certificate"],
            Self::Down | Self::NoSuchName | Self::BlackHole => {
                &["cannot connect", "got no answer", "did not answer", "was lost"]
            }
            Self::CutShort | Self::Page | Self::StreamReset | Self::Silence | Self::ConnectionReset => {
                &["got no answer", "did not answer", "was lost"]
            }
            Self::Slow | Self::GoAway => &[],
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }
}

impl AwsRefusal {
    /// Status and code as each service has them.
    fn answer(self, step: Step) -> Answer {
        let Server::Aws(service) = step.server() else { unreachable!("AWS refuses calls to AWS") };
        let (status, code) = match (self, service) {
            (Self::Throttled, "ec2") => (503, "RequestLimitExceeded"),
            (Self::Throttled, "eks") => (429, "TooManyRequestsException"),
            (Self::Throttled, "events" | "scheduler") => (429, "ThrottlingException"),
            (Self::Throttled, _) => (400, "Throttling"),
            (Self::Denied, "ec2") => (403, "UnauthorizedOperation"),
            (Self::Denied, "eks" | "events" | "scheduler") => (403, "AccessDeniedException"),
            (Self::Denied, _) => (403, "AccessDenied"),
            (Self::Broken, "eks") => (500, "ServerException"),
            (Self::Broken, _) => (500, "InternalError"),
            (Self::Unavailable, "eks") => (503, "ServiceUnavailableException"),
            (Self::Unavailable, _) => (503, "ServiceUnavailable"),
        };
        Answer::aws(service, status, code)
    }
}
