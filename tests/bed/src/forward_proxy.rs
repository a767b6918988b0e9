//! A forward proxy, as a network has one on its way out: it makes tunnels, and keeps where to.
//!
//! For CONNECT only, which is how TLS goes through a proxy.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::error::BedError;

/// A proxy that ends when dropped.
#[derive(Debug)]
pub struct ForwardProxy {
    address: SocketAddr,
    passed: Arc<Mutex<Vec<String>>>,
    server: JoinHandle<()>,
}

impl ForwardProxy {
    pub async fn start() -> Result<Self, BedError> {
        let opening = || BedError::io("open a forward proxy");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(opening())?;
        let address = listener.local_addr().map_err(opening())?;
        let passed = Arc::<Mutex<Vec<String>>>::default();
        let noted = Arc::clone(&passed);
        let server = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let noted = Arc::clone(&noted);
                tokio::spawn(async move {
                    if let Err(error) = tunnel(client, &noted).await {
                        eprintln!("a forward proxy's tunnel has failed: {error}");
                    }
                });
            }
        });
        Ok(Self { address, passed, server })
    }

    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What was asked for so far, as `CONNECT host:port`.
    #[must_use]
    pub fn passed(&self) -> Vec<String> {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for ForwardProxy {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// One connection of a client, to its end.
async fn tunnel(client: TcpStream, noted: &Mutex<Vec<String>>) -> io::Result<()> {
    let mut client = BufReader::new(client);
    let mut asked = String::new();
    client.read_line(&mut asked).await?;
    let asked = asked.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
    let mut header = String::new();
    while client.read_line(&mut header).await? > 0 && header != "\r\n" {
        header.clear();
    }
    noted.lock().unwrap_or_else(PoisonError::into_inner).push(asked.clone());
    let Some(address) = asked.strip_prefix("CONNECT ") else {
        return client.write_all(b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n").await;
    };
    let mut server = TcpStream::connect(address).await?;
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    copy_bidirectional(&mut client, &mut server).await.map(drop)
}
