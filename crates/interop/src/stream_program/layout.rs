//! What a kernel takes when HIP launches it.

use std::collections::HashMap;
use std::ffi::c_void;

use clmgr::NdRange;

use super::arg::{Kind, StreamArg};
use super::geometry::used;

/// OpenCL's code, changed so that HIP can load and launch it.
pub(super) struct Image {
    pub(super) code: Vec<u8>,
    /// By the kernel's name.
    pub(super) kernels: HashMap<String, Layout>,
}

/// The strictest alignment of any type of OpenCL C, that of `double16`.
pub(super) const STRICTEST: usize = 128;

/// A kernel's parameters as its code has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    /// In OpenCL's order.
    pub(super) parameters: Vec<Parameter>,
    /// What OpenCL's runtime passes of itself, made parameters behind the kernel's own.
    pub(super) hidden: Vec<Hidden>,
    /// Where the first local memory of an argument may begin, in bytes.
    pub(super) local_base: usize,
    /// What it uses that does not work on a HIP stream.
    pub(super) refused: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parameter {
    /// A pointer.
    Memory,
    /// An offset into the work-group's memory, at this alignment.
    Local { alignment: usize },
    /// A value of this many bytes.
    Value { bytes: usize },
}

/// A value of `bytes` bytes that OpenCL's runtime passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hidden {
    pub(super) what: What,
    pub(super) bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Where the global ids of a dimension begin.
    Offset(usize),
    /// The number of dimensions.
    Dimensions,
}

/// One entry of the list that HIP gets: the address of a value, or the value itself, in the order of the machine's
/// bytes.
#[derive(Clone, Copy)]
pub(super) enum Entry {
    At(*const c_void),
    Word(u64),
}

impl Entry {
    /// The address of the value, for as long as the entry stays where it is.
    pub(super) fn address(&self) -> *mut c_void {
        match self {
            Self::At(address) => address.cast_mut(),
            Self::Word(word) => (&raw const *word).cast_mut().cast(),
        }
    }
}

impl Layout {
    /// How many entries a launch needs.
    pub(super) fn len(&self) -> usize {
        self.parameters.len() + self.hidden.len()
    }

