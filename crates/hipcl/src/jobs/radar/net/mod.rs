//! Batches from the network: UDP packets, put together in pinned memory.
//!
//! | file | what |
//! |---|---|
//! | `packet` | the format of a packet, read and written |
//! | `assembler` | packets to batches, in two buffers: what is lost, late, repeated or out of order is counted |
//! | `sequence` | which numbers came |
//! | `receiver` | a thread with a socket and an assembler |
//! | `sender` | a batch as packets, for tests and trials; loses, repeats and reorders on request |
//!
//! The memory that a receiver takes does not depend on what arrives.

use serde::Serialize;

use self::assembler::Storage;
use self::receiver::Receiver;

pub mod assembler;
pub mod packet;
pub mod receiver;
pub mod sender;
mod sequence;

/// Sizes of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Blocks of a batch.
    pub blocks: usize,
    /// Channels of a block.
    pub channels: usize,
    /// Samples of a channel.
    pub samples: usize,
}

impl Geometry {
    /// Samples of a batch.
    pub fn batch(&self) -> usize {
        self.blocks * self.channels * self.samples
    }
}

/// Why a packet cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Shorter than its header, longer than a packet can be, or not as long as its samples.
    Length,
    /// It does not begin with the magic.
    Magic,
    /// A version that is not known.
    Version,
    /// A format of samples that is not known.
    Format,
    /// The reserved field is not zero.
    Reserved,
    /// No channel of the receiver.
    Channel,
    /// Samples beyond the end of a block.
    Range,
    /// A sample that is infinite or no number.
    NotFinite,
}

/// How many packets could not be used, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MalformedCounts {
    /// Shorter than the header, longer than a packet can be, or not as long as the samples.
    pub length: u64,
    /// Without the magic.
    pub magic: u64,
    /// Of an unknown version.
    pub version: u64,
    /// With samples of an unknown format.
    pub format: u64,
    /// With something in the reserved field.
    pub reserved: u64,
    /// Of a channel that the receiver does not have.
    pub channel: u64,
    /// With samples beyond the end of a block.
    pub range: u64,
    /// With a sample that is infinite or no number.
    pub not_finite: u64,
}

impl MalformedCounts {
    pub(super) fn add(&mut self, fault: Malformed) {
        *match fault {
            Malformed::Length => &mut self.length,
            Malformed::Magic => &mut self.magic,
            Malformed::Version => &mut self.version,
            Malformed::Format => &mut self.format,
            Malformed::Reserved => &mut self.reserved,
            Malformed::Channel => &mut self.channel,
            Malformed::Range => &mut self.range,
            Malformed::NotFinite => &mut self.not_finite,
        } += 1;
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        let Self {
            length,
            magic,
            version,
            format,
            reserved,
            channel,
            range,
            not_finite,
        } = self;
        length + magic + version + format + reserved + channel + range + not_finite
    }
}

/// What arrived, and what became of it.
///
/// Each packet is counted once among `accepted`, `malformed`, `foreign`, `duplicates`, `late` and `overruns`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Packets whose samples were taken.
    pub accepted: u64,
    /// Bytes of these packets, headers included.
    pub accepted_bytes: u64,
    /// Packets that could not be used.
    pub malformed: MalformedCounts,
    /// Packets from another address than the first one that was accepted.
    pub foreign: u64,
    /// Packets whose number, or one of whose samples, had come before.
    pub duplicates: u64,
    /// Packets for a batch that had been handed over or given up: dropped.
    pub late: u64,
    /// Packets for which no buffer was free, since the search is slower than they come: dropped.
    pub overruns: u64,
    /// Numbers that never came between the first and the last one that did.
    pub lost: u64,
    /// Packets that came after one with a higher number, duplicates not counted.
    pub reordered: u64,
    /// Batches handed over with all samples.
    pub complete_batches: u64,
    /// Batches handed over with zeros for missing samples.
    pub incomplete_batches: u64,
    /// Batches of which nothing was handed over, between the first and the last that were.
    pub skipped_batches: u64,
    /// Samples replaced by zeros.
    pub missing_samples: u64,
}

impl Counts {
    /// Every packet that arrived.
    pub fn packets(&self) -> u64 {
        self.accepted + self.malformed.total() + self.foreign + self.duplicates + self.late + self.overruns
    }

    /// Whether every sample that was sent was used.
    pub fn is_whole(&self) -> bool {
        self.lost == 0 && self.late == 0 && self.overruns == 0 && self.missing_samples == 0 && self.skipped_batches == 0
    }
}

/// What came from the network, for the report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Network {
    /// The address that was listened to.
    pub address: String,
    /// What arrived, and what became of it.
    #[serde(flatten)]
    pub counts: Counts,
    /// From the first packet that was used to the last, in seconds.
    pub seconds: f64,
    /// Bytes of the packets that were used, by this time, in 10^6 a second.
    pub mb_per_s: f64,
    /// Bytes that the kernel keeps for packets that wait, its own overhead included.
    pub socket_buffer_bytes: usize,
}

impl Network {
    pub(super) fn new<S: Storage + Send + 'static>(receiver: &Receiver<S>) -> Self {
        let received = receiver.received();
        let seconds = received.time.as_secs_f64();
        let megabytes = received.counts.accepted_bytes as f64 / 1e6;
        Self {
            address: receiver.address().to_string(),
            counts: received.counts,
            seconds,
            mb_per_s: if seconds > 0.0 { megabytes / seconds } else { 0.0 },
            socket_buffer_bytes: receiver.socket_buffer(),
        }
    }
}
