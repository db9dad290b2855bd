//! OpenCL kernels on HIP streams.
//!
//! | platform | what HIP gets | file |
//! |---|---|---|
//! | amd | the code object of `CL_PROGRAM_BINARIES` | `code_object` |
//! | nvidia | the PTX of `CL_PROGRAM_BINARIES` | `ptx` |
//! | host | a function that runs the kernel by OpenCL's CPU runtime | `host` |
//!
//! OpenCL's runtime passes a kernel more than its arguments (offsets, the number of dimensions) and places local memory
//! that is an argument. HIP does neither. So the code's description of its parameters is changed: what OpenCL's runtime
//! would pass becomes ordinary parameters, which a launch here fills ([`layout`]).

mod arg;
mod code_object;
mod fft;
mod geometry;
mod host;
mod layout;
mod proof;
mod ptx;

use std::collections::HashMap;
use std::sync::Arc;
use std::{fmt, ptr};

use arg::Kind;
pub use arg::StreamArg;
use clmgr::{KernelInfo, NdRange};
pub use fft::StreamFft;
use geometry::Geometry;
use host::Host;
use layout::{Entry, Image, Layout};
use platform::OpenClKernels;

use crate::core::Core;
use crate::{Bridge, Error, Result};

/// An OpenCL program that HIP has loaded, from [`Bridge::stream_program`]. Cloning is cheap.
#[derive(Clone)]
pub struct StreamProgram(Arc<Loaded>);

struct Loaded {
    program: clmgr::Program,
    core: Arc<Core>,
    way: Way,
}

enum Way {
    Module {
        module: hip::Module,
        kernels: HashMap<String, Layout>,
    },
    Host(Host),
}

/// An OpenCL kernel for launches on HIP streams, in order with HIP kernels, rocBLAS and copies. Cloning is cheap; it
/// keeps its program loaded.
///
/// ```
/// use clmgr::NdRange;
/// use interop::{Bridge, Options, StreamArg};
///
/// let platform = platform::select()?;
/// let bridge = Bridge::open(&platform, &Options::default())?;
/// let program = bridge.programs().get(
///     "kernel void scale(global float *x, float by) { x[get_global_id(0)] *= by; }", "")?;
/// let scale = bridge.stream_program(&program)?.kernel("scale")?;
///
/// let stream = bridge.stream()?;
/// let mut data = bridge.hip_device().alloc_from(&stream, &[1.5_f32; 1024])?;
/// // SAFETY: the kernel takes a pointer and a number, and touches 1024 floats.
/// unsafe {
///     scale.launch(&stream, NdRange::d1(1024), &[data.on_mut(&stream)?.into(), StreamArg::scalar(&2.0_f32)])?;
/// }
/// let mut result = [0.0_f32; 1024];
/// data.copy_to_slice(&stream, &mut result)?;
/// assert_eq!(result, [3.0; 1024]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct StreamKernel {
    program: StreamProgram,
    kernel: clmgr::Kernel,
    info: Arc<KernelInfo>,
    /// Where HIP has loaded the code.
    function: Option<Arc<(hip::Function, Layout)>>,
}

impl Bridge {
    /// Loads the code of an OpenCL program into HIP, so its kernels run on HIP streams: there is no hand-off, because
    /// there is one stream, and no second context.
    ///
    /// On the nvidia platform the driver recompiles the program (40 to 50 ms; its own cache keeps the result). Keep the
    /// result, and its kernels, for as long as they are used.
    ///
    /// # Errors
    /// [`Error::NoStreamProgram`] if HIP cannot load this code, [`clmgr::Error::ContextMismatch`] for a program of
    /// another context than [the bridge's](Self::cl_context), or HIP's error.
    #[doc(alias = "hipModuleLoadData")]
    pub fn stream_program(&self, program: &clmgr::Program) -> Result<StreamProgram> {
        let core = self.core();
        if program.context() != &core.context {
            return Err(clmgr::Error::ContextMismatch { what: "the program" }.into());
        }
        let program = program.with_parameters()?;
        let refused = |reason: String| Error::NoStreamProgram { reason };
        let way = match (core.platform.facts().opencl_kernels, core.foreign) {
            (OpenClKernels::Hooks, Some(hooks)) => Way::Host(Host::new(hooks, &core.context)),
            (OpenClKernels::CodeObject, _) => {
                let image = code_object::image(&program.binary()?).map_err(refused)?;
                Way::load(&core.hip_device, image)?
            }
            (OpenClKernels::Ptx, _) => {
                let image = ptx::image(&program.binary()?, &program.build_options()?).map_err(refused)?;
                Way::load(&core.hip_device, image)?
            }
            _ => {
                let reason = format!("platform {} does not support it", core.platform);
                return Err(Error::NoStreamProgram { reason });
            }
        };
        Ok(StreamProgram(Arc::new(Loaded {
            program,
            core: Arc::clone(core),
            way,
        })))
    }
}

