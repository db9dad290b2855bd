//! Batches as packets, for tests and trials.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::Geometry;
use super::packet::{Format, HEADER, Header, MOST_BYTES, encode};
use crate::jobs::radar::Shape;
use crate::jobs::radar::scene::Scene;
use crate::{C32, Error, Result};

/// A packet that is sent late is sent behind at most so many others.
const MOST_BEHIND: u32 = 8;
/// Different batches that are made beforehand; they are sent in turns.
const DISTINCT: u64 = 4;

/// What a sender does on purpose, each with a probability.
#[derive(Clone, Copy, Debug, Default, PartialEq, clap::Args)]
pub struct Faults {
    /// Probability that a packet is not sent.
    #[arg(long, value_name = "P", default_value_t = 0.0, allow_negative_numbers = true)]
    pub lose: f64,
    /// Probability that a packet is sent twice.
    #[arg(long, value_name = "P", default_value_t = 0.0, allow_negative_numbers = true)]
    pub repeat: f64,
    /// Probability that a packet is sent after some of those that follow it.
    #[arg(long, value_name = "P", default_value_t = 0.0, allow_negative_numbers = true)]
    pub reorder: f64,
}

/// What a sender did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Packets made, one for each sequence number.
    pub made: u64,
    /// Of these, packets that were not sent.
    pub lost: u64,
    /// Packets sent a second time.
    pub repeated: u64,
    /// Packets kept back, to be sent behind others.
    pub reordered: u64,
}

/// Makes packets of batches.
#[derive(Debug)]
pub struct Packets {
    geometry: Geometry,
    format: Format,
    /// Samples of a packet.
    count: usize,
    faults: Faults,
    random: ChaCha8Rng,
    sequence: u64,
    /// Packets kept back, and for how many others.
    kept: Vec<(u32, Vec<u8>)>,
    sent: Sent,
}

impl Packets {
    /// Packets of at most `bytes` bytes, faults drawn from `seed`.
    ///
    /// # Errors
    /// No sample fits, or more than a packet holds.
    pub fn new(geometry: Geometry, format: Format, bytes: usize, faults: Faults, seed: u64) -> Result<Self> {
        let least = HEADER + format.bytes();
        if !(least..=MOST_BYTES).contains(&bytes) {
            return Err(Error::input(format!(
                "--packet {bytes} is not between {least} and {MOST_BYTES} bytes"
            )));
        }
        for (name, probability) in [
            ("lose", faults.lose),
            ("repeat", faults.repeat),
            ("reorder", faults.reorder),
        ] {
            if !(0.0..=1.0).contains(&probability) {
                return Err(Error::input(format!("--{name} {probability} is not between 0 and 1")));
            }
        }
        Ok(Self {
            geometry,
            format,
            count: ((bytes - HEADER) / format.bytes()).min(geometry.samples),
            faults,
            random: ChaCha8Rng::seed_from_u64(seed),
            sequence: 0,
            kept: Vec::new(),
            sent: Sent::default(),
        })
    }

    /// The packets of a batch in the order in which they are to be sent: as a receiver's channels fill, side by side.
    pub fn batch(&mut self, number: u64, samples: &[C32]) -> Vec<Vec<u8>> {
        let Geometry {
            blocks,
            channels,
            samples: length,
        } = self.geometry;
        let mut out = Vec::new();
        for block in 0..blocks {
            for first in (0..length).step_by(self.count) {
                for channel in 0..channels {
                    let start = (block * channels + channel) * length;
                    let part = &samples[start..start + length];
                    let header = Header {
                        format: self.format,
                        channel: channel as u16,
                        first: first as u32,
                        block: number * blocks as u64 + block as u64,
                        sequence: self.sequence,
                    };
                    self.sequence += 1;
                    let packet = encode(header, &part[first..length.min(first + self.count)]);
                    self.send(packet, &mut out);
                }
            }
        }
        out
    }

    /// The packets that are still kept back.
    pub fn end(&mut self) -> Vec<Vec<u8>> {
        self.kept.drain(..).map(|(_, packet)| packet).collect()
    }

