//! A slow or unreliable network between the function and the API server.
//!
//! The proxy carries TCP and ends no TLS: the function's peer is the real server. Each way takes half of the round trip; order
//! is kept and throughput is not limited. The first bytes of a client take a further round trip, as after a handshake.
//!
//! The proxy runs on a thread of its own: a busy test does not slow it down.

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

/// Enough for a GB a second at 20 ms: the delay does not limit throughput.
const CHUNK: usize = 64 * 1024;
const CHUNKS_UNDER_WAY: usize = 1024;

const BACKLOG: u32 = 1024;

/// State of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Pass,
    /// Connections open and nothing moves. Sent bytes arrive after the mode ends.
    BlackHole,
    /// New connections are refused. Open ones go on.
    Refuse,
}

/// A proxy in front of a server. It ends with its connections when dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    network: Arc<Network>,
    mode: watch::Sender<Mode>,
    applied: watch::Receiver<Mode>,
}

/// State that all connections share.
#[derive(Debug)]
struct Network {
    upstream: SocketAddr,
    round_trip: Mutex<Duration>,
    connections: AtomicU64,
    client_hellos: AtomicU64,
    bytes: AtomicU64,
    /// Bytes that are sent on connections before this number do not arrive.
    dropped: AtomicU64,
    /// Count of reads on these connections.
    swallowed: AtomicU64,
    reset: broadcast::Sender<()>,
}

impl Network {
    fn round_trip(&self) -> Duration {
        *self.round_trip.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Proxy {
    /// Listens on a free port of 127.0.0.1, without a delay.
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
            dropped: AtomicU64::new(0),
            swallowed: AtomicU64::new(0),
            reset: broadcast::Sender::new(1),
        });
        let (mode, wanted) = watch::channel(Mode::Pass);
        let (apply, applied) = watch::channel(Mode::Pass);
        let proxy = Self { address, network: Arc::clone(&network), mode, applied };
        thread::spawn(move || {
            // All connections end with the runtime.
            if let Err(error) = runtime.block_on(accept(listener, &network, wanted, &apply)) {
                eprintln!("the proxy at {address} has failed: {error}");
            }
        });
        Ok(proxy)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The API server's endpoint through the proxy; the server's certificate is valid for 127.0.0.1.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Count of accepted connections.
    pub fn connections(&self) -> u64 {
        self.network.connections.load(Relaxed)
    }

    /// Count of connections whose first bytes were a TLS `ClientHello`.
    pub fn client_hellos(&self) -> u64 {
        self.network.client_hellos.load(Relaxed)
    }

    /// Bytes of both ways, with TLS.
    pub fn bytes(&self) -> u64 {
        self.network.bytes.load(Relaxed)
    }

    /// Adds this much to every later round trip.
    pub fn set_round_trip(&self, added: Duration) {
        *self.network.round_trip.lock().unwrap_or_else(PoisonError::into_inner) = added;
    }

    /// Returns when the mode holds.
    pub async fn set_mode(&self, mode: Mode) -> io::Result<()> {
        self.mode.send_replace(mode);
        let mut applied = self.applied.clone();
        applied.wait_for(|now| *now == mode).await.map(drop).map_err(io::Error::other)
    }

    /// Resets every open connection.
    pub fn reset(&self) {
        // Fails without a connection.
        let _ = self.network.reset.send(());
    }

    /// Drops all later bytes of the open connections without a reset, as a firewall does that forgets them.
    pub fn drop_silently(&self) {
        self.network.dropped.store(self.connections(), Relaxed);
    }

    /// Count of reads on such connections.
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
            // A bound socket that does not listen refuses connections, and keeps the port.
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

/// A socket that shares its address with another socket of this program.
fn socket(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// A client's connection and its continuation to the server.
#[derive(Clone)]
struct Connection {
    number: u64,
    accepted: Instant,
    network: Arc<Network>,
    mode: watch::Receiver<Mode>,
}

impl Connection {
    /// Carries both ways until both end in order. If one fails, resets both ends.
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
            // Fails only when the whole connection has ended.
            if line.send(chunk).await.is_err() || end {
                return Ok(());
            }
        }
    }

    /// Arrival of bytes that are read now.
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

/// Bytes under way; empty at the end of the stream.
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
        // Fails only when the proxy has ended.
        let _ = mode.wait_for(|mode| *mode != Mode::BlackHole).await;
        if bytes.is_empty() {
            return to.shutdown().await;
        }
        to.write_all(&bytes).await?;
    }
    Ok(())
}

/// A handshake record that begins with a `ClientHello`. Its six bytes come in one piece.
fn is_client_hello(bytes: &[u8]) -> bool {
    matches!(bytes, [0x16, 0x03, _, _, _, 0x01, ..])
}
