//! The same on coarse SVM of an OpenCL context that has two devices, as a program without this project's bridge would
//! have it.
//!
//! ROCm's OpenCL then makes every SVM allocation fine-grained, in host memory (rocclr/device/rocm/rocdevice.hpp,
//! `forceFineGrain`); [`clmgr::Context`] therefore never has a second device, and OpenCL is called directly here.

use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};
use std::time::Instant;

use clmgr::{Api, DeviceKind};
use hip::DeviceSliceMut;
use interop::{Bridge, Shared};
use platform::{ForeignHooks, ForeignKind};

use super::kernels::{HipHalf, OFFSET};
use super::{TOLERANCE, TOLERANCE_PER_STEP, error, generate};
use crate::{C32, Error, Result};

/// `CL_MEM_READ_WRITE`.
const READ_WRITE: u64 = 1;
/// `CL_DEVICE_PARTITION_BY_COUNTS` and the end of its list.
const PARTITION_BY_COUNTS: isize = 0x1087;
const BY_COUNTS_LIST_END: isize = 0;
const CONTEXT_PLATFORM: isize = 0x1084;
const TRUE: u32 = 1;

/// The result.
#[derive(Debug)]
pub struct Run {
    /// Milliseconds of each iteration.
    pub times_ms: Vec<f64>,
    /// Which two devices.
    pub devices: String,
    /// Whether the data is correct.
    pub verified: bool,
}

