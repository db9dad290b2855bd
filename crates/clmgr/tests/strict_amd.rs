//! The AMD shim in front of a real driver: what it hides, refuses and notes; and that this crate
//! works behind it.

mod common;

use std::ffi::c_void;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use clmgr::opencl_sys::{self, cl_mem};
use clmgr::{
    Arg, Context, Device, Error, ExternalBufferInfo, HazardKind, Manager, NdRange, Program, Queue, RegularBuffer,
    StrictAmd, SvmBuffer, SvmCapabilities,
};

const SOURCE: &str = "
kernel void add(global uint *x, uint value) { x[get_global_id(0)] += value; }
kernel void add_with(global uint *x, uint value, global uint *token) {
    x[get_global_id(0)] += value;
}";

/// The noted hazards are the process's, so that the tests run one at a time.
static ALONE: Mutex<()> = Mutex::new(());

struct Strict {
    manager: Manager,
    device: Device,
    context: Context,
    queue: Queue,
    _alone: MutexGuard<'static, ()>,
}

fn open() -> Strict {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the tables are those of the libraries.
    let wrap = |api: &mut clmgr::Api| assert!(unsafe { StrictAmd::wrap(api) });
    // SAFETY: the shim does what the library does, or refuses.
    let manager = unsafe { Manager::load_with(wrap) }.unwrap();
    let device = manager.devices().remove(0);
    let context = Context::new(&device).unwrap();
    let queue = context.queue().unwrap();
    drop(StrictAmd::take_hazards());
    Strict {
        manager,
        device,
        context,
        queue,
        _alone: alone,
    }
}

/// A kernel as other code launches it, which knows nothing of this crate's care.
struct RawKernel {
    api: clmgr::Api,
    program: clmgr::opencl_sys::cl_program,
    kernel: clmgr::opencl_sys::cl_kernel,
}

impl RawKernel {
    fn new(strict: &Strict, name: &str) -> Self {
        let api = *strict.device.api();
        let source: *const std::ffi::c_char = SOURCE.as_ptr().cast();
        let (length, id) = (SOURCE.len(), strict.device.raw());
        let name = std::ffi::CString::new(name).unwrap();
        let (mut code, null) = (0, std::ptr::null_mut());
        // SAFETY: the context is alive; one text of this length; one device; valid places.
        unsafe {
            let program = api.clCreateProgramWithSource.unwrap()(
                strict.context.raw(),
                1,
                (&raw const source).cast_mut(),
                &raw const length,
                &raw mut code,
            );
            assert_eq!(code, 0);
            let build = api.clBuildProgram.unwrap();
            assert_eq!(build(program, 1, &raw const id, std::ptr::null(), None, null), 0);
            let kernel = api.clCreateKernel.unwrap()(program, name.as_ptr(), &raw mut code);
            assert_eq!(code, 0);
            Self { api, program, kernel }
        }
    }

    /// On 64 elements at `pointer`.
    fn launch(&self, queue: &Queue, pointer: *mut c_void, value: u32) {
        let (api, size, none) = (&self.api, 64, std::ptr::null());
        // SAFETY: the tests give memory of 64 elements that lives until the queue is finished; the
        // second argument is a `uint`.
        unsafe {
            assert_eq!(api.clSetKernelArgSVMPointer.unwrap()(self.kernel, 0, pointer), 0);
            let place = (&raw const value).cast();
            assert_eq!(api.clSetKernelArg.unwrap()(self.kernel, 1, 4, place), 0);
            let enqueue = api.clEnqueueNDRangeKernel.unwrap();
            let (queue, event) = (queue.raw(), std::ptr::null_mut());
            let code = enqueue(
                queue,
                self.kernel,
                1,
                none,
                &raw const size,
                none,
                0,
                std::ptr::null(),
                event,
            );
            assert_eq!(code, 0);
        }
    }
}

impl Drop for RawKernel {
    fn drop(&mut self) {
        // SAFETY: the references of the creation.
        unsafe {
            self.api.clReleaseKernel.unwrap()(self.kernel);
            self.api.clReleaseProgram.unwrap()(self.program);
        }
    }
}

