//! Packets to batches.

use std::collections::VecDeque;

use hip::PinnedBuffer;

use super::packet::Packet;
use super::sequence::{Arrival, Sequence};
use super::{Counts, Geometry};
use crate::{C32, Result};

/// Memory for the samples of a batch.
pub trait Storage {
    /// The samples, `[block][channel][sample]`.
    ///
    /// # Errors
    /// The memory can't be used.
    fn samples(&mut self) -> Result<&mut [C32]>;
}

impl Storage for PinnedBuffer<C32> {
    fn samples(&mut self) -> Result<&mut [C32]> {
        Ok(self.host_mut()?)
    }
}

impl Storage for Vec<C32> {
    fn samples(&mut self) -> Result<&mut [C32]> {
        Ok(self)
    }
}

/// A batch that was handed over.
#[derive(Debug)]
pub struct Batch<S> {
    /// Its number: that of its first block, divided by the blocks of a batch.
    pub number: u64,
    /// Its samples; missing ones are 0.
    pub storage: S,
    /// How many are missing.
    pub missing: usize,
}

/// A batch that is being filled.
struct Filling<S> {
    number: u128,
    storage: S,
    /// A bit for each sample that came.
    came: Vec<u64>,
    missing: usize,
}

/// Puts batches together, two at a time.
///
/// A batch is handed over when it is complete; or when half of the next one has come, which leaves as much time for
/// packets that are out of order. Then zeros stand for what is missing.
pub struct Assembler<S> {
    geometry: Geometry,
    counts: Counts,
    sequence: Sequence,
    free: Vec<S>,
    /// A spare record of what came for each free storage.
    records: Vec<Vec<u64>>,
    /// The lowest batch that was not handed over or given up, once a packet was accepted; only it and the next are open.
    next: Option<u128>,
    open: VecDeque<Filling<S>>,
    ready: VecDeque<Batch<S>>,
}

impl<S: Storage> Assembler<S> {
    /// For batches of this size, in this memory: two buffers, or as many as are to wait for the search.
    pub fn new(geometry: Geometry, storage: Vec<S>) -> Self {
        let words = geometry.batch().div_ceil(64);
        Self {
            geometry,
            counts: Counts::default(),
            sequence: Sequence::default(),
            records: storage.iter().map(|_| vec![0; words]).collect(),
            free: storage,
            next: None,
            open: VecDeque::new(),
            ready: VecDeque::new(),
        }
    }

    /// What arrived so far, and what became of it.
    pub fn counts(&self) -> Counts {
        Counts {
            lost: self.sequence.lost(),
            ..self.counts
        }
    }

    /// Counts a packet that came from someone else.
    pub fn refuse_foreign(&mut self) {
        self.counts.foreign += 1;
    }

    /// Takes memory back.
    pub fn give_back(&mut self, storage: S) {
        self.free.push(storage);
    }

    /// The next batch that is ready.
    pub fn take(&mut self) -> Option<Batch<S>> {
        self.ready.pop_front()
    }

    /// Takes a packet, and returns whether its samples were used.
    ///
    /// # Errors
    /// The memory can't be used.
    pub fn accept(&mut self, bytes: &[u8]) -> Result<bool> {
        let packet = match Packet::parse(bytes, &self.geometry) {
            Ok(packet) => packet,
            Err(fault) => {
                self.counts.malformed.add(fault);
                return Ok(false);
            }
        };
        match self.sequence.note(packet.header.sequence) {
            Arrival::Again => {
                self.counts.duplicates += 1;
                return Ok(false);
            }
            Arrival::Behind | Arrival::Unknown => self.counts.reordered += 1,
            Arrival::Newest => {}
        }
        let blocks = self.geometry.blocks as u64;
        let number = packet.header.block / blocks;
        let number = u128::from(number);
        if *self.next.get_or_insert(number) > number {
            self.counts.late += 1;
            return Ok(false);
        }
        self.advance(number)?;
        let Some(at) = self.place(number) else {
            self.counts.overruns += 1;
            return Ok(false);
        };
        if !self.fill(at, &packet)? {
            self.counts.duplicates += 1;
            return Ok(false);
        }
        self.counts.accepted += 1;
        self.counts.accepted_bytes += bytes.len() as u64;

        let filling = &self.open[at];
        let (all, missing) = (self.geometry.batch(), filling.missing);
        if 2 * missing <= all {
            // closes what is before it
            while self.next.is_some_and(|next| next < number) {
                self.close_next()?;
            }
        }
        if missing == 0 {
            self.close_next()?;
        }
        Ok(true)
    }

