//! Kernels and their launch.

mod arg;
mod bound;
mod foreign;
mod info;
mod object;
mod parameter;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arg::Pointer;
pub use arg::{Arg, NdRange};
pub use bound::BoundKernel;
pub use info::{AddressSpace, KernelInfo, ObjectKind, ParameterInfo};
use object::Object;
use opencl_sys::{cl_context, cl_event, cl_mem};
use parameter::Parameter;
use parking_lot::Mutex;

use crate::api::slot;
use crate::error::{Error, Result, check, check_taken};
use crate::event::Event;
use crate::handle::Handle;
use crate::program::Program;
use crate::queue::Queue;
use crate::usage::Usage;

/// A kernel of a program. Clones refer to the same kernel; several threads may launch it at the same time.
///
/// OpenCL's kernel objects keep the arguments that were last set, which is not safe to share.
/// A launch here sets every argument anew and enqueues under a lock. NVIDIA refuses an object
/// whose argument was once a `cl_mem` and is now an SVM pointer, so each pattern of the two has its own object.
#[derive(Clone)]
pub struct Kernel(Arc<Inner>);

struct Inner {
    // Before the program, which keeps what the functions that release an object rest on.
    objects: Mutex<Objects>,
    program: Program,
    name: String,
    parameters: Vec<Parameter>,
}

#[derive(Default)]
struct Objects {
    by_pattern: HashMap<Vec<Pointer>, Arc<Object>>,
    /// The object that reported the parameters; the first pattern takes it.
    spare: Option<Arc<Object>>,
}

impl Program {
    /// The kernel with this name in the source, even if the driver uses another name, as PoCL does
    /// for kernels named like a built-in function.
    ///
    /// # Errors
    ///
    /// [`Error::NoKernel`] if the program has none.
    #[doc(alias = "clCreateKernel")]
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        Kernel::new(self, name)
    }
}

