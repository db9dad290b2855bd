//! Fourier transforms, on a queue or on a HIP stream.

use std::sync::OnceLock;

use clmgr::C32;
use clmgr_fft::{Builder, Direction, Kind, Layout, Plan, Sample, Side};
use hip::{DeviceMemory, DeviceMemoryMut, DeviceSlice, DeviceSliceMut, Stream};
use interop::{Bridge, Category, StreamFft};

use crate::bridge::{BridgeObject, hipcl_bridge};
use crate::buffer::{BufferReader, BufferWriter, Memory, hipcl_buffer};
use crate::call::{Out, VersionedOut, call, destroy, one_of, slice, versioned, versioned_input};
use crate::failure::Failure;
use crate::handle::{Object, object};
use crate::queue::{QueueObject, StreamObject, hipcl_queue, hipcl_stream};
use crate::status::hipcl_status;

/// What a hipcl_fft points to.
pub enum hipcl_fft_s {}
/// A plan for transforms of one length.
pub type hipcl_fft = *mut hipcl_fft_s;

pub(crate) struct FftObject {
    bridge: Bridge,
    plan: Plan,
    on_stream: OnceLock<StreamFft>,
}
object!(FftObject, hipcl_fft_s, Fft);

/// The sign of the exponent: one of HIPCL_FFT_...
pub type hipcl_fft_direction = i32;
/// exp(-2 pi i k n / length).
pub const HIPCL_FFT_FORWARD: hipcl_fft_direction = 1;
/// exp(+2 pi i k n / length).
pub const HIPCL_FFT_INVERSE: hipcl_fft_direction = 2;

const DIRECTIONS: [(hipcl_fft_direction, Direction); 2] = [
    (HIPCL_FFT_FORWARD, Direction::Forward),
    (HIPCL_FFT_INVERSE, Direction::Inverse),
];

/// What a plan reads and writes: one of HIPCL_FFT_...
pub type hipcl_fft_kind = i32;
/// `length` complex numbers to `length` complex numbers, in both directions.
pub const HIPCL_FFT_COMPLEX: hipcl_fft_kind = 1;
/// `length` real numbers (float) to the first half of their spectrum, `length / 2 + 1` complex numbers. Forward.
pub const HIPCL_FFT_REAL_TO_COMPLEX: hipcl_fft_kind = 2;
/// The first half of a spectrum, `length / 2 + 1` complex numbers, to `length` real numbers (float). Inverse.
pub const HIPCL_FFT_COMPLEX_TO_REAL: hipcl_fft_kind = 3;

const KINDS: [(hipcl_fft_kind, Kind); 3] = [
    (HIPCL_FFT_COMPLEX, Kind::Complex),
    (HIPCL_FFT_REAL_TO_COMPLEX, Kind::RealToComplex),
    (HIPCL_FFT_COMPLEX_TO_REAL, Kind::ComplexToReal),
];

/// What to transform. The caller sets `struct_size`, hipcl_fft_options_init() fills in the defaults, and the caller then
/// sets the length. Strides and
/// distances are in numbers of their side, real or complex: number i of row b is number b * distance + i * stride.
/// Padding, window and scales cost no pass over memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct hipcl_fft_options {
    /// sizeof of this structure, set by the caller before the call.
    pub struct_size: usize,
    /// The length of a transform, any.
    pub length: usize,
    /// Rows. Default: 1.
    pub batch: usize,
    /// What is read and written. Default: HIPCL_FFT_COMPLEX.
    pub kind: hipcl_fft_kind,
    /// The numbers of an input row; what the transform takes beyond them counts as zero and is not read. 0, the default,
    /// is all that it takes: `length`, or `length / 2 + 1` from complex to real.
    pub input_length: usize,
    /// From a number of an input row to the next. 0, the default, is 1.
    pub input_stride: usize,
    /// From an input row to the next; rows may overlap. 0, the default, is the row's numbers times the stride.
    pub input_distance: usize,
    /// From a number of an output row to the next. 0, the default, is 1.
    pub output_stride: usize,
    /// From an output row to the next; rows may not share a place. 0, the default, is the row's numbers times the stride.
    pub output_distance: usize,
    /// A factor for each number of an input row, read before hipcl_fft_create_with() returns; null, the default, for
    /// none.
    pub window: *const f32,
    /// The factor of the input, in addition to the window. Default: 1.
    pub input_scale: f32,
    /// The factor of the result. Default: 1.
    pub output_scale: f32,
}

