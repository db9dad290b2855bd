//! Memory is aligned for its elements, or allocation fails.

mod common;

use bytemuck::{Pod, Zeroable};
use common::device;
use hip::{Error, Result};

/// An element aligned to a mebibyte, more than a page.
#[derive(Clone, Copy)]
#[repr(C, align(1_048_576))]
struct Wide([u8; 1 << 20]);

// SAFETY: an array of bytes whose size equals the alignment, so there is no padding.
unsafe impl Zeroable for Wide {}
// SAFETY: as for `Zeroable`.
unsafe impl Pod for Wide {}

/// Allocates several, few of which would be aligned by chance, and checks where they start, or the error.
fn each<B>(make: impl Fn() -> Result<B>, at: impl Fn(&B) -> *const Wide) {
    let made: Vec<_> = (0..8).map(|_| make()).collect();
    for outcome in &made {
        match outcome {
            Ok(buffer) => assert!(at(buffer).is_aligned(), "{:p}", at(buffer)),
            Err(error) => assert!(
                matches!(error, Error::Alignment { alignment, .. } if *alignment == align_of::<Wide>()),
                "{error}"
            ),
        }
    }
}

#[test]
fn memory_is_aligned_for_its_elements() {
    let device = device();
    let stream = device.stream().unwrap();
    let pool = device.mem_pool().unwrap();
    let free = || device.memory_info().unwrap().free;
    let before = free();
    let on = |buffer: &hip::DeviceBuffer<Wide>| buffer.on(&stream).unwrap().as_ptr();
    each(|| device.alloc::<Wide>(1), on);
    each(|| device.alloc_zeroed::<Wide>(1), on);
    each(|| stream.alloc::<Wide>(1), on);
    each(|| pool.alloc::<Wide>(&stream, 1), on);
    each(
        || device.alloc_pinned::<Wide>(1),
        |buffer| buffer.host().unwrap().as_ptr(),
    );
    each(
        || device.alloc_pinned::<Wide>(1),
        |buffer| buffer.on(&stream).unwrap().as_ptr(),
    );
    each(
        || device.alloc_managed::<Wide>(1),
        |buffer| buffer.host().unwrap().as_ptr(),
    );
    stream.synchronize().unwrap();
    pool.trim_to(0).unwrap();
    device.default_mem_pool().unwrap().trim_to(0).unwrap();
    // Other tests in this process allocate and free some bytes meanwhile.
    let lost = before.abs_diff(free());
    assert!(lost < size_of::<Wide>(), "{lost} bytes leaked after a refusal");
    assert!(device.runtime().take_deferred_errors().is_empty());
}

#[test]
fn empty_pinned_and_managed_buffers_give_empty_slices() {
    let device = device();
    let (pinned, managed) = (
        device.alloc_pinned::<Wide>(0).unwrap(),
        device.alloc_managed::<Wide>(0).unwrap(),
    );
    assert!(pinned.host().unwrap().is_empty() && managed.host().unwrap().is_empty());
}

#[test]
fn a_part_can_be_cast_only_to_elements_it_is_aligned_for() {
    let device = device();
    let stream = device.stream().unwrap();
    let bytes = device.alloc_zeroed::<u8>(64).unwrap();
    let whole = bytes.on(&stream).unwrap();
    assert_eq!(whole.cast::<u64>().unwrap().len(), 8);
    let shifted = whole.slice(4..).unwrap();
    assert!(shifted.slice(..56).unwrap().cast::<u64>().is_err());
    assert_eq!(shifted.cast::<u32>().unwrap().len(), 15);
}
