//! The messages on a link: 256 bytes each, numbers little-endian.
//!
//! | at | bytes | what | in |
//! |---|---|---|---|
//! | 0 | 8 | `hipclipc` | all |
//! | 8 | 2 | version, 1 | all |
//! | 10 | 2 | kind: 1 offer, 2 accepted, 3 refused, 4 turn, 5 failed turn, 6 taken back | all |
//! | 12 | 4 | the sender's process number | all |
//! | 16 | 8 | number of bytes in the memory; how many turns were passed before | offer; turns |
//! | 24 | 8 | where the memory begins in what is opened, in bytes | offer |
//! | 32 | 4 | carrier: 1 HIP's descriptor, 2 dma-buf, 3 IPC handle | offer |
//! | 36 | 4 | bytes of one element | offer |
//! | 40 | 16 | UUID of the device | offer |
//! | 56 | 16 | its PCI domain, bus, device and function, 4 bytes each | offer |
//! | 72 | 64 | IPC handle, else zero | offer |
//! | 136 | 120 | a reason in UTF-8, then zeros | refused, failed turn |
//!
//! An offer by descriptor carries exactly one (`SCM_RIGHTS`), everything else none. What a message does not use is
//! zero.

use super::Carrier;

const MAGIC: &[u8; 8] = b"hipclipc";
const VERSION: u16 = 1;
/// Of every message, in bytes.
pub(super) const SIZE: usize = 256;
const TEXT: usize = 136;

/// What memory is offered, and what it takes to reach it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Offer {
    pub(super) carrier: Carrier,
    pub(super) bytes: u64,
    pub(super) offset: u64,
    pub(super) element: u32,
    pub(super) device: DeviceId,
    pub(super) handle: [u8; 64],
}

/// Which device, in terms that every process understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeviceId {
    pub(super) uuid: hip::Uuid,
    pub(super) pci: hip::PciAddress,
}

impl DeviceId {
    pub(super) fn of(device: &hip::Device) -> hip::Result<Self> {
        Ok(Self {
            uuid: device.uuid()?,
            pci: device.pci_address()?,
        })
    }
}

impl std::fmt::Display for DeviceId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {}", self.uuid, self.pci)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Body {
    Offer(Box<Offer>),
    Accepted,
    Refused(String),
    Turn { passed: u64 },
    FailedTurn { passed: u64, reason: String },
    TakenBack,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Message {
    pub(super) process: u32,
    pub(super) body: Body,
}

impl Message {
    /// From this process.
    pub(super) fn here(body: Body) -> Self {
        Self {
            process: std::process::id(),
            body,
        }
    }

    /// Whether a descriptor belongs to it.
    pub(super) fn carries_fd(&self) -> bool {
        matches!(&self.body, Body::Offer(offer) if offer.carrier != Carrier::IpcHandle)
    }

    pub(super) fn encode(&self) -> [u8; SIZE] {
        let mut out = [0; SIZE];
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, MAGIC);
        put(8, &VERSION.to_le_bytes());
        put(12, &self.process.to_le_bytes());
        let kind: u16 = match &self.body {
            Body::Offer(offer) => {
                put(16, &offer.bytes.to_le_bytes());
                put(24, &offer.offset.to_le_bytes());
                put(32, &offer.carrier.number().to_le_bytes());
                put(36, &offer.element.to_le_bytes());
                put(40, &offer.device.uuid.bytes);
                let hip::PciAddress {
                    domain,
                    bus,
                    device,
                    function,
                } = offer.device.pci;
                for (index, number) in [domain, bus, device, function].into_iter().enumerate() {
                    put(56 + 4 * index, &number.to_le_bytes());
                }
                put(72, &offer.handle);
                1
            }
            Body::Accepted => 2,
            Body::Refused(reason) => {
                put(TEXT, cut(reason, SIZE - TEXT));
                3
            }
            Body::Turn { passed } => {
                put(16, &passed.to_le_bytes());
                4
            }
            Body::FailedTurn { passed, reason } => {
                put(16, &passed.to_le_bytes());
                put(TEXT, cut(reason, SIZE - TEXT));
                5
            }
            Body::TakenBack => 6,
        };
        put(10, &kind.to_le_bytes());
        out
    }

    /// What the bytes say, or what is wrong with them.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let Ok(bytes) = <&[u8; SIZE]>::try_from(bytes) else {
            return Err(format!("{} bytes, but a message has {SIZE}", bytes.len()));
        };
        if !bytes.starts_with(MAGIC) {
            return Err("it does not begin like a message".into());
        }
        let version = u16::from_le_bytes(part(bytes, 8));
        if version != VERSION {
            return Err(format!("protocol version {version}, expected {VERSION}"));
        }
        let number = |at| u32::from_le_bytes(part(bytes, at));
        let long = |at| u64::from_le_bytes(part(bytes, at));
        let body = match u16::from_le_bytes(part(bytes, 10)) {
            1 => {
                let carrier =
                    Carrier::of_number(number(32)).ok_or_else(|| format!("unknown carrier {}", number(32)))?;
                Body::Offer(Box::new(Offer {
                    carrier,
                    bytes: long(16),
                    offset: long(24),
                    element: number(36),
                    device: DeviceId {
                        uuid: hip::Uuid { bytes: part(bytes, 40) },
                        pci: hip::PciAddress {
                            domain: number(56),
                            bus: number(60),
                            device: number(64),
                            function: number(68),
                        },
                    },
                    handle: part(bytes, 72),
                }))
            }
            2 => Body::Accepted,
            3 => Body::Refused(text(&bytes[TEXT..])),
            4 => Body::Turn { passed: long(16) },
            5 => Body::FailedTurn {
                passed: long(16),
                reason: text(&bytes[TEXT..]),
            },
            6 => Body::TakenBack,
            kind => return Err(format!("unknown message kind {kind}")),
        };
        Ok(Self {
            process: number(12),
            body,
        })
    }
}

