//! Rectangles are copied as row by row, and nothing else is touched.

mod common;

use hip::{Error, Rect};
use proptest::prelude::*;

/// What copying `rect` does, row by row; `None` if it does not fit.
fn by_rows(source: &[u16], destination: &mut [u16], rect: Rect) -> Option<()> {
    if rect.width == 0 || rect.height == 0 {
        return Some(());
    }
    if rect.source_pitch < rect.width || rect.destination_pitch < rect.width {
        return None;
    }
    let before = destination.to_vec();
    for row in 0..rect.height {
        let from = source.get(row * rect.source_pitch..row * rect.source_pitch + rect.width);
        let start = row * rect.destination_pitch;
        let to = destination.get_mut(start..start + rect.width);
        let (Some(from), Some(to)) = (from, to) else {
            destination.copy_from_slice(&before);
            return None;
        };
        to.copy_from_slice(from);
    }
    Some(())
}

proptest! {
    #![proptest_config(common::cases(128))]

    #[test]
    fn all_three_ways_copy_what_row_by_row_copies(
        width in 0_usize..6,
        height in 0_usize..6,
        source_pitch in 0_usize..9,
        destination_pitch in 0_usize..9,
        source_len in 0_usize..48,
        destination_len in 0_usize..48,
    ) {
        let rect = Rect { width, height, source_pitch, destination_pitch };
        let device = common::device();
        let stream = device.stream().unwrap();
        let source: Vec<u16> = (1..).take(source_len).collect();
        let mut expected = vec![0_u16; destination_len];
        let fits = by_rows(&source, &mut expected, rect).is_some();

        let on_device = device.alloc_from(&stream, &source).unwrap();
        let mut seen = vec![0_u16; destination_len];
        let outcome = on_device.on(&stream).unwrap().copy_rect_to_slice(&mut seen, rect);
        prop_assert_eq!(outcome.is_ok(), fits, "{:?}", outcome);
        prop_assert_eq!(&seen, &expected);

        for from_host in [true, false] {
            let mut to = device.alloc_zeroed::<u16>(destination_len).unwrap();
            let mut slice = to.on_mut(&stream).unwrap();
            let outcome = if from_host {
                slice.copy_rect_from_slice(&source, rect)
            } else {
                slice.copy_rect_from(on_device.on(&stream).unwrap(), rect)
            };
            prop_assert_eq!(outcome.is_ok(), fits);
            if let Err(error) = outcome {
                prop_assert!(matches!(error, Error::Rect { .. }), "{}", error);
            }
            to.copy_to_slice(&stream, &mut seen).unwrap();
            prop_assert_eq!(&seen, &expected);
        }
    }
}

#[test]
fn sizes_that_overflow_are_refused() {
    let device = common::device();
    let stream = device.stream().unwrap();
    let buffer = device.alloc_zeroed::<u8>(16).unwrap();
    for rect in [
        Rect {
            width: 1,
            height: usize::MAX,
            source_pitch: usize::MAX,
            destination_pitch: 1,
        },
        Rect {
            width: usize::MAX,
            height: 1,
            source_pitch: usize::MAX,
            destination_pitch: usize::MAX,
        },
    ] {
        let slice = buffer.on(&stream).unwrap();
        let error = slice.copy_rect_to_slice(&mut [0; 16], rect).unwrap_err();
        assert!(matches!(error, Error::Rect { .. }), "{error}");
    }
}

#[test]
fn an_empty_rectangle_of_any_size_copies_nothing() {
    let device = common::device();
    let stream = device.stream().unwrap();
    let mut memory = device.alloc_zeroed::<u16>(4).unwrap();
    for (width, height) in [(usize::MAX, 0), (0, usize::MAX), (0, 0)] {
        let rect = Rect {
            width,
            height,
            source_pitch: usize::MAX,
            destination_pitch: usize::MAX,
        };
        let mut slice = memory.on_mut(&stream).unwrap();
        slice.copy_rect_from_slice(&[1; 4], rect).unwrap();
    }
    let mut seen = [9; 4];
    memory.copy_to_slice(&stream, &mut seen).unwrap();
    assert_eq!(seen, [0; 4]);
}

/// Copies from and to the host go through a block of limited size.
#[test]
fn large_rectangles_are_copied_whole_too() {
    let rect = Rect {
        width: 1000,
        height: 20_000,
        source_pitch: 1001,
        destination_pitch: 1003,
    };
    let device = common::device();
    let stream = device.stream().unwrap();
    let source: Vec<u16> = (0..rect.height * rect.source_pitch)
        .map(|index| (index % 65_521) as u16)
        .collect();
    let mut expected = vec![0_u16; rect.height * rect.destination_pitch];
    by_rows(&source, &mut expected, rect).unwrap();

    let on_device = device.alloc_from(&stream, &source).unwrap();
    let mut seen = vec![0_u16; expected.len()];
    on_device
        .on(&stream)
        .unwrap()
        .copy_rect_to_slice(&mut seen, rect)
        .unwrap();
    assert!(seen == expected);

    let mut to = device.alloc_zeroed::<u16>(expected.len()).unwrap();
    to.on_mut(&stream).unwrap().copy_rect_from_slice(&source, rect).unwrap();
    to.copy_to_slice(&stream, &mut seen).unwrap();
    assert!(seen == expected);
}
