//! OpenCL programs and kernels, on a queue or on a HIP stream.

use std::ffi::{c_char, c_void};
use std::sync::OnceLock;

use clmgr::{Arg, NdRange};
use interop::{Bridge, ClGuard, ClGuardMut, HipGuard, HipGuardMut, StreamArg, StreamKernel, StreamProgram};

use crate::access::{AccessObject, hipcl_access};
use crate::bridge::{BridgeObject, hipcl_bridge};
use crate::buffer::{BufferReader, BufferWriter, hipcl_buffer};
use crate::call::{Out, call, destroy, optional_text, slice, text, versioned, versioned_input, versioned_inputs};
use crate::failure::Failure;
use crate::handle::{Object, object};
use crate::queue::{QueueObject, StreamObject, hipcl_queue, hipcl_stream};
use crate::status::hipcl_status;
use crate::table::Held;

/// What a hipcl_program points to.
pub enum hipcl_program_s {}
/// A built OpenCL program.
pub type hipcl_program = *mut hipcl_program_s;

/// What a hipcl_kernel points to.
pub enum hipcl_kernel_s {}
/// A kernel of an OpenCL program, for queues and for HIP streams.
pub type hipcl_kernel = *mut hipcl_kernel_s;

pub(crate) struct ProgramObject {
    bridge: Bridge,
    program: clmgr::Program,
    on_stream: OnceLock<StreamProgram>,
}
object!(ProgramObject, hipcl_program_s, Program);

pub(crate) struct KernelObject {
    program: Held<ProgramObject>,
    kernel: clmgr::Kernel,
    on_stream: OnceLock<StreamKernel>,
}
object!(KernelObject, hipcl_kernel_s, Kernel);

/// What an argument of a kernel is: one of HIPCL_ARG_...
pub type hipcl_arg_kind = i32;
/// `buffer`, which the kernel reads.
pub const HIPCL_ARG_READ: hipcl_arg_kind = 1;
/// `buffer`, which the kernel reads and writes.
pub const HIPCL_ARG_WRITE: hipcl_arg_kind = 2;
/// The buffer of `access`, an open access on the queue or stream of the launch.
pub const HIPCL_ARG_ACCESS: hipcl_arg_kind = 3;
/// A value: `bytes` bytes at `value`, which are copied.
pub const HIPCL_ARG_VALUE: hipcl_arg_kind = 4;
/// Local memory of `bytes` bytes.
pub const HIPCL_ARG_LOCAL: hipcl_arg_kind = 5;

/// An argument of a kernel. Members that the kind does not use are ignored.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct hipcl_arg {
    /// sizeof of this structure, set by the caller; the same in all elements of an array.
    pub struct_size: usize,
    /// What it is: one of HIPCL_ARG_...
    pub kind: hipcl_arg_kind,
    /// For HIPCL_ARG_READ and HIPCL_ARG_WRITE: the buffer. The launch begins and ends the access itself.
    pub buffer: hipcl_buffer,
    /// For HIPCL_ARG_ACCESS: the access.
    pub access: hipcl_access,
    /// For HIPCL_ARG_VALUE: the value.
    pub value: *const c_void,
    /// For HIPCL_ARG_VALUE and HIPCL_ARG_LOCAL: the size in bytes.
    pub bytes: usize,
}

/// The work-items of a launch.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct hipcl_range {
    /// sizeof of this structure, set by the caller before the call.
    pub struct_size: usize,
    /// The number of dimensions, 1 to 3. Entries beyond it are ignored.
    pub dimensions: u32,
    /// The work-items in each dimension, at least 1.
    pub global: [usize; 3],
    /// The work-items of a work-group, which divide `global`; all 0 to leave the choice to the driver.
    pub local: [usize; 3],
    /// What get_global_id() begins with.
    pub offset: [usize; 3],
}

versioned! {
    hipcl_arg 48;
    hipcl_range 88;
}

/// More than OpenCL allows: a constant argument list of 255, or 1024 bytes of parameters.
const MOST_ARGUMENTS: usize = 1024;