#[test]
fn the_device_looks_like_amds() {
    let strict = open();
    let device = &strict.device;
    assert_eq!(device.version(), "OpenCL 2.0");
    assert!(device.platform_version().starts_with("OpenCL 2.1 AMD-APP"));
    assert!(device.has_extension("cl_amd_device_attribute_query"));
    for absent in [
        "cl_khr_external_memory",
        "cl_khr_semaphore",
        "cl_khr_device_uuid",
        "cl_khr_pci_bus_info",
        "cl_ext_buffer_device_address",
    ] {
        assert!(!device.has_extension(absent), "{absent}");
    }
    let most = SvmCapabilities::COARSE | SvmCapabilities::FINE_BUFFER;
    assert!(most.contains(device.svm()), "{:?}", device.svm());
    assert!(device.api().clCreateBufferWithProperties.is_none());
    assert!(
        device
            .extension_function(c"clCreateSemaphoreWithPropertiesKHR")
            .is_none()
    );
    let ask = |what, size| {
        let mut value = [0xFFu8; 64];
        // SAFETY: the device is alive; the place has 64 bytes.
        let code = unsafe {
            device.api().clGetDeviceInfo.unwrap()(
                device.raw(),
                what,
                size,
                value.as_mut_ptr().cast(),
                std::ptr::null_mut(),
            )
        };
        (code, value)
    };
    for unknown in [0x106A, 0x410F, 0x204F, 0x204C, 0x105E] {
        assert_eq!(ask(unknown, 16).0, opencl_sys::CL_INVALID_VALUE, "0x{unknown:04X}");
    }
    // The number that is said to be the HSA agent is a text, all of whose place is written.
    let (code, value) = ask(0x4038, 32);
    assert_eq!((code, &value[..32], value[32]), (0, &[0; 32][..], 0xFF));
}

#[test]
fn wrapping_twice_is_wrapping_once() {
    let strict = open();
    let mut api = *strict.device.api();
    let before = api;
    // SAFETY: the table is that of the library behind the shim.
    assert!(unsafe { StrictAmd::wrap(&mut api) });
    assert_eq!(
        api.clFinish.map(|function| function as usize),
        before.clFinish.map(|function| function as usize)
    );
}

#[test]
fn what_amdocl_refuses_is_refused() {
    let strict = open();
    let api = strict.device.api();
    let buffer = RegularBuffer::<u32>::new(&strict.context, 16).unwrap();
    for what in [0x4100, 0x4101, 0x5001, 0x110A] {
        let mut value = 0u64;
        // SAFETY: the buffer is alive; the place has 8 bytes.
        let code = unsafe {
            api.clGetMemObjectInfo.unwrap()(buffer.raw(), what, 8, (&raw mut value).cast(), std::ptr::null_mut())
        };
        assert_eq!(code, opencl_sys::CL_INVALID_VALUE, "0x{what:04X}");
    }
    let unordered = opencl_sys::CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
    let mut code = 0;
    // SAFETY: context and device are alive.
    let queue = unsafe {
        api.clCreateCommandQueue.unwrap()(strict.context.raw(), strict.device.raw(), unordered, &raw mut code)
    };
    assert!(queue.is_null());
    assert_eq!(code, opencl_sys::CL_INVALID_QUEUE_PROPERTIES);
    let failed = Program::build(&strict.context, SOURCE, "-cl-std=CL3.0").unwrap_err();
    assert_eq!(failed.code(), Some(opencl_sys::CL_INVALID_BUILD_OPTIONS));
    if common::has(&strict.context, SvmCapabilities::FINE_BUFFER) {
        let flags = opencl_sys::CL_MEM_SVM_FINE_GRAIN_BUFFER | opencl_sys::CL_MEM_SVM_ATOMICS;
        // SAFETY: the context is alive.
        let start = unsafe { api.clSVMAlloc.unwrap()(strict.context.raw(), flags, 64, 0) };
        assert!(start.is_null());
    }
}

#[test]
fn a_fill_or_map_of_memory_that_opencl_does_not_know_is_a_noted_crash() {
    let strict = open();
    if !common::has(&strict.context, SvmCapabilities::COARSE) {
        return;
    }
    let mut foreign = vec![0u32; 16];
    let start: *mut c_void = foreign.as_mut_ptr().cast();
    let api = strict.device.api();
    let pattern = 7u32;
    // SAFETY: the shim refuses before anything is touched.
    let (fill, map) = unsafe {
        (
            api.clEnqueueSVMMemFill.unwrap()(
                strict.queue.raw(),
                start,
                (&raw const pattern).cast(),
                4,
                64,
                0,
                std::ptr::null(),
                std::ptr::null_mut(),
            ),
            api.clEnqueueSVMMap.unwrap()(
                strict.queue.raw(),
                1,
                opencl_sys::CL_MAP_READ,
                start,
                64,
                0,
                std::ptr::null(),
                std::ptr::null_mut(),
            ),
        )
    };
    assert_eq!(
        (fill, map),
        (opencl_sys::CL_INVALID_VALUE, opencl_sys::CL_INVALID_VALUE)
    );
    let hazards = StrictAmd::take_hazards();
    assert_eq!(hazards.len(), 2);
    assert!(
        hazards
            .iter()
            .all(|hazard| hazard.kind == HazardKind::Crash && hazard.at == start.addr())
    );
}

