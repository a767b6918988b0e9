//! A black hole of the network keeps all bytes until it ends.

use std::io;
use std::time::Duration;

use spillway_bed::proxy::{Mode, Proxy};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

async fn round_trip(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(b"x").await?;
    stream.read_exact(&mut [0]).await.map(drop)
}

#[tokio::test]
async fn black_hole_keeps_bytes_until_it_ends() {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = Proxy::start(server.local_addr().unwrap()).unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = server.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                tokio::io::copy(&mut from, &mut to).await
            });
        }
    });
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    round_trip(&mut stream).await.unwrap();
    proxy.set_mode(Mode::BlackHole).await.unwrap();
    let mut late = TcpStream::connect(proxy.address()).await.unwrap();
    for stream in [&mut stream, &mut late] {
        let swallowed = timeout(Duration::from_millis(100), round_trip(stream)).await;
        assert!(swallowed.is_err(), "{swallowed:?}");
    }
    proxy.set_mode(Mode::Pass).await.unwrap();
    for stream in [&mut stream, &mut late] {
        stream.read_exact(&mut [0]).await.unwrap();
    }
}
