//! Batches from the network: what arrives, what does not, and what the radar makes of it. Loopback only; the system
//! chooses the ports.

mod common;

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use common::{files, ready};
use hipcl::C32;
use hipcl::jobs::radar::Shape;
use hipcl::jobs::radar::net::packet::{Format, HEADER};
use hipcl::jobs::radar::net::receiver::Receiver;
use hipcl::jobs::radar::net::sender::{Faults, Packets};
use hipcl::jobs::radar::net::{Counts, Geometry};
use hipcl::jobs::radar::scene::Scene;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const GEOMETRY: Geometry = Geometry {
    blocks: 4,
    channels: 3,
    samples: 100,
};
const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// No test needs nearly so long; one that hangs fails instead.
const FAR: Duration = Duration::from_secs(60);
/// Packets on their way at most, so the socket's buffer holds them all.
const UNDER_WAY: u64 = 16;

fn receiver(limit: Duration) -> Receiver<Vec<C32>> {
    let memory = || vec![C32::ZERO; GEOMETRY.batch()];
    Receiver::start(ANY_PORT, GEOMETRY, vec![memory(), memory()], limit).expect("a receiver")
}

/// A sender that goes on only when what it sent has arrived.
struct Paced<'a> {
    socket: UdpSocket,
    receiver: &'a Receiver<Vec<C32>>,
    sent: &'a std::cell::Cell<u64>,
}

impl Paced<'_> {
    fn send(&self, packets: &[Vec<u8>]) {
        for packet in packets {
            self.socket
                .send_to(packet, self.receiver.address())
                .expect("loopback takes it");
            self.sent.set(self.sent.get() + 1);
            self.wait(UNDER_WAY);
        }
    }

    /// Until at most so many are under way.
    fn wait(&self, left: u64) {
        let start = Instant::now();
        while self.receiver.received().counts.packets() + left < self.sent.get() {
            assert!(start.elapsed() < FAR, "packets got lost on loopback");
            std::thread::yield_now();
        }
    }
}

fn socket() -> UdpSocket {
    UdpSocket::bind(ANY_PORT).expect("a socket")
}

fn batch(number: u64) -> Vec<C32> {
    (0..GEOMETRY.batch())
        .map(|i| C32::new(i as f32 + 1.0, number as f32))
        .collect()
}

/// Losses, repetitions and inversions of a stream of packets, counted from their numbers alone.
fn expected(wire: &[Vec<u8>]) -> (u64, u64, u64) {
    let number = |packet: &Vec<u8>| u64::from_le_bytes(packet[24..32].try_into().expect("8 bytes"));
    let (mut seen, mut highest) = (HashSet::new(), 0);
    let (mut repeated, mut reordered) = (0, 0);
    for number in wire.iter().map(number) {
        if !seen.insert(number) {
            repeated += 1;
        } else if number < highest {
            reordered += 1;
        }
        highest = highest.max(number);
    }
    let lowest = seen.iter().min().expect("a packet");
    (highest - lowest + 1 - seen.len() as u64, repeated, reordered)
}

