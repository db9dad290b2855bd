//! Whatever is made is given back, and every call that fails is told: each function of each operation is made to fail in
//! turn.

mod common;

use std::any::Any;
use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};

use common::runtime;
use hip::rtc::Program;
use hip::{Condition, Device, LaunchConfig, Location, Rect, Result};
use hip_sys::*;

/// Calls, and those of them that succeeded, by name.
static CALLS: Mutex<BTreeMap<&'static str, (u64, u64)>> = Mutex::new(BTreeMap::new());

fn note(name: &'static str, result: &dyn Any) {
    let ok = result
        .downcast_ref::<hipError_t>()
        .is_none_or(|code| *code == hipError_t::hipSuccess);
    let mut calls = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
    let entry = calls.entry(name).or_default();
    entry.0 += 1;
    entry.1 += u64::from(ok);
}

macro_rules! ledger {
    ($(fn $name:ident($($argument:ident: $kind:ty),* $(,)?) $(-> $result:ty)? = $slot:ident;)*) => {
        mod counted {
            use super::*;
            $(
                #[allow(clippy::too_many_arguments, reason = "C signatures")]
                pub unsafe extern "C" fn $name($($argument: $kind),*) $(-> $result)? {
                    // SAFETY: the caller's promise is the callee's demand; only functions that are there are wrapped.
                    let result = unsafe { common::hip_api().$slot.unwrap()($($argument),*) };
                    note(stringify!($name), &result);
                    result
                }
            )*
        }

        /// The host platform's table, with an entry in the ledger for every call.
        fn counted_table() -> Api {
            let host = common::hip_api();
            Api {
                $($slot: match host.$slot {
                    Some(_) => Some(counted::$name),
                    None => None,
                },)*
                // other releases' functions, which the host platform does not have
                ..Api::EMPTY
            }
        }
    };
}

hip_sys::for_each_function!(ledger);

/// What each function makes is given back by one of the others.
const PAIRS: &[(&[&str], &[&str])] = &[
    (
        &[
            "hipMalloc",
            "hipMallocManaged",
            "hipExternalMemoryGetMappedBuffer",
        ],
        &["hipFree"],
    ),
    (
        &["hipMallocAsync", "hipMallocFromPoolAsync"],
        &["hipFreeAsync"],
    ),
    (&["hipMemPoolCreate"], &["hipMemPoolDestroy"]),
    (&["hipHostMalloc"], &["hipHostFree"]),
    (&["hipHostRegister"], &["hipHostUnregister"]),
    (&["hipStreamCreateWithFlags"], &["hipStreamDestroy"]),
    (&["hipEventCreateWithFlags"], &["hipEventDestroy"]),
    (&["hipModuleLoadData"], &["hipModuleUnload"]),
    (&["hipImportExternalMemory"], &["hipDestroyExternalMemory"]),
    (
        &["hipMemCreate", "hipMemImportFromShareableHandle"],
        &["hipMemRelease"],
    ),
    (&["hipMemAddressReserve"], &["hipMemAddressFree"]),
    (&["hipMemMap"], &["hipMemUnmap"]),
    (&["hipStreamEndCapture"], &["hipGraphDestroy"]),
    (&["hipGraphInstantiate"], &["hipGraphExecDestroy"]),
];

/// Functions whose failure changes nothing, so that nobody is told.
const TOLERATED: &[&str] = &[
    // Then HIP is told which device is meant.
    "hipGetDevice",
    // HIP itself checks a launch whose limits are not known.
    "hipDeviceGetAttribute",
    // A stream that does not say that it is idle is kept a while longer.
    "hipStreamQuery",
    // A library that cannot tell cannot capture.
    "hipStreamIsCapturing",
];

type Operation = fn(&Device) -> Result<()>;

