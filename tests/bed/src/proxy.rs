//! A network between the function and the API server: as far away, and as unreliable, as asked for.
//!
//! It carries TCP and ends no TLS, so the function talks to the real server. The delay is half of the
//! round trip on each way; order is kept and throughput is not limited. What a client sends at once
//! after connecting is held a further round trip, which the handshake would have cost it.
//!
//! It runs on a thread of its own, so that a busy test does not slow it down.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{broadcast, mpsc, watch};

/// Enough that a delay holds back time and not bytes: a GB a second at 20 ms, with reads this large.
const CHUNK: usize = 64 * 1024;
const CHUNKS_UNDER_WAY: usize = 1024;

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1024;

/// What happens to connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Everything passes, after the delay.
    Pass,
    /// Connections stand and connect, and nothing moves. What was sent arrives after the mode ends.
    BlackHole,
    /// A new connection is refused. Those that stand go on.
    Refuse,
}

/// A proxy in front of a server. It ends, with its connections, when dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    network: Arc<Network>,
    mode: watch::Sender<Mode>,
    applied: watch::Receiver<Mode>,
}

/// What all connections share.
#[derive(Debug)]
struct Network {
    upstream: SocketAddr,
    round_trip: Mutex<Duration>,
    connections: AtomicU64,
    client_hellos: AtomicU64,
    bytes: AtomicU64,
    /// Connections before this one are forgotten.
    forgotten: AtomicU64,
    /// Nothing that is sent on connections before this one arrives.
    dropped: AtomicU64,
    /// How often something was sent on them.
    swallowed: AtomicU64,
    reset: broadcast::Sender<()>,
}

impl Network {
    fn round_trip(&self) -> Duration {
        *self.round_trip.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Proxy {
    /// Listens on a free port of 127.0.0.1. Without delay until told.
    pub fn start(upstream: SocketAddr) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (listener, address) = {
            let _context = runtime.enter();
            let socket = socket(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
            let address = socket.local_addr()?;
            (socket.listen(BACKLOG)?, address)
        };
        let network = Arc::new(Network {
            upstream,
            round_trip: Mutex::default(),
            connections: AtomicU64::new(0),
            client_hellos: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            forgotten: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            swallowed: AtomicU64::new(0),
            reset: broadcast::Sender::new(1),
        });
        let (mode, wanted) = watch::channel(Mode::Pass);
        let (apply, applied) = watch::channel(Mode::Pass);
        let proxy = Self { address, network: Arc::clone(&network), mode, applied };
        thread::spawn(move || {
            // Ends when the proxy is dropped, and all connections with the runtime.
            if let Err(error) = runtime.block_on(accept(listener, &network, wanted, &apply)) {
                eprintln!("the proxy at {address} has failed: {error}");
            }
        });
        Ok(proxy)
    }

    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What to give out as the API server's endpoint. Its certificate is good for 127.0.0.1.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Connections accepted so far.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.network.connections.load(Relaxed)
    }

    /// Connections so far whose first bytes were a TLS `ClientHello`.
    #[must_use]
    pub fn client_hellos(&self) -> u64 {
        self.network.client_hellos.load(Relaxed)
    }

    /// Bytes carried so far, both ways, as TLS has them.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.network.bytes.load(Relaxed)
    }

    /// What is added to a round trip.
    #[must_use]
    pub fn round_trip(&self) -> Duration {
        self.network.round_trip()
    }

    /// Adds this much to every round trip from now on.
    pub fn set_round_trip(&self, added: Duration) {
        *self.network.round_trip.lock().unwrap_or_else(PoisonError::into_inner) = added;
    }

    /// Returns when the mode holds.
    pub async fn set_mode(&self, mode: Mode) -> io::Result<()> {
        self.mode.send_replace(mode);
        let mut applied = self.applied.clone();
        applied.wait_for(|now| *now == mode).await.map(drop).map_err(io::Error::other)
    }

    /// Resets every connection that stands.
    pub fn reset(&self) {
        // Without a connection nobody listens.
        let _ = self.network.reset.send(());
    }

    /// Forgets the connections that stand, as a NAT gateway does with idle ones: each looks
    /// well until the client next sends on it, and is then reset.
    pub fn forget(&self) {
        self.network.forgotten.store(self.connections(), Relaxed);
    }

    /// Forgets the connections that stand, as a firewall does: what is sent on them is dropped without a word.
    pub fn drop_silently(&self) {
        self.network.dropped.store(self.connections(), Relaxed);
    }

    /// How often something was sent on such connections, and dropped.
    #[must_use]
    pub fn swallowed(&self) -> u64 {
        self.network.swallowed.load(Relaxed)
    }
}

