//! Buffers lent as DLPack tensors and tensors taken as buffers, with a consumer in C.

mod common;

use std::mem::offset_of;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use interop::dlpack::abi::{self, DataType, Device, ManagedTensor, ManagedTensorVersioned, Tensor, Version};
use interop::dlpack::{Layout, Lent, Loan};
use interop::{Bridge, Error, Options, Route, Shared};
use num_complex::Complex;

type C32 = Complex<f32>;
type Versioned = ManagedTensorVersioned;

const LEN: usize = 1 << 12;
const LIMIT: Duration = Duration::from_secs(20);

const CL: &str = "
__kernel void step(__global uint *x)
{
    size_t i = get_global_id(0);
    uint v = x[i];
    /* Long enough that a missing wait shows. */
    for (uint n = 0; n < 4096; ++n)
        v = v * 1664525u + 1013904223u;
    x[i] = v;
}";

const HIP: &str = r#"
extern "C" __global__ void add(unsigned int *x)
{
    x[blockIdx.x * blockDim.x + threadIdx.x] += 7u;
}"#;

fn bridge() -> Bridge {
    Bridge::open(&common::host(), &Options::default()).expect("a bridge; run `cargo xtask setup` if OpenCL is missing")
}

/// The C consumer, built once.
struct Consumer {
    layout: unsafe extern "C" fn(usize) -> usize,
    describe: unsafe extern "C" fn(*const Versioned, *mut i64) -> i32,
    finish_elsewhere: unsafe extern "C" fn(*mut Versioned) -> i32,
    _library: libloading::Library,
}

fn consumer() -> &'static Consumer {
    static CONSUMER: OnceLock<Consumer> = OnceLock::new();
    CONSUMER.get_or_init(|| {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/c/dlpack_consumer.c");
        let built =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("dlpack_consumer_{}.so", std::process::id()));
        let status = Command::new("cc")
            .args([
                "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread",
            ])
            .args([source, "-o"])
            .arg(&built)
            .status()
            .expect("a C compiler is needed");
        assert!(status.success());
        // SAFETY: the library has no initialisers; the functions are of these types.
        let consumer = unsafe {
            let library = libloading::Library::new(&built).expect("the consumer");
            Consumer {
                layout: *library.get(b"layout").expect("layout"),
                describe: *library.get(b"describe").expect("describe"),
                finish_elsewhere: *library.get(b"finish_elsewhere").expect("finish_elsewhere"),
                _library: library,
            }
        };
        std::fs::remove_file(&built).expect("it is mapped");
        consumer
    })
}

fn describe(tensor: &Lent<Versioned>) -> [i64; 13] {
    let mut found = [0; 13];
    // SAFETY: a living tensor of two dimensions, and room for all it tells.
    let has_data = unsafe { (consumer().describe)(tensor.as_ptr(), found.as_mut_ptr()) };
    assert_eq!(has_data, 1);
    found
}

fn lent<T: interop::dlpack::Element>(
    shared: Shared<T>,
    layout: &Layout,
    stream: &hip::Stream,
) -> (Lent<Versioned>, Loan<T>) {
    shared
        .to_dlpack(layout, stream, false)
        .map_err(|(error, _)| error)
        .expect("a loan")
}

#[test]
fn the_structures_are_laid_out_as_a_c_compiler_does() {
    let ours = [
        offset_of!(Tensor, data),
        offset_of!(Tensor, device),
        offset_of!(Tensor, ndim),
        offset_of!(Tensor, dtype),
        offset_of!(Tensor, shape),
        offset_of!(Tensor, strides),
        offset_of!(Tensor, byte_offset),
        size_of::<Tensor>(),
        offset_of!(ManagedTensor, dl_tensor),
        offset_of!(ManagedTensor, manager_ctx),
        offset_of!(ManagedTensor, deleter),
        size_of::<ManagedTensor>(),
        offset_of!(Versioned, version),
        offset_of!(Versioned, manager_ctx),
        offset_of!(Versioned, deleter),
        offset_of!(Versioned, flags),
        offset_of!(Versioned, dl_tensor),
        size_of::<Versioned>(),
        size_of::<Version>(),
        size_of::<Device>(),
        size_of::<DataType>(),
    ];
    for (which, ours) in ours.into_iter().enumerate() {
        // SAFETY: it answers any number.
        assert_eq!(unsafe { (consumer().layout)(which) }, ours, "entry {which}");
    }
    // SAFETY: as above.
    assert_eq!(unsafe { (consumer().layout)(ours.len()) }, usize::MAX);
}