/// Builds an OpenCL program, or takes it from the bridge's cache, in memory or on disk.
///
/// @param bridge   A bridge.
/// @param source   OpenCL C, UTF-8, ends with a nul.
/// @param options  Options for the compiler; null for none.
/// @param program  Receives the program, which the caller destroys with hipcl_program_destroy().
///
/// Errors: HIPCL_ERROR_BUILD, where hipcl_last_error() has the compiler's log; HIPCL_ERROR_ARGUMENT for options that
/// would load code into the process.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_program_build(
    bridge: hipcl_bridge,
    source: *const c_char,
    options: *const c_char,
    program: *mut hipcl_program,
) -> hipcl_status {
    call("hipcl_program_build", || {
        // SAFETY: the C caller's place for a handle, and its texts.
        let (place, source, options) = unsafe {
            (
                Out::new(program, "program")?,
                text(source, "source")?,
                optional_text(options, "options")?,
            )
        };
        let bridge = BridgeObject::of(bridge, "bridge")?;
        place.publish(ProgramObject {
            program: bridge.0.programs().get(source, options.unwrap_or_default())?,
            bridge: bridge.0.clone(),
            on_stream: OnceLock::new(),
        })
    })
}

/// Destroys a program. Its kernels may be used on, and queued work runs.
///
/// Errors: HIPCL_ERROR_HANDLE, HIPCL_ERROR_STALE_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn hipcl_program_destroy(program: hipcl_program) -> hipcl_status {
    destroy::<ProgramObject>("hipcl_program_destroy", program, "program")
}

/// The kernel of this name. Several threads may launch it at once.
///
/// @param program  A program.
/// @param name     The kernel's name in the source.
/// @param kernel   Receives the kernel, which the caller destroys with hipcl_kernel_destroy().
///
/// Errors: HIPCL_ERROR_ARGUMENT if the program has none; the text lists those that it has.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_kernel_create(
    program: hipcl_program,
    name: *const c_char,
    kernel: *mut hipcl_kernel,
) -> hipcl_status {
    call("hipcl_kernel_create", || {
        // SAFETY: the C caller's place for a handle, and its text.
        let (place, name) = unsafe { (Out::new(kernel, "kernel")?, text(name, "name")?) };
        let program = ProgramObject::of(program, "program")?;
        place.publish(KernelObject {
            kernel: program.program.kernel(name)?,
            program,
            on_stream: OnceLock::new(),
        })
    })
}

/// Destroys a kernel. Queued work runs.
///
/// Errors: HIPCL_ERROR_HANDLE, HIPCL_ERROR_STALE_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn hipcl_kernel_destroy(kernel: hipcl_kernel) -> hipcl_status {
    destroy::<KernelObject>("hipcl_kernel_destroy", kernel, "kernel")
}

/// Enqueues a kernel on an OpenCL queue and returns without waiting for it. Number, kind and size of the arguments are
/// checked as far as the compiler's information goes. What the kernel does with them is up to the caller: it takes these
/// types, stays within its buffers, and ends.
///
/// @param kernel     A kernel.
/// @param queue      A queue of its bridge.
/// @param range      The work-items.
/// @param arguments  All arguments, in order. A buffer that is written is among them once.
/// @param count      Their number.
///
/// Errors: HIPCL_ERROR_ARGUMENT if range or arguments do not fit, HIPCL_ERROR_BUSY for a buffer with an open access,
/// HIPCL_ERROR_HANDOFF, HIPCL_ERROR_OPENCL. Nothing is enqueued then.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_kernel_launch_on_queue(
    kernel: hipcl_kernel,
    queue: hipcl_queue,
    range: *const hipcl_range,
    arguments: *const hipcl_arg,
    count: usize,
) -> hipcl_status {
    call("hipcl_kernel_launch_on_queue", || {
        let kernel = KernelObject::of(kernel, "kernel")?;
        let queue = QueueObject::of(queue, "queue")?;
        // SAFETY: the C caller's range and arguments.
        let (range, mut operands) = unsafe { (read_range(range)?, Operand::list(arguments, count)?) };
        let granted = operands.iter_mut().map(|operand| operand.on_queue(&queue.0));
        let granted: Vec<OnQueue<'_>> = granted.collect::<Result<_, Failure>>()?;
        let args: Vec<Arg<'_>> = granted.iter().map(OnQueue::arg).collect();
        // SAFETY: every buffer is alive and granted to this queue, and drops wait for work that was enqueued under a
        // grant; the header demands of the C caller what the kernel may touch.
        unsafe { kernel.kernel.launch(&queue.0, range, &args) }?;
        Ok(())
    })
}

