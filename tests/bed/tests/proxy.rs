//! The network between the function and the API server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use spillway_bed::proxy::{Mode, Proxy};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// A server that sends back what it gets.
async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                let _ = tokio::io::copy(&mut from, &mut to).await;
            });
        }
    });
    address
}

async fn connect(proxy: &Proxy) -> TcpStream {
    let stream = TcpStream::connect(proxy.address()).await.unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

async fn round_trip(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(b"x").await?;
    stream.read_exact(&mut [0]).await.map(drop)
}

#[tokio::test]
async fn a_forgotten_connection_is_reset_when_it_is_used() {
    let proxy = Proxy::start(echo().await).unwrap();
    let mut stream = connect(&proxy).await;
    round_trip(&mut stream).await.unwrap();
    proxy.forget();
    let idle = timeout(Duration::from_millis(50), stream.read(&mut [0])).await;
    assert!(idle.is_err(), "it looks well until it is used: {idle:?}");
    let error = round_trip(&mut stream).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    round_trip(&mut connect(&proxy).await).await.unwrap();
}

#[tokio::test]
async fn a_black_hole_keeps_everything_until_it_ends() {
    let proxy = Proxy::start(echo().await).unwrap();
    let mut stream = connect(&proxy).await;
    round_trip(&mut stream).await.unwrap();
    proxy.set_mode(Mode::BlackHole).await.unwrap();
    let mut late = connect(&proxy).await;
    for stream in [&mut stream, &mut late] {
        let swallowed = timeout(Duration::from_millis(100), round_trip(stream)).await;
        assert!(swallowed.is_err(), "{swallowed:?}");
    }
    proxy.set_mode(Mode::Pass).await.unwrap();
    for stream in [&mut stream, &mut late] {
        stream.read_exact(&mut [0]).await.unwrap();
    }
}