#[test]
fn a_lent_matrix_says_what_it_is_and_comes_back_from_any_thread() {
    let bridge = bridge();
    let stream = bridge.stream().expect("a stream");
    let numbers: Vec<C32> = (0..30).map(|i| C32::new(i as f32, -1.0)).collect();
    let mut shared = bridge.alloc::<C32>(30).expect("memory");
    shared.upload(&numbers).expect("an upload");
    let address = shared.addresses().expect("one address").1;
    let (tensor, loan) = lent(shared, &Layout::matrix(3, 4, 5).at(7), &stream);
    let ext_dev = i64::from(abi::DeviceType::EXT_DEV.0);
    assert_eq!(describe(&tensor), [1, 0, ext_dev, 0, 5, 64, 1, 2, 3, 4, 1, 5, 7 * 8]);
    // SAFETY: the tensor is alive.
    let data = unsafe { (*tensor.as_ptr()).dl_tensor.data };
    assert_eq!(data.addr(), address);
    let loan = loan.try_take().expect_err("the consumer has it");
    // SAFETY: a living tensor, given away.
    let ended = unsafe { (consumer().finish_elsewhere)(tensor.into_raw()) };
    assert_eq!(ended, 0);
    let shared = loan.wait(LIMIT).expect("it is back");
    let mut back = vec![C32::default(); 30];
    shared.download(&mut back).expect("a download");
    assert_eq!(back, numbers);
}

#[test]
fn the_consumer_comes_after_opencl_and_opencl_after_the_consumer() {
    let bridge = bridge();
    let (queue, stream) = (bridge.queue().expect("a queue"), bridge.stream().expect("a stream"));
    let program = bridge.programs().get(CL, "").expect("a program");
    let step = program.kernel("step").expect("a kernel");
    let module = hip::rtc::Program::new(HIP).name("consumer.hip");
    let module = module.compile(bridge.hip_device()).expect("a kernel");
    let add = module.function("add").expect("a kernel");
    let mut shared = bridge.alloc::<u32>(LEN).expect("memory");
    shared.upload(&vec![3; LEN]).expect("an upload");
    let launch = |shared: &mut Shared<u32>| {
        let guard = shared.cl_mut(&queue).expect("access");
        // SAFETY: `step` takes a buffer of as many words as work-items.
        unsafe { step.launch(&queue, clmgr::NdRange::d1(LEN), &[guard.arg()]) }.expect("a launch");
    };
    launch(&mut shared);
    let (tensor, loan) = lent(shared, &Layout::vector(LEN), &stream);
    // SAFETY: the tensor is alive.
    let data = unsafe { (*tensor.as_ptr()).dl_tensor.data };
    // SAFETY: the tensor has LEN words that may be used on this stream, and they stay until the
    // buffer's next user has waited for the stream.
    let slice = unsafe { hip::DeviceSliceMut::<u32>::from_raw_parts(data.cast(), LEN, &stream) };
    let config = hip::LaunchConfig::linear(LEN, 256).expect("a grid");
    // SAFETY: `add` takes a pointer to as many words as threads.
    unsafe { add.launch(&stream, config, &[&slice]) }.expect("a launch");
    // Not waited for: the buffer knows the stream.
    drop(tensor);
    let mut shared = loan.try_take().expect("the deleter has run");
    launch(&mut shared);
    let mut back = vec![0; LEN];
    shared.download(&mut back).expect("a download");
    let stepped = |v: u32| (0..4096).fold(v, |v, _| v.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    assert_eq!(back, vec![stepped(stepped(3).wrapping_add(7)); LEN]);
}

#[test]
fn a_buffer_without_waiters_lives_until_the_deleter_and_no_longer() {
    let bridge = bridge();
    let stream = bridge.stream().expect("a stream");
    let mut shared = bridge.alloc_on::<u32>(Route::HipPointer, LEN).expect("memory");
    shared.upload(&vec![7; LEN]).expect("an upload");
    let (tensor, loan) = lent(shared, &Layout::vector(LEN), &stream);
    drop(loan);
    // SAFETY: the tensor is alive.
    let data = unsafe { (*tensor.as_ptr()).dl_tensor.data };
    let is_memory = || {
        let runtime = bridge.hip_device().runtime();
        runtime.pointer_info(data).expect("an answer").is_some()
    };
    assert!(is_memory(), "the consumer has it");
    // SAFETY: the tensor has LEN words that may be used on this stream.
    let slice = unsafe { hip::DeviceSlice::<u32>::from_hip_raw_parts(data.cast(), LEN, &stream) };
    let mut found = vec![0; LEN];
    slice.copy_to_slice(&mut found).expect("a copy");
    assert_eq!(found, vec![7; LEN]);
    // SAFETY: a living tensor, given away.
    let ended = unsafe { (consumer().finish_elsewhere)(tensor.into_raw()) };
    assert_eq!(ended, 0);
    assert!(!is_memory(), "freed by its last holder");
    assert!(bridge.take_deferred_errors().is_empty());
}

#[test]
fn readers_come_after_a_consumer_that_may_write() {
    let bridge = bridge();
    let stream = bridge.stream().expect("a stream");
    let steps = hip::rtc::Program::new(
        "extern \"C\" __global__ void steps(unsigned int *x) {
            unsigned int v = x[threadIdx.x];
            // Long enough that a missing wait shows.
            for (unsigned int n = 0; n < 4000000; ++n) v = v * 22695477u + 1u;
            x[threadIdx.x] = v;
        }",
    )
    .compile(bridge.hip_device())
    .and_then(|module| module.function("steps"))
    .expect("a kernel");
    let mut shared = bridge.alloc::<u32>(64).expect("memory");
    shared.upload(&[3; 64]).expect("an upload");
    let (tensor, loan) = lent(shared, &Layout::vector(64), &stream);
    // SAFETY: the tensor is alive.
    let data = unsafe { (*tensor.as_ptr()).dl_tensor.data };
    // SAFETY: the tensor has 64 words that may be used on this stream, and they stay until the
    // buffer's next user has waited for the stream.
    let slice = unsafe { hip::DeviceSliceMut::<u32>::from_raw_parts(data.cast(), 64, &stream) };
    let config = hip::LaunchConfig::linear(64, 64).expect("a grid");
    // SAFETY: `steps` takes a pointer to as many words as threads.
    unsafe { steps.launch(&stream, config, &[&slice]) }.expect("a launch");
    drop(tensor);
    let shared = loan.try_take().expect("the deleter has run");
    let mut found = [0; 64];
    shared.download(&mut found).expect("a download");
    let step = |v: u32, _| v.wrapping_mul(22_695_477).wrapping_add(1);
    assert_eq!(found, [(0..4_000_000).fold(3, step); 64]);
}