/// Queues an OpenCL kernel on a HIP stream, in order with HIP's kernels and libraries there, and returns without waiting
/// for it. The first launch loads the program into HIP, which takes up to some tens of milliseconds. Otherwise as
/// hipcl_kernel_launch_on_queue().
///
/// @param kernel     A kernel.
/// @param stream     A stream of its bridge.
/// @param range      The work-items. If `local` is 0, the largest work-groups that divide the range are taken.
/// @param arguments  All arguments, in order. A buffer that is written is among them once.
/// @param count      Their number.
///
/// Errors: as hipcl_kernel_launch_on_queue() with HIPCL_ERROR_HIP, and HIPCL_ERROR_NOT_SUPPORTED for a kernel that
/// cannot run on a HIP stream, such as one that uses images or printf.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_kernel_launch_on_stream(
    kernel: hipcl_kernel,
    stream: hipcl_stream,
    range: *const hipcl_range,
    arguments: *const hipcl_arg,
    count: usize,
) -> hipcl_status {
    call("hipcl_kernel_launch_on_stream", || {
        let kernel = KernelObject::of(kernel, "kernel")?;
        let stream = StreamObject::of(stream, "stream")?;
        // SAFETY: the C caller's range and arguments.
        let (range, mut operands) = unsafe { (read_range(range)?, Operand::list(arguments, count)?) };
        let loaded = kernel.on_stream()?;
        let granted = operands.iter_mut().map(|operand| operand.on_stream(&stream.0));
        let mut granted: Vec<OnStream<'_>> = granted.collect::<Result<_, Failure>>()?;
        let args: Vec<StreamArg<'_>> = granted.iter_mut().map(OnStream::arg).collect();
        // SAFETY: every buffer is alive and granted to this stream, and drops wait for work that was queued under a
        // grant; the header demands of the C caller what the kernel may touch.
        Ok(unsafe { loaded.launch(&stream.0, range, &args) }?)
    })
}

impl KernelObject {
    fn on_stream(&self) -> Result<&StreamKernel, Failure> {
        if let Some(kernel) = self.on_stream.get() {
            return Ok(kernel);
        }
        let program = &self.program;
        let loaded = match program.on_stream.get() {
            Some(loaded) => loaded,
            None => {
                let loaded = program.bridge.stream_program(&program.program)?;
                program.on_stream.get_or_init(|| loaded)
            }
        };
        let kernel = loaded.kernel(self.kernel.name())?;
        Ok(self.on_stream.get_or_init(|| kernel))
    }
}

/// # Safety
/// `range` is null or the C caller's structure.
unsafe fn read_range(range: *const hipcl_range) -> Result<NdRange, Failure> {
    // SAFETY: the caller's promise.
    let range = unsafe { versioned_input(range, "range") }?;
    let used = &range.local[..range.local.len().min(range.dimensions as usize)];
    let mut local = range.local;
    local[used.len()..].fill(1);
    Ok(NdRange {
        global: range.global,
        local: used.iter().any(|&items| items != 0).then_some(local),
        dims: range.dimensions,
        offset: range.offset,
    })
}

/// An argument, with the memory lent to this launch.
enum Operand<'a> {
    Read(BufferReader),
    Write(BufferWriter),
    Access(Held<AccessObject>),
    Value(&'a [u8]),
    Local(usize),
}

