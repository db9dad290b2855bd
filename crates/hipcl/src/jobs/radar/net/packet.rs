//! The packets: a header of 32 bytes and samples, all little endian.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 4 | magic, the characters `HRAD` |
//! | 4 | 1 | version, 1 |
//! | 5 | 1 | format of the samples: 0 is cf32, 1 is ci16 |
//! | 6 | 2 | channel, from 0 |
//! | 8 | 4 | position of the first sample in its block |
//! | 12 | 2 | number of samples, 1 or more |
//! | 14 | 2 | zero |
//! | 16 | 8 | block, counted from any number on |
//! | 24 | 8 | sequence: one more for each packet that the sender makes, over all channels |
//! | 32 | | the samples, real part first: two `f32`, or two `i16` in units of 2^-15 |

use super::{Geometry, Malformed};
use crate::C32;

/// Length of the header.
pub const HEADER: usize = 32;
/// More than a packet of UDP over IPv4 holds does not arrive.
pub const MOST_BYTES: usize = 65_507;
const MAGIC: [u8; 4] = *b"HRAD";
const VERSION: u8 = 1;
/// What an `i16` is divided by.
const FULL_SCALE: f32 = 32_768.0;

/// How samples are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Two `f32` a sample.
    #[default]
    Cf32,
    /// Two `i16` a sample, in units of 2^-15.
    Ci16,
}

impl Format {
    /// Bytes of a sample.
    pub fn bytes(self) -> usize {
        match self {
            Self::Cf32 => 8,
            Self::Ci16 => 4,
        }
    }
}

/// What a packet says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// How the samples are sent.
    pub format: Format,
    /// Their channel.
    pub channel: u16,
    /// Position of the first one in the block.
    pub first: u32,
    /// Their block.
    pub block: u64,
    /// Number of the packet.
    pub sequence: u64,
}

/// A packet that fits the receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packet<'a> {
    /// What it says of itself.
    pub header: Header,
    /// Number of its samples.
    pub count: usize,
    payload: &'a [u8],
}

fn bytes<const N: usize>(packet: &[u8], at: usize) -> Option<[u8; N]> {
    packet.get(at..)?.first_chunk().copied()
}

impl<'a> Packet<'a> {
    /// Reads a packet for a receiver with these sizes.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn parse(packet: &'a [u8], geometry: &Geometry) -> Result<Self, Malformed> {
        let short = Malformed::Length;
        if packet.len() < HEADER || packet.len() > MOST_BYTES {
            return Err(short);
        }
        if bytes(packet, 0).ok_or(short)? != MAGIC {
            return Err(Malformed::Magic);
        }
        let [version, format] = bytes(packet, 4).ok_or(short)?;
        if version != VERSION {
            return Err(Malformed::Version);
        }
        let format = match format {
            0 => Format::Cf32,
            1 => Format::Ci16,
            _ => return Err(Malformed::Format),
        };
        let header = Header {
            format,
            channel: u16::from_le_bytes(bytes(packet, 6).ok_or(short)?),
            first: u32::from_le_bytes(bytes(packet, 8).ok_or(short)?),
            block: u64::from_le_bytes(bytes(packet, 16).ok_or(short)?),
            sequence: u64::from_le_bytes(bytes(packet, 24).ok_or(short)?),
        };
        let count = usize::from(u16::from_le_bytes(bytes(packet, 12).ok_or(short)?));
        if bytes(packet, 14).ok_or(short)? != [0, 0] {
            return Err(Malformed::Reserved);
        }
        let payload = packet.get(HEADER..).ok_or(short)?;
        if count == 0 || payload.len() != count * format.bytes() {
            return Err(short);
        }
        if usize::from(header.channel) >= geometry.channels {
            return Err(Malformed::Channel);
        }
        if header.first as usize >= geometry.samples || count > geometry.samples - header.first as usize {
            return Err(Malformed::Range);
        }
        let packet = Self { header, count, payload };
        if format == Format::Cf32 && packet.samples().any(|x| !(x.re.is_finite() && x.im.is_finite())) {
            return Err(Malformed::NotFinite);
        }
        Ok(packet)
    }

    /// The samples.
    pub fn samples(&self) -> impl ExactSizeIterator<Item = C32> + 'a {
        let format = self.header.format;
        self.payload
            .chunks_exact(format.bytes())
            .map(move |sample| match (format, sample) {
                (Format::Cf32, &[a, b, c, d, e, f, g, h]) => {
                    C32::new(f32::from_le_bytes([a, b, c, d]), f32::from_le_bytes([e, f, g, h]))
                }
                (Format::Ci16, &[a, b, c, d]) => {
                    let part = |bytes| f32::from(i16::from_le_bytes(bytes)) / FULL_SCALE;
                    C32::new(part([a, b]), part([c, d]))
                }
                _ => unreachable!("chunks have the size of a sample"),
            })
    }
}