impl Way {
    fn load(device: &hip::Device, image: Image) -> Result<Self> {
        // SAFETY: what the driver's compiler made, changed in what it tells about its parameters only; PTX ends with a
        // nul.
        let module = unsafe { hip::Module::load(device, &image.code) }?;
        Ok(Self::Module {
            module,
            kernels: image.kernels,
        })
    }
}

impl StreamProgram {
    /// The kernel of this name.
    ///
    /// # Errors
    /// [`clmgr::Error::NoKernel`] if there is none, [`Error::NotOnStream`] if it uses what does not work on a HIP
    /// stream.
    pub fn kernel(&self, name: &str) -> Result<StreamKernel> {
        let kernel = self.0.program.kernel(name)?;
        let mut info = kernel.info()?;
        let refused = |reason: String| Error::NotOnStream {
            kernel: name.to_owned(),
            reason,
        };
        if let Some(object) = info.objects().into_iter().next() {
            return Err(refused(format!("it takes {object}")));
        }
        let function = match &self.0.way {
            Way::Host(_) => None,
            Way::Module { module, kernels } => {
                let layout = kernels
                    .get(name)
                    .ok_or_else(|| refused("the code that HIP loaded does not contain it".to_owned()))?;
                if let Some(reason) = &layout.refused {
                    return Err(refused(reason.clone()));
                }
                let function = module.function(name)?;
                // OpenCL's number is what its own compiler counts on, and NVIDIA's takes more than it tells.
                info.max_work_group = function.max_threads_per_block()? as usize;
                Some(Arc::new((function, layout.clone())))
            }
        };
        Ok(StreamKernel {
            program: self.clone(),
            kernel,
            info: Arc::new(info),
            function,
        })
    }

    /// The OpenCL program.
    #[must_use]
    pub fn program(&self) -> &clmgr::Program {
        &self.0.program
    }
}

impl StreamKernel {
    /// What the kernel takes and needs.
    #[must_use]
    pub fn info(&self) -> &KernelInfo {
        &self.info
    }

    /// The kernel's program.
    #[must_use]
    pub fn program(&self) -> &StreamProgram {
        &self.program
    }

    /// The function that HIP has loaded, and the number of its parameters.
    pub(crate) fn loaded(&self) -> Option<(&hip::Function, usize)> {
        let (function, layout) = self.function.as_deref()?;
        Some((function, layout.len()))
    }

