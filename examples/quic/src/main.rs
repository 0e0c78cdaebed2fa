//! A bulk transfer over QUIC (quinn), whose congestion control can be chosen: `quic-transfer server ADDRESS:PORT`, and
//! `quic-transfer client ADDRESS:PORT cubic|newreno|bbr SECONDS`, which sends as much as it may for so long.
//!
//! The client prints what the server received, in the form of `iperf3 -J`: an object with `intervals` and `end`.

use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn::{ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig, VarInt};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

type Fault = Box<dyn Error + Send + Sync>;

const USAGE: &str =
    "usage: quic-transfer server ADDRESS:PORT | client ADDRESS:PORT cubic|newreno|bbr SECONDS";
/// How often the server notes what it has received.
const INTERVAL: Duration = Duration::from_millis(100);
/// Bytes of the receiver's window, which does not hold the sender back.
const WINDOW: u32 = 64 << 20;
/// Bytes that are written and not yet acknowledged: enough for 100 Mbit/s and 40 ms, and sent within a second at 5 Mbit/s.
const UNDER_WAY: u64 = 1 << 19;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Fault::from)
        .and_then(|runtime| runtime.block_on(run(&words)));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quic-transfer: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(words: &[&str]) -> Result<(), Fault> {
    match words {
        ["server", address] => serve(address.parse()?).await,
        ["client", address, control, seconds] => {
            let seconds: f64 = seconds.parse()?;
            send(address.parse()?, control, Duration::try_from_secs_f64(seconds)?).await
        }
        _ => Err(USAGE.into()),
    }
}

/// The certificate's key is made anew for each server; the client is told to trust nobody and checks nothing.
async fn serve(address: SocketAddr) -> Result<(), Fault> {
    let own = rcgen::generate_simple_self_signed(vec!["bakeoff".into()])?;
    let key = PrivatePkcs8KeyDer::from(own.signing_key.serialize_der());
    let mut config = ServerConfig::with_single_cert(vec![own.cert.der().clone()], key.into())?;
    config.transport_config(Arc::new(transport(Arc::new(CubicConfig::default()))));
    let endpoint = Endpoint::server(config, address)?;
    while let Some(incoming) = endpoint.accept().await {
        receive(incoming.await?).await?;
    }
    Ok(())
}

/// Takes one stream to its end, and answers with what came of it in each interval.
async fn receive(connection: Connection) -> Result<(), Fault> {
    let mut stream = connection.accept_uni().await?;
    let start = Instant::now();
    let (mut intervals, mut bytes, mut total, mut from) = (Vec::new(), 0u64, 0u64, 0.0);
    let mut next = start + INTERVAL;
    loop {
        let chunk = tokio::select! {
            biased;
            () = sleep_until(next) => {
                let to = (next - start).as_secs_f64();
                intervals.push(interval(from, to, bytes));
                (bytes, from, next) = (0, to, next + INTERVAL);
                continue;
            }
            chunk = stream.read_chunk(1 << 20, false) => chunk?,
        };
        let Some(chunk) = chunk else { break };
        bytes += chunk.bytes.len() as u64;
        total += chunk.bytes.len() as u64;
    }
    let seconds = start.elapsed().as_secs_f64();
    let told = json!({"intervals": intervals, "end": {"sum_received": {"bytes": total, "seconds": seconds}}});
    let mut answer = connection.open_uni().await?;
    answer.write_all(told.to_string().as_bytes()).await?;
    answer.finish()?;
    connection.closed().await;
    Ok(())
}

fn interval(from: f64, to: f64, bytes: u64) -> Value {
    let rate = bytes as f64 * 8.0 / (to - from);
    json!({"sum": {"start": from, "end": to, "bytes": bytes, "bits_per_second": rate}})
}

async fn send(address: SocketAddr, control: &str, during: Duration) -> Result<(), Fault> {
    let factory: Arc<dyn ControllerFactory + Send + Sync> = match control {
        "cubic" => Arc::new(CubicConfig::default()),
        "newreno" => Arc::new(NewRenoConfig::default()),
        "bbr" => Arc::new(BbrConfig::default()),
        _ => return Err(format!("'{control}' is no congestion control of quinn; {USAGE}").into()),
    };
    let crypto = rustls::ClientConfig::builder()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody))
        .with_no_client_auth();
    let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(crypto)?;
    let mut config = ClientConfig::new(Arc::new(crypto));
    config.transport_config(Arc::new(transport(factory)));
    let endpoint = Endpoint::client((std::net::Ipv4Addr::UNSPECIFIED, 0).into())?;
    let connection = endpoint.connect_with(config, address, "bakeoff")?.await?;
    let mut stream = connection.open_uni().await?;
    let end = Instant::now() + during;
    let data = vec![0; 64 << 10];
    while Instant::now() < end {
        tokio::select! {
            written = stream.write_all(&data) => written?,
            () = sleep_until(end) => {}
        }
    }
    // What is in flight or waits to be sent is not awaited: the end of the stream follows what was written.
    stream.finish()?;
    let mut answer = connection.accept_uni().await?;
    let told = answer.read_to_end(64 << 20).await?;
    let mut told: Value = serde_json::from_slice(&told)?;
    let path = connection.stats().path;
    told["end"]["sender_tcp_congestion"] = json!(format!("quinn-{control}"));
    told["end"]["quic"] = json!({
        "cwnd": path.cwnd, "congestion_events": path.congestion_events, "lost_packets": path.lost_packets,
        "sent_packets": path.sent_packets, "rtt_s": path.rtt.as_secs_f64(),
    });
    println!("{told}");
    connection.close(VarInt::from_u32(0), b"");
    endpoint.wait_idle().await;
    Ok(())
}

fn transport(control: Arc<dyn ControllerFactory + Send + Sync>) -> TransportConfig {
    let mut config = TransportConfig::default();
    config.congestion_controller_factory(control);
    config.send_window(UNDER_WAY);
    config.receive_window(VarInt::from_u32(WINDOW));
    config.stream_receive_window(VarInt::from_u32(WINDOW));
    // The probing for a larger packet would begin each run with a number of losses of its own.
    config.mtu_discovery_config(None);
    config.initial_mtu(1452);
    config
}

/// Takes any certificate: nobody else is in the network.
#[derive(Debug)]
struct Anybody;

impl rustls::client::danger::ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &rustls::pki_types::ServerName<'_>,
        _: &[u8],
        _: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        rustls::crypto::ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}
