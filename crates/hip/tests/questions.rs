//! What HIP knows of pointers and kernels.

mod common;

use common::{Gate, device};
use hip::rtc::Program;
use hip::{BlockSuggestion, Device, Error, Function, LaunchConfig, MemoryKind};
use hip_sys::{hipDeviceAttribute_t, hipError_t};

#[test]
fn each_kind_of_memory_is_recognised() {
    let device = device();
    let stream = device.stream().unwrap();
    let runtime = device.runtime();
    let buffer = device.alloc_zeroed::<u32>(100).unwrap();
    let pinned = device.alloc_pinned::<u32>(100).unwrap();
    let managed = device.alloc_managed::<u32>(100).unwrap();
    let inside = buffer.on(&stream).unwrap().slice(50..).unwrap().as_ptr();
    for (pointer, kind) in [
        (inside, MemoryKind::Device),
        (pinned.host().unwrap().as_ptr(), MemoryKind::Host),
        (managed.as_ptr(), MemoryKind::Managed),
    ] {
        let info = runtime.pointer_info(pointer.cast()).unwrap().unwrap();
        assert_eq!((info.kind, info.device), (kind, 0));
    }
    assert_eq!(runtime.pointer_info((&raw const buffer).cast()).unwrap(), None);
    let base = buffer.on(&stream).unwrap().as_ptr();
    let (start, bytes) = device.allocation_of(inside.cast()).unwrap().unwrap();
    assert_eq!((start.cast_const().cast(), bytes), (base, 400));
    assert_eq!(device.allocation_of((&raw const buffer).cast()).unwrap(), None);
}

fn empty_kernel(device: &Device) -> Function {
    let source = "extern \"C\" __global__ void k() {}";
    let module = Program::new(source).compile(device).unwrap();
    module.function("k").unwrap()
}

#[test]
fn more_threads_or_shared_memory_leave_room_for_fewer_blocks() {
    let device = device();
    let k = empty_kernel(&device);
    let threads = device
        .attribute(hipDeviceAttribute_t::hipDeviceAttributeMaxThreadsPerBlock)
        .unwrap()
        .cast_unsigned();
    let shared = device
        .attribute(hipDeviceAttribute_t::hipDeviceAttributeMaxSharedMemoryPerBlock)
        .unwrap() as usize;
    let mut before = u32::MAX;
    for block in [64, 128, 256, 512, 1024] {
        let blocks = k.active_blocks(block, 0).unwrap();
        assert!(blocks >= 1 && blocks <= before, "{block}: {blocks}");
        before = blocks;
    }
    assert_eq!(k.max_threads_per_block().unwrap(), threads);
    assert!(k.active_blocks(64, 0).unwrap() > k.active_blocks(threads, 0).unwrap());
    assert_eq!(k.active_blocks(64, shared).unwrap(), 1);
    assert!(
        k.active_blocks(64, shared + 1).is_err() || k.active_blocks(64, shared + 1).unwrap() == 0,
        "more shared memory than there is"
    );
    assert!(matches!(k.active_blocks(u32::MAX, 0), Err(Error::Launch { .. })));
}

#[test]
fn a_suggested_block_can_be_launched_and_keeps_its_bound() {
    let device = device();
    let stream = device.stream().unwrap();
    let k = empty_kernel(&device);
    let free = k.suggested_block(0, 0).unwrap();
    for most in [0, 1, 64, 100, 128, 1024] {
        let BlockSuggestion { grid, block } = k.suggested_block(0, most).unwrap();
        assert!(most == 0 || block <= most, "at most {most}: {block}");
        assert!(block <= free.block && grid >= 1);
        let config = LaunchConfig {
            grid: (grid, 1, 1),
            block: (block, 1, 1),
            shared_bytes: 0,
        };
        // SAFETY: the kernel has no parameters and does nothing.
        unsafe { k.launch(&stream, config, &[]) }.unwrap();
    }
    stream.synchronize().unwrap();
    assert!(matches!(k.suggested_block(0, u32::MAX), Err(Error::Launch { .. })));
}

unsafe extern "C" fn answers_a_warp(
    grid: *mut i32,
    block: *mut i32,
    _: hip_sys::hipFunction_t,
    _: usize,
    _: i32,
) -> hip_sys::hipError_t {
    // SAFETY: the caller's places for one int each.
    unsafe { (grid.write(1), block.write(64)) };
    hip_sys::hipError_t::hipSuccess
}

#[test]
fn a_suggestion_above_the_limit_is_cut_to_it() {
    let api = hip_sys::Api {
        hipModuleOccupancyMaxPotentialBlockSize: Some(answers_a_warp),
        ..common::hip_api()
    };
    let device = common::runtime(api).device(0).unwrap();
    let k = empty_kernel(&device);
    for (most, block) in [(1, 1), (63, 63), (65, 64), (0, 64)] {
        assert_eq!(k.suggested_block(0, most).unwrap().block, block, "{most}");
    }
}

#[test]
fn a_library_without_occupancy_is_told_by_the_functions_name() {
    let api = hip_sys::Api {
        hipModuleOccupancyMaxActiveBlocksPerMultiprocessor: None,
        hipModuleOccupancyMaxPotentialBlockSize: None,
        ..common::hip_api()
    };
    let device = common::runtime(api).device(0).unwrap();
    let k = empty_kernel(&device);
    assert!(matches!(
        k.active_blocks(64, 0),
        Err(Error::MissingSymbol {
            symbol: "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor"
        })
    ));
    assert!(matches!(
        k.suggested_block(0, 0),
        Err(Error::MissingSymbol {
            symbol: "hipModuleOccupancyMaxPotentialBlockSize"
        })
    ));
}

#[test]
fn an_answer_that_is_no_failure_leaves_no_last_error() {
    let device = device();
    let stream = device.stream().unwrap();
    let last_error = || {
        let peek = device.runtime().api().hipPeekAtLastError.unwrap();
        // SAFETY: takes no arguments.
        unsafe { peek() }
    };
    let nobody = [0_u8; 4];
    let gate = Gate::close(&stream);
    let event = stream.record().unwrap();

    assert!(!stream.is_idle().unwrap());
    assert_eq!(last_error(), hipError_t::hipSuccess, "a busy stream");
    assert!(!event.is_complete().unwrap());
    assert_eq!(last_error(), hipError_t::hipSuccess, "a pending event");
    let address = nobody.as_ptr().cast();
    assert_eq!(device.runtime().pointer_info(address).unwrap(), None);
    assert_eq!(last_error(), hipError_t::hipSuccess, "an unknown pointer");
    assert_eq!(device.allocation_of(address).unwrap(), None);
    assert_eq!(last_error(), hipError_t::hipSuccess, "no allocation");
    gate.open();
}
