//! HIP memory as an OpenCL buffer object: sought in a process that may end, used with the proof.

mod common;

use std::ffi::c_void;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use clmgr::opencl_sys::{self, cl_context, cl_int, cl_mem, cl_mem_flags};
use interop::{Bridge, Error, HostPtrProof, Options, Route, Shared, Step};

const LEN: usize = 4096;
/// Says in a process that is started for it what to do.
const ASKED: &str = "INTEROP_TEST_SEEKS";

fn strict() -> bool {
    std::env::var_os("HIP_HOST_STRICT").is_some_and(|level| level == "2")
}

fn bridge() -> Bridge {
    Bridge::open(&common::host(), &Options::default()).expect("a bridge; run `cargo xtask setup` if OpenCL is missing")
}

/// In a process of its own, as a program would do it: the text of the proof.
fn sought() -> HostPtrProof {
    let name = "the_process_that_seeks";
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args([name, "--exact", "--ignored", "--nocapture"])
        .env(ASKED, "1")
        .output()
        .expect("a child");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    let line = text.lines().find_map(|line| line.split_once("proof: "));
    // SAFETY: the process has found it here just now, and has ended well.
    unsafe { HostPtrProof::from_text(line.unwrap_or_else(|| panic!("no proof in {text}")).1) }
}

#[test]
#[ignore = "run by other tests in a process of its own"]
fn the_process_that_seeks() {
    if std::env::var_os(ASKED).is_none() {
        return common::skipped("it runs only as a second process, which another test starts");
    }
    let mut steps = Vec::new();
    let proof = HostPtrProof::seek(&common::host(), &Options::default(), |step| {
        steps.push(step);
    });
    println!("\nproof: {}", proof.expect("Intel's runtime takes any address"));
    assert_eq!(steps.first(), Some(&Step::Pair));
    assert_eq!(steps.last(), Some(&Step::Release));
    assert!(steps.contains(&Step::Wrap) && steps.contains(&Step::Transfer));
}

/// Both APIs, back and forth; OpenCL by the object alone.
fn both_use(bridge: &Bridge, data: &mut Shared<u32>) {
    let add = bridge
        .programs()
        .get("kernel void add(global uint *x) { x[get_global_id(0)] += 7u; }", "")
        .and_then(|program| program.kernel("add"))
        .expect("a kernel");
    let twice = hip::rtc::Program::new(
        "extern \"C\" __global__ void twice(unsigned int *x) { x[blockIdx.x * blockDim.x + threadIdx.x] *= 2u; }",
    )
    .compile(bridge.hip_device())
    .and_then(|module| module.function("twice"))
    .expect("a kernel");
    let (queue, stream) = (bridge.queue().expect("a queue"), bridge.stream().expect("a stream"));
    let mut model: Vec<u32> = (0..LEN as u32).collect();
    data.upload(&model).expect("an upload");
    let before = bridge.meter().snapshot();
    for _ in 0..3 {
        let guard = data.cl_mut(&queue).expect("access");
        assert!(matches!(guard.arg(), clmgr::Arg::Mem(_)));
        assert!(matches!(guard.mem_arg(), Ok(clmgr::Arg::Mem(_))));
        // SAFETY: `add` takes a buffer of as many words as work-items.
        unsafe { add.launch(&queue, clmgr::NdRange::d1(LEN), &[guard.arg()]) }.expect("a launch");
        drop(guard);
        let mut guard = data.hip_mut(&stream).expect("access");
        let config = hip::LaunchConfig::linear(LEN, 256).expect("a grid");
        // SAFETY: `twice` takes a pointer to as many words as threads.
        unsafe { twice.launch(&stream, config, &[&guard.slice_mut()]) }.expect("a launch");
        model.iter_mut().for_each(|x| *x = (*x + 7) * 2);
    }
    assert_eq!(bridge.meter().snapshot().since(&before).data_set, 0);
    let mut back = vec![0; LEN];
    data.download(&mut back).expect("a download");
    assert_eq!(back, model);
}

#[test]
fn hips_memory_is_a_buffer_object_with_a_proof_from_another_process() {
    if strict() {
        return;
    }
    let (proof, bridge) = (sought(), bridge());
    let mut data = bridge.alloc_hip_object::<u32>(LEN, &proof).expect("an object");
    assert_eq!(data.route(), Route::HipPointer);
    both_use(&bridge, &mut data);
    drop(data);
    assert!(bridge.take_deferred_errors().is_empty());
}

