//! What HIP knows of pointers and kernels.

mod common;

use common::device;
use hip::rtc::Program;
use hip::{Error, MemoryKind};

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
    assert_eq!(
        runtime.pointer_info((&raw const buffer).cast()).unwrap(),
        None
    );
    let base = buffer.on(&stream).unwrap().as_ptr();
    let (start, bytes) = device.allocation_of(inside.cast()).unwrap().unwrap();
    assert_eq!((start.cast_const().cast(), bytes), (base, 400));
    assert_eq!(
        device.allocation_of((&raw const buffer).cast()).unwrap(),
        None
    );
}

#[test]
fn occupancy_is_told_or_its_function_named() {
    let device = device();
    let source = "extern \"C\" __global__ void k() {}";
    let k = Program::new(source)
        .compile(&device)
        .unwrap()
        .function("k")
        .unwrap();
    match k.active_blocks(256, 0) {
        Ok(blocks) => {
            assert!(blocks >= 1);
            let suggestion = k.suggested_block(0, 128).unwrap();
            assert!(suggestion.block <= 128 && suggestion.grid >= 1);
        }
        Err(Error::MissingSymbol { symbol }) => {
            assert_eq!(symbol, "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor");
        }
        Err(error) => panic!("{error}"),
    }
    assert!(k.active_blocks(u32::MAX, 0).is_err());
}
