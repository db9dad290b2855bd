//! What a program does with the crate, one piece after the other.

use std::os::fd::AsFd;

use hip::rtc::{Cache, Program};
use hip::{Condition, Device, Error, LaunchConfig, Location, Rect, Result};

use crate::another_process;
use crate::ledger::counted_runtime;

pub type Operation = fn(&Device) -> Result<()>;

pub const OPERATIONS: &[(&str, Operation)] = &[
    ("buffers", |device| {
        let (a, b) = (device.stream()?, device.stream()?);
        let mut x = device.alloc_zeroed::<u32>(64)?;
        let y = device.alloc_from(&a, &[7_u32; 64])?;
        x.on_mut(&b)?.copy_from(y.on(&b)?)?;
        let mut seen = [0; 64];
        x.copy_to_slice(&a, &mut seen)?;
        assert_eq!(seen, [7; 64]);
        x.close().map_err(|(error, _)| error)
    }),
    ("rectangles", |device| {
        let stream = device.stream()?;
        let mut x = device.alloc_zeroed::<u8>(64)?;
        let rect = Rect {
            width: 4,
            height: 4,
            source_pitch: 4,
            destination_pitch: 8,
        };
        x.on_mut(&stream)?.copy_rect_from_slice(&[3; 16], rect)?;
        x.on(&stream)?.copy_rect_to_slice(&mut [0; 64], rect)
    }),
    ("host memory", |device| {
        let stream = device.stream()?;
        let mut pinned = device.alloc_pinned::<u32>(64)?;
        pinned.host_mut()?.fill(3);
        pinned.on_mut(&stream)?.fill_zero()?;
        assert_eq!(pinned.host()?, [0; 64]);
        let mut own = vec![1_u32; 64];
        hip::with_registered(device, &mut own, |mut own| own.on_mut(&stream)?.fill_zero())?
    }),
    ("managed memory", |device| {
        let stream = device.stream()?;
        let mut managed = device.alloc_managed::<u32>(64)?;
        managed.prefetch(&stream, Location::Device(device))?;
        managed.advise(hip::Advice::ReadMostly)?;
        managed.on_mut(&stream)?.fill_zero()?;
        managed.host().map(drop)
    }),
    ("pools", |device| {
        let (home, other) = (device.stream()?, device.stream()?);
        let pool = device.mem_pool()?;
        pool.set_release_threshold(1 << 20)?;
        let mut x = pool.alloc::<u32>(&home, 64)?;
        x.on_mut(&other)?.fill_zero()?;
        let y = home.alloc::<u32>(64)?;
        x.on_mut(&other)?.copy_from(y.on(&other)?)?;
        drop((x, y));
        home.synchronize()?;
        device.default_mem_pool()?.usage()?;
        pool.trim_to(0)
    }),
    ("events, flags, host functions", |device| {
        let (a, b) = (device.stream()?, device.stream()?);
        let (start, end) = (a.record()?, a.record()?);
        b.wait(&end)?;
        end.synchronize()?;
        end.is_complete()?;
        a.is_idle()?;
        end.elapsed_since(&start)?;
        a.host_function(|| ())?;
        a.on_complete(drop)?;
        // SAFETY: `a` outlives the second handle of its stream.
        drop(unsafe { hip::Stream::from_raw(device, a.raw(), ()) }?);
        drop(a.completion()?);
        let (wide, narrow) = (device.flag::<u64>()?, device.flag::<u32>()?);
        a.write_flag(&wide, 5)?;
        a.write_flag(&narrow, 5)?;
        let waiting = (
            b.wait_flag(&wide, Condition::AtLeast(5)),
            b.wait_flag(&narrow, Condition::AtLeast(5)),
        );
        // Also when the write failed: no test means to leave a stream waiting for ever.
        wide.store(5);
        narrow.store(5);
        waiting.0?;
        waiting.1?;
        b.synchronize()?;
        a.synchronize()
    }),
    ("kernels", |device| {
        let stream = device.stream()?;
        let source = "extern \"C\" __global__ void k(int *x) { x[threadIdx.x] = 1; }";
        let module = Program::new(source).compile(device)?;
        let mut x = device.alloc_zeroed::<i32>(32)?;
        let config = LaunchConfig::linear(32, 32)?;
        // SAFETY: 32 threads on 32 elements.
        unsafe { module.function("k")?.launch(&stream, config, &[&x.on_mut(&stream)?])? };
        drop(module);
        x.copy_to_slice(&stream, &mut [0; 32])
    }),
    ("exported memory", |device| {
        let stream = device.stream()?;
        let memory = device.virtual_memory(4096)?;
        // SAFETY: made with this size; used one after the other.
        let fd = unsafe { memory.export() }?;
        // SAFETY: as above.
        let again = unsafe { device.import_virtual_memory(fd.as_fd(), 4096)? };
        // SAFETY: as above.
        let external = unsafe { device.import_memory(fd.as_fd(), 4096)? };
        // SAFETY: as above.
        let mut view = unsafe { external.buffer::<u32>(64, 16)? };
        view.copy_from_slice(&stream, &[9; 16])?;
        let mut seen = [0; 1024];
        memory.into_buffer()?.copy_to_slice(&stream, &mut seen)?;
        assert_eq!(seen[16..32], [9; 16]);
        again.into_buffer::<u32>().map(drop)
    }),
    ("graphs", |device| {
        let stream = device.stream()?;
        let mut x = device.alloc_zeroed::<u32>(64)?;
        let graph = stream.capture(|stream| x.on_mut(stream)?.fill_zero())?;
        assert_eq!(graph.node_count()?, 1);
        let graph = graph.instantiate()?;
        let slice = x.on_mut(&stream)?;
        // SAFETY: the graph uses this one buffer.
        unsafe { graph.launch(&stream, &[&slice])? };
        stream.synchronize()
    }),
    ("questions", |device| {
        let x = device.alloc::<u32>(4)?;
        let stream = device.stream()?;
        let pointer = x.on(&stream)?.as_ptr();
        device.runtime().pointer_info(pointer.cast())?;
        let nothing = [0_u8; 4];
        assert_eq!(device.allocation_of(nothing.as_ptr().cast())?, None);
        device.allocation_of(pointer.cast())?;
        x.share()?;
        device.shared_event()?.share().map(drop)
    }),
    ("a runtime and its devices", |_| {
        let runtime = counted_runtime()?;
        assert_eq!(runtime.device_count()?, 2);
        runtime.versions()?;
        let device = runtime.device(0)?;
        device.name()?;
        device.arch()?;
        device.pci_address()?;
        device.uuid()?;
        device.memory_info()?;
        device.attribute(hip_sys::hipDeviceAttribute_t::hipDeviceAttributeWarpSize)?;
        device.synchronize()
    }),
    ("templates and occupancy", |device| {
        let module = Program::new("template <typename T> __global__ void k(T *x) { *x = T(1); }")
            .instance("k<int>")
            .compile(device)?;
        let k = module.function("k<int>")?;
        k.max_threads_per_block()?;
        k.active_blocks(64, 0)?;
        k.suggested_block(0, 0).map(drop)
    }),
    ("a cache of programs", |device| {
        let folder = tempfile::tempdir().unwrap();
        // SAFETY: only the cache writes there.
        let cache = unsafe { Cache::open_in(folder.path()) };
        let program = Program::new("extern \"C\" __global__ void k() {}");
        cache.compile(&program, device)?;
        cache.compile(&program, device)?;
        // A kept program that cannot be loaded is compiled again, and told of here.
        match cache.stats().trouble {
            None => Ok(()),
            Some(trouble) => Err(Error::Answer {
                call: "hipModuleLoadData",
                answer: trouble,
                expected: "a module",
            }),
        }
    }),
    ("peers", |device| {
        let other = device.runtime().device(1)?;
        let (here, there) = (device.stream()?, other.stream()?);
        assert!(other.can_access(device)?);
        let mut x = device.alloc_zeroed::<u32>(64)?;
        x.on_peer_mut(&there)?.fill_zero()?;
        let mut y = other.alloc::<u32>(64)?;
        y.copy_from_peer(&there, &x)?;
        x.copy_from_slice(&here, &[1; 64])?;
        there.synchronize()
    }),
    ("memory of another process", |device| {
        let (memory, event) = another_process::handles();
        let stream = device.stream()?;
        // SAFETY: `share` gave these bytes to the other process, which is there until the tests are done.
        let written = unsafe { event.open(device) }?;
        stream.wait(&written)?;
        // SAFETY: as above; the other process does not touch it any more.
        let buffer = unsafe { memory.open::<u32>(device, 64) }?;
        let mut seen = [0; 64];
        buffer.copy_to_slice(&stream, &mut seen)?;
        assert_eq!(seen, [6; 64]);
        buffer.close().map_err(|(error, _)| error)
    }),
    ("semaphores", |device| {
        let file = std::fs::File::open("/dev/null").unwrap();
        match device.import_semaphore(file.as_fd()) {
            Err(Error::NotSupported { .. }) => Ok(()),
            Err(error) => Err(error),
            Ok(semaphore) => panic!("the host platform has none: {semaphore:?}"),
        }
    }),
];
