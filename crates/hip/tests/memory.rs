//! Sizes, ranges and owners of memory.

mod common;

use common::{device, runtime, watched_device};
use hip::{DeviceMemory, DeviceMemoryMut, DeviceSlice, DeviceSliceMut, Error};
use num_complex::Complex;
use proptest::prelude::*;

proptest! {
    #![proptest_config(common::cases(40))]

    #[test]
    fn what_goes_in_comes_out(values in prop::collection::vec(any::<u64>(), 0..3000)) {
        let device = device();
        let stream = device.stream().unwrap();
        let buffer = device.alloc_from(&stream, &values).unwrap();
        prop_assert_eq!(buffer.len(), values.len());
        let mut seen = vec![0; values.len()];
        buffer.copy_to_slice(&stream, &mut seen).unwrap();
        prop_assert_eq!(seen, values);
    }

    #[test]
    fn a_part_shows_exactly_its_elements(len in 1_usize..500, a in 0_usize..500, b in 0_usize..500) {
        let (start, end) = (a.min(b) % (len + 1), a.max(b) % (len + 1));
        let (start, end) = (start.min(end), start.max(end));
        let device = device();
        let stream = device.stream().unwrap();
        let values: Vec<u16> = (0..len as u16).collect();
        let mut buffer = device.alloc_from(&stream, &values).unwrap();
        let mut seen = vec![0; end - start];
        buffer.on(&stream).unwrap().slice(start..end).unwrap().copy_to_slice(&mut seen).unwrap();
        prop_assert_eq!(&seen, &values[start..end]);

        buffer.on_mut(&stream).unwrap().slice_mut(start..end).unwrap().fill_zero().unwrap();
        let mut expected = values;
        expected[start..end].fill(0);
        let mut seen = vec![0; len];
        buffer.copy_to_slice(&stream, &mut seen).unwrap();
        prop_assert_eq!(seen, expected);
    }
}

#[test]
fn ranges_outside_a_slice_are_refused() {
    let device = device();
    let stream = device.stream().unwrap();
    let mut buffer = device.alloc_zeroed::<f32>(10).unwrap();
    let error = buffer.on(&stream).unwrap().slice(4..11).unwrap_err();
    assert_eq!(error.to_string(), "range 4..11 is outside a slice of 10 elements");
    assert!(buffer.on(&stream).unwrap().slice(..=usize::MAX).is_err());
    #[expect(clippy::reversed_empty_ranges, reason = "the mistake to refuse")]
    let reversed = 5..4;
    assert!(buffer.on_mut(&stream).unwrap().slice_mut(reversed).is_err());
    assert!(buffer.on_mut(&stream).unwrap().split_at_mut(11).is_err());
    let (left, right) = buffer.on_mut(&stream).unwrap().split_at_mut(10).unwrap();
    assert_eq!((left.len(), right.len()), (10, 0));
}

#[test]
fn halves_of_a_slice_are_written_apart() {
    let device = device();
    let stream = device.stream().unwrap();
    let mut buffer = device.alloc_from(&stream, &[1_u8, 2, 3, 4, 5]).unwrap();
    let (mut left, right) = buffer.on_mut(&stream).unwrap().split_at_mut(2).unwrap();
    left.copy_from(right.as_slice().slice(1..).unwrap()).unwrap();
    let mut seen = [0; 5];
    buffer.copy_to_slice(&stream, &mut seen).unwrap();
    assert_eq!(seen, [4, 5, 3, 4, 5]);
}

#[test]
fn different_lengths_are_refused_and_nothing_is_copied() {
    let device = device();
    let stream = device.stream().unwrap();
    let mut buffer = device.alloc_from(&stream, &[1_u8, 2, 3]).unwrap();
    let error = buffer.copy_from_slice(&stream, &[9, 9]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "copy_from_slice: source has 2 elements and destination 3; they must be equal"
    );
    let mut four = [7; 4];
    assert!(buffer.copy_to_slice(&stream, &mut four).is_err());
    assert_eq!(four, [7; 4]);
    let mut seen = [0; 3];
    buffer.copy_to_slice(&stream, &mut seen).unwrap();
    assert_eq!(seen, [1, 2, 3]);
}