versioned! {
    hipcl_fft_options 88;
}

/// Fills options with the defaults.
///
/// @param options  A structure of which `struct_size` is set. Its length becomes 0, which the caller replaces.
///
/// Errors: HIPCL_ERROR_ARGUMENT for null and for a wrong size.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_fft_options_init(options: *mut hipcl_fft_options) -> hipcl_status {
    call("hipcl_fft_options_init", || {
        // SAFETY: the C caller's place for the structure.
        unsafe { VersionedOut::new(options, "options") }?.set(hipcl_fft_options {
            struct_size: size_of::<hipcl_fft_options>(),
            length: 0,
            batch: 1,
            kind: HIPCL_FFT_COMPLEX,
            input_length: 0,
            input_stride: 0,
            input_distance: 0,
            output_stride: 0,
            output_distance: 0,
            window: std::ptr::null(),
            input_scale: 1.0,
            output_scale: 1.0,
        });
        Ok(())
    })
}

/// # Safety
/// `options` is null or the C caller's structure, whose window is null or as long as it says.
unsafe fn read(options: *const hipcl_fft_options) -> Result<Builder, Failure> {
    // SAFETY: the caller's promise.
    let options = unsafe { versioned_input(options, "options") }?;
    let kind = one_of(
        options.kind,
        &KINDS,
        "options.kind",
        "HIPCL_FFT_COMPLEX, HIPCL_FFT_REAL_TO_COMPLEX, HIPCL_FFT_COMPLEX_TO_REAL",
    )?;
    let or = |value: usize, default: usize| if value == 0 { default } else { value };
    let layout = |row: usize, stride: usize, distance: usize| {
        let stride = or(stride, 1);
        // The plan refuses what does not fit into memory.
        let distance = or(distance, row.saturating_mul(stride));
        Layout { stride, distance }
    };
    let row = or(options.input_length, kind.input_len(options.length));
    let result = kind.output_len(options.length);
    let mut builder = Plan::builder(options.length)
        .batch(options.batch)
        .kind(kind)
        .input_len(row)
        .input(layout(row, options.input_stride, options.input_distance))
        .output(layout(result, options.output_stride, options.output_distance))
        .scale_input(options.input_scale)
        .scale_output(options.output_scale);
    if !options.window.is_null() {
        if row > kind.input_len(options.length) {
            return Err(Failure::argument(format!(
                "`options.input_length` is {row}, more than the {} numbers that the transform takes",
                kind.input_len(options.length)
            )));
        }
        // SAFETY: the caller's promise.
        builder = builder.window(unsafe { slice(options.window, row, "options.window") }?);
    }
    Ok(builder)
}

/// Plans transforms with padding, window, scales, strides, or real numbers. Otherwise as hipcl_fft_create(), which plans
/// with the defaults.
///
/// @param bridge   A bridge.
/// @param options  What to transform.
/// @param fft      Receives the plan, which the caller destroys with hipcl_fft_destroy().
///
/// Errors: HIPCL_ERROR_ARGUMENT, with the option's name and the remedy, for what does not fit together.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_fft_create_with(
    bridge: hipcl_bridge,
    options: *const hipcl_fft_options,
    fft: *mut hipcl_fft,
) -> hipcl_status {
    call("hipcl_fft_create_with", || {
        // SAFETY: the C caller's place for a handle, and its options.
        let (place, builder) = unsafe { (Out::new(fft, "fft")?, read(options)?) };
        place.publish(FftObject::new(bridge, &builder)?)
    })
}

