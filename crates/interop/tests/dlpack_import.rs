//! Tensors of other producers: memory of the host, memory that HIP did not allocate, memory that OpenCL
//! can't be given, and the order of the producer's work.

mod common;

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use interop::dlpack::Layout;
use interop::dlpack::abi::{DataType, Device, DeviceType, ManagedTensorVersioned, Tensor, VERSION};
use interop::{Bridge, Error, Options, Policy, Route};
use platform::{ForeignHooks, ForeignKind};

/// A tensor of this test's own, whose deleter counts its calls.
struct Produced {
    form: ManagedTensorVersioned,
    shape: Vec<i64>,
    strides: Vec<i64>,
    deleted: AtomicUsize,
}

unsafe extern "C" fn delete(tensor: *mut ManagedTensorVersioned) {
    // SAFETY: the context of every tensor here is its `Produced`, which the test keeps.
    let produced = unsafe { (*tensor).manager_ctx.cast::<Produced>().as_ref() };
    let produced = produced.expect("a producer");
    produced.deleted.fetch_add(1, Ordering::SeqCst);
}

impl Produced {
    /// Of words.
    fn new(device_type: DeviceType, data: *mut u32, shape: &[i64], strides: &[i64]) -> Box<Self> {
        let mut produced = Box::new(Self {
            form: ManagedTensorVersioned {
                version: VERSION,
                manager_ctx: std::ptr::null_mut(),
                deleter: Some(delete),
                flags: 0,
                dl_tensor: Tensor {
                    data: data.cast(),
                    device: Device {
                        device_type,
                        device_id: 0,
                    },
                    ndim: shape.len() as i32,
                    dtype: DataType {
                        code: 1,
                        bits: 32,
                        lanes: 1,
                    },
                    shape: std::ptr::null_mut(),
                    strides: std::ptr::null_mut(),
                    byte_offset: 0,
                },
            },
            shape: shape.to_vec(),
            strides: strides.to_vec(),
            deleted: AtomicUsize::new(0),
        });
        produced.form.dl_tensor.shape = produced.shape.as_mut_ptr();
        produced.form.dl_tensor.strides = produced.strides.as_mut_ptr();
        produced.form.manager_ctx = (&raw mut *produced).cast();
        produced
    }

    fn raw(&mut self) -> *mut ManagedTensorVersioned {
        &raw mut self.form
    }

    fn deleted(&self) -> usize {
        self.deleted.load(Ordering::SeqCst)
    }
}

fn bridge(policy: Policy) -> Bridge {
    let options = Options {
        policy,
        ..Options::default()
    };
    Bridge::open(&common::host(), &options).expect("a bridge; run `cargo xtask setup` if OpenCL is missing")
}

#[test]
fn a_tensor_on_the_host_is_copied_where_that_is_permitted_and_counted() {
    let bridge = bridge(Policy::AllowCopy);
    let stream = bridge.stream().expect("a stream");
    // Columns of 3 in room for 5: what lies between belongs to someone else.
    let mut room: Vec<u32> = (0..20).collect();
    for device in [DeviceType::CPU, DeviceType::ROCM_HOST, DeviceType::CUDA_HOST] {
        let mut produced = Produced::new(device, room.as_mut_ptr(), &[3, 4], &[1, 5]);
        let before = bridge.meter().snapshot();
        // SAFETY: a living tensor, given away; its memory lives until the end of this function.
        let taken = unsafe { bridge.from_dlpack::<u32, _>(produced.raw(), &stream) };
        let mut taken = taken.expect("a copy");
        let counts = bridge.meter().snapshot().since(&before);
        assert_eq!((counts.data_set, counts.input), (18 * 4, 0), "{counts:?}");
        assert!(taken.is_copy);
        assert_eq!(produced.deleted(), 1, "nothing is needed any more");
        assert_eq!(taken.layout, Layout::matrix(3, 4, 5));
        let mut found = vec![0; 18];
        taken.shared.download(&mut found).expect("a download");
        let expected: Vec<u32> = (0..18).map(|i| if i % 5 < 3 { i } else { 0 }).collect();
        assert_eq!(found, expected);
        taken.shared.upload(&[9; 18]).expect("a buffer like any other");
        drop(taken);
        assert_eq!((produced.deleted(), room[1]), (1, 1));
    }
}

#[test]
fn a_tensor_on_the_host_stays_the_callers_where_copies_are_not_permitted() {
    for policy in [Policy::DirectOnly, Policy::PreferDirect] {
        let bridge = bridge(policy);
        let stream = bridge.stream().expect("a stream");
        let mut room = [1_u32; 4];
        let mut produced = Produced::new(DeviceType::CPU, room.as_mut_ptr(), &[4], &[1]);
        // SAFETY: a living tensor.
        let refused = unsafe { bridge.from_dlpack::<u32, _>(produced.raw(), &stream) };
        let text = refused.expect_err("a copy").to_string();
        assert!(
            text.starts_with("DLPack: a tensor in host memory needs a copy") && text.contains("Policy::AllowCopy"),
            "{text}"
        );
        assert_eq!(produced.deleted(), 0);
    }
}