#[test]
fn memory_for_reading_is_refused_for_writing_without_a_wait() {
    let rig = common::Foreign::new(&common::host());
    let options = Options {
        handoff_limit: Some(Duration::from_secs(1)),
        ..Options::default()
    };
    // SAFETY: the objects outlive the bridge.
    let bridge = unsafe { Bridge::adopt(&common::host(), rig.objects(), &options) };
    let bridge = bridge.expect("a bridge");
    let (queue, stream) = (bridge.queue().expect("a queue"), bridge.stream().expect("a stream"));
    let raw = rig.buffer(clmgr::opencl_sys::CL_MEM_READ_ONLY, 64);
    // SAFETY: the buffer is alive, and nothing else uses it.
    let shared = unsafe { bridge.adopt_cl_mem::<u32>(raw, None) }.expect("adopted");
    rig.release(raw);
    // A reader that never ends by itself: a writer would have to wait for it.
    let held = clmgr::UserEvent::new(bridge.cl_context()).expect("an event");
    queue.wait_for(held.event()).expect("a wait");
    drop(shared.cl(&queue).expect("access"));
    let refused = shared.to_dlpack::<Versioned>(&Layout::vector(16), &stream, false);
    let (error, shared) = refused.expect_err("for reading only");
    assert!(matches!(error, Error::ReadOnly), "{error}");
    let lent = shared.to_dlpack::<Versioned>(&Layout::vector(16), &stream, true);
    let (tensor, _loan) = lent.map_err(|(error, _)| error).expect("a loan");
    assert_eq!(describe_flags(&tensor), abi::READ_ONLY);
    held.complete().expect("an event");
    drop(tensor);
}

fn describe_flags(tensor: &Lent<Versioned>) -> u64 {
    // SAFETY: the tensor is alive.
    unsafe { (*tensor.as_ptr()).flags }
}

#[test]
fn reading_alone_is_said_by_the_form_that_can_and_refused_by_the_other() {
    let bridge = bridge();
    let stream = bridge.stream().expect("a stream");
    let shared = bridge.alloc::<f32>(6).expect("memory");
    let layout = Layout::matrix(2, 3, 2);
    let refused = shared.to_dlpack::<ManagedTensor>(&layout, &stream, true);
    let (error, shared) = refused.expect_err("it has no flag");
    assert!(error.to_string().contains("use ManagedTensorVersioned"), "{error}");
    let lent = shared.to_dlpack::<Versioned>(&layout, &stream, true);
    let (tensor, loan) = lent.map_err(|(error, _)| error).expect("a loan");
    assert_eq!(describe(&tensor)[1], 1);
    drop(tensor);
    let shared = loan.try_take().expect("it is back");
    let lent = shared.to_dlpack::<ManagedTensor>(&layout, &stream, false);
    let (tensor, loan) = lent.map_err(|(error, _)| error).expect("a loan");
    drop(tensor);
    let shared = loan.try_take().expect("it is back");
    let refused = shared.to_dlpack::<Versioned>(&Layout::matrix(2, 3, 3), &stream, false);
    let (error, _) = refused.expect_err("it is too short");
    assert_eq!(
        error.to_string(),
        "DLPack: the layout extends to element 8 of a buffer of 6 elements"
    );
}

