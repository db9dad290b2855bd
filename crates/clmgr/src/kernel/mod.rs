//! Kernels and their launch.

mod arg;
mod foreign;
mod parameter;

pub use arg::{Arg, NdRange};

use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use opencl_sys::{
    cl_bitfield, cl_context, cl_event, cl_int, cl_kernel, cl_kernel_arg_info, cl_mem, cl_uint,
};
use parking_lot::Mutex;

use crate::api::{Api, slot};
use crate::device;
use crate::error::{Error, Result, check};
use crate::event::Event;
use crate::handle::Handle;
use crate::program::Program;
use crate::queue::Queue;
use crate::usage::Usage;
use arg::Pointer;
use parameter::{Parameter, size_of_type};

/// A kernel of a program. A clone is the same kernel; several threads may launch it at once.
///
/// OpenCL's kernel objects keep the arguments that were last set, which is not safe to share.
/// A launch here sets every argument anew and enqueues under a lock. NVIDIA refuses an object
/// whose argument was once a `cl_mem` and is now an SVM pointer, so that each pattern of the two
/// has an object of its own.
#[derive(Clone)]
pub struct Kernel(Arc<Inner>);

struct Inner {
    program: Program,
    name: String,
    parameters: Vec<Parameter>,
    objects: Mutex<Objects>,
}

#[derive(Default)]
struct Objects {
    by_pattern: HashMap<Vec<Pointer>, Arc<Object>>,
    /// The object that told the parameters; the first pattern takes it.
    spare: Option<Arc<Object>>,
}

/// One `cl_kernel`; the lock is held while its arguments are set and it is enqueued.
struct Object {
    raw: Handle,
    api: Api,
    launch: Mutex<()>,
    /// Whether it was told of the context's token; see [`foreign`].
    has_token: AtomicBool,
}

type GetArgInfo = unsafe extern "C" fn(
    cl_kernel,
    cl_uint,
    cl_kernel_arg_info,
    usize,
    *mut c_void,
    *mut usize,
) -> cl_int;

impl Kernel {
    pub(crate) fn new(program: &Program, name: &str) -> Result<Self> {
        let object = Object::create(program, name)?;
        let parameters = object.parameters()?;
        let inner = Inner {
            program: program.clone(),
            name: name.to_owned(),
            parameters,
            objects: Mutex::new(Objects {
                spare: Some(Arc::new(object)),
                ..Objects::default()
            }),
        };
        Ok(Self(Arc::new(inner)))
    }

    /// The kernel's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The number of arguments that a launch needs.
    #[must_use]
    pub fn arg_count(&self) -> usize {
        self.0.parameters.len()
    }