#[test]
fn nothing_is_asked_of_the_allocator_for_no_bytes() {
    let device = watched_device();
    let stream = device.stream().unwrap();
    common::watch(|name| {
        let asked = [
            "hipMalloc",
            "hipFree",
            "hipHostMalloc",
            "hipHostFree",
            "hipMemcpyAsync",
            "hipMemcpyWithStream",
            "hipMemsetAsync",
        ];
        assert!(!asked.contains(&name), "{name} was called");
    });
    let mut empty = device.alloc_from::<f64>(&stream, &[]).unwrap();
    empty.on_mut(&stream).unwrap().fill_zero().unwrap();
    empty.copy_to_slice(&stream, &mut []).unwrap();
    assert!(empty.is_empty());
    drop(empty);
    drop(device.alloc_zeroed::<f64>(0).unwrap());
    let pinned = device.alloc_pinned::<f64>(0).unwrap();
    assert_eq!(pinned.host().unwrap(), [0.0; 0]);
    drop(pinned);
    // Elements without a size need no memory, however many there are.
    let units = device.alloc::<()>(usize::MAX).unwrap();
    assert_eq!(units.len(), usize::MAX);
    drop(units);
    common::unwatch();
}

#[test]
fn sizes_beyond_an_address_space_are_refused() {
    let device = device();
    for len in [usize::MAX, usize::MAX / 16 + 1, usize::MAX / 16] {
        let error = device.alloc::<Complex<f64>>(len).unwrap_err();
        assert!(matches!(error, Error::TooLarge { .. }), "{error}");
        assert!(matches!(
            device.alloc_pinned::<Complex<f64>>(len),
            Err(Error::TooLarge { .. })
        ));
    }
}

#[test]
fn too_much_memory_says_how_much_there_is() {
    let device = device();
    let total = device.memory_info().unwrap().total;
    let error = device.alloc::<u8>(total * 2).unwrap_err();
    assert_eq!(error.code(), Some(hip_sys::hipError_t::hipErrorOutOfMemory));
    let text = error.to_string();
    let start = format!("`hipMalloc({} bytes)` failed: hipErrorOutOfMemory (2); ", total * 2);
    assert!(text.starts_with(&start) && text.contains(" free of "), "{text}");
}

#[test]
fn dropping_gives_the_memory_back() {
    let counts = std::rc::Rc::new(std::cell::RefCell::new((0, 0)));
    let watched = watched_device();
    let counted = counts.clone();
    common::watch(move |name| match name {
        "hipMalloc" | "hipHostMalloc" => counted.borrow_mut().0 += 1,
        "hipFree" | "hipHostFree" => counted.borrow_mut().1 += 1,
        _ => {}
    });
    let stream = watched.stream().unwrap();
    for _ in 0..10 {
        drop(watched.alloc_from(&stream, &[1_u8; 100]).unwrap());
        watched.alloc_zeroed::<u8>(100).unwrap().close().unwrap();
        drop(watched.alloc_pinned::<u8>(100).unwrap());
        watched.alloc_pinned::<u8>(100).unwrap().close().unwrap();
    }
    common::unwatch();
    assert_eq!(*counts.borrow(), (40, 40));
}

#[test]
fn foreign_memory_is_never_copied_by_hip() {
    let device = device();
    let stream = device.stream().unwrap();
    let mut buffer = device.alloc_from(&stream, &[1_u32; 8]).unwrap();
    let mut owner = device.alloc_from(&stream, &[2_u32; 8]).unwrap();
    let pointer = owner.on_mut(&stream).unwrap().as_mut_ptr();
    // SAFETY: `owner` lives to the end of the test, is used on this stream only, and not while these slices are.
    let (foreign, mut foreign_mut) = unsafe {
        (
            DeviceSlice::from_raw_parts(pointer, 8, &stream),
            DeviceSliceMut::from_raw_parts(pointer, 8, &stream),
        )
    };
    let mut host = [0; 8];
    let refused = [
        foreign.copy_to_slice(&mut host).unwrap_err(),
        foreign.slice(2..4).unwrap().copy_to_slice(&mut host[..2]).unwrap_err(),
        foreign_mut.copy_from_slice(&[0; 8]).unwrap_err(),
        foreign_mut.fill_zero().unwrap_err(),
        foreign_mut.as_slice().copy_to_slice(&mut host).unwrap_err(),
        foreign_mut.copy_from(buffer.on(&stream).unwrap()).unwrap_err(),
        buffer.on_mut(&stream).unwrap().copy_from(foreign).unwrap_err(),
    ];
    for error in refused {
        assert!(matches!(error, Error::ForeignMemory { .. }), "{error}");
    }
    // SAFETY: as above, and HIP allocated the memory.
    unsafe { DeviceSlice::from_hip_raw_parts(pointer, 8, &stream) }
        .copy_to_slice(&mut host)
        .unwrap();
    assert_eq!(host, [2; 8]);
}