/// A packet with these samples (1 to 65535) for [`Packet::parse`].
pub fn encode(header: Header, samples: &[C32]) -> Vec<u8> {
    let mut packet = Vec::with_capacity(HEADER + samples.len() * header.format.bytes());
    packet.extend(MAGIC);
    packet.extend([VERSION, header.format as u8]);
    packet.extend(header.channel.to_le_bytes());
    packet.extend(header.first.to_le_bytes());
    packet.extend((samples.len() as u16).to_le_bytes());
    packet.extend([0, 0]);
    packet.extend(header.block.to_le_bytes());
    packet.extend(header.sequence.to_le_bytes());
    for sample in samples {
        for part in [sample.re, sample.im] {
            match header.format {
                Format::Cf32 => packet.extend(part.to_le_bytes()),
                // out of range saturates
                Format::Ci16 => packet.extend(((part * FULL_SCALE).round() as i16).to_le_bytes()),
            }
        }
    }
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEOMETRY: Geometry = Geometry {
        blocks: 2,
        channels: 3,
        samples: 10,
    };

    fn header(format: Format) -> Header {
        Header {
            format,
            channel: 2,
            first: 4,
            block: 0x0102_0304_0506_0708,
            sequence: 77,
        }
    }

    fn samples(count: usize) -> Vec<C32> {
        (0..count).map(|i| C32::new(i as f32 / 16.0, -0.25)).collect()
    }

    #[test]
    fn what_was_encoded_is_read() {
        for format in [Format::Cf32, Format::Ci16] {
            let bytes = encode(header(format), &samples(6));
            assert_eq!(bytes.len(), HEADER + 6 * format.bytes());
            let packet = Packet::parse(&bytes, &GEOMETRY).expect("a packet");
            assert_eq!(packet.header, header(format));
            assert_eq!(packet.samples().collect::<Vec<_>>(), samples(6));
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_description() {
        let bytes = encode(header(Format::Ci16), &[C32::new(0.5, -1.0)]);
        let expected = [
            b'H', b'R', b'A', b'D', 1, 1, 2, 0, 4, 0, 0, 0, 1, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1, 77, 0, 0, 0, 0, 0, 0,
            0, 0x00, 0x40, 0x00, 0x80,
        ];
        assert_eq!(bytes, expected);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_a_packet_or_refused(
            is_marked in proptest::bool::ANY,
            mut bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200),
        ) {
            if is_marked && bytes.len() >= 6 {
                bytes[..6].copy_from_slice(b"HRAD\x01\x01");
            }
            if let Ok(packet) = Packet::parse(&bytes, &GEOMETRY) {
                proptest::prop_assert_eq!(packet.samples().len(), packet.count);
            }
        }
    }

    #[test]
    fn each_fault_of_a_packet_has_its_name() {
        let good = encode(header(Format::Cf32), &samples(6));
        let refused = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = good.clone();
            change(&mut bytes);
            Packet::parse(&bytes, &GEOMETRY).expect_err("refused")
        };
        for length in 0..good.len() {
            assert_eq!(refused(&|bytes| bytes.truncate(length)), Malformed::Length, "{length}");
        }
        assert_eq!(refused(&|bytes| bytes.push(0)), Malformed::Length);
        assert_eq!(refused(&|bytes| bytes.resize(MOST_BYTES + 1, 0)), Malformed::Length);
        assert_eq!(refused(&|bytes| bytes[12] = 0), Malformed::Length);
        assert_eq!(refused(&|bytes| bytes[3] = b'X'), Malformed::Magic);
        assert_eq!(refused(&|bytes| bytes[4] = 2), Malformed::Version);
        assert_eq!(refused(&|bytes| bytes[5] = 2), Malformed::Format);
        assert_eq!(refused(&|bytes| bytes[14] = 1), Malformed::Reserved);
        assert_eq!(refused(&|bytes| bytes[6] = 3), Malformed::Channel);
        assert_eq!(refused(&|bytes| bytes[8] = 5), Malformed::Range);
        assert_eq!(refused(&|bytes| bytes[8..12].fill(255)), Malformed::Range);
        assert_eq!(
            refused(&|bytes| bytes[HEADER..HEADER + 4].copy_from_slice(&f32::NAN.to_le_bytes())),
            Malformed::NotFinite
        );
    }
}