    /// What was done so far.
    pub fn sent(&self) -> Sent {
        self.sent
    }

    fn send(&mut self, packet: Vec<u8>, out: &mut Vec<Vec<u8>>) {
        self.sent.made += 1;
        // one draw each, so that one probability does not change what the others do
        let [lose, repeat, reorder]: [f64; 3] = self.random.random();
        let behind = self.random.random_range(1..=MOST_BEHIND);
        if lose < self.faults.lose {
            self.sent.lost += 1;
            return;
        }
        if repeat < self.faults.repeat {
            self.sent.repeated += 1;
            out.push(packet.clone());
        }
        if reorder < self.faults.reorder {
            self.sent.reordered += 1;
            self.kept.push((behind, packet));
            return;
        }
        out.push(packet);
        for (left, _) in &mut self.kept {
            *left -= 1;
        }
        out.extend(
            self.kept
                .extract_if(.., |(left, _)| *left == 0)
                .map(|(_, packet)| packet),
        );
    }
}

/// Options of `hipcl radar-send`.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    /// Address and port of the receiver.
    #[arg(long, value_name = "ADDR:PORT")]
    pub to: SocketAddr,
    /// Sizes of a batch, as the receiver has them.
    #[command(flatten)]
    pub shape: Shape,
    /// Batches to send.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub batches: u64,
    /// Format of the samples. Those sent as ci16 are divided by 64, because it holds only amplitudes below 1.
    #[arg(long, value_enum, default_value_t = Format::Cf32)]
    pub format: Format,
    /// Largest packet in bytes, without the headers of IP and UDP.
    #[arg(long, value_name = "BYTES", default_value_t = 1440)]
    pub packet: usize,
    /// Rate to send at, in 10^6 bytes per second.
    #[arg(long, value_name = "MB", default_value_t = 50.0, allow_negative_numbers = true)]
    pub speed: f64,
    /// What to do on purpose.
    #[command(flatten)]
    pub faults: Faults,
    /// Seed of the scene and of the faults.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// What samples are divided by where they are sent as ci16: they hold amplitudes below 1, and noise has power 1.
pub const CI16_SCALE: f32 = 64.0;