    /// Queues the kernel on `stream`, or records it inside [`hip::Stream::capture`]. The host does not wait; values are
    /// copied before it returns.
    ///
    /// Work-groups must divide the range, as for an OpenCL queue. Where the caller passes none, the largest that divide
    /// the range are chosen, up to 256 work-items; pass them where the range has no such divisor.
    ///
    /// # Errors
    /// [`clmgr::Error::Launch`] if range or arguments do not fit the kernel: number, kind, size, read-only memory where
    /// the kernel writes, more local memory than the device has. [`hip::Error::WrongStream`] for memory that was
    /// granted to another stream, [`hip::Error::WrongDevice`] for a stream of another device, or HIP's error. Nothing
    /// was queued then.
    ///
    /// # Safety
    /// - The kernel takes these arguments: the types of what pointers lead to, and of values, are as in its source.
    /// - It stays inside the memory passed to it, and memory that it writes does not overlap another argument.
    /// - It ends.
    #[doc(alias = "hipModuleLaunchKernel")]
    pub unsafe fn launch(&self, stream: &hip::Stream, range: NdRange, args: &[StreamArg<'_>]) -> Result<()> {
        self.check_device(stream)?;
        for (index, arg) in args.iter().enumerate() {
            self.check_memory(stream, index, arg)?;
        }
        self.check_local(args)?;
        range.check().map_err(|reason| self.refusal(reason))?;
        let geometry = Geometry::of(&range, &self.info).map_err(|reason| self.refusal(reason))?;
        match (&self.function, &self.program.0.way) {
            (Some(loaded), _) => {
                let (function, layout) = &**loaded;
                // SAFETY: the caller's promise.
                unsafe { self.launch_loaded(function, layout, stream, &range, geometry, args) }
            }
            (None, Way::Host(host)) => {
                let range = match self.info.required_work_group {
                    Some(required) if range.local.is_none() => range.with_local(required),
                    _ => range,
                };
                // SAFETY: the caller's promise.
                unsafe { host.launch(&self.kernel, stream, range, args) }
            }
            (None, Way::Module { .. }) => unreachable!("a module's kernels have their function"),
        }
    }

    /// That a work-group's memory has room for the kernel's own arrays and its arguments.
    fn check_local(&self, args: &[StreamArg<'_>]) -> Result<()> {
        let most = self.program.0.program.context().device().local_bytes();
        let own = usize::try_from(self.info.local_bytes).unwrap_or(usize::MAX);
        let needed = args.iter().fold(own, |sum, arg| match arg.0 {
            Kind::Local(bytes) => sum.saturating_add(bytes),
            Kind::Memory { .. } | Kind::Bytes(_) => sum,
        });
        if needed as u64 <= most {
            return Ok(());
        }
        Err(self.refusal(format!(
            "{needed} bytes of local memory; the device has {most} per work-group"
        )))
    }

    fn check_device(&self, stream: &hip::Stream) -> Result<()> {
        let device = &self.program.0.core.hip_device;
        if stream.device() == device {
            return Ok(());
        }
        let name = |device: &hip::Device| format!("device {}", device.ordinal());
        Err(Error::Hip(hip::Error::WrongDevice {
            call: CALL,
            argument: "the stream",
            found: name(stream.device()),
            expected: name(device),
        }))
    }

    /// That memory was granted to this stream, and may be written where the kernel may write.
    fn check_memory(&self, stream: &hip::Stream, index: usize, arg: &StreamArg<'_>) -> Result<()> {
        let Kind::Memory {
            stream: bound,
            is_writable,
            ..
        } = arg.0
        else {
            return Ok(());
        };
        if bound != stream {
            return Err(Error::Hip(hip::Error::WrongStream {
                call: CALL,
                argument: format!("argument {index} of `{}`", self.info.name),
            }));
        }
        let declared = self.info.parameters.get(index).and_then(|it| it.is_const);
        if declared == Some(false) && !is_writable {
            let reason = "read-only memory, but the parameter is not declared const; declare it const, or pass a writable slice or guard";
            return Err(self.refusal(format!("argument {index}: {reason}")));
        }
        Ok(())
    }

    /// # Safety
    /// As [`launch`](Self::launch), after the checks of stream and range.
    unsafe fn launch_loaded(
        &self,
        function: &hip::Function,
        layout: &Layout,
        stream: &hip::Stream,
        range: &NdRange,
        geometry: Geometry,
        args: &[StreamArg<'_>],
    ) -> Result<()> {
        let (mut few_entries, mut few_params) = ([Entry::Word(0); ENTRIES], [ptr::null_mut(); ENTRIES]);
        let (mut entries, mut params);
        let (entries, params) = match layout.len() {
            count @ ..=ENTRIES => (&mut few_entries[..count], &mut few_params[..count]),
            count => {
                (entries, params) = (vec![Entry::Word(0); count], vec![ptr::null_mut(); count]);
                (&mut entries[..], &mut params[..])
            }
        };
        let local = layout
            .fill(entries, range, args)
            .map_err(|reason| self.refusal(reason))?;
        let shared_bytes = u32::try_from(local).map_err(|_| self.refusal(format!("{local} bytes of local memory")))?;
        for (param, entry) in params.iter_mut().zip(&*entries) {
            *param = entry.address();
        }
        let [x, y, z] = geometry.grid;
        let [block_x, block_y, block_z] = geometry.block;
        let config = hip::LaunchConfig {
            grid: (x, y, z),
            block: (block_x, block_y, block_z),
            shared_bytes,
        };
        // SAFETY: the entries are what the code takes, in its order; the caller's promise for the rest.
        unsafe { function.launch_params(stream, config, params) }.map_err(Error::Hip)
    }

    fn refusal(&self, reason: String) -> Error {
        let kernel = self.info.name.clone();
        Error::Cl(clmgr::Error::Launch { kernel, reason })
    }
}

/// Entries of a launch that need no allocation.
const ENTRIES: usize = 16;
const CALL: &str = "StreamKernel::launch";

impl fmt::Debug for StreamProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StreamProgram").field(&self.0.program).finish()
    }
}

impl fmt::Debug for StreamKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamKernel")
            .field("name", &self.info.name)
            .finish_non_exhaustive()
    }
}

/// Kernels are launched from several threads.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<StreamProgram>();
    shared::<StreamKernel>();
};
