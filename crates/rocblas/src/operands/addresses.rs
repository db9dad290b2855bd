use std::ops::Range;

use hip::{DeviceBuffer, Stream};

use crate::size::{Layout, size};
use crate::{Error, Result};

/// Addresses of matrices in device memory, and what is known of them on the host.
#[derive(Debug)]
pub(crate) struct Addresses {
    array: DeviceBuffer<usize>,
    /// Where the memories begin that the matrices lie in.
    begins: Vec<usize>,
    /// The bytes of the matrices, in ascending order and without overlaps.
    stretches: Vec<Range<usize>>,
    /// Why the matrices cannot be written, if two of them share an element.
    meeting: Option<Meeting>,
    layout: Layout,
}

/// Two matrices, and how many elements behind the lowest memory's first they begin.
#[derive(Debug, Clone, Copy)]
struct Meeting {
    matrices: (usize, usize),
    offsets: (usize, usize),
}

impl Addresses {
    /// Of a matrix of `T` at each of the `offsets` in each of the memories. Copies the addresses to the device and waits
    /// for that.
    pub(super) fn send<T>(stream: &Stream, begins: Vec<usize>, offsets: &[usize], layout: Layout) -> Result<Self> {
        let at = |begin: &usize| {
            let begin = *begin;
            offsets.iter().map(move |offset| begin + offset * size_of::<T>())
        };
        let addresses: Vec<usize> = begins.iter().flat_map(at).collect();
        size("batch count", addresses.len())?;
        Ok(Self {
            array: hip::control(|| stream.device().alloc_from(stream, &addresses))?,
            stretches: stretches(&addresses, layout.span().saturating_mul(size_of::<T>())),
            meeting: meeting(&addresses, size_of::<T>(), layout),
            begins,
            layout,
        })
    }

    pub(super) fn layout(&self) -> Layout {
        self.layout
    }

    /// Number of matrices.
    pub(super) fn count(&self) -> usize {
        self.array.len()
    }

    pub(super) fn begins(&self) -> &[usize] {
        &self.begins
    }

    pub(super) fn stretches(&self) -> &[Range<usize>] {
        &self.stretches
    }

    /// Whether the array can be read on this stream.
    pub(super) fn is_for(&self, stream: &Stream) -> bool {
        self.array.device() == stream.device()
    }

    /// Where the array is, for a call on the stream.
    pub(super) fn on(&self, stream: &Stream) -> Result<*const *mut std::ffi::c_void> {
        Ok(self.array.on(stream)?.as_ptr().cast())
    }

    /// Refuses matrices that share an element as an output.
    pub(super) fn check_distinct(&self) -> Result<()> {
        let Some(Meeting { matrices, offsets }) = self.meeting else {
            return Ok(());
        };
        let Layout { rows, cols, ld } = self.layout;
        Err(Error::OverlapAt {
            first: matrices.0,
            second: matrices.1,
            offsets,
            rows,
            cols,
            ld,
        })
    }
}

/// The bytes of matrices of `bytes` each.
fn stretches(addresses: &[usize], bytes: usize) -> Vec<Range<usize>> {
    let mut begins = addresses.to_vec();
    begins.sort_unstable();
    let mut stretches: Vec<Range<usize>> = Vec::new();
    for begin in begins {
        match stretches.last_mut() {
            Some(last) if begin <= last.end => last.end = begin + bytes,
            _ => stretches.push(begin..begin + bytes),
        }
    }
    stretches
}

/// Two matrices that share an element of `element` bytes, if there are any.
fn meeting(addresses: &[usize], element: usize, layout: Layout) -> Option<Meeting> {
    if element == 0 {
        return None;
    }
    let lowest = addresses.iter().copied().min()?;
    let offset = |address: usize| (address - lowest) / element;
    let matrices = if addresses
        .iter()
        .all(|address| (address - lowest).is_multiple_of(element))
    {
        let offsets: Vec<usize> = addresses.iter().map(|&address| offset(address)).collect();
        layout.pair_that_meets(&offsets)?
    } else {
        // Memories at an odd distance: their matrices are not told apart within each other's reach.
        let mut order: Vec<usize> = (0..addresses.len()).collect();
        order.sort_unstable_by_key(|&matrix| addresses[matrix]);
        let reach = layout.span() * element;
        let meets = |pair: &&[usize]| addresses[pair[1]] - addresses[pair[0]] < reach;
        let pair = order.windows(2).find(meets)?;
        (pair[0].min(pair[1]), pair[0].max(pair[1]))
    };
    Some(Meeting {
        matrices,
        offsets: (offset(addresses[matrices.0]), offset(addresses[matrices.1])),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_matrices_are_sorted_and_joined() {
        assert_eq!(stretches(&[40, 8, 16], 8), [8..24, 40..48]);
        assert_eq!(stretches(&[8, 8, 12, 40], 8), [8..20, 40..48]);
        assert_eq!(stretches(&[], 8), []);
        assert_eq!(stretches(&[8, 40], 0), [8..8, 40..40]);
    }

    #[test]
    fn matrices_that_meet_are_found_at_any_distance_of_their_memories() {
        let layout = Layout {
            rows: 4,
            cols: 1,
            ld: 4,
        };
        let pair = |addresses: &[usize]| meeting(addresses, 8, layout).map(|meeting| meeting.matrices);
        assert_eq!(pair(&[0, 32, 64]), None);
        assert_eq!(pair(&[0, 64, 24]), Some((0, 2)));
        assert_eq!(pair(&[0, 36, 68]), None);
        assert_eq!(pair(&[0, 67, 36]), Some((1, 2)));
    }
}