fn part<const N: usize>(bytes: &[u8; SIZE], at: usize) -> [u8; N] {
    std::array::from_fn(|index| bytes[at + index])
}

/// As much of the text as there is room for, in whole characters.
fn cut(text: &str, room: usize) -> &[u8] {
    let mut end = text.len().min(room);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text.as_bytes()[..end]
}

/// One line, whatever the other process wrote.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    String::from_utf8_lossy(&bytes[..end]).chars().map(printable).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn device() -> impl Strategy<Value = DeviceId> {
        (any::<[u8; 16]>(), any::<[u32; 4]>()).prop_map(|(bytes, [domain, bus, device, function])| DeviceId {
            uuid: hip::Uuid { bytes },
            pci: hip::PciAddress {
                domain,
                bus,
                device,
                function,
            },
        })
    }

    fn body() -> impl Strategy<Value = Body> {
        let offer = (
            0..Carrier::ALL.len(),
            any::<(u64, u64, u32)>(),
            device(),
            any::<[u8; 32]>(),
        )
            .prop_map(|(carrier, (bytes, offset, element), device, half)| {
                Body::Offer(Box::new(Offer {
                    carrier: Carrier::ALL[carrier],
                    bytes,
                    offset,
                    element,
                    device,
                    handle: std::array::from_fn(|index| half[index / 2]),
                }))
            });
        prop_oneof![
            offer,
            Just(Body::Accepted),
            "[ -~äß]{0,60}".prop_map(Body::Refused),
            any::<u64>().prop_map(|passed| Body::Turn { passed }),
            (any::<u64>(), "[ -~]{0,120}").prop_map(|(passed, reason)| Body::FailedTurn { passed, reason }),
            Just(Body::TakenBack),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(process: u32, body in body()) {
            let message = Message { process, body };
            prop_assert_eq!(Message::decode(&message.encode()), Ok(message));
        }

        #[test]
        fn any_bytes_are_a_message_or_a_reason(
            mut bytes in prop::collection::vec(any::<u8>(), 0..300),
            genuine: bool,
        ) {
            if genuine && bytes.len() > 10 {
                bytes[..8].copy_from_slice(MAGIC);
                bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
            }
            if let Err(reason) = Message::decode(&bytes) {
                prop_assert!(!reason.is_empty() && !reason.contains('\n'));
            }
        }
    }

    #[test]
    fn a_short_a_long_a_foreign_and_a_newer_message_are_told_apart() {
        let good = Message::here(Body::Accepted).encode();
        let reason = |bytes: &[u8]| Message::decode(bytes).expect_err("wrong");
        assert_eq!(reason(&good[..255]), "255 bytes, but a message has 256");
        assert_eq!(reason(&[&good[..], &[0]].concat()), "257 bytes, but a message has 256");
        let mut bad = good;
        bad[0] = b'H';
        assert!(reason(&bad).contains("begin"), "{}", reason(&bad));
        let mut newer = good;
        newer[8] = 2;
        assert_eq!(reason(&newer), "protocol version 2, expected 1");
        let mut unknown = good;
        unknown[10] = 77;
        assert_eq!(reason(&unknown), "unknown message kind 77");
    }

    #[test]
    fn a_long_reason_is_cut_at_a_character_and_stays_one_line() {
        let long = "ä\n".repeat(100);
        let message = Message::here(Body::Refused(long));
        let Ok(Message {
            body: Body::Refused(reason),
            ..
        }) = Message::decode(&message.encode())
        else {
            panic!("a refusal");
        };
        assert_eq!(reason, "ä ".repeat(40));
    }
}