#[test]
fn a_tensor_of_hips_memory_is_taken_without_a_copy_and_given_back_once() {
    let bridge = bridge();
    let stream = bridge.stream().expect("a stream");
    let mut shared = bridge.alloc_on::<u32>(Route::HipPointer, 64).expect("memory");
    shared.upload(&(0..64).collect::<Vec<u32>>()).expect("an upload");
    let (tensor, loan) = lent(shared, &Layout::matrix(4, 5, 8).at(16), &stream);
    let before = bridge.meter().snapshot();
    // SAFETY: a living tensor, given away on success; nothing else uses it.
    let taken = unsafe { bridge.from_dlpack::<u32, Versioned>(tensor.into_raw(), &stream) };
    let mut taken = taken.expect("HIP memory");
    assert_eq!(taken.layout, Layout::matrix(4, 5, 8));
    assert_eq!(taken.shared.len(), 4 * 8 + 4);
    assert_eq!(bridge.meter().snapshot().since(&before).data_set, 0);
    let mut found = vec![0; 36];
    taken.shared.download(&mut found).expect("a download");
    assert_eq!(found, (16..52).collect::<Vec<u32>>());
    taken.shared.upload(&[9; 36]).expect("an upload");
    let loan = loan.try_take().expect_err("it is in use");
    drop(taken);
    let shared = loan.try_take().expect("the deleter has run");
    let mut all = vec![0; 64];
    shared.download(&mut all).expect("a download");
    assert_eq!((all[15], all[16], all[51], all[52]), (15, 9, 9, 52));
}

#[test]
fn what_cannot_be_taken_stays_the_callers() {
    let bridge = bridge();
    let stream = bridge.stream().expect("a stream");
    let shared = bridge.alloc_on::<u32>(Route::HipPointer, 64).expect("memory");
    let lent = shared.to_dlpack::<Versioned>(&Layout::vector(64), &stream, true);
    let (tensor, loan) = lent.map_err(|(error, _)| error).expect("a loan");
    let raw = tensor.into_raw();
    let take = || {
        // SAFETY: a living tensor; nothing else uses it.
        unsafe { bridge.from_dlpack::<u32, Versioned>(raw, &stream) }
    };
    let refusal = |change: &dyn Fn(&mut Versioned), undo: &dyn Fn(&mut Versioned)| {
        // SAFETY: the tensor is alive, and this test is its consumer.
        change(unsafe { &mut *raw });
        let error = take().expect_err("refused").to_string();
        // SAFETY: as above.
        undo(unsafe { &mut *raw });
        assert!(!error.contains('\n'), "{error}");
        error
    };
    let text = refusal(&|t| t.version.major = 2, &|t| t.version.major = 1);
    assert!(text.contains("major version 2"), "{text}");
    let text = refusal(&|t| t.dl_tensor.dtype.code = 2, &|t| t.dl_tensor.dtype.code = 1);
    assert!(text.contains("the elements are"), "{text}");
    let kind = abi::DeviceType::EXT_DEV;
    let other = abi::DeviceType::CUDA;
    let text = refusal(&|t| t.dl_tensor.device.device_type = other, &|t| {
        t.dl_tensor.device.device_type = kind
    });
    assert!(text.contains("the tensor is on"), "{text}");
    let stride = |t: &mut Versioned, to: i64| {
        // SAFETY: one dimension, whose stride the consumer may change back.
        unsafe { *t.dl_tensor.strides = to };
    };
    let text = refusal(&|t| stride(t, -1), &|t| stride(t, 1));
    assert!(text.contains("size or stride of -1"), "{text}");
    let text = refusal(&|t| t.dl_tensor.byte_offset = 1 << 20, &|t| t.dl_tensor.byte_offset = 0);
    assert!(text.starts_with("route hip-pointer: "), "{text}");
    let loan = loan.try_take().expect_err("no deleter was called");
    // As it was, it is taken, and may only be read.
    let mut taken = take().expect("it is as it was");
    assert!(matches!(taken.shared.upload(&[0; 64]), Err(Error::ReadOnly)));
    drop(taken);
    loan.try_take().expect("the deleter has run");
}