impl Kernel {
    fn new(program: &Program, name: &str) -> Result<Self> {
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

    /// Enqueues the kernel with these arguments, without waiting.
    ///
    /// Every argument is checked as far as the compiler's information goes: their number, whether it is memory, local
    /// memory or a value, and the size of a value of a built-in OpenCL type. Buffers of this crate record that the
    /// queue uses them, so dropping one before the kernel has ended waits. Kernels on one queue run in order; across
    /// queues use [`Queue::wait_for`]. ROCm's OpenCL keeps that order only through memory that it knows, and would let
    /// two kernels overlap whose one common memory is a pointer that HIP allocated. A launch here that takes such a
    /// pointer also names a small OpenCL allocation as written, which puts these kernels in order; launches by other
    /// code through the raw handle are not.
    ///
    /// # Errors
    ///
    /// [`Error::Launch`] if arguments or range do not fit, [`Error::ContextMismatch`] for a queue
    /// of another context, or a driver error.
    ///
    /// # Safety
    ///
    /// * Each handle and pointer is alive now, and memory that is not this crate's stays alive
    ///   until the kernel has ended.
    /// * With these arguments and this range the kernel stays within the memory passed to it.
    /// * Until it has ended, nothing else writes what it reads, and nothing else reads or writes
    ///   what it writes; no map guard of such memory is alive or was leaked.
    #[doc(alias = "clEnqueueNDRangeKernel")]
    pub unsafe fn launch(&self, queue: &Queue, range: NdRange, args: &[Arg<'_>]) -> Result<Event> {
        self.check_queue(queue)?;
        self.check(range, args)?;
        self.check_objects(args)?;
        // SAFETY: the caller's promise, and range and arguments fit.
        unsafe { self.enqueue(queue, range, args) }
    }

    /// As [`launch`](Self::launch), and buffers may be of another context: the caller must find out whether a driver
    /// accepts them, and what it does with them. Their uses are not recorded.
    ///
    /// # Safety
    ///
    /// As [`launch`](Self::launch), and a buffer of another context is alive until the kernel has
    /// ended.
    pub(crate) unsafe fn launch_across(&self, queue: &Queue, range: NdRange, args: &[Arg<'_>]) -> Result<Event> {
        self.check_queue(queue)?;
        self.check(range, args)?;
        // SAFETY: the caller's promise, and range and arguments fit.
        unsafe { self.enqueue(queue, range, args) }
    }

    /// # Safety
    ///
    /// As [`launch_across`](Self::launch_across), after [`check`](Self::check).
    unsafe fn enqueue(&self, queue: &Queue, range: NdRange, args: &[Arg<'_>]) -> Result<Event> {
        let context = self.0.program.context();
        let object = self.object_for(args)?;
        let _one_at_a_time = object.launch.lock();
        if foreign::loses_order(context, args) && !object.take_token(context)? {
            queue.drain()?;
        }
        // SAFETY: the caller's promise about handles and pointers; the object is locked.
        unsafe { self.set(&object, args) }?;
        let used = args.iter().filter_map(|arg| self.usage_of(arg));
        // SAFETY: every argument is set, and the object is locked; the caller answers for what the kernel touches.
        unsafe { self.enqueue_object(&object, queue, range, used) }
    }

    /// # Safety
    ///
    /// The object is locked or used by one thread only; handles and pointers are alive.
    unsafe fn set(&self, object: &Object, args: &[Arg<'_>]) -> Result<()> {
        for (index, arg) in args.iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { object.set(index, arg) }.map_err(|error| self.argument_refusal(index, arg, error))?;
        }
        Ok(())
    }

    /// Enqueues the object with its current arguments, and records this use of their memory.
    ///
    /// # Safety
    ///
    /// The object is locked or its arguments stay as they are, every one is set, and its memory is alive. The kernel
    /// stays within it, and nothing else touches it meanwhile.
    unsafe fn enqueue_object(
        &self,
        object: &Object,
        queue: &Queue,
        range: NdRange,
        used: impl Iterator<Item = Arc<Usage>>,
    ) -> Result<Event> {
        let enqueue = slot!(object.api, clEnqueueNDRangeKernel)?;
        let before = queue.enqueued();
        let mut event: cl_event = std::ptr::null_mut();
        // SAFETY: queue and kernel are alive and of one context; offset and ranges hold `dims`
        // entries; no event is waited for; `event` is a valid place. The caller answers for
        // what the kernel touches.
        let code = unsafe {
            enqueue(
                queue.raw(),
                object.raw.0,
                range.dims,
                range.offset.as_ptr(),
                range.global.as_ptr(),
                range.local.as_ref().map_or(std::ptr::null(), |local| local.as_ptr()),
                0,
                std::ptr::null(),
                &raw mut event,
            )
        };
        check_taken(code, || {
            let dims = range.dims as usize;
            format!(
                "clEnqueueNDRangeKernel(`{}`, global {:?}, local {:?})",
                self.name(),
                &range.global[..dims],
                range.local.as_ref().map(|local| &local[..dims])
            )
        })?;
        let number = queue.note_enqueued();
        used.for_each(|usage| usage.note(queue, number));
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

    fn check_queue(&self, queue: &Queue) -> Result<()> {
        if queue.context() != self.0.program.context() {
            return Err(Error::ContextMismatch { what: "the queue" });
        }
        Ok(())
    }

    /// Refuses what a launch with this range and these arguments refuses before it calls OpenCL, without checking who
    /// owns the memory.
    ///
    /// # Errors
    ///
    /// [`Error::Launch`].
    pub fn check(&self, range: NdRange, args: &[Arg<'_>]) -> Result<()> {
        range.check().map_err(|reason| self.refusal(reason))?;
        let parameters = &self.0.parameters;
        if args.len() != parameters.len() {
            return Err(self.refusal(format!("got {} arguments, it takes {}", args.len(), parameters.len())));
        }
        for (index, (arg, parameter)) in args.iter().zip(parameters).enumerate() {
            if let Err(reason) = parameter.accepts(arg) {
                return Err(self.refusal(format!("argument {index}: {reason}")));
            }
        }
        Ok(())
    }

    fn check_objects(&self, args: &[Arg<'_>]) -> Result<()> {
        for (index, (arg, parameter)) in args.iter().zip(&self.0.parameters).enumerate() {
            if let Arg::Mem(object) = arg {
                self.check_object(index, *object, *parameter)?;
            }
        }
        Ok(())
    }

    /// Refuses a buffer of another context, which some drivers accept silently, and one that is read-only where the
    /// kernel may write.
    fn check_object(&self, index: usize, object: cl_mem, parameter: Parameter) -> Result<()> {
        let context = self.0.program.context();
        if let Some(access) = context.registry().access_of(Handle(object)) {
            let (fits, declared) = match parameter {
                Parameter::Pointer { constant: Some(true) } => (access.device.reads(), "const"),
                Parameter::Pointer { constant: Some(false) } => (access.device.writes(), "not const"),
                _ => (true, ""),
            };
            if fits {
                return Ok(());
            }
            return Err(Error::Access {
                what: format!(
                    "use as argument {index} of kernel `{}`, declared {declared},",
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
                call: format!("{call} of kernel `{}`, argument {index} = {arg:?}", self.0.name),
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

/// Kernels are launched from several threads.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<Kernel>();
};