#[test]
fn what_is_lost_repeated_and_out_of_order_on_the_wire_is_what_is_counted() {
    let faults = Faults {
        lose: 0.05,
        repeat: 0.1,
        reorder: 0.1,
    };
    for (format, seed) in [(Format::Cf32, 1), (Format::Ci16, 2), (Format::Cf32, 3)] {
        let receiver = receiver(FAR);
        let sent = std::cell::Cell::new(0);
        let paced = Paced {
            socket: socket(),
            receiver: &receiver,
            sent: &sent,
        };
        let mut packets = Packets::new(GEOMETRY, format, HEADER + 10 * format.bytes(), faults, seed).expect("packets");
        let mut wire = Vec::new();
        let mut handed = Vec::new();
        for number in 0..20 {
            let samples = batch(number).into_iter().map(|x| x / 2048.0).collect::<Vec<_>>();
            let mut part = packets.batch(number, &samples);
            if number == 19 {
                part.extend(packets.end());
            }
            paced.send(&part);
            paced.wait(0);
            wire.extend(part);
            // what is ready by now is taken, so there is always memory
            let counts = receiver.received().counts;
            while handed.len() < (counts.complete_batches + counts.incomplete_batches) as usize {
                let batch = receiver.next().expect("no error").expect("a batch");
                let wrong = samples_that_differ(&batch.storage, batch.number);
                assert_eq!(wrong, batch.missing, "seed {seed}, batch {}", batch.number);
                handed.push(batch.number);
                receiver.give_back(batch.storage);
            }
        }
        let counts = receiver.received().counts;
        let (lost, repeated, reordered) = expected(&wire);
        assert_eq!((counts.lost, counts.reordered), (lost, reordered), "seed {seed}");
        assert_eq!(counts.duplicates, repeated, "seed {seed}: {counts:?}");
        assert_eq!(counts.packets(), wire.len() as u64);
        assert_eq!((counts.overruns, counts.malformed.total(), counts.foreign), (0, 0, 0));
        assert!(handed.is_sorted() && handed.len() >= 19, "{handed:?}");
        assert!(lost > 0 && repeated > 0 && reordered > 0);
    }
}

/// How many samples of a batch are not those that were sent.
fn samples_that_differ(samples: &[C32], number: u64) -> usize {
    let sent = batch(number);
    // ci16 rounds
    let differ = |(got, sent): &(&C32, &C32)| (*got - *sent / 2048.0).norm() > 1.0 / 32768.0;
    samples.iter().zip(&sent).filter(differ).count()
}

#[test]
fn what_is_no_packet_or_comes_from_elsewhere_is_counted_and_changes_nothing() {
    let receiver = receiver(FAR);
    let sent = std::cell::Cell::new(0);
    let paced = |socket| Paced {
        socket,
        receiver: &receiver,
        sent: &sent,
    };
    let (ours, theirs) = (paced(socket()), paced(socket()));
    let mut packets = Packets::new(GEOMETRY, Format::Cf32, 832, Faults::default(), 1).expect("packets");
    let wire = packets.batch(3, &batch(3));
    // The receiver has accepted no sender yet.
    let mut wrong = wire[0].clone();
    wrong[0] ^= 1;
    let longest = vec![0; 65_507];
    theirs.send(&[Vec::new(), wrong, longest, wire[0][..40].to_vec()]);
    theirs.wait(0);
    ours.send(&wire[..6]);
    ours.wait(0);
    theirs.send(&wire[6..9]);
    theirs.wait(0);
    ours.send(&wire[6..]);
    let whole = receiver.next().expect("no error").expect("a batch");
    assert_eq!((whole.number, whole.missing), (3, 0));
    assert!(whole.storage == batch(3));
    let Counts {
        malformed,
        foreign,
        accepted,
        ..
    } = receiver.received().counts;
    assert_eq!((malformed.magic, malformed.length), (2, 2));
    assert_eq!((foreign, accepted), (3, wire.len() as u64));
}

#[test]
fn without_packets_a_receiver_hands_over_what_it_has_and_ends() {
    let receiver = receiver(Duration::from_millis(300));
    let sent = std::cell::Cell::new(0);
    let paced = Paced {
        socket: socket(),
        receiver: &receiver,
        sent: &sent,
    };
    let mut packets = Packets::new(GEOMETRY, Format::Cf32, 832, Faults::default(), 1).expect("packets");
    paced.send(&packets.batch(0, &batch(0))[..5]);
    let part = receiver.next().expect("no error").expect("what there is");
    assert_eq!((part.number, part.missing), (0, GEOMETRY.batch() - 5 * 100));
    assert!(receiver.next().expect("no error").is_none());
    assert!(receiver.next().expect("no error").is_none());
}

