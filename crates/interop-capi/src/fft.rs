//! Fourier transforms, on a queue or on a HIP stream.

use std::sync::OnceLock;

use clmgr_fft::{Direction, Plan};
use hip::{DeviceMemory, DeviceMemoryMut};
use interop::{Bridge, Category, StreamFft};

use crate::blas::{Numbers, NumbersMut, hipcl_complex};
use crate::bridge::{BridgeObject, hipcl_bridge};
use crate::buffer::{BufferObject, Memory, hipcl_buffer};
use crate::call::{Out, call, destroy, one_of};
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

/// Plans transforms of rows of single-precision complex numbers, one row behind the other. Neither direction is scaled:
/// forward and then inverse gives `length` times the input. Several threads may use a plan at once.
///
/// @param bridge  A bridge.
/// @param length  Numbers in a row: 2^a * 3^b * 5^c.
/// @param batch   Rows, at least 1.
/// @param fft     Receives the plan, which the caller destroys with hipcl_fft_destroy().
///
/// Errors: HIPCL_ERROR_NOT_SUPPORTED for another length, where the text names the next one; HIPCL_ERROR_ARGUMENT for 0 or
/// more than the address space.
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
        let bridge = BridgeObject::of(bridge, "bridge")?.0.clone();
        place.publish(FftObject {
            plan: Plan::new(bridge.cl_context(), bridge.programs(), length, batch)?,
            bridge,
            on_stream: OnceLock::new(),
        })
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
/// @param direction  HIPCL_FFT_FORWARD or HIPCL_FFT_INVERSE.
/// @param input      The buffer with `length * batch` numbers.
/// @param output     The buffer for the result; the same handle as `input` to transform in place.
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
            let mut memory = BufferObject::writer(input, "input")?;
            fft.check(&memory, "input")?;
            let guard = memory.cl_mut(&queue.0)?;
            // SAFETY: the buffer is granted to this queue, is long enough, and its drop waits for the work.
            return fft.counted(|| unsafe { fft.plan.enqueue(&queue.0, direction, guard.arg(), guard.arg()) });
        }
        let from = BufferObject::reader(input, "input")?;
        let mut to = BufferObject::writer(output, "output")?;
        fft.check(&from, "input")?;
        fft.check(&to, "output")?;
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
/// @param direction  HIPCL_FFT_FORWARD or HIPCL_FFT_INVERSE.
/// @param input      The buffer with `length * batch` numbers.
/// @param output     The buffer for the result; the same handle as `input` to transform in place.
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
            let mut memory = BufferObject::writer(input, "input")?;
            fft.check(&memory, "input")?;
            let numbers = NumbersMut(&mut memory).write_on(stream)?;
            return fft.counted(|| loaded.enqueue_in_place(stream, direction, numbers));
        }
        let from = BufferObject::reader(input, "input")?;
        let mut to = BufferObject::writer(output, "output")?;
        fft.check(&from, "input")?;
        fft.check(&to, "output")?;
        let from = Numbers(&from).read_on(stream)?;
        let to = NumbersMut(&mut to).write_on(stream)?;
        fft.counted(|| loaded.enqueue(stream, direction, from, to))
    })
}

fn direction(value: hipcl_fft_direction) -> Result<Direction, Failure> {
    one_of(value, &DIRECTIONS, "direction", "HIPCL_FFT_FORWARD, HIPCL_FFT_INVERSE")
}

impl FftObject {
    /// Runs a transform whose buffers are granted already. All that it copies are the plan's own tables, on first use.
    fn counted<E: Into<Failure>>(&self, enqueue: impl FnOnce() -> Result<(), E>) -> Result<(), Failure> {
        let counted = self.bridge.meter().count_as(Category::Control, enqueue);
        counted.map_err(Into::into)
    }

    /// That a buffer holds the plan's numbers, where such numbers may lie.
    fn check(&self, memory: &Memory, argument: &str) -> Result<(), Failure> {
        // The plan has checked that this does not overflow.
        let needed = self.plan.len() * self.plan.batch() * size_of::<hipcl_complex>();
        if memory.len() < needed {
            return Err(Failure::argument(format!(
                "`{argument}` has {} bytes; the plan transforms {needed}",
                memory.len()
            )));
        }
        let alignment = size_of::<hipcl_complex>();
        let known = memory.addresses().into_iter().flat_map(|(cl, hip)| [cl, hip]);
        match known.into_iter().find(|address| !address.is_multiple_of(alignment)) {
            None => Ok(()),
            Some(address) => Err(Failure::argument(format!(
                "`{argument}` begins at {address:#x}; complex numbers begin at a multiple of {alignment} bytes"
            ))),
        }
    }
}