/// Runs `iterations` of the four kernels over `count` samples, strictly alternating; or returns why that cannot be done
/// here.
///
/// # Errors
/// If a call of either API fails.
pub fn run(
    bridge: &Bridge,
    foreign: Option<ForeignHooks>,
    count: usize,
    iterations: usize,
) -> Result<std::result::Result<Run, String>> {
    let api = *bridge.cl_device().api();
    let second = match Second::find(bridge, &api)? {
        Ok(second) => second,
        Err(reason) => return Ok(Err(reason)),
    };
    let cl = Cl::new(bridge, api, second, count)?;
    let known = Registration::make(bridge, foreign, cl.svm, count * size_of::<C32>())?;
    let input = generate(count, 1);
    // SAFETY: the whole of both.
    unsafe { cl.copy(cl.svm, input.as_ptr().cast(), size_of_val(&*input)) }?;

    let stream = bridge.stream()?;
    let hip = HipHalf::new(bridge, &stream, count)?;
    let mut squared: Shared<f32> = bridge.alloc(count)?;
    let mut times_ms = Vec::with_capacity(iterations);
    // the first one warms up
    for step in 0..=iterations {
        let start = Instant::now();
        cl.iteration()?;
        let mut guard = squared.hip_mut(&stream)?;
        // SAFETY: the allocation has this length and lives on; OpenCL has finished, and waits for the stream below.
        let mut x = unsafe { DeviceSliceMut::<C32>::from_raw_parts(cl.svm.cast(), count, &stream) };
        hip.scale(&mut x, step)?;
        stream.synchronize()?;
        hip.magnitude(&mut x, &mut guard.slice_mut())?;
        stream.synchronize()?;
        if step > 0 {
            times_ms.push(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    let mut last = vec![C32::default(); count];
    // SAFETY: as above; HIP has finished.
    unsafe { cl.copy(last.as_mut_ptr().cast(), cl.svm, size_of_val(&*last)) }?;
    let mut last_squared = vec![0.0; count];
    squared.download(&mut last_squared)?;
    let steps = iterations + 1;
    let worst = error(&input, &last, &last_squared, steps);
    drop(known);
    Ok(Ok(Run {
        times_ms,
        devices: cl.second.what.clone(),
        verified: worst <= TOLERANCE + TOLERANCE_PER_STEP * steps as f64,
    }))
}

/// The function of this name, or an error that names it.
macro_rules! function {
    ($api:expr, $name:ident) => {
        $api.$name
            .ok_or_else(|| Error::input(concat!("OpenCL lacks ", stringify!($name))))?
    };
}

fn check(code: i32, call: &str) -> Result<()> {
    match code {
        0 => Ok(()),
        code => Err(Error::input(format!(
            "{call} returned {code} in a context of two devices; run `hipcl doctor` to see what works here"
        ))),
    }
}

/// The devices of the context.
struct Second {
    /// The one that works first.
    devices: [*mut c_void; 2],
    /// Whether they were made by `clCreateSubDevices`.
    parts: bool,
    what: String,
}

impl Second {
    /// Another GPU of the platform, or the two halves of a CPU.
    fn find(bridge: &Bridge, api: &Api) -> Result<std::result::Result<Self, String>> {
        let own = bridge.cl_device();
        let manager = clmgr::Manager::load()?;
        let other = manager.devices().into_iter().find(|other| {
            other.raw_platform() == own.raw_platform() && other.raw() != own.raw() && other.kind() == own.kind()
        });
        if let Some(other) = other {
            return Ok(Ok(Self {
                devices: [own.raw(), other.raw()],
                parts: false,
                what: format!("{} and {}", own.name().trim(), other.name().trim()),
            }));
        }
        if own.kind() != DeviceKind::Cpu {
            return Ok(Err("the OpenCL platform has no second device".into()));
        }
        let units = std::thread::available_parallelism().map_or(1, usize::from) as isize;
        if units < 2 {
            return Ok(Err("a single processor cannot be divided into two devices".into()));
        }
        let split = function!(api, clCreateSubDevices);
        let properties = [PARTITION_BY_COUNTS, units / 2, units - units / 2, BY_COUNTS_LIST_END, 0];
        let mut devices = [null_mut(); 2];
        // SAFETY: the list ends as it must, and there is room for the two devices that it asks for.
        let code = unsafe { split(own.raw(), properties.as_ptr(), 2, devices.as_mut_ptr(), null_mut()) };
        Ok(match code {
            0 => Ok(Self {
                devices,
                parts: true,
                what: format!("two parts of {}", own.name().trim()),
            }),
            code => Err(format!(
                "there is no second device, and clCreateSubDevices returned {code}"
            )),
        })
    }
}

/// OpenCL's objects. Released in the order in which they need each other; null where they were not made.
struct Cl {
    api: Api,
    second: Second,
    context: *mut c_void,
    queue: *mut c_void,
    program: *mut c_void,
    add: *mut c_void,
    rotate: *mut c_void,
    svm: *mut c_void,
    count: usize,
}

impl Cl {
    fn new(bridge: &Bridge, api: Api, second: Second, count: usize) -> Result<Self> {
        let mut cl = Self {
            api,
            second,
            context: null_mut(),
            queue: null_mut(),
            program: null_mut(),
            add: null_mut(),
            rotate: null_mut(),
            svm: null_mut(),
            count,
        };
        let mut code = 0;
        let properties = [
            CONTEXT_PLATFORM,
            bridge.cl_device().raw_platform().expose_provenance() as isize,
            0,
        ];
        let create = function!(api, clCreateContext);
        // SAFETY: a list that ends with zero, two devices of that platform, no callback.
        cl.context = unsafe {
            create(
                properties.as_ptr(),
                2,
                cl.second.devices.as_ptr().cast(),
                None,
                null_mut(),
                &raw mut code,
            )
        };
        check(code, "clCreateContext")?;
        let create = function!(api, clCreateCommandQueue);
        // SAFETY: a device of the context; no properties: in order.
        cl.queue = unsafe { create(cl.context, cl.second.devices[0], 0, &raw mut code) };
        check(code, "clCreateCommandQueue")?;
        cl.build()?;
        let alloc = function!(api, clSVMAlloc);
        // SAFETY: alignment zero means that of the largest OpenCL type.
        cl.svm = unsafe { alloc(cl.context, READ_WRITE, count * size_of::<C32>(), 0) };
        if cl.svm.is_null() {
            return Err(Error::input(
                "clSVMAlloc returned no memory in a context of two devices; free memory, and try again",
            ));
        }
        Ok(cl)
    }

    fn build(&mut self) -> Result<()> {
        let source = include_str!("../../../kernels/note.cl");
        let (mut text, length) = (source.as_ptr().cast(), source.len());
        let mut code = 0;
        let create = function!(self.api, clCreateProgramWithSource);
        // SAFETY: one string with its length, which is only read.
        self.program = unsafe { create(self.context, 1, &raw mut text, &raw const length, &raw mut code) };
        check(code, "clCreateProgramWithSource")?;
        let build = function!(self.api, clBuildProgram);
        // SAFETY: two devices of the program's context, empty options, no callback: it returns when it has built.
        let code = unsafe {
            build(
                self.program,
                2,
                self.second.devices.as_ptr().cast(),
                c"".as_ptr(),
                None,
                null_mut(),
            )
        };
        check(code, "clBuildProgram")?;
        self.add = self.kernel(c"add")?;
        self.rotate = self.kernel(c"rotate_by")?;
        Ok(())
    }

    fn kernel(&self, name: &CStr) -> Result<*mut c_void> {
        let create = function!(self.api, clCreateKernel);
        let mut code = 0;
        // SAFETY: a program that was built, and a C string.
        let kernel = unsafe { create(self.program, name.as_ptr(), &raw mut code) };
        check(code, "clCreateKernel")?;
        Ok(kernel)
    }

    /// Both kernels, each waited for.
    fn iteration(&self) -> Result<()> {
        let (sine, cosine) = (std::f64::consts::PI / 6.0).sin_cos();
        self.launch(self.add, [OFFSET.re, OFFSET.im])?;
        self.launch(self.rotate, [cosine as f32, sine as f32])
    }

    fn launch(&self, kernel: *mut c_void, numbers: [f32; 2]) -> Result<()> {
        let set_pointer = function!(self.api, clSetKernelArgSVMPointer);
        let set = function!(self.api, clSetKernelArg);
        let enqueue = function!(self.api, clEnqueueNDRangeKernel);
        let finish = function!(self.api, clFinish);
        // SAFETY: the first argument is a float2 pointer.
        let code = unsafe { set_pointer(kernel, 0, self.svm) };
        check(code, "clSetKernelArgSVMPointer")?;
        for (index, number) in (1..).zip(&numbers) {
            // SAFETY: the other two are floats, which are copied.
            let code = unsafe { set(kernel, index, size_of::<f32>(), (&raw const *number).cast()) };
            check(code, "clSetKernelArg")?;
        }
        // SAFETY: the kernel touches one sample for each work-item, and there are as many.
        let code = unsafe {
            enqueue(
                self.queue,
                kernel,
                1,
                null(),
                &raw const self.count,
                null(),
                0,
                null(),
                null_mut(),
            )
        };
        check(code, "clEnqueueNDRangeKernel")?;
        // SAFETY: a live queue.
        check(unsafe { finish(self.queue) }, "clFinish")
    }

    /// Returns when the bytes have arrived.
    ///
    /// # Safety
    /// `bytes` can be written at `to` and read at `from`, and nothing else uses them.
    unsafe fn copy(&self, to: *mut c_void, from: *const c_void, bytes: usize) -> Result<()> {
        let copy = function!(self.api, clEnqueueSVMMemcpy);
        // SAFETY: the caller's promise; the call blocks.
        let code = unsafe { copy(self.queue, TRUE, to, from, bytes, 0, null(), null_mut()) };
        check(code, "clEnqueueSVMMemcpy")
    }
}

impl Drop for Cl {
    fn drop(&mut self) {
        let api = &self.api;
        // Every command was waited for, or the call that was to wait failed and nothing better can be done.
        if let (false, Some(free)) = (self.svm.is_null(), api.clSVMFree) {
            // SAFETY: from `clSVMAlloc` of this context, and not in use.
            unsafe { free(self.context, self.svm) };
        }
        let release = [(self.add, api.clReleaseKernel), (self.rotate, api.clReleaseKernel)];
        for (kernel, release) in release {
            if let (false, Some(release)) = (kernel.is_null(), release) {
                // SAFETY: the one reference that its creation gave.
                unsafe { release(kernel) };
            }
        }
        if let (false, Some(release)) = (self.program.is_null(), api.clReleaseProgram) {
            // SAFETY: as above.
            unsafe { release(self.program) };
        }
        if let (false, Some(release)) = (self.queue.is_null(), api.clReleaseCommandQueue) {
            // SAFETY: as above.
            unsafe { release(self.queue) };
        }
        if let (false, Some(release)) = (self.context.is_null(), api.clReleaseContext) {
            // SAFETY: as above.
            unsafe { release(self.context) };
        }
        if let (true, Some(release)) = (self.second.parts, api.clReleaseDevice) {
            for device in self.second.devices {
                // SAFETY: the one reference that `clCreateSubDevices` gave.
                unsafe { release(device) };
            }
        }
    }
}

/// A device model must be told of OpenCL memory; real hardware knows by itself.
struct Registration(Option<(ForeignHooks, *mut c_void)>);

impl Registration {
    fn make(bridge: &Bridge, foreign: Option<ForeignHooks>, svm: *mut c_void, bytes: usize) -> Result<Self> {
        let Some(hooks) = foreign else {
            return Ok(Self(None));
        };
        // SAFETY: the allocation outlives this value, which takes the word back.
        unsafe { (hooks.adopt)(svm, bytes, ForeignKind::Vram, bridge.hip_device().ordinal()) }
            .map_err(|reason| Error::input(format!("the host platform refuses OpenCL's memory: {reason}")))?;
        Ok(Self(Some((hooks, svm))))
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some((hooks, svm)) = self.0 {
            // it was made known, which is the only thing that could be wrong
            let _ = (hooks.release)(svm);
        }
    }
}