#[test]
fn device_memory_of_another_runtime_is_taken_in_place() {
    let bridge = bridge(Policy::DirectOnly);
    let stream = bridge.stream().expect("a stream");
    let mut shared = bridge.alloc_on::<u32>(Route::SvmCoarse, 64).expect("memory");
    let input: Vec<u32> = (0..64).map(|i| i * 3).collect();
    shared.upload(&input).expect("an upload");
    let address = shared.addresses().expect("one address").1;
    // OpenCL allocated it, and HIP's own copies refuse it.
    let (tensor, loan) = shared
        .to_dlpack::<ManagedTensorVersioned>(&Layout::vector(64), &stream, false)
        .map_err(|(error, _)| error)
        .expect("a loan");
    let before = bridge.meter().snapshot();
    // SAFETY: a living tensor, given away on success; nothing else uses it.
    let taken = unsafe { bridge.from_dlpack::<u32, _>(tensor.into_raw(), &stream) };
    let mut taken = taken.expect("memory that HIP did not allocate");
    assert!(!taken.is_copy);
    assert_eq!(taken.shared.addresses(), Some((address, address)));
    assert_eq!(bridge.meter().snapshot().since(&before).data_set, 0);
    let mut found = vec![0; 64];
    taken.shared.download(&mut found).expect("a download");
    assert_eq!(found, input);
    taken.shared.upload(&[8; 64]).expect("an upload");
    let guard = taken.shared.hip(&stream).expect("access");
    assert!(guard.slice().is_foreign());
    drop(guard);
    drop(taken);
    let shared = loan.try_take().expect("the deleter has run");
    shared.download(&mut found).expect("a download");
    assert_eq!(found, [8; 64]);
}

unsafe fn refuse(_: *mut c_void, _: usize, _: ForeignKind, _: usize) -> Result<(), String> {
    Err("not of this platform".into())
}

#[test]
fn device_memory_out_of_opencls_reach_is_copied_on_the_device_where_that_is_permitted() {
    let mut selection = common::host();
    // SAFETY: these hooks take and release what they are given, or refuse it.
    let tables = unsafe { selection.tables_mut() };
    tables.foreign = Some(ForeignHooks {
        adopt: refuse,
        release: |_| Ok(()),
        // OpenCL accepts no HIP address, as with CUDA.
        reaches_hip: || false,
        launch: hip_host::foreign::launch,
        end: hip_host::foreign::end,
    });
    for (policy, copies) in [(Policy::DirectOnly, false), (Policy::AllowCopy, true)] {
        let options = Options {
            policy,
            ..Options::default()
        };
        let bridge = Bridge::open(&selection, &options).expect("a bridge");
        let stream = bridge.stream().expect("a stream");
        let input: Vec<u32> = (0..64).map(|i| i ^ 5).collect();
        let mut memory = stream.device().alloc_from(&stream, &input).expect("memory");
        let ptr = memory.on_mut(&stream).expect("access").as_mut_ptr();
        let mut produced = Produced::new(DeviceType::EXT_DEV, ptr, &[64], &[1]);
        let before = bridge.meter().snapshot();
        // SAFETY: a living tensor whose memory outlives it.
        let taken = unsafe { bridge.from_dlpack::<u32, _>(produced.raw(), &stream) };
        let counts = bridge.meter().snapshot().since(&before);
        if !copies {
            let error = taken.expect_err("OpenCL can't be given it");
            assert!(matches!(error, Error::Unsupported { .. }), "{error}");
            assert_eq!((produced.deleted(), counts.data_set), (0, 0));
            continue;
        }
        let taken = taken.expect("a copy");
        assert!(taken.is_copy);
        assert_eq!((produced.deleted(), counts.data_set), (1, 64 * 4));
        let mut found = vec![0; 64];
        taken.shared.download(&mut found).expect("a download");
        assert_eq!(found, input);
    }
}

#[test]
fn what_the_producer_queued_on_its_stream_comes_first() {
    const LEN: usize = 64;
    let bridge = bridge(Policy::DirectOnly);
    let (ready, queue) = (bridge.stream().expect("a stream"), bridge.queue().expect("a queue"));
    let steps = hip::rtc::Program::new(
        "extern \"C\" __global__ void steps(unsigned int *x) {
            unsigned int v = 0;
            // Long enough that a missing wait shows.
            for (unsigned int n = 0; n < 4000000; ++n) v = v * 22695477u + 1u;
            x[threadIdx.x] = v;
        }",
    )
    .compile(bridge.hip_device())
    .and_then(|module| module.function("steps"))
    .expect("a kernel");
    let add = bridge
        .programs()
        .get("kernel void add(global uint *x) { x[get_global_id(0)] += 7u; }", "")
        .and_then(|program| program.kernel("add"))
        .expect("a kernel");
    let mut memory = bridge.hip_device().alloc_from(&ready, &[1_u32; LEN]).expect("memory");
    let mut slice = memory.on_mut(&ready).expect("access");
    let ptr = slice.as_mut_ptr();
    let config = hip::LaunchConfig::linear(LEN, LEN as u32).expect("a grid");
    // SAFETY: `steps` takes a pointer to as many words as threads.
    unsafe { steps.launch(&ready, config, &[&slice]) }.expect("a launch");
    let mut produced = Produced::new(DeviceType::EXT_DEV, ptr, &[LEN as i64], &[1]);
    // SAFETY: a living tensor whose memory outlives it.
    let taken = unsafe { bridge.from_dlpack::<u32, _>(produced.raw(), &ready) };
    let mut taken = taken.expect("HIP memory");
    let guard = taken.shared.cl_mut(&queue).expect("access");
    // SAFETY: `add` takes a buffer of as many words as work-items.
    unsafe { add.launch(&queue, clmgr::NdRange::d1(LEN), &[guard.arg()]) }.expect("a launch");
    drop(guard);
    let mut found = vec![0; LEN];
    taken.shared.download(&mut found).expect("a download");
    let stepped = (0..4_000_000).fold(0_u32, |v, _| v.wrapping_mul(22_695_477).wrapping_add(1));
    assert_eq!(found, vec![stepped.wrapping_add(7); LEN]);
    drop(taken);
    assert_eq!(produced.deleted(), 1);
}