#[test]
fn memory_of_other_code_becomes_an_object_and_stays_its_owners() {
    if strict() {
        return;
    }
    let (proof, bridge) = (sought(), bridge());
    let mut memory = bridge.hip_device().alloc::<u32>(LEN).expect("memory");
    let stream = bridge.stream().expect("a stream");
    let ptr = memory.on_mut(&stream).expect("access").as_mut_ptr();
    // SAFETY: the memory is the owner's, and nothing else uses it.
    let data = unsafe { bridge.adopt_hip_object(ptr, LEN, memory, &proof) };
    both_use(&bridge, &mut data.expect("an object"));
    assert!(bridge.take_deferred_errors().is_empty());
}

#[test]
fn a_proof_of_other_drivers_is_refused() {
    let bridge = bridge();
    // SAFETY: it is refused.
    let proof = unsafe { HostPtrProof::from_text("amd 60342133 on a card of mine") };
    let error = bridge
        .alloc_hip_object::<u32>(LEN, &proof)
        .expect_err("of another machine");
    let text = error.to_string();
    assert!(
        error.is_impossible()
            && text.contains("was made on `amd 60342133 on a card of mine`, but this bridge uses `host ")
            && !text.contains('\n'),
        "{text}"
    );
}

type Create = unsafe extern "C" fn(cl_context, cl_mem_flags, usize, *mut c_void, *mut cl_int) -> cl_mem;
static CREATE: OnceLock<Create> = OnceLock::new();
static COPIED: AtomicUsize = AtomicUsize::new(0);

fn keep(api: &clmgr::Api) {
    let create = api.clCreateBuffer.expect("clCreateBuffer");
    CREATE.get_or_init(|| create);
}

/// As a driver would that keeps a copy of what it is given.
unsafe extern "C" fn copying(
    context: cl_context,
    flags: cl_mem_flags,
    bytes: usize,
    host: *mut c_void,
    code: *mut cl_int,
) -> cl_mem {
    let (mut flags, mut place) = (flags, host);
    if flags & opencl_sys::CL_MEM_USE_HOST_PTR != 0 {
        COPIED.fetch_add(1, Ordering::SeqCst);
        flags ^= opencl_sys::CL_MEM_USE_HOST_PTR;
        place = std::ptr::null_mut();
    }
    // SAFETY: the caller's arguments, or none of the memory.
    unsafe { CREATE.get().expect("kept")(context, flags, bytes, place, code) }
}

unsafe extern "C" fn refusing(
    context: cl_context,
    flags: cl_mem_flags,
    bytes: usize,
    host: *mut c_void,
    code: *mut cl_int,
) -> cl_mem {
    if flags & opencl_sys::CL_MEM_USE_HOST_PTR != 0 {
        // SAFETY: the caller's place.
        unsafe { *code = opencl_sys::CL_MEM_OBJECT_ALLOCATION_FAILURE };
        return std::ptr::null_mut();
    }
    // SAFETY: the caller's arguments.
    unsafe { CREATE.get().expect("kept")(context, flags, bytes, host, code) }
}

#[test]
fn a_driver_that_copies_or_refuses_gives_no_proof() {
    if strict() {
        return;
    }
    let seek = |create: Create| {
        let hook = |api: &mut clmgr::Api| {
            keep(api);
            api.clCreateBuffer = Some(create);
        };
        let (host, options) = (common::host(), Options::default());
        // SAFETY: a buffer is created with its flags, without them, or not at all.
        let sought = unsafe { HostPtrProof::seek_with(&host, &options, hook, |_| {}) };
        sought.expect_err("no proof")
    };
    let copied = seek(copying);
    assert!(matches!(copied, Error::AddressesDiffer { .. }), "{copied}");
    assert_eq!(COPIED.load(Ordering::SeqCst), 1);
    let refused = seek(refusing).to_string();
    assert!(
        refused.contains("CL_MEM_USE_HOST_PTR") && refused.contains("CL_MEM_OBJECT_ALLOCATION_FAILURE"),
        "{refused}"
    );
}

#[test]
fn memory_out_of_opencls_reach_is_not_even_tried() {
    if !strict() {
        return;
    }
    let mut steps = Vec::new();
    let sought = HostPtrProof::seek(&common::host(), &Options::default(), |step| {
        steps.push(step);
    });
    let error = sought.expect_err("the host must not touch the memory");
    assert!(error.is_impossible(), "{error}");
    assert!(!steps.contains(&Step::Wrap));
}

#[test]
fn the_other_memory_model_agrees() {
    common::once_more_where_the_host_cannot_touch_device_memory("the_other_memory_model_agrees", &[]);
}