/// Plans transforms of rows of single-precision complex numbers, one row behind the other. Neither direction is scaled:
/// forward and then inverse gives `length` times the input. Several threads may use a plan at once.
///
/// @param bridge  A bridge.
/// @param length  Numbers in a row, any; 2^a * 3^b * 5^c * 7^d is fastest.
/// @param batch   Rows, at least 1.
/// @param fft     Receives the plan, which the caller destroys with hipcl_fft_destroy().
///
/// Errors: HIPCL_ERROR_ARGUMENT for 0, a length from 2^31 on, or more than the address space.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_fft_create(
    bridge: hipcl_bridge,
    length: usize,
    batch: usize,
    fft: *mut hipcl_fft,
) -> hipcl_status {
    call("hipcl_fft_create", || {
        // SAFETY: the C caller's place for a handle.
        let place = unsafe { Out::new(fft, "fft") }?;
        place.publish(FftObject::new(bridge, &Plan::builder(length).batch(batch))?)
    })
}

/// Destroys a plan. Queued work runs.
///
/// Errors: HIPCL_ERROR_HANDLE, HIPCL_ERROR_STALE_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn hipcl_fft_destroy(fft: hipcl_fft) -> hipcl_status {
    destroy::<FftObject>("hipcl_fft_destroy", fft, "fft")
}

/// Enqueues the transforms on an OpenCL queue, after all earlier work on the buffers, and returns without waiting for
/// them. The first use of a direction compiles its kernels.
///
/// @param fft        A plan.
/// @param queue      A queue of its bridge.
/// @param direction  HIPCL_FFT_FORWARD or HIPCL_FFT_INVERSE. A real transform has one of them.
/// @param input      The buffer with the input: `length * batch` numbers, or as far as the plan's options reach.
/// @param output     The buffer for the result, likewise; the same handle as `input` to transform in place, which takes
///                   complex numbers in one layout.
///
/// Errors: HIPCL_ERROR_ARGUMENT for a buffer that is too short, HIPCL_ERROR_BUSY for one with an open access,
/// HIPCL_ERROR_HANDOFF, HIPCL_ERROR_OPENCL.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn hipcl_fft_enqueue_on_queue(
    fft: hipcl_fft,
    queue: hipcl_queue,
    direction: hipcl_fft_direction,
    input: hipcl_buffer,
    output: hipcl_buffer,
) -> hipcl_status {
    call("hipcl_fft_enqueue_on_queue", || {
        let fft = FftObject::of(fft, "fft")?;
        let queue = QueueObject::of(queue, "queue")?;
        let direction = self::direction(direction)?;
        if input == output {
            let mut memory = BufferWriter::of(input, "input")?;
            fft.check_in_place(&memory)?;
            let guard = memory.cl_mut(&queue.0)?;
            // SAFETY: the buffer is granted to this queue, is long enough, and its drop waits for the work.
            return fft.counted(|| unsafe { fft.plan.enqueue(&queue.0, direction, guard.arg(), guard.arg()) });
        }
        let from = BufferReader::of(input, "input")?;
        let mut to = BufferWriter::of(output, "output")?;
        check(&from, fft.plan.input(), "input")?;
        check(&to, fft.plan.output(), "output")?;
        let from = from.cl(&queue.0)?;
        let to = to.cl_mut(&queue.0)?;
        // SAFETY: as above, for both; two buffers do not overlap, or the caller's memory was taken twice, which the header
        // forbids for work that writes.
        fft.counted(|| unsafe { fft.plan.enqueue(&queue.0, direction, from.arg(), to.arg()) })
    })
}

