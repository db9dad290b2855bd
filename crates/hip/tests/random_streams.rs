//! Random work on random streams gives what the same work gives in order.

mod common;

use common::device;
use hip::{DeviceBuffer, Location, ManagedBuffer, PinnedBuffer, Rect};
use proptest::prelude::*;

const BUFFERS: usize = 4;
const STREAMS: usize = 3;
const LEN: usize = 512;

#[derive(Debug, Clone)]
enum Step {
    Copy {
        from: usize,
        to: usize,
        stream: usize,
    },
    Part {
        from: usize,
        to: usize,
        stream: usize,
        start: usize,
        len: usize,
    },
    Zero {
        buffer: usize,
        stream: usize,
    },
    Upload {
        buffer: usize,
        stream: usize,
        value: u32,
    },
    Download {
        buffer: usize,
        stream: usize,
    },
    Replace {
        buffer: usize,
    },
    ToPinned {
        from: usize,
        stream: usize,
    },
    FromPinned {
        to: usize,
        stream: usize,
    },
    HostWrites {
        value: u32,
    },
    NewStream {
        stream: usize,
    },
    /// A new buffer in stream order: from a pool of our own or the device's.
    Pooled {
        buffer: usize,
        stream: usize,
        own: bool,
    },
    Rect {
        from: usize,
        to: usize,
        stream: usize,
        rect: Rect,
    },
    RectUp {
        to: usize,
        stream: usize,
        rect: Rect,
        value: u32,
    },
    RectDown {
        from: usize,
        stream: usize,
        rect: Rect,
    },
    ToManaged {
        from: usize,
        stream: usize,
    },
    FromManaged {
        to: usize,
        stream: usize,
    },
    HostAddsToManaged {
        value: u32,
    },
    Prefetch {
        stream: usize,
        to_device: bool,
    },
    TrimPool,
}

/// A rectangle that lies in a buffer on either side: at most 16 rows of at most 16 elements, 32 apart at most.
fn rect() -> impl Strategy<Value = Rect> {
    let sides = (0_usize..=16, 0_usize..=16, 0_usize..=16, 0_usize..=16);
    sides.prop_map(|(width, height, source_gap, destination_gap)| Rect {
        width,
        height,
        source_pitch: width + source_gap,
        destination_pitch: width + destination_gap,
    })
}

/// What a copy of a rectangle does.
fn copy_rect(source: &[u32], destination: &mut [u32], rect: Rect) {
    for row in 0..rect.height {
        let from = &source[row * rect.source_pitch..][..rect.width];
        destination[row * rect.destination_pitch..][..rect.width].copy_from_slice(from);
    }
}