/// Accepts connections, or refuses them, until the proxy is dropped.
async fn accept(
    mut listener: TcpListener,
    network: &Arc<Network>,
    mut wanted: watch::Receiver<Mode>,
    apply: &watch::Sender<Mode>,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    loop {
        let mode = *wanted.borrow_and_update();
        if mode == Mode::Refuse {
            // A socket that is bound and does not listen refuses, and keeps the port from others.
            let socket = socket(address)?;
            drop(listener);
            apply.send_replace(mode);
            if wanted.changed().await.is_err() {
                return Ok(());
            }
            listener = socket.listen(BACKLOG)?;
            continue;
        }
        apply.send_replace(mode);
        tokio::select! {
            changed = wanted.changed() => if changed.is_err() {
                return Ok(());
            },
            accepted = listener.accept() => {
                let (client, _) = accepted?;
                let reset = network.reset.subscribe();
                let number = network.connections.fetch_add(1, Relaxed);
                let connection = Connection {
                    number,
                    accepted: Instant::now(),
                    network: Arc::clone(network),
                    mode: wanted.clone(),
                };
                tokio::spawn(connection.carry(client, reset));
            }
        }
    }
}

/// Bound beside another of ours, if there is one.
fn socket(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// One connection of a client, and its continuation to the server.
#[derive(Clone)]
struct Connection {
    number: u64,
    accepted: Instant,
    network: Arc<Network>,
    mode: watch::Receiver<Mode>,
}

impl Connection {
    /// Carries both ways until both have ended in order, or one has failed: then both ends are reset.
    async fn carry(self, mut client: TcpStream, mut reset: broadcast::Receiver<()>) -> io::Result<()> {
        let mut server = TcpStream::connect(self.network.upstream).await?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let in_order = {
            let (from_client, to_client) = client.split();
            let (from_server, to_server) = server.split();
            let both_ways = async {
                tokio::try_join!(
                    self.clone().way(from_client, to_server, Direction::Out),
                    self.clone().way(from_server, to_client, Direction::Back),
                )
            };
            tokio::select! {
                ended = both_ways => ended.is_ok(),
                _ = reset.recv() => false,
            }
        };
        if !in_order {
            client.set_zero_linger()?;
            server.set_zero_linger()?;
        }
        Ok(())
    }

    /// Carries one way, late by half the round trip, until its end has arrived.
    async fn way(self, from: ReadHalf<'_>, to: WriteHalf<'_>, direction: Direction) -> io::Result<()> {
        let (send, receive) = mpsc::channel(CHUNKS_UNDER_WAY);
        let mode = self.mode.clone();
        tokio::try_join!(self.read(from, send, direction), write(receive, to, mode)).map(drop)
    }

    async fn read(self, mut from: ReadHalf<'_>, line: mpsc::Sender<Chunk>, direction: Direction) -> io::Result<()> {
        let mut first = true;
        loop {
            let mut bytes = Vec::with_capacity(CHUNK);
            from.read_buf(&mut bytes).await?;
            self.network.bytes.fetch_add(bytes.len() as u64, Relaxed);
            if direction == Direction::Out {
                if self.number < self.network.forgotten.load(Relaxed) {
                    return Err(io::ErrorKind::ConnectionReset.into());
                }
                if self.number < self.network.dropped.load(Relaxed) && !bytes.is_empty() {
                    self.network.swallowed.fetch_add(1, Relaxed);
                    continue;
                }
                if std::mem::take(&mut first) && is_client_hello(&bytes) {
                    self.network.client_hellos.fetch_add(1, Relaxed);
                }
            }
            let end = bytes.is_empty();
            let chunk = Chunk { due: self.due(direction), bytes };
            // The other end of the line goes only with the whole connection.
            if line.send(chunk).await.is_err() || end {
                return Ok(());
            }
        }
    }

    /// When what is read now arrives.
    fn due(&self, direction: Direction) -> Instant {
        let round_trip = self.network.round_trip();
        let now = Instant::now();
        let sent = match direction {
            Direction::Out => now.max(self.accepted + round_trip),
            Direction::Back => now,
        };
        sent + round_trip / 2
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Out,
    Back,
}

/// Bytes under way; none is the end of the stream.
struct Chunk {
    due: Instant,
    bytes: Vec<u8>,
}

async fn write(
    mut line: mpsc::Receiver<Chunk>,
    mut to: WriteHalf<'_>,
    mut mode: watch::Receiver<Mode>,
) -> io::Result<()> {
    while let Some(Chunk { due, bytes }) = line.recv().await {
        tokio::time::sleep_until(due.into()).await;
        // An error means that the proxy is gone, and this runtime with it.
        let _ = mode.wait_for(|mode| *mode != Mode::BlackHole).await;
        if bytes.is_empty() {
            return to.shutdown().await;
        }
        to.write_all(&bytes).await?;
    }
    Ok(())
}

/// A TLS record of a handshake that begins with a `ClientHello`. Six bytes come in one piece.
fn is_client_hello(bytes: &[u8]) -> bool {
    matches!(bytes, [0x16, 0x03, _, _, _, 0x01, ..])
}