#[test]
fn a_copy_between_streams_is_refused() {
    let device = device();
    let (first, second) = (device.stream().unwrap(), device.stream().unwrap());
    let source = device.alloc_zeroed::<u8>(4).unwrap();
    let mut target = device.alloc_zeroed::<u8>(4).unwrap();
    let error = target
        .on_mut(&first)
        .unwrap()
        .copy_from(source.on(&second).unwrap())
        .unwrap_err();
    assert!(matches!(error, Error::WrongStream { .. }), "{error}");
    assert!(
        error
            .to_string()
            .starts_with("copy_from: source was taken for another stream")
    );
}

#[test]
fn objects_of_two_runtimes_do_not_mix() {
    let (here, there) = (device(), runtime(common::hip_api()).device(0).unwrap());
    let (stream, foreign) = (here.stream().unwrap(), there.stream().unwrap());
    let mut buffer = here.alloc_zeroed::<u8>(4).unwrap();
    assert!(matches!(buffer.on(&foreign), Err(Error::WrongDevice { .. })));
    assert!(matches!(buffer.on_mut(&foreign), Err(Error::WrongDevice { .. })));
    assert!(matches!(
        stream.wait(&foreign.record().unwrap()),
        Err(Error::WrongDevice { .. })
    ));
    assert!(matches!(stream.wait_for(&foreign), Err(Error::WrongDevice { .. })));
    assert!(matches!(
        here.event().unwrap().record_on(&foreign),
        Err(Error::WrongDevice { .. })
    ));
    assert!(matches!(
        here.alloc_pinned::<u8>(4).unwrap().on(&foreign),
        Err(Error::WrongDevice { .. })
    ));
    let error = buffer.on(&foreign).unwrap_err().to_string();
    assert_eq!(
        error,
        "DeviceBuffer::on: stream belongs to device 0 of another runtime, but device 0 of this runtime is needed"
    );
}

#[test]
fn pinned_memory_is_one_memory_for_host_and_device() {
    let device = device();
    let stream = device.stream().unwrap();
    let mut pinned = device.alloc_pinned::<u32>(6).unwrap();
    pinned.host_mut().unwrap().copy_from_slice(&[1, 2, 3, 4, 5, 6]);
    let mut seen = [0; 6];
    pinned.on(&stream).unwrap().copy_to_slice(&mut seen).unwrap();
    assert_eq!(seen, [1, 2, 3, 4, 5, 6]);
    pinned
        .on_mut(&stream)
        .unwrap()
        .slice_mut(1..3)
        .unwrap()
        .copy_from_slice(&[20, 30])
        .unwrap();
    assert_eq!(pinned.host().unwrap(), [1, 20, 30, 4, 5, 6]);
}

#[test]
fn registered_memory_can_be_registered_again_afterwards() {
    let device = device();
    let mut memory = vec![3_u16; 5000];
    for round in 0..3 {
        let sum = hip::with_registered(&device, &mut memory, |mut registered| {
            registered.host_mut().unwrap()[0] = round;
            assert!(!registered.device_ptr().is_null());
            registered.host().unwrap().iter().map(|&x| u32::from(x)).sum::<u32>()
        });
        assert_eq!(sum.unwrap(), 3 * 4999 + u32::from(round));
    }
    let mut nothing: Vec<u16> = Vec::new();
    assert_eq!(
        hip::with_registered(&device, &mut nothing, |registered| registered.len()).unwrap(),
        0
    );
}

#[test]
fn a_device_that_is_not_there_is_named_with_the_count() {
    let runtime = runtime(common::hip_api());
    let count = runtime.device_count().unwrap();
    for ordinal in [count, usize::MAX] {
        let error = runtime.device(ordinal).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("HIP device {ordinal} does not exist: {count} visible")),
            "{error}"
        );
    }
}

#[test]
fn a_device_describes_itself() {
    let device = device();
    assert!(!device.name().unwrap().is_empty());
    assert!(!device.arch().unwrap().is_empty());
    let info = device.memory_info().unwrap();
    assert!(info.free <= info.total && info.total > 0);
    let address = device.pci_address().unwrap();
    assert_eq!(address.to_string().len(), "0000:00:00.0".len());
    assert!(
        device
            .attribute(hip_sys::hipDeviceAttribute_t::hipDeviceAttributeMaxThreadsPerBlock)
            .unwrap()
            > 0
    );
    assert!(device.runtime().versions().unwrap().runtime > 0);
    assert_eq!(device, device.runtime().device(0).unwrap());
}