/// Sends generated batches, and returns a text for the user.
///
/// # Errors
/// Options that make no sense, or the socket refuses.
pub fn run(options: &Options) -> Result<String> {
    options.shape.check()?;
    if !(options.speed.is_finite() && options.speed > 0.0) {
        return Err(Error::input(format!("--speed {} is not a rate above 0", options.speed)));
    }
    let geometry = options.shape.geometry();
    let mut packets = Packets::new(geometry, options.format, options.packet, options.faults, options.seed)?;
    let scene = Scene::random(&options.shape, options.seed);
    let batches: Vec<Vec<C32>> = (0..options.batches.min(DISTINCT))
        .map(|number| {
            let mut samples = scene.batch(&options.shape, number);
            if options.format == Format::Ci16 {
                samples.iter_mut().for_each(|sample| *sample /= CI16_SCALE);
            }
            samples
        })
        .collect();
    let failed = |error: std::io::Error| {
        Error::input(format!(
            "cannot send to {}: {error}; check the address, and whether a receiver listens there",
            options.to
        ))
    };
    let any: SocketAddr = match options.to {
        SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        SocketAddr::V6(_) => ([0u16; 8], 0).into(),
    };
    let socket = UdpSocket::bind(any).map_err(failed)?;
    let start = Instant::now();
    let mut bytes = 0;
    let mut count = 0_u64;
    let mut send = |wire: Vec<Vec<u8>>| -> Result<()> {
        for packet in wire {
            socket.send_to(&packet, options.to).map_err(failed)?;
            bytes += packet.len();
            count += 1;
            let due = Duration::from_secs_f64(bytes as f64 / options.speed / 1e6);
            // the pace of a source of samples; shorter sleeps are not worth their call
            let ahead = due.saturating_sub(start.elapsed());
            if ahead > Duration::from_millis(1) {
                std::thread::sleep(ahead);
            }
        }
        Ok(())
    };
    for (number, samples) in (0..options.batches).zip(batches.iter().cycle()) {
        send(packets.batch(number, samples))?;
    }
    send(packets.end())?;
    let seconds = start.elapsed().as_secs_f64();
    let Sent {
        made,
        lost,
        repeated,
        reordered,
    } = packets.sent();
    let skew: Vec<String> = scene.skew.iter().map(f64::to_string).collect();
    let mut text = format!(
        "sent            {count} packets, {:.1} MB/s; of {made} made, {lost} not sent, {repeated} sent twice, {reordered} sent late\n",
        bytes as f64 / seconds.max(f64::MIN_POSITIVE) / 1e6,
    );
    text += &format!("delays          --delays={}\n", skew.join(","));
    for echo in &scene.echoes {
        text += &format!(
            "echo            {:.3} samples, {:.2} deg, {:.2} dB\n",
            echo.delay,
            echo.sine.asin().to_degrees(),
            20.0 * echo.amplitude.log10()
        );
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::radar::net::assembler::Assembler;

    const GEOMETRY: Geometry = Geometry {
        blocks: 3,
        channels: 2,
        samples: 50,
    };

    fn samples() -> Vec<C32> {
        (0..GEOMETRY.batch()).map(|i| C32::new(i as f32, -1.0)).collect()
    }

    #[test]
    fn without_faults_a_batch_arrives_whole_whatever_the_size_of_its_packets() {
        for bytes in [HEADER + 8, HEADER + 7 * 8, HEADER + 50 * 8 + 3, 9000] {
            let mut packets = Packets::new(GEOMETRY, Format::Cf32, bytes, Faults::default(), 1).expect("packets");
            let memory = || vec![C32::ZERO; GEOMETRY.batch()];
            let mut assembler = Assembler::new(GEOMETRY, vec![memory(), memory()]);
            for packet in packets.batch(7, &samples()) {
                assert!(packet.len() <= bytes);
                assert!(assembler.accept(&packet).expect("memory"));
            }
            let batch = assembler.take().expect("a batch");
            assert_eq!((batch.number, batch.missing, batch.storage), (7, 0, samples()));
        }
    }

    #[test]
    fn faults_come_from_the_seed_and_are_what_was_asked_for() {
        let faults = Faults {
            lose: 0.1,
            repeat: 0.2,
            reorder: 0.3,
        };
        let wire = |faults, seed| {
            let mut packets = Packets::new(GEOMETRY, Format::Ci16, HEADER + 4, faults, seed).expect("packets");
            let mut wire = packets.batch(0, &samples());
            wire.extend(packets.end());
            (wire, packets.sent())
        };
        let (first, sent) = wire(faults, 1);
        assert!(first == wire(faults, 1).0 && first != wire(faults, 2).0);
        assert_eq!(sent.made, 300);
        assert_eq!(first.len() as u64, sent.made - sent.lost + sent.repeated);
        assert!(
            (10..60).contains(&sent.lost) && (30..90).contains(&sent.repeated),
            "{sent:?}"
        );
        assert!((50..120).contains(&sent.reordered), "{sent:?}");
        let (all, sent) = wire(Faults::default(), 1);
        assert_eq!(
            (all.len(), sent),
            (
                300,
                Sent {
                    made: 300,
                    ..Sent::default()
                }
            )
        );
        let (none, sent) = wire(Faults { lose: 1.0, ..faults }, 1);
        assert_eq!((none.len(), sent.lost), (0, 300));
    }

    #[test]
    fn what_no_sender_can_do_is_refused() {
        for bytes in [0, HEADER + 7, MOST_BYTES + 1] {
            let refused = Packets::new(GEOMETRY, Format::Cf32, bytes, Faults::default(), 1);
            assert!(refused.is_err_and(|error| error.to_string().contains("--packet")));
        }
        for lose in [-0.1, 1.1, f64::NAN] {
            let faults = Faults {
                lose,
                ..Faults::default()
            };
            let refused = Packets::new(GEOMETRY, Format::Cf32, 1440, faults, 1);
            assert!(refused.is_err_and(|error| error.to_string().contains("--lose")));
        }
    }
}