const OPERATIONS: &[(&str, Operation)] = &[
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
        hip::with_registered(device, &mut own, |own| own.on_mut(&stream)?.fill_zero())?
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
        pool.usage()?;
        pool.trim_to(0)
    }),
    ("events, flags, host functions", |device| {
        let (a, b) = (device.stream()?, device.stream()?);
        let (start, end) = (a.record()?, a.record()?);
        b.wait(&end)?;
        end.synchronize()?;
        end.is_complete()?;
        end.elapsed_since(&start)?;
        a.host_function(|| ())?;
        drop(a.completion()?);
        let flag = device.flag::<u64>()?;
        a.write_flag(&flag, 5)?;
        let waiting = b.wait_flag(&flag, Condition::AtLeast(5));
        // Also when the write failed: a stream that waits for ever is nobody's aim.
        flag.store(5);
        waiting?;
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
        unsafe {
            module
                .function("k")?
                .launch(&stream, config, &[&x.on_mut(&stream)?])?
        };
        drop(module);
        x.copy_to_slice(&stream, &mut [0; 32])
    }),
    ("exported memory", |device| {
        let stream = device.stream()?;
        let memory = device.virtual_memory(4096)?;
        let fd = memory.export()?;
        // SAFETY: made with this size; used one after the other.
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
        let graph = stream
            .capture(|stream| x.on_mut(stream)?.fill_zero())?
            .instantiate()?;
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
        device.allocation_of(pointer.cast())?;
        x.share()?;
        device.shared_event()?.share().map(drop)
    }),
];

/// How many more were made than given back, by pair.
fn balance(calls: &BTreeMap<&'static str, (u64, u64)>) -> Vec<i64> {
    let sum = |names: &[&str]| -> i64 {
        let succeeded = names.iter().filter_map(|name| calls.get(name));
        succeeded.map(|(_, ok)| *ok as i64).sum()
    };
    PAIRS
        .iter()
        .map(|(make, give_back)| sum(make) - sum(give_back))
        .collect()
}

fn run(
    operation: Operation,
    device: &Device,
) -> (Result<()>, usize, BTreeMap<&'static str, (u64, u64)>) {
    CALLS.lock().unwrap().clear();
    let outcome = operation(device);
    hip_host::faults::set_failures("").unwrap();
    let deferred = device.runtime().take_deferred_errors().len();
    let calls = std::mem::take(&mut *CALLS.lock().unwrap());
    (outcome, deferred, calls)
}

#[test]
fn each_call_that_fails_is_told_and_leaves_nothing() {
    let device = runtime(counted_table()).device(0).unwrap();
    // Asked once and kept.
    let limits = OPERATIONS.iter().find(|(name, _)| *name == "kernels");
    limits.unwrap().1(&device).unwrap();
    for (what, operation) in OPERATIONS {
        let (outcome, deferred, calls) = run(*operation, &device);
        outcome.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(deferred, 0, "{what}");
        assert_eq!(balance(&calls), vec![0; PAIRS.len()], "{what}");
        for (name, (count, _)) in calls {
            for nth in 1..=count.min(4) {
                let at = format!("{what}: {name}, call {nth}");
                hip_host::faults::set_failures(&format!("{name}:{nth}")).unwrap();
                let (outcome, deferred, calls) = run(*operation, &device);
                let told = outcome.is_err() || deferred > 0;
                assert!(told || TOLERATED.contains(&name), "{at}: nobody was told");
                if let Err(error) = outcome {
                    let text = error.to_string();
                    assert!(!text.contains('\n') && text.contains("hip"), "{at}: {text}");
                }
                let gives_back = PAIRS.iter().position(|(_, give)| give.contains(&name));
                for (pair, more) in balance(&calls).into_iter().enumerate() {
                    // Addresses that are still mapped cannot be given back either.
                    let mapped = name == "hipMemUnmap" && PAIRS[pair].1 == ["hipMemAddressFree"];
                    let expected = i64::from(gives_back == Some(pair) || mapped);
                    assert!(
                        more == 0 || more == expected,
                        "{at}: {more} of {:?} left",
                        PAIRS[pair].0
                    );
                }
            }
        }
    }
}