#[test]
fn a_slice_can_be_seen_as_another_type_of_the_same_bytes() {
    let device = device();
    let stream = device.stream().unwrap();
    let mut words = device.alloc_from(&stream, &[0x0403_0201_u32, 0x0807_0605]).unwrap();
    let mut bytes = [0_u8; 8];
    let slice = words.on(&stream).unwrap();
    slice.cast::<u8>().unwrap().copy_to_slice(&mut bytes).unwrap();
    assert_eq!(bytes, [1, 2, 3, 4, 5, 6, 7, 8]);
    let middle = slice.cast::<u8>().unwrap().slice(1..5).unwrap();
    assert!(matches!(middle.cast::<u32>(), Err(Error::Cast { .. })));
    assert!(slice.slice(..1).unwrap().cast::<u64>().is_err());
    let mut halves = words.on_mut(&stream).unwrap().cast::<[u16; 2]>().unwrap();
    halves.copy_from_slice(&[[1, 0], [2, 0]]).unwrap();
    let mut seen = [0; 2];
    words.copy_to_slice(&stream, &mut seen).unwrap();
    assert_eq!(seen, [1, 2]);
}

unsafe extern "C" fn not_on_the_default_stream(
    to: *mut std::ffi::c_void,
    value: i32,
    bytes: usize,
    stream: hip_sys::hipStream_t,
) -> hip_sys::hipError_t {
    assert!(!stream.is_null(), "the default stream shares hardware queues");
    let set = common::hip_api().hipMemsetAsync.unwrap();
    // SAFETY: the caller's arguments.
    unsafe { set(to, value, bytes, stream) }
}

unsafe extern "C" fn never_waited_for(stream: hip_sys::hipStream_t) -> hip_sys::hipError_t {
    assert!(!stream.is_null(), "the default stream shares hardware queues");
    let wait = common::hip_api().hipStreamSynchronize.unwrap();
    // SAFETY: the caller's stream.
    unsafe { wait(stream) }
}

#[test]
fn zeroed_memory_is_made_without_the_default_stream() {
    let api = hip_sys::Api {
        hipMemsetAsync: Some(not_on_the_default_stream),
        hipStreamSynchronize: Some(never_waited_for),
        ..common::hip_api()
    };
    let without_priorities = hip_sys::Api {
        hipStreamCreateWithPriority: None,
        ..api
    };
    for api in [api, without_priorities] {
        let device = runtime(api).device(0).unwrap();
        let stream = device.stream().unwrap();
        let buffer = device.alloc_zeroed::<u32>(1000).unwrap();
        let mut seen = vec![7; 1000];
        buffer.copy_to_slice(&stream, &mut seen).unwrap();
        assert_eq!(seen, [0; 1000]);
    }
}

/// Writes the values to the memory on the stream, and reads them back.
fn taken<M>(memory: M, values: &[u32], stream: &hip::Stream) -> hip::Result<Vec<u32>>
where
    M: DeviceMemoryMut<Element = u32>,
{
    assert_eq!((memory.len(), memory.is_empty()), (values.len(), false));
    let mut slice = memory.write_on(stream)?;
    assert_eq!((slice.len(), slice.stream()), (values.len(), stream));
    slice.copy_from_slice(values)?;
    let mut seen = vec![0; values.len()];
    slice.read_on(stream)?.copy_to_slice(&mut seen)?;
    Ok(seen)
}

#[test]
fn memory_is_taken_on_the_stream_that_asks_and_a_slice_only_on_its_own() {
    let device = device();
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    let values = [3, 1, 4, 1, 5];
    let mut buffer = device.alloc::<u32>(5).unwrap();
    let mut pinned = device.alloc_pinned(5).unwrap();
    let mut managed = device.alloc_managed(5).unwrap();
    let mut host = vec![0; 5];
    for stream in [&stream, &other] {
        assert_eq!(taken(&mut buffer, &values, stream).unwrap(), values);
        assert_eq!(taken(&mut pinned, &values, stream).unwrap(), values);
        assert_eq!(taken(&mut managed, &values, stream).unwrap(), values);
        let registered = hip::with_registered(&device, &mut host, |mut memory| taken(&mut memory, &values, stream));
        assert_eq!(registered.unwrap().unwrap(), values);
    }
    assert_eq!(host, values);
    let mut slice = buffer.on_mut(&stream).unwrap();
    assert_eq!(taken(&mut slice, &values, &stream).unwrap(), values);
    assert_eq!((&slice).read_on(&stream).unwrap().len(), 5);
    assert!(matches!((&slice).read_on(&other), Err(Error::WrongStream { .. })));
    assert!(matches!(
        slice.as_slice().read_on(&other),
        Err(Error::WrongStream { .. })
    ));
    assert!(matches!(
        taken(&mut slice, &values, &other),
        Err(Error::WrongStream { .. })
    ));
    assert!(matches!(slice.write_on(&other), Err(Error::WrongStream { .. })));
    let foreign = common::device().stream().unwrap();
    assert!(matches!((&buffer).read_on(&foreign), Err(Error::WrongDevice { .. })));
}