/// Queues the transforms on a HIP stream, in order with HIP's kernels and libraries there. Otherwise as
/// hipcl_fft_enqueue_on_queue(); the first use of a direction also loads its kernels into HIP.
///
/// @param fft        A plan.
/// @param stream     A stream of its bridge.
/// @param direction  HIPCL_FFT_FORWARD or HIPCL_FFT_INVERSE. A real transform has one of them.
/// @param input      The buffer with the input: `length * batch` numbers, or as far as the plan's options reach.
/// @param output     The buffer for the result, likewise; the same handle as `input` to transform in place, which takes
///                   complex numbers in one layout.
///
/// Errors: as hipcl_fft_enqueue_on_queue() with HIPCL_ERROR_HIP, and HIPCL_ERROR_NOT_SUPPORTED if HIP cannot load the
/// kernels.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn hipcl_fft_enqueue_on_stream(
    fft: hipcl_fft,
    stream: hipcl_stream,
    direction: hipcl_fft_direction,
    input: hipcl_buffer,
    output: hipcl_buffer,
) -> hipcl_status {
    call("hipcl_fft_enqueue_on_stream", || {
        let fft = FftObject::of(fft, "fft")?;
        let stream = &StreamObject::of(stream, "stream")?.0;
        let direction = self::direction(direction)?;
        let loaded = match fft.on_stream.get() {
            Some(loaded) => loaded,
            None => {
                let loaded = fft.bridge.stream_fft(&fft.plan)?;
                fft.on_stream.get_or_init(|| loaded)
            }
        };
        if input == output {
            let mut memory = BufferWriter::of(input, "input")?;
            fft.check_in_place(&memory)?;
            let bytes = fft.plan.input().bytes();
            let numbers = memory.write_on(stream)?.split_at_mut(bytes)?.0.cast()?;
            return fft.counted(|| loaded.enqueue_in_place(stream, direction, numbers));
        }
        let from = BufferReader::of(input, "input")?;
        let mut to = BufferWriter::of(output, "output")?;
        check(&from, fft.plan.input(), "input")?;
        check(&to, fft.plan.output(), "output")?;
        let (from, to) = (from.read_on(stream)?, to.write_on(stream)?);
        let run = match fft.plan.kind() {
            Kind::RealToComplex => typed::<f32, C32>,
            Kind::ComplexToReal => typed::<C32, f32>,
            _ => typed::<C32, C32>,
        };
        fft.counted(|| run(loaded, stream, direction, from, to))
    })
}

/// Queues transforms from bytes to bytes, which are numbers of the plan's types.
fn typed<I: Sample, O: Sample>(
    fft: &StreamFft,
    stream: &Stream,
    direction: Direction,
    from: DeviceSlice<'_, u8>,
    to: DeviceSliceMut<'_, u8>,
) -> Result<(), Failure> {
    let (input, output) = (fft.plan().input().bytes(), fft.plan().output().bytes());
    let from = from.slice(..input)?.cast::<I>()?;
    let to = to.split_at_mut(output)?.0.cast::<O>()?;
    Ok(fft.enqueue(stream, direction, from, to)?)
}

fn direction(value: hipcl_fft_direction) -> Result<Direction, Failure> {
    one_of(value, &DIRECTIONS, "direction", "HIPCL_FFT_FORWARD, HIPCL_FFT_INVERSE")
}

impl FftObject {
    fn new(bridge: hipcl_bridge, builder: &Builder) -> Result<Self, Failure> {
        let bridge = BridgeObject::of(bridge, "bridge")?.0.clone();
        Ok(Self {
            plan: builder.build(bridge.cl_context(), bridge.programs())?,
            bridge,
            on_stream: OnceLock::new(),
        })
    }

    /// Runs a transform whose buffers are granted already. All that it copies are the plan's own tables, on first use.
    fn counted<E: Into<Failure>>(&self, enqueue: impl FnOnce() -> Result<(), E>) -> Result<(), Failure> {
        let counted = self.bridge.meter().count_as(Category::Control, enqueue);
        counted.map_err(Into::into)
    }

    fn check_in_place(&self, memory: &Memory) -> Result<(), Failure> {
        check(memory, self.plan.input(), "input")?;
        check(memory, self.plan.output(), "output")
    }
}

/// That a buffer holds a side's numbers, where such numbers may lie.
fn check(memory: &Memory, side: Side, argument: &str) -> Result<(), Failure> {
    let needed = side.bytes();
    if memory.len() < needed {
        return Err(Failure::argument(format!(
            "`{argument}` has {} bytes; the plan transforms {needed}",
            memory.len()
        )));
    }
    let alignment = side.number.bytes();
    let numbers = side.number;
    let known = memory.addresses().into_iter().flat_map(|(cl, hip)| [cl, hip]);
    match known.into_iter().find(|address| !address.is_multiple_of(alignment)) {
        None => Ok(()),
        Some(address) => Err(Failure::argument(format!(
            "`{argument}` begins at {address:#x}; {numbers} numbers begin at a multiple of {alignment} bytes"
        ))),
    }
}