    /// Hands over what there is of the open batches.
    ///
    /// # Errors
    /// The memory can't be used.
    pub fn flush(&mut self) -> Result<()> {
        while !self.open.is_empty() {
            self.close_next()?;
        }
        Ok(())
    }

    /// Closes batches until this one may be open.
    fn advance(&mut self, number: u128) -> Result<()> {
        while let Some(next) = self.next
            && number - next > 1
        {
            if self.open.is_empty() {
                self.skip(number - next);
                self.next = Some(number);
            } else {
                self.close_next()?;
            }
        }
        Ok(())
    }

    /// Where the batch is among the open ones; none if there is no memory for it.
    fn place(&mut self, number: u128) -> Option<usize> {
        if let Some(at) = self.open.iter().position(|filling| filling.number == number) {
            return Some(at);
        }
        let storage = self.free.pop()?;
        let mut came = self.records.pop().unwrap_or_default();
        came.clear();
        came.resize(self.geometry.batch().div_ceil(64), 0);
        let at = self.open.iter().take_while(|other| other.number < number).count();
        self.open.insert(
            at,
            Filling {
                number,
                storage,
                came,
                missing: self.geometry.batch(),
            },
        );
        Some(at)
    }

    /// Writes the samples of a packet, unless one of them is there.
    fn fill(&mut self, at: usize, packet: &Packet<'_>) -> Result<bool> {
        let Geometry {
            blocks,
            channels,
            samples,
        } = self.geometry;
        let header = packet.header;
        let block = (header.block % blocks as u64) as usize;
        let row = block * channels + usize::from(header.channel);
        let start = row * samples + header.first as usize;
        let filling = &mut self.open[at];
        let range = start..start + packet.count;
        if range.clone().any(|i| filling.came[i / 64] >> (i % 64) & 1 == 1) {
            return Ok(false);
        }
        let place = &mut filling.storage.samples()?[range.clone()];
        for (place, sample) in place.iter_mut().zip(packet.samples()) {
            *place = sample;
        }
        range.for_each(|i| filling.came[i / 64] |= 1 << (i % 64));
        filling.missing -= packet.count;
        Ok(true)
    }

    fn skip(&mut self, batches: u128) {
        let batches = u64::try_from(batches).unwrap_or(u64::MAX);
        self.counts.skipped_batches = self.counts.skipped_batches.saturating_add(batches);
    }

    /// Hands over the lowest batch that may be open, or gives it up if nothing of it came.
    fn close_next(&mut self) -> Result<()> {
        let Some(next) = self.next else { return Ok(()) };
        self.next = Some(next + 1);
        let Some(mut filling) = self.open.pop_front_if(|filling| filling.number == next) else {
            self.skip(1);
            return Ok(());
        };
        if filling.missing > 0 {
            let samples = filling.storage.samples()?;
            for (i, sample) in samples.iter_mut().enumerate() {
                if filling.came[i / 64] >> (i % 64) & 1 == 0 {
                    *sample = C32::ZERO;
                }
            }
            self.counts.incomplete_batches += 1;
            self.counts.missing_samples += filling.missing as u64;
        } else {
            self.counts.complete_batches += 1;
        }
        self.records.push(filling.came);
        self.ready.push_back(Batch {
            number: filling.number as u64,
            storage: filling.storage,
            missing: filling.missing,
        });
        Ok(())
    }
}

