//! A library that knows nothing of this project owns an OpenCL context, a queue and a buffer. Its
//! buffer is adopted, and rocBLAS makes the covariance of the bytes that its kernels write.
//!
//! `cargo run -p hipcl-interop --example 06_foreign_cl_mem`

use std::error::Error;

use interop::{Bridge, ForeignObjects, Options, Shared};
use num_complex::Complex;
use rocblas::{Fill, Handle, Matrix, Op};

type C32 = Complex<f32>;
type C64 = Complex<f64>;

const ANTENNAS: usize = 16;
const SNAPSHOTS: usize = 1000;
const BLOCKS: u32 = 3;

/// Stands for years of code: plain calls of the C API, and nothing else.
mod legacy {
    use std::error::Error;
    use std::ffi::{CString, c_void};
    use std::ptr::{null, null_mut};

    use clmgr::opencl_sys::{
        CL_MEM_READ_WRITE, CL_SUCCESS, cl_command_queue, cl_context, cl_device_id, cl_int, cl_kernel, cl_mem,
        cl_program,
    };

    const SOURCE: &str = include_str!("../kernels/sampler.cl");

    pub struct Sampler {
        api: clmgr::Api,
        pub context: cl_context,
        pub queue: cl_command_queue,
        program: cl_program,
        kernel: cl_kernel,
        pub samples: cl_mem,
        count: usize,
    }

    fn ok(call: &str, code: cl_int) -> Result<(), Box<dyn Error>> {
        match code {
            CL_SUCCESS => Ok(()),
            code => Err(format!("{call} failed: {code}").into()),
        }
    }

    /// The function of that name, as a linker would have found it.
    macro_rules! cl {
        ($api:expr, $name:ident) => {
            $api.$name.ok_or(concat!(stringify!($name), " is missing"))?
        };
    }

    impl Sampler {
        /// Room for `count` complex samples.
        pub fn new(api: clmgr::Api, device: cl_device_id, count: usize) -> Result<Self, Box<dyn Error>> {
            let source = CString::new(SOURCE)?;
            let mut new = Self {
                api,
                context: null_mut(),
                queue: null_mut(),
                program: null_mut(),
                kernel: null_mut(),
                samples: null_mut(),
                count,
            };
            let (mut code, bytes) = (0, 2 * size_of::<f32>() * count);
            // SAFETY: a living device; objects of one context; C strings; valid places for the codes.
            // What was created is released by `drop`, also if a later call fails.
            unsafe {
                let create = cl!(api, clCreateContext);
                new.context = create(null(), 1, &device, None, null_mut(), &mut code);
                ok("clCreateContext", code)?;
                let create = cl!(api, clCreateCommandQueue);
                new.queue = create(new.context, device, 0, &mut code);
                ok("clCreateCommandQueue", code)?;
                let create = cl!(api, clCreateBuffer);
                new.samples = create(new.context, CL_MEM_READ_WRITE, bytes, null_mut(), &mut code);
                ok("clCreateBuffer", code)?;
                let create = cl!(api, clCreateProgramWithSource);
                let mut text = source.as_ptr();
                new.program = create(new.context, 1, &mut text, null(), &mut code);
                ok("clCreateProgramWithSource", code)?;
                let build = cl!(api, clBuildProgram);
                let code_of_build = build(new.program, 1, &device, null(), None, null_mut());
                ok("clBuildProgram", code_of_build)?;
                let create = cl!(api, clCreateKernel);
                new.kernel = create(new.program, c"sampler".as_ptr(), &mut code);
                ok("clCreateKernel", code)?;
            }
            Ok(new)
        }

        /// Queues the next block of samples, and does not wait for it.
        pub fn next_block(&self, block: u32) -> Result<(), Box<dyn Error>> {
            let buffer: *const c_void = (&raw const self.samples).cast();
            let number: *const c_void = (&raw const block).cast();
            // SAFETY: all objects are alive and of one context; the arguments are of the kernel's
            // types and read before the calls return; it writes one sample for each work-item.
            unsafe {
                let set = cl!(self.api, clSetKernelArg);
                ok("clSetKernelArg", set(self.kernel, 0, size_of::<cl_mem>(), buffer))?;
                ok("clSetKernelArg", set(self.kernel, 1, size_of::<u32>(), number))?;
                let enqueue = cl!(self.api, clEnqueueNDRangeKernel);
                let code = enqueue(
                    self.queue,
                    self.kernel,
                    1,
                    null(),
                    &self.count,
                    null(),
                    0,
                    null(),
                    null_mut(),
                );
                ok("clEnqueueNDRangeKernel", code)
            }
        }
    }