    /// Fills `entries`, of which there are [`len`](Self::len), and returns how many bytes of local memory the arguments
    /// take.
    pub(super) fn fill(&self, entries: &mut [Entry], range: &NdRange, args: &[StreamArg<'_>]) -> Result<usize, String> {
        if args.len() != self.parameters.len() {
            return Err(format!(
                "got {} arguments, it takes {}",
                args.len(),
                self.parameters.len()
            ));
        }
        let (own, hidden) = entries.split_at_mut(args.len());
        let mut local_end = self.local_base;
        for (index, ((entry, parameter), arg)) in own.iter_mut().zip(&self.parameters).zip(args).enumerate() {
            *entry = parameter
                .entry(arg, &mut local_end)
                .map_err(|reason| format!("argument {index}: {reason}"))?;
        }
        for (entry, hidden) in hidden.iter_mut().zip(&self.hidden) {
            *entry = Entry::Word(hidden.value(range)?);
        }
        Ok(local_end - self.local_base)
    }
}

impl Parameter {
    fn entry(self, arg: &StreamArg<'_>, local_end: &mut usize) -> Result<Entry, String> {
        match (self, arg.0) {
            (Self::Memory, Kind::Memory { address, .. }) => Ok(Entry::Word(address.addr() as u64)),
            (Self::Local { .. }, Kind::Local(0)) => Err("local memory of no bytes".to_owned()),
            (Self::Local { alignment }, Kind::Local(bytes)) => {
                let start = local_end.next_multiple_of(alignment);
                let end = start.checked_add(bytes);
                *local_end = end.ok_or_else(|| format!("{bytes} bytes of local memory"))?;
                Ok(Entry::Word(start as u64))
            }
            (Self::Value { bytes }, Kind::Bytes(value)) if value.len() == bytes => Ok(Entry::At(value.as_ptr().cast())),
            (Self::Value { bytes }, Kind::Bytes(value)) => {
                Err(format!("got a value of {} bytes, it takes {bytes}", value.len()))
            }
            (Self::Memory, _) => Err("it takes memory: a HIP slice or a guard".to_owned()),
            (Self::Local { .. }, _) => Err("it takes local memory".to_owned()),
            (Self::Value { .. }, _) => Err("it takes a value".to_owned()),
        }
    }
}

impl Hidden {
    fn value(self, range: &NdRange) -> Result<u64, String> {
        let value = match self.what {
            What::Dimensions => u64::from(range.dims),
            What::Offset(axis) => used(range.offset, range.dims, 0)[axis] as u64,
        };
        if self.bytes < size_of::<u64>() && value >> (8 * self.bytes) != 0 {
            return Err(format!(
                "the offset {value} does not fit the {} bytes that this device's code has for it",
                self.bytes
            ));
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(entries: &[Entry]) -> Vec<Option<u64>> {
        let word = |entry: &Entry| match entry {
            Entry::Word(word) => Some(*word),
            Entry::At(_) => None,
        };
        entries.iter().map(word).collect()
    }

    fn layout() -> Layout {
        Layout {
            parameters: vec![
                Parameter::Local { alignment: 16 },
                Parameter::Value { bytes: 4 },
                Parameter::Local { alignment: 8 },
            ],
            hidden: vec![
                Hidden {
                    what: What::Offset(1),
                    bytes: 4,
                },
                Hidden {
                    what: What::Dimensions,
                    bytes: 2,
                },
            ],
            local_base: 20,
            refused: None,
        }
    }

    #[test]
    fn local_memory_lies_behind_the_kernels_own_each_part_aligned() {
        let layout = layout();
        let mut entries = [Entry::Word(0); 5];
        let range = NdRange::d2(4, 4).with_offset([9, 7, 5]);
        let args = [StreamArg::local(12), StreamArg::scalar(&1.0_f32), StreamArg::local(4)];
        let bytes = layout.fill(&mut entries, &range, &args).unwrap();
        assert_eq!(words(&entries), [Some(32), None, Some(48), Some(7), Some(2)]);
        assert_eq!(bytes, 52 - 20);
        // An offset in a dimension that the range does not have counts as 0.
        let range = NdRange::d1(4).with_offset([9, 7, 5]);
        layout.fill(&mut entries, &range, &args).unwrap();
        assert_eq!(words(&entries)[3..], [Some(0), Some(1)]);
    }

    #[test]
    fn arguments_that_do_not_fit_are_named() {
        let layout = layout();
        let (local, value) = (StreamArg::local(4), StreamArg::scalar(&1_u32));
        let refused = |args: &[StreamArg<'_>]| {
            let mut entries = [Entry::Word(0); 5];
            layout.fill(&mut entries, &NdRange::d1(4), args).unwrap_err()
        };
        assert_eq!(refused(&[local]), "got 1 arguments, it takes 3");
        assert_eq!(refused(&[local, local, local]), "argument 1: it takes a value");
        assert_eq!(refused(&[value, value, local]), "argument 0: it takes local memory");
        assert_eq!(
            refused(&[local, StreamArg::scalar(&1_u64), local]),
            "argument 1: got a value of 8 bytes, it takes 4"
        );
        assert_eq!(
            refused(&[local, value, StreamArg::local(0)]),
            "argument 2: local memory of no bytes"
        );
        let far = NdRange::d2(4, 4).with_offset([0, 1 << 40, 0]);
        let mut entries = [Entry::Word(0); 5];
        let reason = layout.fill(&mut entries, &far, &[local, value, local]).unwrap_err();
        assert!(reason.contains("does not fit the 4 bytes"), "{reason}");
    }
}