#[test]
fn the_order_hazard_of_foreign_memory_is_noted_and_its_remedies_are_not() {
    let strict = open();
    let system = SvmCapabilities::FINE_SYSTEM;
    // Foreign memory: as on ROCm, any address of the process may be given to a kernel. The shim
    // hides that the driver can do it, and does not take it away.
    let plain = Manager::load().unwrap().devices().remove(0);
    if !plain.svm().contains(system) {
        common::skipped("the driver takes no foreign memory");
        return;
    }
    let program = Program::build(&strict.context, SOURCE, "").unwrap();
    let (add, add_with) = (program.kernel("add").unwrap(), program.kernel("add_with").unwrap());
    let mut foreign = vec![0u32; 64];
    let foreign_start: *mut c_void = foreign.as_mut_ptr().cast();
    let pointer = Arg::Svm(foreign_start);
    let token = RegularBuffer::<u32>::new(&strict.context, 1).unwrap();
    let one = 1u32;
    let plain = || {
        let args = [pointer, Arg::scalar(&one)];
        // SAFETY: the memory holds 64 elements and lives until the queue is finished.
        unsafe { add.launch(&strict.queue, NdRange::d1(64), &args) }.unwrap()
    };
    let tracked = || {
        let args = [pointer, Arg::scalar(&one), token.arg()];
        // SAFETY: as above.
        unsafe { add_with.launch(&strict.queue, NdRange::d1(64), &args) }.unwrap()
    };
    let count = || {
        let hazards = StrictAmd::take_hazards();
        assert!(hazards.iter().all(|hazard| hazard.kind == HazardKind::Unordered));
        hazards.len()
    };
    let raw = RawKernel::new(&strict, "add");
    let by_raw = || raw.launch(&strict.queue, foreign_start, one);
    by_raw();
    assert_eq!(count(), 0);
    by_raw();
    assert_eq!(count(), 1, "two kernels on foreign memory");
    strict.queue.finish().unwrap();
    by_raw();
    strict.queue.finish().unwrap();
    by_raw();
    assert_eq!(count(), 0, "a finish between");
    strict.queue.finish().unwrap();
    plain().wait().unwrap();
    by_raw();
    assert_eq!(count(), 0, "a wait between");
    strict.queue.finish().unwrap();
    plain();
    plain();
    plain();
    assert_eq!(count(), 0, "this crate's launches name common memory");
    strict.queue.finish().unwrap();
    tracked();
    tracked();
    assert_eq!(count(), 0, "a common buffer that OpenCL knows");
    strict.queue.finish().unwrap();
    drop(foreign);
}

#[test]
fn this_crate_works_behind_the_shim_without_a_hazard() {
    let strict = open();
    let program = Program::build(&strict.context, SOURCE, "").unwrap();
    let add = program.kernel("add").unwrap();
    let mut regular = RegularBuffer::<u32>::new(&strict.context, 64).unwrap();
    regular.fill(&strict.queue, 0, 64, 1).unwrap();
    for _ in 0..3 {
        let args = [regular.arg(), Arg::scalar(&2u32)];
        // SAFETY: the memory holds 64 elements and is used by this queue alone.
        unsafe { add.launch(&strict.queue, NdRange::d1(64), &args) }.unwrap();
    }
    assert_eq!(regular.map(&strict.queue).unwrap()[63], 7);
    if common::has(&strict.context, SvmCapabilities::COARSE) {
        let mut shared = SvmBuffer::<u32>::coarse(&strict.context, 64).unwrap();
        shared.fill(&strict.queue, 0, 64, 1).unwrap();
        let view = shared.view().unwrap();
        for arg in [shared.arg(), view.arg()] {
            // SAFETY: as above.
            unsafe { add.launch(&strict.queue, NdRange::d1(64), &[arg, Arg::scalar(&2u32)]) }.unwrap();
        }
        assert_eq!(shared.map(&strict.queue).unwrap()[63], 5);
    }
    let contexts = strict.manager.external(&strict.device);
    // SAFETY: the buffer is alive.
    let info = unsafe { ExternalBufferInfo::query(&contexts, regular.raw()) }.unwrap();
    assert_eq!((info.len::<u32>().unwrap(), info.external), (64, None));
    // SAFETY: null is allowed.
    let refused = unsafe { contexts.buffer_info(std::ptr::null_mut::<c_void>() as cl_mem) };
    assert!(matches!(refused, Err(Error::Foreign { .. })));
    assert_eq!(StrictAmd::take_hazards(), []);
}

#[test]
#[ignore = "run by another test in a process of its own"]
fn prints_the_devices_version() {
    match Manager::load() {
        Ok(manager) => println!("version={}", manager.devices()[0].version()),
        Err(error) => println!("error={error}"),
    }
}

#[test]
fn the_variable_puts_every_manager_behind_the_shim() {
    let run = |value: &str| {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture", "prints_the_devices_version"])
            .env("HIPCL_OPENCL_STRICT", value)
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(run("amd").contains("version=OpenCL 2.0\n"), "{}", run("amd"));
    assert!(!run("").contains("version=OpenCL 2.0\n"), "{}", run(""));
    let refused = run("intel");
    assert!(
        refused.contains("error=") && refused.contains("HIPCL_OPENCL_STRICT"),
        "{refused}"
    );
}
