//! The API server's audit log: requests of one user in order, with their answers.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::Value;

use crate::error::BedError;

/// Growth of a file cannot be awaited portably.
const READ_EVERY: Duration = Duration::from_millis(10);
/// A line has a URI and some names, and no bodies.
const LONGEST_LINE: u64 = 1 << 16;

/// A request to the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub verb: String,
    pub uri: String,
    /// Empty if the request is not for an object, as with `/version`.
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    /// Absent until the answer begins.
    pub code: Option<u16>,
    pub received: Timestamp,
    /// End of the answer. A watch's answer ends with the watch.
    pub done: Option<Timestamp>,
}

/// Requests of one user, read as they come.
#[derive(Debug, Clone)]
pub struct AuditLog {
    path: PathBuf,
    user: String,
    /// Bytes read so far.
    read: u64,
    requests: BTreeMap<String, Request>,
}

impl AuditLog {
    /// Requests of users with this end of their name, such as `assumed-role/spillway-drain/<session>`.
    pub fn of_user(path: &Path, user: &str) -> Self {
        Self { path: path.to_owned(), user: user.to_owned(), read: 0, requests: BTreeMap::new() }
    }

    /// Later requests of such a user. The log so far, which may be long, is not read.
    pub fn of_user_from_now(path: &Path, user: &str) -> Result<Self, BedError> {
        let mut log = Self::of_user(path, user);
        log.skip().map_err(BedError::io(format!("read {}", path.display())))?;
        Ok(log)
    }

    /// All requests so far, in the order of their receipt.
    pub fn requests(&mut self) -> Result<Vec<Request>, BedError> {
        self.read_on().map_err(BedError::io(format!("read {}", self.path.display())))?;
        let mut requests: Vec<_> = self.requests.values().cloned().collect();
        requests.sort_by_key(|request| request.received);
        Ok(requests)
    }

    /// Waits until the requests are as wanted.
    pub async fn wait_until(
        &mut self,
        what: &str,
        timeout: Duration,
        wanted: impl Fn(&[Request]) -> bool,
    ) -> Result<Vec<Request>, BedError> {
        let begin = Instant::now();
        let mut read = tokio::time::interval(READ_EVERY);
        loop {
            read.tick().await;
            let requests = self.requests()?;
            if wanted(&requests) {
                return Ok(requests);
            }
            if begin.elapsed() >= timeout {
                let lines = requests.iter().map(|request| format!("\n  {}", request.summary()));
                let last = format!("{} requests{}", requests.len(), lines.collect::<String>());
                return Err(BedError::Waited { what: what.to_owned(), waited_s: timeout.as_secs(), last });
            }
        }
    }

    /// Skips the log's whole lines.
    fn skip(&mut self) -> io::Result<()> {
        let mut file = File::open(&self.path)?;
        let tail = file.metadata()?.len().saturating_sub(LONGEST_LINE);
        file.seek(SeekFrom::Start(tail))?;
        let mut last = Vec::new();
        file.take(LONGEST_LINE).read_to_end(&mut last)?;
        self.read = last.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| tail + end as u64 + 1);
        Ok(())
    }

    /// Reads on, up to the last whole line.
    fn read_on(&mut self) -> io::Result<()> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            // The log is empty.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        file.seek(SeekFrom::Start(self.read))?;
        let mut unread = Vec::new();
        file.read_to_end(&mut unread)?;
        let whole = unread.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        self.read += whole as u64;
        for line in String::from_utf8_lossy(&unread[..whole]).lines() {
            // Most lines are other users': the search spares parsing them.
            if line.contains(&self.user) {
                self.take(line)?;
            }
        }
        Ok(())
    }

    /// Adds a stage of a request. Stages come in order, a watch's last one long after its first.
    fn take(&mut self, line: &str) -> io::Result<()> {
        let event: Value = serde_json::from_str(line)?;
        let text = |path| event.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let time = |path| text(path).parse::<Timestamp>().map_err(io::Error::other);
        // The end of the name: one session's name may be the beginning of another's.
        if !text("/user/username").ends_with(&self.user) {
            return Ok(());
        }
        let received = time("/requestReceivedTimestamp")?;
        let request = self.requests.entry(text("/auditID")).or_insert_with(|| Request {
            verb: text("/verb"),
            uri: text("/requestURI"),
            resource: text("/objectRef/resource"),
            subresource: text("/objectRef/subresource"),
            namespace: text("/objectRef/namespace"),
            name: text("/objectRef/name"),
            code: None,
            received,
            done: None,
        });
        let code = event.pointer("/responseStatus/code").and_then(Value::as_u64);
        // The line of a received request may have a zero.
        request.code = code.and_then(|code| u16::try_from(code).ok()).filter(|code| *code > 0).or(request.code);
        if matches!(&*text("/stage"), "ResponseComplete" | "Panic") {
            request.done = Some(time("/stageTimestamp")?);
        }
        Ok(())
    }
}

impl Request {
    /// `create pods/eviction shop/cart-0 → 201`.
    pub fn summary(&self) -> String {
        let Self { verb, resource, subresource, namespace, name, uri, .. } = self;
        let code = self.code.map_or_else(|| "no answer yet".to_owned(), |code| code.to_string());
        if resource.is_empty() {
            return format!("{verb} {uri} → {code}");
        }
        let slash = |text: &str| if text.is_empty() { "" } else { "/" };
        format!("{verb} {resource}{}{subresource} {namespace}{}{name} → {code}", slash(subresource), slash(namespace))
    }

    pub fn is_eviction(&self) -> bool {
        self.subresource == "eviction"
    }

    pub fn is_granted_eviction(&self) -> bool {
        self.is_eviction() && self.code == Some(201)
    }
}