#[test]
fn a_receiver_that_is_not_wanted_any_more_ends_and_frees_its_port() {
    let first = receiver(FAR);
    let address = first.address();
    let taken = Receiver::start(address, GEOMETRY, vec![vec![C32::ZERO; GEOMETRY.batch()]], FAR);
    let error = taken.expect_err("the port is taken").to_string();
    assert!(
        error.contains(&address.to_string()) && error.contains("port 0"),
        "{error}"
    );
    let start = Instant::now();
    drop(first);
    assert!(start.elapsed() < FAR);
    UdpSocket::bind(address).expect("the port is free");
}

/// A small radar, and its options on the command line.
fn shape() -> (Shape, [&'static str; 10]) {
    let shape = Shape {
        blocks: 2,
        channels: 4,
        samples: 600,
        pulse: 160,
        beams: 16,
        ..Shape::default()
    };
    let options = [
        "--blocks",
        "2",
        "--channels",
        "4",
        "--samples",
        "600",
        "--pulse",
        "160",
        "--beams",
        "16",
    ];
    (shape, options)
}

/// `hipcl pipeline radar --udp`, listening.
struct Listening {
    folder: tempfile::TempDir,
    child: Child,
    stdout: BufReader<ChildStdout>,
    address: SocketAddr,
}

impl Listening {
    fn start(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut child = Command::new(env!("CARGO_BIN_EXE_hipcl"))
            .args(["pipeline", "radar", "--udp", "127.0.0.1:0", "--json", "r.json"])
            .args(shape().1)
            .args(options)
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("listening on ").and_then(|it| it.parse().ok());
        let Some(address) = address else {
            let mut error = String::new();
            let stderr = child.stderr.take();
            stderr.expect("a pipe").read_to_string(&mut error).expect("text");
            panic!("no address in {line:?}: {error}");
        };
        Self {
            folder,
            child,
            stdout,
            address,
        }
    }

    /// Status, the report in words, and standard error.
    fn end(&mut self) -> (Option<i32>, String, String) {
        let (mut text, mut error) = (String::new(), String::new());
        self.stdout.read_to_string(&mut text).expect("text");
        let stderr = self.child.stderr.take();
        stderr.expect("a pipe").read_to_string(&mut error).expect("text");
        (self.child.wait().expect("it ends").code(), text, error)
    }

    fn report(&self) -> Value {
        let text = std::fs::read_to_string(self.folder.path().join("r.json")).expect("a report");
        serde_json::from_str(&text).expect("valid JSON")
    }
}

fn delays(scene: &Scene) -> String {
    let delays: Vec<String> = scene.skew.iter().map(f64::to_string).collect();
    format!("--delays={}", delays.join(","))
}

#[test]
fn the_echoes_that_were_sent_are_found_however_the_radar_is_launched() {
    if !ready("the_echoes_that_were_sent_are_found_however_the_radar_is_launched") {
        return;
    }
    let (shape, _) = shape();
    let scene = Scene::random(&shape, 7);
    let delays = delays(&scene);
    for options in [&["--kernels", "stream"][..], &["--kernels", "queue"], &["--graph"]] {
        let mut radar = Listening::start(&[&["--iterations", "1", &delays], options].concat());
        let mut packets = Packets::new(shape.geometry(), Format::Cf32, 9000, Faults::default(), 1).expect("packets");
        let socket = socket();
        // one batch, which the socket's buffer holds
        for packet in packets.batch(0, &scene.batch(&shape, 0)) {
            socket.send_to(&packet, radar.address).expect("loopback takes it");
        }
        let (status, text, error) = radar.end();
        assert_eq!(status, Some(0), "{options:?}: {text}{error}");
        let report = radar.report();
        assert_eq!(report["verified"], true);
        assert_eq!(
            (&report["host_copies_bytes"], &report["iterations"]),
            (&0.into(), &1.into())
        );
        assert!(report["truth_ok"].is_null());
        // the upload, and no more
        assert_eq!(report["input_bytes"], shape.geometry().batch() * 8);
        let targets = report["targets"].as_array().expect("a list");
        assert_eq!(targets.len(), scene.echoes.len(), "{report}");
        for echo in &scene.echoes {
            let near = |target: &&Value| (target["delay_samples"].as_f64().unwrap_or(0.0) - echo.delay).abs() < 0.25;
            assert_eq!(targets.iter().filter(near).count(), 1, "{echo:?} in {report}");
        }
        let network = &report["network"];
        for (key, value) in [("accepted", 8), ("lost", 0), ("complete_batches", 1), ("overruns", 0)] {
            assert_eq!(network[key], value, "{key} in {network}");
        }
        assert!(text.contains("MB/s sustained"), "{text}");
    }
}

#[test]
fn what_the_sending_command_did_is_what_the_receiving_one_reports() {
    if !ready("what_the_sending_command_did_is_what_the_receiving_one_reports") {
        return;
    }
    // more batches than are sent: it ends by the time limit
    let mut radar = Listening::start(&["--iterations", "100", "--timeout", "2"]);
    let sender = Command::new(env!("CARGO_BIN_EXE_hipcl"))
        .args(["radar-send", "--to", &radar.address.to_string(), "--batches", "4"])
        .args(shape().1)
        .args(["--format", "ci16", "--speed", "1", "--packet", "1440"])
        .args(["--lose", "0.1", "--repeat", "0.1", "--reorder", "0.1"])
        .output()
        .expect("the command starts");
    let said = String::from_utf8(sender.stdout).expect("text");
    assert!(sender.status.success(), "{said}");
    let (status, text, error) = radar.end();
    assert_eq!(status, Some(0), "{text}{error}");
    let report = radar.report();
    let network = &report["network"];
    let count = |key: &str| network[key].as_u64().expect("a number");
    let said_sent: u64 = said
        .split_whitespace()
        .nth(1)
        .and_then(|it| it.parse().ok())
        .expect("a number");
    let all = count("accepted") + count("duplicates") + count("late") + count("overruns");
    assert_eq!((all, count("foreign")), (said_sent, 0), "{said}{network}");
    assert!(
        count("lost") > 0 && count("duplicates") > 0 && count("reordered") > 0,
        "{network}"
    );
    assert_eq!(count("complete_batches") + count("incomplete_batches"), 4, "{network}");
    assert_eq!(report["iterations"], 4);
    assert_eq!(report["verified"], true);
    let notes = report["notes"].to_string();
    assert!(notes.contains("ended after 4 of 100"), "{notes}");
}

#[test]
fn without_a_sender_the_radar_says_so_and_writes_nothing() {
    if !ready("without_a_sender_the_radar_says_so_and_writes_nothing") {
        return;
    }
    let mut radar = Listening::start(&["--timeout", "0.1"]);
    let (status, text, error) = radar.end();
    assert_eq!((status, text.as_str()), (Some(2), ""), "{error}");
    let address = radar.address.to_string();
    assert!(
        error.lines().count() == 1 && error.contains("no packet came"),
        "{error}"
    );
    assert!(error.contains(&address) && error.contains("0.1 s"), "{error}");
    assert_eq!(files(radar.folder.path()), [""; 0]);

    let mut radar = Listening::start(&["--timeout", "1"]);
    socket().send_to(b"hello", radar.address).expect("loopback takes it");
    let (status, _, error) = radar.end();
    assert_eq!(status, Some(2));
    assert!(error.contains("of 1 packets 1 were malformed"), "{error}");
}

#[test]
fn a_signal_ends_a_radar_that_waits_and_leaves_nothing_behind() {
    if !ready("a_signal_ends_a_radar_that_waits_and_leaves_nothing_behind") {
        return;
    }
    for signal in [Signal::INT, Signal::TERM] {
        let mut radar = Listening::start(&["--timeout", "1000"]);
        kill_process(Pid::from_child(&radar.child), signal).expect("a living process");
        let (status, text, _) = radar.end();
        assert_ne!(status, Some(0));
        assert_eq!((text.as_str(), files(radar.folder.path())), ("", Vec::new()));
        UdpSocket::bind(radar.address).expect("the port is free");
    }
}
