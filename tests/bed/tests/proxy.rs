//! The network between the function and the API server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use spillway_bed::proxy::{Mode, Proxy};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
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

async fn round_trip(stream: &mut TcpStream) -> io::Result<Duration> {
    let begin = Instant::now();
    stream.write_all(b"x").await?;
    stream.read_exact(&mut [0]).await?;
    Ok(begin.elapsed())
}

#[tokio::test]
async fn it_carries_everything_in_order_and_counts() {
    let proxy = Proxy::start(echo().await).unwrap();
    assert_eq!((proxy.connections(), proxy.client_hellos()), (0, 0));

    let sent: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[0] ^ n.to_le_bytes()[1]).collect();
    let (mut from, mut to) = connect(&proxy).await.into_split();
    let expected = sent.clone();
    tokio::spawn(async move {
        to.write_all(&sent).await.unwrap();
        to.shutdown().await.unwrap();
    });
    let mut got = Vec::new();
    from.read_to_end(&mut got).await.unwrap();
    assert!(got == expected, "{} of {} bytes came back", got.len(), expected.len());
    assert_eq!((proxy.connections(), proxy.client_hellos()), (1, 0));

    // The beginning of a TLS 1.3 ClientHello; then a later record of a connection, which is none.
    for record in [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", b"\x17\x03\x03\x00\x20\x01\x00\x01\xfc"] {
        let mut stream = connect(&proxy).await;
        stream.write_all(record).await.unwrap();
        stream.read_exact(&mut [0; 9]).await.unwrap();
        stream.write_all(record).await.unwrap();
        stream.read_exact(&mut [0; 9]).await.unwrap();
    }
    assert_eq!((proxy.connections(), proxy.client_hellos()), (3, 1));
}

/// The fastest of some: what a busy machine adds is not the proxy's, so it is tried until it is less than wanted.
async fn fastest_round_trip(stream: &mut TcpStream, wanted: Duration) -> Duration {
    let (begin, mut fastest) = (Instant::now(), Duration::MAX);
    for trip in 1.. {
        fastest = fastest.min(round_trip(stream).await.unwrap());
        if trip >= 15 && (fastest < wanted || begin.elapsed() > Duration::from_secs(60)) {
            break;
        }
    }
    fastest
}

#[tokio::test]
async fn it_adds_a_round_trip_and_no_more() {
    let proxy = Proxy::start(echo().await).unwrap();
    let mut stream = connect(&proxy).await;
    let (none, asked, too_much) = (Duration::from_millis(2), Duration::from_millis(20), Duration::from_millis(22));
    assert!(fastest_round_trip(&mut stream, none).await < none);
    proxy.set_round_trip(asked);
    let delayed = fastest_round_trip(&mut stream, too_much).await;
    assert!(asked <= delayed && delayed < too_much, "{asked:?} asked for, {delayed:?} taken");
    proxy.set_round_trip(Duration::ZERO);
    assert!(fastest_round_trip(&mut stream, none).await < none);
}

#[tokio::test]
async fn a_new_connection_costs_a_round_trip_of_its_own() {
    let proxy = Proxy::start(echo().await).unwrap();
    proxy.set_round_trip(Duration::from_millis(40));
    // From before it connects: the proxy counts from there.
    let begin = Instant::now();
    let mut stream = connect(&proxy).await;
    round_trip(&mut stream).await.unwrap();
    let (first, less) = (begin.elapsed(), Duration::from_millis(60));
    let later = fastest_round_trip(&mut stream, less).await;
    assert!(first >= Duration::from_millis(80) && later < less, "{first:?}, {later:?}");
}

#[tokio::test]
async fn a_delay_does_not_limit_throughput() {
    let proxy = Proxy::start(echo().await).unwrap();
    proxy.set_round_trip(Duration::from_millis(200));
    let (mut from, mut to) = connect(&proxy).await.into_split();
    let begin = Instant::now();
    tokio::spawn(async move { to.write_all(&vec![7; 16 << 20]).await });
    let mut got = vec![0; 16 << 20];
    from.read_exact(&mut got).await.unwrap();
    // One round trip to connect and one for the bytes; stop and wait would take 50 s.
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn a_reset_ends_what_stands_and_nothing_else() {
    let proxy = Proxy::start(echo().await).unwrap();
    let mut stream = connect(&proxy).await;
    round_trip(&mut stream).await.unwrap();
    proxy.reset();
    let error = stream.read(&mut [0]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    round_trip(&mut connect(&proxy).await).await.unwrap();
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

#[tokio::test]
async fn a_refused_connection_can_be_made_again_later() {
    let proxy = Proxy::start(echo().await).unwrap();
    let mut stream = connect(&proxy).await;
    round_trip(&mut stream).await.unwrap();
    proxy.set_mode(Mode::Refuse).await.unwrap();
    let error = TcpStream::connect(proxy.address()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    round_trip(&mut stream).await.expect("one that stands goes on");

    proxy.set_mode(Mode::Pass).await.unwrap();
    round_trip(&mut connect(&proxy).await).await.unwrap();
    assert_eq!(proxy.connections(), 2);
}

#[tokio::test]
async fn without_its_server_a_connection_is_closed() {
    // Bound, so that the port is nobody else's, and not listening.
    let nobody = TcpSocket::new_v4().unwrap();
    nobody.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let proxy = Proxy::start(nobody.local_addr().unwrap()).unwrap();
    let mut stream = connect(&proxy).await;
    let ended = timeout(Duration::from_secs(60), stream.read(&mut [0])).await.unwrap();
    assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
}

#[tokio::test]
async fn a_dropped_proxy_is_gone() {
    let proxy = Proxy::start(echo().await).unwrap();
    let address = proxy.address();
    let mut stream = connect(&proxy).await;
    round_trip(&mut stream).await.unwrap();
    drop(proxy);
    let ended = timeout(Duration::from_secs(60), stream.read(&mut [0])).await.unwrap();
    assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
    assert!(TcpStream::connect(address).await.is_err());
}