    impl Drop for Sampler {
        fn drop(&mut self) {
            /// Gives back a handle, if there is one.
            macro_rules! release {
                ($($function:ident($handle:expr);)+) => {$(
                    if let (Some(release), false) = (self.api.$function, $handle.is_null()) {
                        // SAFETY: the reference of the creation is given back once.
                        unsafe { release($handle) };
                    }
                )+};
            }
            release! {
                clReleaseKernel(self.kernel);
                clReleaseProgram(self.program);
                clReleaseMemObject(self.samples);
                clReleaseCommandQueue(self.queue);
                clReleaseContext(self.context);
            }
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let selection = platform::select()?;
    let manager = clmgr::Manager::load()?;
    let mut reasons = Vec::new();
    for device in manager.devices() {
        let sampler = legacy::Sampler::new(*device.api(), device.raw(), ANTENNAS * SNAPSHOTS)?;
        let objects = ForeignObjects {
            context: sampler.context,
            device: device.raw(),
            queue: sampler.queue,
            stream: std::ptr::null_mut(),
        };
        // SAFETY: the sampler lives longer than the bridge; the default stream is never destroyed.
        match unsafe { Bridge::adopt(&selection, objects, &Options::default()) } {
            Ok(bridge) => return work(&bridge, &sampler),
            Err(error) => reasons.push(format!("{}: {error}", device.name())),
        }
    }
    Err(format!("no OpenCL device can be adopted: {}", reasons.join("; ")).into())
}

fn work(bridge: &Bridge, sampler: &legacy::Sampler) -> Result<(), Box<dyn Error>> {
    // SAFETY: the buffer is alive. Only the sampler's queue writes it, which is the bridge's own: see
    // the loop.
    let adopted = unsafe { bridge.adopt_cl_mem::<C32>(sampler.samples, None) };
    let mut samples: Shared<C32> = match adopted {
        Err(error) if error.is_impossible() => {
            println!("skipped: {error}");
            return Ok(());
        }
        adopted => adopted?,
    };
    println!(
        "{} samples of other code, by {}, in {}",
        samples.len(),
        samples.route(),
        samples.residency()
    );
    let handle = Handle::new(&bridge.blas()?, bridge.main_stream())?;
    let mut covariance = bridge.hip_device().alloc::<C32>(ANTENNAS * ANTENNAS)?;
    let before = bridge.meter().snapshot();
    for block in 0..BLOCKS {
        {
            // What the sampler puts into its queue now comes after HIP's work on the block before,
            // and before the next user of the buffer.
            let _guard = samples.cl_mut(bridge.main_queue())?;
            sampler.next_block(block)?;
        }
        let input = Matrix::new(&samples, ANTENNAS, SNAPSHOTS, ANTENNAS);
        let output = Matrix::new(&mut covariance, ANTENNAS, ANTENNAS, ANTENNAS);
        let scale = 1.0 / SNAPSHOTS as f32;
        handle.herk(Fill::Lower, Op::None, scale, input, 0.0, output)?;

        let mut found = vec![C32::default(); ANTENNAS * ANTENNAS];
        bridge.meter().count_as(interop::Category::Result, || {
            covariance.copy_to_slice(bridge.main_stream(), &mut found)
        })?;
        let off = difference(&found, block);
        println!("block {block}: greatest difference from the reference {off:.2e}");
        if off > 1e-5 {
            return Err(format!("the covariance of block {block} is wrong").into());
        }
    }
    let copied = bridge.meter().snapshot().since(&before).data_set;
    println!("{copied} bytes of the data set were copied");
    match copied {
        0 => Ok(()),
        _ => Err("nothing should be copied".into()),
    }
}

/// The sampler's formula.
fn sample(index: usize, block: u32) -> C64 {
    let mut v = (index as u32).wrapping_add(65_536_u32.wrapping_mul(block));
    v = v.wrapping_mul(2_654_435_761);
    v ^= v >> 15;
    v = v.wrapping_mul(2_246_822_519);
    v ^= v >> 13;
    let quarter = |bits: u32| (f64::from(bits & 255) - 128.0) * 0.25;
    C64::new(quarter(v), quarter(v >> 8))
}

/// Of the lower triangle from that in double precision, as a part of its greatest entry.
fn difference(found: &[C32], block: u32) -> f64 {
    let (mut worst, mut greatest) = (0.0_f64, 0.0_f64);
    for j in 0..ANTENNAS {
        for i in j..ANTENNAS {
            let term = |t: usize| sample(i + t * ANTENNAS, block) * sample(j + t * ANTENNAS, block).conj();
            let expected = (0..SNAPSHOTS).map(term).sum::<C64>() / SNAPSHOTS as f64;
            let found = found[i + j * ANTENNAS];
            let off = C64::new(found.re.into(), found.im.into()) - expected;
            worst = worst.max(off.norm());
            greatest = greatest.max(expected.norm());
        }
    }
    worst / greatest
}