    /// The kernel's program.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.0.program
    }

    /// Enqueues the kernel with these arguments; it returns at once.
    ///
    /// Every argument is checked as far as the compiler tells: their number, whether it is memory,
    /// local memory or a value, and the size of a value of one of OpenCL's own types. Buffers of this
    /// crate note that the queue uses them, so that dropping one before the kernel has ended waits.
    /// Kernels on one queue run in order; across queues use [`Queue::wait_for`]. ROCm's OpenCL keeps
    /// that order only through memory that it knows, and would let two kernels overlap whose one
    /// common memory is a pointer that HIP allocated. A launch here that takes such a pointer names
    /// a little memory of OpenCL's own as written too, which puts these kernels in order; the
    /// launches of others by the raw handle are not.
    ///
    /// # Errors
    ///
    /// [`Error::Launch`] if arguments or range do not fit, [`Error::ContextMismatch`] for a queue
    /// of another context, or what the driver answers.
    ///
    /// # Safety
    ///
    /// * Each handle and pointer is alive now, and memory that is not this crate's stays alive
    ///   until the kernel has ended.
    /// * With these arguments and this range the kernel stays within the memory it is given.
    /// * Until it has ended, nothing else writes what it reads, and nothing else reads or writes
    ///   what it writes; no map guard of such memory is alive or was leaked.
    #[doc(alias = "clEnqueueNDRangeKernel")]
    pub unsafe fn launch(&self, queue: &Queue, range: NdRange, args: &[Arg<'_>]) -> Result<Event> {
        let context = self.0.program.context();
        if queue.context() != context {
            return Err(Error::ContextMismatch { what: "the queue" });
        }
        range.check().map_err(|reason| self.refusal(reason))?;
        self.check_arguments(args)?;
        let enqueue = slot!(context.api(), clEnqueueNDRangeKernel)?;
        let object = self.object_for(args)?;

        let before = queue.enqueued();
        let mut event: cl_event = std::ptr::null_mut();
        {
            let _one_at_a_time = object.launch.lock();
            if foreign::loses_order(context, args) && !object.take_token(context)? {
                queue.drain()?;
            }
            for (index, arg) in args.iter().enumerate() {
                // SAFETY: the caller's promise about handles and pointers; the object is locked.
                unsafe { object.set(index, arg) }
                    .map_err(|error| self.argument_refusal(index, arg, error))?;
            }
            // SAFETY: queue and kernel are alive and of one context; the ranges hold `dims`
            // entries; no event is waited for; `event` is a valid place. The caller answers for
            // what the kernel touches.
            let code = unsafe {
                enqueue(
                    queue.raw(),
                    object.raw.0,
                    range.dims,
                    std::ptr::null(),
                    range.global.as_ptr(),
                    range
                        .local
                        .as_ref()
                        .map_or(std::ptr::null(), |local| local.as_ptr()),
                    0,
                    std::ptr::null(),
                    &raw mut event,
                )
            };
            check(code, || {
                let dims = range.dims as usize;
                format!(
                    "clEnqueueNDRangeKernel(`{}`, global {:?}, local {:?})",
                    self.name(),
                    &range.global[..dims],
                    range.local.as_ref().map(|local| &local[..dims])
                )
            })?;
        }
        let number = queue.note_enqueued();
        for usage in args.iter().filter_map(|arg| self.usage_of(arg)) {
            usage.note(queue, number);
        }
        Ok(Event::new(event, queue, before, "clEnqueueNDRangeKernel"))
    }

    fn usage_of(&self, arg: &Arg<'_>) -> Option<Arc<Usage>> {
        let registry = self.0.program.context().registry();
        match arg {
            Arg::Mem(object) => registry.of_object(Handle(*object)),
            Arg::Svm(pointer) => registry.of_address(pointer.addr()),
            Arg::Bytes(_) | Arg::Local(_) => None,
        }
    }

    fn check_arguments(&self, args: &[Arg<'_>]) -> Result<()> {
        let parameters = &self.0.parameters;
        if args.len() != parameters.len() {
            return Err(self.refusal(format!(
                "{} arguments given, it takes {}",
                args.len(),
                parameters.len()
            )));
        }
        for (index, (arg, parameter)) in args.iter().zip(parameters).enumerate() {
            if let Err(reason) = parameter.accepts(arg) {
                return Err(self.refusal(format!("argument {index}: {reason}")));
            }
            if let Arg::Mem(object) = arg {
                self.check_object(index, *object, *parameter)?;
            }
        }
        Ok(())
    }

    /// Refuses a buffer of another context, which some drivers accept without a word, and one
    /// that is read-only where the kernel may write.
    fn check_object(&self, index: usize, object: cl_mem, parameter: Parameter) -> Result<()> {
        let context = self.0.program.context();
        if let Some(access) = context.registry().access_of(Handle(object)) {
            let (fits, declared) = match parameter {
                Parameter::Pointer {
                    constant: Some(true),
                } => (access.device.reads(), "const"),
                Parameter::Pointer {
                    constant: Some(false),
                } => (access.device.writes(), "not const"),
                _ => (true, ""),
            };
            if fits {
                return Ok(());
            }
            return Err(Error::Access {
                what: format!(
                    "the use by kernel `{}` as argument {index}, which is declared {declared},",
                    self.0.name
                ),
                access,
            });
        }
        let get = slot!(context.api(), clGetMemObjectInfo)?;
        let mut owner: cl_context = std::ptr::null_mut();
        let what = opencl_sys::CL_MEM_CONTEXT;
        // SAFETY: the launch's caller promises that the buffer is alive; `owner` has room for the
        // answer's handle.
        let code = unsafe {
            get(
                object,
                what,
                size_of::<cl_context>(),
                (&raw mut owner).cast(),
                std::ptr::null_mut(),
            )
        };
        check(code, || "clGetMemObjectInfo(CL_MEM_CONTEXT)".to_owned())?;
        if owner == context.raw() {
            Ok(())
        } else {
            Err(Error::ContextMismatch {
                what: "a buffer argument",
            })
        }
    }

    /// The kernel object for this pattern of arguments.
    fn object_for(&self, args: &[Arg<'_>]) -> Result<Arc<Object>> {
        let pattern: Vec<Pointer> = args.iter().map(Arg::pointer).collect();
        {
            let mut objects = self.0.objects.lock();
            if let Some(object) = objects.by_pattern.get(&pattern) {
                return Ok(object.clone());
            }
            if let Some(spare) = objects.spare.take() {
                objects.by_pattern.insert(pattern, spare.clone());
                return Ok(spare);
            }
        }
        // Created outside the lock; if two threads do so at once, the first one stays.
        let object = Arc::new(Object::create(&self.0.program, &self.0.name)?);
        Ok(self
            .0
            .objects
            .lock()
            .by_pattern
            .entry(pattern)
            .or_insert(object)
            .clone())
    }

    fn refusal(&self, reason: String) -> Error {
        Error::Launch {
            kernel: self.0.name.clone(),
            reason,
        }
    }

    fn argument_refusal(&self, index: usize, arg: &Arg<'_>, error: Error) -> Error {
        match error {
            Error::Call { call, code } => Error::Call {
                call: format!(
                    "{call} of kernel `{}`, argument {index} = {arg:?}",
                    self.0.name
                ),
                code,
            },
            other => other,
        }
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel")
            .field("name", &self.0.name)
            .field("parameters", &self.0.parameters)
            .finish_non_exhaustive()
    }
}

impl Object {
    fn create(program: &Program, name: &str) -> Result<Self> {
        let api = *program.context().api();
        let create = slot!(api, clCreateKernel)?;
        let text = CString::new(name).map_err(|_| Error::Nul {
            what: "the kernel's name",
        })?;
        let mut code = 0;
        // SAFETY: the program is alive and built; the name is a C string; `code` is a valid place.
        let raw = unsafe { create(program.raw(), text.as_ptr(), &raw mut code) };
        if code == opencl_sys::CL_INVALID_KERNEL_NAME {
            return Err(Error::NoKernel {
                name: name.to_owned(),
                have: program.kernel_names().unwrap_or_default().join(", "),
            });
        }
        check(code, || format!("clCreateKernel(`{name}`)"))?;
        Ok(Self {
            raw: Handle(raw),
            api,
            launch: Mutex::new(()),
            has_token: AtomicBool::new(false),
        })
    }

    /// Reads what the compiler kept about each parameter.
    fn parameters(&self) -> Result<Vec<Parameter>> {
        let get = slot!(self.api, clGetKernelInfo)?;
        let mut count: cl_uint = 0;
        let what = opencl_sys::CL_KERNEL_NUM_ARGS;
        // SAFETY: the kernel is alive and `count` has room for the answer's `cl_uint`.
        let code = unsafe {
            get(
                self.raw.0,
                what,
                size_of::<cl_uint>(),
                (&raw mut count).cast(),
                std::ptr::null_mut(),
            )
        };
        check(code, || "clGetKernelInfo(CL_KERNEL_NUM_ARGS)".to_owned())?;
        Ok((0..count)
            .map(|index| self.parameter(index).unwrap_or(Parameter::Unknown))
            .collect())
    }

    fn parameter(&self, index: cl_uint) -> Option<Parameter> {
        let get = self.api.clGetKernelArgInfo?;
        let mut address: cl_uint = 0;
        let what = opencl_sys::CL_KERNEL_ARG_ADDRESS_QUALIFIER;
        // SAFETY: the kernel is alive and has this argument; `address` has room for the answer.
        let code = unsafe {
            get(
                self.raw.0,
                index,
                what,
                size_of::<cl_uint>(),
                (&raw mut address).cast(),
                std::ptr::null_mut(),
            )
        };
        if code != opencl_sys::CL_SUCCESS {
            return None;
        }
        match address {
            opencl_sys::CL_KERNEL_ARG_ADDRESS_GLOBAL => Some(Parameter::Pointer {
                constant: self.is_const(get, index),
            }),
            opencl_sys::CL_KERNEL_ARG_ADDRESS_CONSTANT => Some(Parameter::Pointer {
                constant: Some(true),
            }),
            opencl_sys::CL_KERNEL_ARG_ADDRESS_LOCAL => Some(Parameter::Local),
            opencl_sys::CL_KERNEL_ARG_ADDRESS_PRIVATE => {
                let what = opencl_sys::CL_KERNEL_ARG_TYPE_NAME;
                let name = device::text("clGetKernelArgInfo", what, |size, value, needed| {
                    // SAFETY: `value` is null with `size` zero, or has room for `size` bytes;
                    // `needed` is a valid place or null.
                    unsafe { get(self.raw.0, index, what, size, value, needed) }
                })
                .ok()?;
                Some(Parameter::Value(size_of_type(&name)))
            }
            _ => None,
        }
    }

    /// Whether what the parameter points at is declared `const`, if the compiler kept that.
    fn is_const(&self, get: GetArgInfo, index: cl_uint) -> Option<bool> {
        // `cl_kernel_arg_type_qualifier` is a 64-bit field; opencl-sys declares it with 32 bits.
        let mut qualifier: cl_bitfield = 0;
        // SAFETY: the kernel is alive and has this argument; `qualifier` has room for the answer.
        let code = unsafe {
            get(
                self.raw.0,
                index,
                opencl_sys::CL_KERNEL_ARG_TYPE_QUALIFIER,
                size_of::<cl_bitfield>(),
                (&raw mut qualifier).cast(),
                std::ptr::null_mut(),
            )
        };
        (code == opencl_sys::CL_SUCCESS)
            .then_some(qualifier & cl_bitfield::from(opencl_sys::CL_KERNEL_ARG_TYPE_CONST) != 0)
    }

    /// # Safety
    ///
    /// The object is locked; handles and pointers in `arg` are alive.
    unsafe fn set(&self, index: usize, arg: &Arg<'_>) -> Result<()> {
        let raw: cl_kernel = self.raw.0;
        let position = cl_uint::try_from(index).unwrap_or(cl_uint::MAX);
        let (call, code) = match *arg {
            Arg::Svm(pointer) => {
                let set = slot!(self.api, clSetKernelArgSVMPointer)?;
                // SAFETY: the caller's promise.
                ("clSetKernelArgSVMPointer", unsafe {
                    set(raw, position, pointer)
                })
            }
            Arg::Mem(object) => {
                let set = slot!(self.api, clSetKernelArg)?;
                // SAFETY: the value is a buffer handle of the size given; OpenCL copies it.
                ("clSetKernelArg", unsafe {
                    set(
                        raw,
                        position,
                        size_of::<cl_mem>(),
                        (&raw const object).cast(),
                    )
                })
            }
            Arg::Bytes(bytes) => {
                let set = slot!(self.api, clSetKernelArg)?;
                // SAFETY: the value has the size given; OpenCL copies it.
                ("clSetKernelArg", unsafe {
                    set(raw, position, bytes.len(), bytes.as_ptr().cast())
                })
            }
            Arg::Local(bytes) => {
                let set = slot!(self.api, clSetKernelArg)?;
                // SAFETY: local memory is given by a size and a null pointer.
                ("clSetKernelArg", unsafe {
                    set(raw, position, bytes, std::ptr::null())
                })
            }
        };
        check(code, || call.to_owned())
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        if let Some(release) = self.api.clReleaseKernel {
            // SAFETY: this is the one reference that the creation gave. OpenCL keeps the kernel
            // until the commands that use it have ended.
            unsafe { release(self.raw.0) };
        }
    }
}

/// Kernels are launched from several threads.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<Kernel>();
};