impl<S> std::fmt::Debug for Assembler<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Assembler")
            .field("geometry", &self.geometry)
            .field("counts", &self.counts)
            .field("open", &self.open.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::packet::{Format, Header, encode};
    use super::*;

    const GEOMETRY: Geometry = Geometry {
        blocks: 2,
        channels: 2,
        samples: 6,
    };
    /// Packets of three samples for a batch.
    const PER_BATCH: u64 = 8;

    fn sample(index: u64) -> C32 {
        C32::new(index as f32, 1.0)
    }

    /// The packet with this number of an endless stream, three samples each.
    fn packet(sequence: u64) -> Vec<u8> {
        let (block, rest) = (sequence / 4, sequence % 4);
        let header = Header {
            format: Format::Cf32,
            channel: (rest % 2) as u16,
            first: 3 * (rest / 2) as u32,
            block,
            sequence,
        };
        let samples: Vec<C32> = (0..3).map(|i| sample(3 * sequence + i)).collect();
        encode(header, &samples)
    }

    /// What a whole batch holds, in the order of the storage.
    fn whole(number: u64) -> Vec<C32> {
        let mut samples = vec![C32::ZERO; GEOMETRY.batch()];
        for sequence in number * PER_BATCH..(number + 1) * PER_BATCH {
            let bytes = packet(sequence);
            let packet = Packet::parse(&bytes, &GEOMETRY).expect("a packet");
            let row = (packet.header.block % 2) as usize * 2 + usize::from(packet.header.channel);
            let start = row * 6 + packet.header.first as usize;
            samples[start..start + 3].copy_from_slice(&packet.samples().collect::<Vec<_>>());
        }
        samples
    }

    fn assembler() -> Assembler<Vec<C32>> {
        let stale = vec![C32::new(f32::NAN, 0.0); GEOMETRY.batch()];
        Assembler::new(GEOMETRY, vec![stale.clone(), stale])
    }

    fn accept(assembler: &mut Assembler<Vec<C32>>, packets: impl IntoIterator<Item = u64>) {
        for sequence in packets {
            assembler.accept(&packet(sequence)).expect("memory");
        }
    }

    /// Takes what is ready, and gives the memory back.
    fn drain(assembler: &mut Assembler<Vec<C32>>) -> Vec<(u64, usize, Vec<C32>)> {
        std::iter::from_fn(|| {
            let batch = assembler.take()?;
            let samples = batch.storage.clone();
            assembler.give_back(batch.storage);
            Some((batch.number, batch.missing, samples))
        })
        .collect()
    }

    #[test]
    fn whole_batches_come_out_as_they_were_sent_in_whatever_order_their_packets_came() {
        let mut assembler = assembler();
        accept(&mut assembler, [3, 1, 0, 2, 6, 5, 4, 7]);
        assert_eq!(drain(&mut assembler), [(0, 0, whole(0))]);
        accept(&mut assembler, [8, 9, 10, 11, 12, 13, 16, 14, 15]);
        assert_eq!(drain(&mut assembler), [(1, 0, whole(1))]);
        let counts = assembler.counts();
        // 1, 0, 2, 5, 4, 14 and 15
        assert_eq!((counts.accepted, counts.reordered, counts.complete_batches), (17, 7, 2));
        assert!(counts.is_whole() && counts.packets() == 17, "{counts:?}");
        assert_eq!(counts.accepted_bytes, 17 * (32 + 24));
    }

    #[test]
    fn a_batch_with_a_hole_waits_for_half_of_the_next_and_gets_zeros() {
        let mut assembler = assembler();
        accept(&mut assembler, (0..8).filter(|&n| n != 5).chain(8..11));
        assert_eq!(drain(&mut assembler), []);
        accept(&mut assembler, [11]);
        let mut expected = whole(0);
        let missing = packet(5);
        let missing = Packet::parse(&missing, &GEOMETRY).expect("a packet");
        let row = 2 + usize::from(missing.header.channel);
        let start = row * 6 + missing.header.first as usize;
        expected[start..start + 3].fill(C32::ZERO);
        assert_eq!(drain(&mut assembler), [(0, 3, expected)]);
        assert_eq!(assembler.counts().lost, 1);
        // too late now
        accept(&mut assembler, [5]);
        let counts = assembler.counts();
        assert_eq!(
            (counts.late, counts.lost, counts.reordered, counts.missing_samples),
            (1, 0, 1, 3)
        );
        assert!(!counts.is_whole());
    }

    #[test]
    fn a_packet_that_comes_again_changes_nothing() {
        let mut assembler = assembler();
        accept(&mut assembler, [0, 0, 1, 2, 1, 3, 4, 5, 6]);
        // the same samples under another number
        let mut other = packet(2);
        other[24..32].copy_from_slice(&500u64.to_le_bytes());
        assert!(!assembler.accept(&other).expect("memory"));
        accept(&mut assembler, [7, 7]);
        assert_eq!(drain(&mut assembler), [(0, 0, whole(0))]);
        assert_eq!((assembler.counts().duplicates, assembler.counts().accepted), (4, 8));
    }

    #[test]
    fn without_memory_packets_are_dropped_and_counted_until_there_is_some() {
        let mut assembler = assembler();
        accept(&mut assembler, 0..20);
        let counts = assembler.counts();
        assert_eq!((counts.accepted, counts.overruns, counts.complete_batches), (16, 4, 2));
        assert_eq!(drain(&mut assembler).len(), 2);
        accept(&mut assembler, 20..24);
        // half of it is there
        assembler.flush().expect("memory");
        let batches = drain(&mut assembler);
        assert_eq!((batches[0].0, batches[0].1, batches.len()), (2, 12, 1));
        accept(&mut assembler, 24..32);
        assert_eq!(drain(&mut assembler), [(3, 0, whole(3))]);
    }

    #[test]
    fn a_gap_of_batches_is_skipped_at_once_however_long() {
        let mut assembler = assembler();
        accept(&mut assembler, 0..3);
        let mut far = packet(400_000);
        far[16..24].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(assembler.accept(&far).expect("memory"));
        let batches = drain(&mut assembler);
        assert_eq!((batches[0].0, batches[0].1, batches.len()), (0, 15, 1));
        assert_eq!(assembler.counts().skipped_batches, u64::MAX / 2 - 1);
        assembler.flush().expect("memory");
        assert_eq!(drain(&mut assembler).len(), 1);
        accept(&mut assembler, 3..8);
        assert_eq!(assembler.counts().late, 5);
    }

    #[test]
    fn what_is_no_packet_is_counted_and_changes_nothing() {
        let mut assembler = assembler();
        accept(&mut assembler, 0..7);
        let mut wrong = packet(7);
        wrong[0] = 0;
        for bytes in [&wrong[..], &[], &wrong[..31]] {
            assert!(!assembler.accept(bytes).expect("memory"));
        }
        assembler.refuse_foreign();
        accept(&mut assembler, [7]);
        assert_eq!(drain(&mut assembler), [(0, 0, whole(0))]);
        let counts = assembler.counts();
        assert_eq!(
            (counts.malformed.magic, counts.malformed.length, counts.foreign),
            (1, 2, 1)
        );
        assert_eq!(counts.packets(), 12);
    }

    proptest! {
        /// Whatever arrives: no panic, every packet is counted once, memory comes back, and each sample that is handed
        /// over is the one that was sent there, or 0.
        #[test]
        fn any_stream_is_accounted_for(
            steps in prop::collection::vec((0..80u64, any::<bool>(), prop::option::of((0..56usize, any::<u8>()))), 1..300),
        ) {
            let mut assembler = assembler();
            let mut handed = 0;
            for (index, (sequence, take, damage)) in steps.iter().enumerate() {
                let mut bytes = packet(*sequence);
                if let Some((at, value)) = damage {
                    bytes[*at] = *value;
                }
                let before = assembler.counts();
                assembler.accept(&bytes).expect("memory");
                prop_assert_eq!(assembler.counts().packets(), index as u64 + 1);
                prop_assert!(assembler.counts().accepted >= before.accepted);
                if *take {
                    handed += drain(&mut assembler).len();
                }
                prop_assert!(assembler.open.len() + assembler.ready.len() + assembler.free.len() == 2);
            }
            assembler.flush().expect("memory");
            handed += drain(&mut assembler).len();
            let counts = assembler.counts();
            prop_assert_eq!(counts.complete_batches + counts.incomplete_batches, handed as u64);
            prop_assert_eq!(assembler.free.len(), 2);
        }

        #[test]
        fn a_batch_holds_what_was_sent_or_zero(
            order in prop::collection::vec(0..40u64, 1..200),
        ) {
            let mut assembler = assembler();
            let mut last = None;
            for sequence in order {
                accept(&mut assembler, [sequence]);
                for (number, missing, samples) in drain(&mut assembler) {
                    prop_assert!(last < Some(number), "handed over out of order");
                    last = Some(number);
                    let expected = whole(number);
                    let zeros = samples.iter().filter(|&&x| x == C32::ZERO).count();
                    prop_assert_eq!(zeros, missing);
                    prop_assert!(samples.iter().zip(&expected).all(|(got, sent)| got == sent || *got == C32::ZERO));
                }
            }
        }
    }
}
