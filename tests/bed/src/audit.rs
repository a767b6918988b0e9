//! The API server's audit log: which requests one user made, in order, with their answers.
//!
//! It is the counter of requests that nobody can talk out of anything: the API server wrote it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::Deserialize;

use crate::error::BedError;

/// Nothing portable says that a file has grown, so it is looked at this often.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Without bodies, a line holds a URI, a user agent and some names.
const LONGEST_LINE: u64 = 1 << 16;

/// One request to the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub user: String,
    pub user_agent: String,
    pub verb: String,
    pub uri: String,
    /// Empty where the request is not for an object, as with `/version`.
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    /// The grace period that a pod's eviction or deletion gives it, if it says one.
    pub grace_s: Option<u64>,
    /// Not known before the answer begins.
    pub code: Option<u16>,
    /// To the microsecond, by the API server's clock.
    pub received: Timestamp,
    /// A watch is done when it ends.
    pub done: Option<Timestamp>,
}

/// The requests of one user, read as they come.
#[derive(Debug, Clone)]
pub struct AuditLog {
    path: PathBuf,
    user: String,
    /// How far the file is read.
    read: u64,
    requests: BTreeMap<String, Request>,
}

impl AuditLog {
    /// The requests whose user name ends with this, such as `assumed-role/spillway-drain/<session>`.
    #[must_use]
    pub fn of_user(path: &Path, user: &str) -> Self {
        Self { path: path.to_owned(), user: user.to_owned(), read: 0, requests: BTreeMap::new() }
    }

    /// The requests of such a user from now on: what the log holds by now, which may be much, is not read.
    pub fn of_user_from_now(path: &Path, user: &str) -> Result<Self, BedError> {
        let mut log = Self::of_user(path, user);
        log.skip().map_err(BedError::io(format!("read {}", path.display())))?;
        Ok(log)
    }

    /// All requests so far, in the order in which the API server received them.
    pub fn requests(&mut self) -> Result<Vec<Request>, BedError> {
        self.read_on().map_err(BedError::io(format!("read {}", self.path.display())))?;
        let mut requests: Vec<_> = self.requests.values().cloned().collect();
        requests.sort_by_key(|request| request.received);
        Ok(requests)
    }

    /// Waits until the requests are as wanted, and returns them.
    pub async fn wait_until(
        &mut self,
        what: &str,
        timeout: Duration,
        wanted: impl Fn(&[Request]) -> bool,
    ) -> Result<Vec<Request>, BedError> {
        let begin = Instant::now();
        let mut look = tokio::time::interval(LOOK_EVERY);
        loop {
            look.tick().await;
            let requests = self.requests()?;
            if wanted(&requests) {
                return Ok(requests);
            }
            if begin.elapsed() >= timeout {
                let seen = requests.iter().map(|request| format!("\n  {}", request.summary()));
                return Err(BedError::Waited {
                    what: what.to_owned(),
                    waited_s: timeout.as_secs(),
                    last: format!("{} requests{}", requests.len(), seen.collect::<String>()),
                });
            }
        }
    }

    /// Takes the log's whole lines for read.
    fn skip(&mut self) -> io::Result<()> {
        let mut file = File::open(&self.path)?;
        let tail = file.metadata()?.len().saturating_sub(LONGEST_LINE);
        file.seek(SeekFrom::Start(tail))?;
        let mut last = Vec::new();
        file.take(LONGEST_LINE).read_to_end(&mut last)?;
        self.read = last.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| tail + end as u64 + 1);
        Ok(())
    }

    /// Reads what the file holds beyond what was read of it, up to the last whole line.
    fn read_on(&mut self) -> io::Result<()> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            // Nothing is logged yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        file.seek(SeekFrom::Start(self.read))?;
        let mut unread = Vec::new();
        file.read_to_end(&mut unread)?;
        let whole = unread.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        self.read += whole as u64;
        for line in String::from_utf8_lossy(&unread[..whole]).lines() {
            self.take(line)?;
        }
        Ok(())
    }

    fn take(&mut self, line: &str) -> io::Result<()> {
        // Most lines are other users': looking for the text spares parsing them.
        if !line.contains(&self.user) {
            return Ok(());
        }
        let event: AuditEvent = serde_json::from_str(line)?;
        // To the end: one session's name may be the beginning of another's.
        if event.user.username.ends_with(&self.user) {
            let id = event.audit_id.clone();
            event.note_in(self.requests.entry(id));
        }
        Ok(())
    }
}

impl Request {
    /// One line for a person: `create pods/eviction shop/cart-0 → 201`.
    #[must_use]
    pub fn summary(&self) -> String {
        let Self { verb, resource, subresource, namespace, name, uri, .. } = self;
        let code = self.code.map_or_else(|| "no answer yet".to_owned(), |code| code.to_string());
        if resource.is_empty() {
            return format!("{verb} {uri} → {code}");
        }
        let slash = |text: &str| if text.is_empty() { "" } else { "/" };
        format!("{verb} {resource}{}{subresource} {namespace}{}{name} → {code}", slash(subresource), slash(namespace))
    }

    /// From the API server's first sight of it to the end of its answer.
    #[must_use]
    pub fn took(&self) -> Option<Duration> {
        Duration::try_from(self.done?.duration_since(self.received)).ok()
    }
}

/// A line of the log: one stage of one request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AuditEvent {
    #[serde(rename = "auditID")]
    audit_id: String,
    stage: String,
    #[serde(rename = "requestURI")]
    uri: String,
    verb: String,
    user: User,
    #[serde(default)]
    user_agent: String,
    #[serde(default)]
    object_ref: ObjectRef,
    request_object: Option<RequestObject>,
    response_status: Option<ResponseStatus>,
    request_received_timestamp: Timestamp,
    stage_timestamp: Timestamp,
}

#[derive(Debug, Deserialize)]
struct User {
    #[serde(default)]
    username: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ObjectRef {
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

/// An eviction has options, a deletion is them. The policy asks for no other bodies.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RequestObject {
    delete_options: DeleteOptions,
    grace_period_seconds: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DeleteOptions {
    grace_period_seconds: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct ResponseStatus {
    code: Option<u16>,
}

impl AuditEvent {
    /// The stages of a request come in order, a watch's last one long after its first.
    fn note_in(self, entry: std::collections::btree_map::Entry<'_, String, Request>) {
        let ended = matches!(self.stage.as_str(), "ResponseComplete" | "Panic");
        let RequestObject { delete_options, grace_period_seconds } = self.request_object.unwrap_or_default();
        let request = entry.or_insert_with(|| Request {
            user: self.user.username,
            user_agent: self.user_agent,
            verb: self.verb,
            uri: self.uri,
            resource: self.object_ref.resource,
            subresource: self.object_ref.subresource,
            namespace: self.object_ref.namespace,
            name: self.object_ref.name,
            grace_s: delete_options.grace_period_seconds.or(grace_period_seconds),
            code: None,
            received: self.request_received_timestamp,
            done: None,
        });
        // Only an answer has a code; the line of a request just received may hold a zero.
        request.code = self.response_status.and_then(|status| status.code).filter(|code| *code > 0).or(request.code);
        request.done = ended.then_some(self.stage_timestamp).or(request.done);
    }
}