/// An argument, granted to a queue.
enum OnQueue<'a> {
    Read(ClGuard<'a, u8>),
    Write(ClGuardMut<'a, u8>),
    Other(Arg<'a>),
}

/// An argument, granted to a stream.
enum OnStream<'a> {
    Read(HipGuard<'a, u8>),
    Write(HipGuardMut<'a, u8>),
    Other(StreamArg<'a>),
}

impl<'a> Operand<'a> {
    /// # Safety
    /// `arguments` is null or `count` arguments of the C caller, which lets nothing change them or the values that they
    /// name before the call ends.
    unsafe fn list(arguments: *const hipcl_arg, count: usize) -> Result<Vec<Self>, Failure> {
        if count > MOST_ARGUMENTS {
            return Err(Failure::argument(format!(
                "`count` is {count}; a kernel takes {MOST_ARGUMENTS} arguments at most"
            )));
        }
        // SAFETY: the caller's promise.
        let arguments = unsafe { versioned_inputs(arguments, count, "arguments") }?;
        let operands = arguments.iter().enumerate().map(|(index, argument)| {
            // SAFETY: the caller's promise.
            unsafe { Self::of(argument) }.map_err(|failure| Failure {
                text: format!("argument {index}: {}", failure.text),
                ..failure
            })
        });
        operands.collect()
    }

    /// # Safety
    /// As [`list`](Self::list), for this argument.
    unsafe fn of(argument: &hipcl_arg) -> Result<Self, Failure> {
        Ok(match argument.kind {
            HIPCL_ARG_READ => Self::Read(BufferReader::of(argument.buffer, "buffer")?),
            HIPCL_ARG_WRITE => Self::Write(BufferWriter::of(argument.buffer, "buffer")?),
            HIPCL_ARG_ACCESS => Self::Access(AccessObject::of(argument.access, "access")?),
            HIPCL_ARG_VALUE if argument.bytes > MOST_VALUE => {
                return Err(Failure::argument(format!(
                    "a value of {} bytes; a kernel takes {MOST_VALUE} at most",
                    argument.bytes
                )));
            }
            // SAFETY: the caller's promise.
            HIPCL_ARG_VALUE => Self::Value(unsafe { slice(argument.value.cast(), argument.bytes, "value") }?),
            HIPCL_ARG_LOCAL => Self::Local(argument.bytes),
            kind => return Err(Failure::argument(format!("`kind` is {kind}; use one of HIPCL_ARG_..."))),
        })
    }

    fn on_queue<'g>(&'g mut self, queue: &'g clmgr::Queue) -> Result<OnQueue<'g>, Failure> {
        Ok(match self {
            Self::Read(memory) => OnQueue::Read(memory.cl(queue)?),
            Self::Write(memory) => OnQueue::Write(memory.cl_mut(queue)?),
            Self::Access(access) => OnQueue::Other(access.on_queue(queue)?),
            Self::Value(bytes) => OnQueue::Other(Arg::Bytes(bytes)),
            Self::Local(bytes) => OnQueue::Other(Arg::Local(*bytes)),
        })
    }

    fn on_stream<'g>(&'g mut self, stream: &'g hip::Stream) -> Result<OnStream<'g>, Failure> {
        Ok(match self {
            Self::Read(memory) => OnStream::Read(memory.hip(stream)?),
            Self::Write(memory) => OnStream::Write(memory.hip_mut(stream)?),
            Self::Access(access) => OnStream::Other(access.on_stream(stream)?),
            Self::Value(bytes) => OnStream::Other(StreamArg::bytes(bytes)),
            Self::Local(bytes) => OnStream::Other(StreamArg::local(*bytes)),
        })
    }
}

/// The largest value that a kernel takes: OpenCL's and CUDA's parameters have no more in all.
const MOST_VALUE: usize = 32 << 10;

impl OnQueue<'_> {
    fn arg(&self) -> Arg<'_> {
        match self {
            Self::Read(guard) => guard.arg(),
            Self::Write(guard) => guard.arg(),
            Self::Other(arg) => *arg,
        }
    }
}

impl OnStream<'_> {
    fn arg(&mut self) -> StreamArg<'_> {
        match self {
            Self::Read(guard) => guard.arg(),
            Self::Write(guard) => guard.arg(),
            Self::Other(arg) => *arg,
        }
    }
}