fn step() -> impl Strategy<Value = Step> {
    let (buffer, stream) = (0..BUFFERS, 0..STREAMS);
    prop_oneof![
        4 => (buffer.clone(), buffer.clone(), stream.clone()).prop_map(|(from, to, stream)| Step::Copy { from, to, stream }),
        4 => (buffer.clone(), buffer.clone(), stream.clone(), 0..LEN, 0..LEN)
            .prop_map(|(from, to, stream, start, len)| Step::Part { from, to, stream, start, len: len.min(LEN - start) }),
        2 => (buffer.clone(), stream.clone()).prop_map(|(buffer, stream)| Step::Zero { buffer, stream }),
        2 => (buffer.clone(), stream.clone(), any::<u32>())
            .prop_map(|(buffer, stream, value)| Step::Upload { buffer, stream, value }),
        1 => (buffer.clone(), stream.clone()).prop_map(|(buffer, stream)| Step::Download { buffer, stream }),
        1 => buffer.clone().prop_map(|buffer| Step::Replace { buffer }),
        2 => (buffer.clone(), stream.clone()).prop_map(|(from, stream)| Step::ToPinned { from, stream }),
        2 => (buffer.clone(), stream.clone()).prop_map(|(to, stream)| Step::FromPinned { to, stream }),
        1 => any::<u32>().prop_map(|value| Step::HostWrites { value }),
        1 => stream.clone().prop_map(|stream| Step::NewStream { stream }),
        2 => (buffer.clone(), stream.clone(), any::<bool>()).prop_map(|(buffer, stream, own)| Step::Pooled { buffer, stream, own }),
        3 => (buffer.clone(), buffer.clone(), stream.clone(), rect())
            .prop_map(|(from, to, stream, rect)| Step::Rect { from, to, stream, rect }),
        1 => (buffer.clone(), stream.clone(), rect(), any::<u32>())
            .prop_map(|(to, stream, rect, value)| Step::RectUp { to, stream, rect, value }),
        1 => (buffer.clone(), stream.clone(), rect()).prop_map(|(from, stream, rect)| Step::RectDown { from, stream, rect }),
        2 => (buffer.clone(), stream.clone()).prop_map(|(from, stream)| Step::ToManaged { from, stream }),
        2 => (buffer, stream.clone()).prop_map(|(to, stream)| Step::FromManaged { to, stream }),
        1 => any::<u32>().prop_map(|value| Step::HostAddsToManaged { value }),
        1 => (stream, any::<bool>()).prop_map(|(stream, to_device)| Step::Prefetch { stream, to_device }),
        1 => Just(Step::TrimPool),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_time: 10_000, ..common::cases(60) })]

    #[test]
    fn streams_are_in_order_wherever_memory_connects_them(steps in prop::collection::vec(step(), 1..40)) {
        // Late completion turns a missing wait into a wrong result.
        hip_host::faults::set_delay(std::time::Duration::from_micros(300));
        let device = device();
        let mut streams: Vec<_> = (0..STREAMS).map(|_| device.stream().unwrap()).collect();
        let mut buffers: Vec<DeviceBuffer<u32>> = (0..BUFFERS).map(|_| device.alloc_zeroed(LEN).unwrap()).collect();
        let mut pinned: PinnedBuffer<u32> = device.alloc_pinned(LEN).unwrap();
        let mut managed: ManagedBuffer<u32> = device.alloc_managed(LEN).unwrap();
        managed.host_mut().unwrap().fill(0);
        let mut managed_model = vec![0_u32; LEN];
        let pool = device.mem_pool().unwrap();
        let mut model = vec![vec![0_u32; LEN]; BUFFERS];
        let mut pinned_model = vec![0_u32; LEN];

        for step in steps {
            match step {
                Step::Copy { from, to, stream } if from != to => {
                    let [source, target] = buffers.get_disjoint_mut([from, to]).unwrap();
                    let stream = &streams[stream];
                    target.on_mut(stream).unwrap().copy_from(source.on(stream).unwrap()).unwrap();
                    model[to] = model[from].clone();
                }
                Step::Part { from, to, stream, start, len } if from != to => {
                    let [source, target] = buffers.get_disjoint_mut([from, to]).unwrap();
                    let stream = &streams[stream];
                    let source = source.on(stream).unwrap().slice(start..start + len).unwrap();
                    target.on_mut(stream).unwrap().slice_mut(..len).unwrap().copy_from(source).unwrap();
                    let part = model[from][start..start + len].to_vec();
                    model[to][..len].copy_from_slice(&part);
                }
                Step::Copy { .. } | Step::Part { .. } => {}
                Step::Zero { buffer, stream } => {
                    buffers[buffer].on_mut(&streams[stream]).unwrap().fill_zero().unwrap();
                    model[buffer].fill(0);
                }
                Step::Upload { buffer, stream, value } => {
                    let values: Vec<u32> = (0..LEN as u32).map(|i| value.wrapping_add(i)).collect();
                    buffers[buffer].copy_from_slice(&streams[stream], &values).unwrap();
                    model[buffer] = values;
                }
                Step::Download { buffer, stream } => {
                    let mut seen = vec![99; LEN];
                    buffers[buffer].copy_to_slice(&streams[stream], &mut seen).unwrap();
                    prop_assert!(seen == model[buffer], "buffer {buffer} on stream {stream}");
                }
                Step::Replace { buffer } => {
                    buffers[buffer] = device.alloc_zeroed(LEN).unwrap();
                    model[buffer].fill(0);
                }
                Step::ToPinned { from, stream } => {
                    let stream = &streams[stream];
                    pinned.on_mut(stream).unwrap().copy_from(buffers[from].on(stream).unwrap()).unwrap();
                    pinned_model = model[from].clone();
                }
                Step::FromPinned { to, stream } => {
                    let stream = &streams[stream];
                    buffers[to].on_mut(stream).unwrap().copy_from(pinned.on(stream).unwrap()).unwrap();
                    model[to] = pinned_model.clone();
                }
                Step::HostWrites { value } => {
                    prop_assert!(pinned.host().unwrap() == pinned_model);
                    pinned.host_mut().unwrap().fill(value);
                    pinned_model.fill(value);
                }
                Step::NewStream { stream } => streams[stream] = device.stream().unwrap(),
                Step::Pooled { buffer, stream, own } => {
                    let home = &streams[stream];
                    let mut fresh = if own { pool.alloc(home, LEN).unwrap() } else { home.alloc(LEN).unwrap() };
                    fresh.on_mut(home).unwrap().fill_zero().unwrap();
                    buffers[buffer] = fresh;
                    model[buffer].fill(0);
                }
                Step::Rect { from, to, stream, rect } if from != to => {
                    let [source, target] = buffers.get_disjoint_mut([from, to]).unwrap();
                    let stream = &streams[stream];
                    target.on_mut(stream).unwrap().copy_rect_from(source.on(stream).unwrap(), rect).unwrap();
                    let [source, target] = model.get_disjoint_mut([from, to]).unwrap();
                    copy_rect(source, target, rect);
                }
                Step::Rect { .. } => {}
                Step::RectUp { to, stream, rect, value } => {
                    let values: Vec<u32> = (0..LEN as u32).map(|i| value ^ i).collect();
                    buffers[to].on_mut(&streams[stream]).unwrap().copy_rect_from_slice(&values, rect).unwrap();
                    copy_rect(&values, &mut model[to], rect);
                }
                Step::RectDown { from, stream, rect } => {
                    let mut seen = vec![77; LEN];
                    let mut expected = seen.clone();
                    buffers[from].on(&streams[stream]).unwrap().copy_rect_to_slice(&mut seen, rect).unwrap();
                    copy_rect(&model[from], &mut expected, rect);
                    prop_assert!(seen == expected, "{rect:?} of buffer {from} on stream {stream}");
                }
                Step::ToManaged { from, stream } => {
                    let stream = &streams[stream];
                    managed.on_mut(stream).unwrap().copy_from(buffers[from].on(stream).unwrap()).unwrap();
                    managed_model = model[from].clone();
                }
                Step::FromManaged { to, stream } => {
                    let stream = &streams[stream];
                    buffers[to].on_mut(stream).unwrap().copy_from(managed.on(stream).unwrap()).unwrap();
                    model[to] = managed_model.clone();
                }
                Step::HostAddsToManaged { value } => {
                    prop_assert!(managed.host().unwrap() == managed_model);
                    for all in [managed.host_mut().unwrap(), &mut managed_model[..]] {
                        all.iter_mut().for_each(|element| *element = element.wrapping_add(value));
                    }
                }
                Step::Prefetch { stream, to_device } => {
                    let to = if to_device { Location::Device(&device) } else { Location::Host };
                    managed.prefetch(&streams[stream], to).unwrap();
                }
                Step::TrimPool => pool.trim_to(0).unwrap(),
            }
        }
        let last = device.stream().unwrap();
        for (buffer, model) in buffers.iter().zip(&model) {
            let mut seen = vec![99; LEN];
            buffer.copy_to_slice(&last, &mut seen).unwrap();
            prop_assert!(&seen == model);
        }
        prop_assert!(pinned.host().unwrap() == pinned_model);
        prop_assert!(managed.host().unwrap() == managed_model);
        // Everything that was taken is back.
        drop((buffers, managed, pinned, streams));
        last.synchronize().unwrap();
        prop_assert_eq!(pool.usage().unwrap().used, 0);
        prop_assert!(device.runtime().take_deferred_errors().is_empty());
    }
}
