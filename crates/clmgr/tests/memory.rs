//! The kinds of memory: contents, bounds, maps, and what is still in use when it is dropped.

mod common;

use std::ffi::c_void;
use std::sync::OnceLock;

use clmgr::opencl_sys::cl_context;
use clmgr::{
    Arg, BufferStrategy, Context, Error, Event, HostPtrBuffer, Kernel, Manager, MemoryPool, NdRange, Program, Queue,
    RegularBuffer, SvmBuffer, SvmCapabilities, UserEvent,
};

const SOURCE: &str = "
kernel void fill(global uint *x, uint value) { x[get_global_id(0)] = value; }
kernel void add(global uint *x, uint value) { x[get_global_id(0)] += value; }
// Ends with a write to the first and the last element, long after its start.
kernel void slow(global uint *x, uint rounds, uint last) {
    uint state = x[0];
    for (uint i = 0; i < rounds; ++i)
        state = state * 1664525u + 1013904223u + i;
    x[0] = state;
    x[last] = state | 1u;
}";

/// About a tenth of a second on a quick processor, and never less than many launches take.
const ROUNDS: u32 = 60_000_000;

struct Fixture {
    context: Context,
    queue: Queue,
    program: Program,
}

fn fixture() -> Fixture {
    let context = common::context();
    Fixture {
        queue: context.queue().unwrap(),
        program: Program::build(&context, SOURCE, "").unwrap(),
        context,
    }
}

impl Fixture {
    fn kernel(&self, name: &str) -> Kernel {
        self.program.kernel(name).unwrap()
    }

    fn fill(&self, arg: Arg<'_>, len: usize, value: u32) {
        // SAFETY: the memory holds `len` elements and is used by this queue alone.
        unsafe {
            self.kernel("fill")
                .launch(&self.queue, NdRange::d1(len), &[arg, Arg::scalar(&value)])
        }
        .unwrap();
    }

    fn slow(&self, queue: &Queue, arg: Arg<'_>, len: usize) -> Event {
        let last = len as u32 - 1;
        let rounds = common::rounds(ROUNDS);
        let args = [arg, Arg::scalar(&rounds), Arg::scalar(&last)];
        // SAFETY: the memory holds `len` elements; the tests do not touch it before the event.
        let event = unsafe { self.kernel("slow").launch(queue, NdRange::d1(1), &args) }.unwrap();
        queue.flush().unwrap();
        event
    }

    fn svm(&self, kind: SvmCapabilities) -> bool {
        common::has(&self.context, kind)
    }
}

/// Write, kernel, read, parts, bounds: the same for every kind.
macro_rules! contents {
    ($fixture:ident, $buffer:expr) => {
        let mut buffer = $buffer;
        let data: Vec<u32> = (0..buffer.len() as u32).collect();
        buffer.write(&$fixture.queue, &data).unwrap();
        // SAFETY: the memory holds the range and is used by this queue alone.
        unsafe {
            let args = [buffer.arg(), Arg::scalar(&5u32)];
            $fixture
                .kernel("add")
                .launch(&$fixture.queue, NdRange::d1(buffer.len()), &args)
        }
        .unwrap();
        buffer.write_at(&$fixture.queue, 3, &[100, 200]).unwrap();
        let mut all = vec![0u32; buffer.len()];
        buffer.read(&$fixture.queue, &mut all).unwrap();
        for (index, &value) in all.iter().enumerate() {
            let expected = match index {
                3 => 100,
                4 => 200,
                index => index as u32 + 5,
            };
            assert_eq!(value, expected);
        }
        let mut part = [0u32; 3];
        buffer.read_at(&$fixture.queue, 2, &mut part).unwrap();
        assert_eq!(part, [7, 100, 200]);

        {
            let mut map = buffer.map_mut(&$fixture.queue).unwrap();
            assert_eq!(map.len(), all.len());
            map[0] = 77;
        }
        $fixture.queue.finish().unwrap();
        let (one, two) = (
            buffer.map(&$fixture.queue).unwrap(),
            buffer.map(&$fixture.queue).unwrap(),
        );
        assert_eq!((one[0], two[1]), (77, 6));
        one.unmap().unwrap();
        assert_eq!(two[0], 77);
        drop(two);

        let len = buffer.len();
        let short = &mut vec![0u32; len - 1][..];
        assert!(matches!(
            buffer.read(&$fixture.queue, short),
            Err(Error::LengthMismatch { .. })
        ));
        assert!(matches!(
            buffer.write(&$fixture.queue, short),
            Err(Error::LengthMismatch { .. })
        ));
        assert!(matches!(
            buffer.read_at(&$fixture.queue, 2, short),
            Err(Error::OutOfRange { .. })
        ));
        assert!(matches!(
            buffer.write_at(&$fixture.queue, usize::MAX, short),
            Err(Error::OutOfRange { .. })
        ));
        buffer.write_at(&$fixture.queue, len, &[]).unwrap();

        let elsewhere = common::context().queue().unwrap();
        assert!(matches!(
            buffer.read(&elsewhere, &mut all),
            Err(Error::ContextMismatch { .. })
        ));
        assert!(matches!(buffer.map(&elsewhere), Err(Error::ContextMismatch { .. })));
    };
}

#[test]
fn a_regular_buffer_holds_its_contents_and_its_bounds() {
    let fixture = fixture();
    contents!(fixture, RegularBuffer::<u32>::new(&fixture.context, 1000).unwrap());
}

#[test]
fn a_host_buffer_holds_its_contents_and_its_bounds() {
    let fixture = fixture();
    contents!(fixture, HostPtrBuffer::<u32>::new(&fixture.context, 1000).unwrap());
}

#[test]
fn coarse_memory_holds_its_contents_and_its_bounds() {
    let fixture = fixture();
    if fixture.svm(SvmCapabilities::COARSE) {
        contents!(fixture, SvmBuffer::<u32>::coarse(&fixture.context, 1000).unwrap());
    }
}

#[test]
fn fine_memory_holds_its_contents_and_its_bounds() {
    let fixture = fixture();
    if fixture.svm(SvmCapabilities::FINE_BUFFER) {
        contents!(fixture, SvmBuffer::<u32>::fine(&fixture.context, 1000).unwrap());
    }
}

#[test]
fn a_view_is_the_same_memory() {
    let fixture = fixture();
    if !fixture.svm(SvmCapabilities::COARSE) {
        return;
    }
    let buffer = SvmBuffer::<u32>::coarse(&fixture.context, 256).unwrap();
    // SAFETY: only kernels receive it.
    let view = unsafe { buffer.unbound_view() }.unwrap();
    fixture.fill(buffer.arg(), 256, 1);
    fixture.queue.finish().unwrap();
    // SAFETY: the memory holds the range and is used by this queue alone.
    unsafe {
        fixture
            .kernel("add")
            .launch(&fixture.queue, NdRange::d1(256), &[view.arg(), Arg::scalar(&9u32)])
    }
    .unwrap();
    let mut data = vec![0u32; 256];
    buffer.read(&fixture.queue, &mut data).unwrap();
    assert_eq!(data, vec![10u32; 256]);
    // The view keeps the memory.
    drop(buffer);
    fixture.fill(view.arg(), 256, 3);
    fixture.queue.finish().unwrap();
}

#[test]
fn a_host_buffer_is_page_aligned_and_used_in_place_or_copied_by_the_map() {
    let fixture = fixture();
    let buffer = HostPtrBuffer::<u32>::new(&fixture.context, 5000).unwrap();
    assert_eq!(buffer.as_ptr().addr() % 4096, 0);
    assert!(buffer.page_bytes() >= buffer.bytes() && buffer.page_bytes().is_multiple_of(4096));
    fixture.fill(buffer.arg(), 5000, 42);
    let map = buffer.map(&fixture.queue).unwrap();
    // OpenCL gives a map of such memory at its own address.
    assert_eq!(map.as_ptr(), buffer.as_ptr().cast_const());
    assert!(map.iter().all(|&value| value == 42));
}

#[test]
fn threads_allocate_shared_memory_at_once() {
    let fixture = fixture();
    if !fixture.svm(SvmCapabilities::COARSE) {
        return;
    }
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 1..200 {
                    SvmBuffer::<u32>::coarse(&fixture.context, round * 50).unwrap();
                }
            });
        }
    });
}

#[test]
fn dropping_shared_memory_in_use_waits_for_the_kernel() {
    let fixture = fixture();
    for (kind, fine) in [(SvmCapabilities::COARSE, false), (SvmCapabilities::FINE_BUFFER, true)] {
        if !fixture.svm(kind) {
            continue;
        }
        let other = fixture.context.queue().unwrap();
        let buffer = match fine {
            false => SvmBuffer::<u32>::coarse(&fixture.context, 1 << 20),
            true => SvmBuffer::<u32>::fine(&fixture.context, 1 << 20),
        }
        .unwrap();
        let event = fixture.slow(&other, buffer.arg(), 1 << 20);
        drop(buffer);
        assert!(event.is_complete().unwrap(), "freed under a running kernel");
    }
}

#[test]
fn an_inner_address_counts_as_a_use_of_the_memory() {
    let fixture = fixture();
    if !fixture.svm(SvmCapabilities::COARSE) {
        return;
    }
    let buffer = SvmBuffer::<u32>::coarse(&fixture.context, 1000).unwrap();
    let inner = Arg::Svm(buffer.as_ptr().wrapping_add(500).cast_const().cast());
    let event = fixture.slow(&fixture.queue, inner, 500);
    drop(buffer);
    assert!(event.is_complete().unwrap(), "freed under a running kernel");
}

#[test]
fn dropping_a_view_and_its_memory_waits_for_a_kernel_on_the_view() {
    let fixture = fixture();
    if !fixture.svm(SvmCapabilities::COARSE) {
        return;
    }
    for view_first in [false, true] {
        let buffer = SvmBuffer::<u32>::coarse(&fixture.context, 1000).unwrap();
        // SAFETY: only kernels receive it.
        let view = unsafe { buffer.unbound_view() }.unwrap();
        let event = fixture.slow(&fixture.queue, view.arg(), 1000);
        if view_first {
            drop(view);
            drop(buffer);
        } else {
            drop(buffer);
            drop(view);
        }
        assert!(event.is_complete().unwrap(), "freed under a running kernel");
    }
}

#[test]
fn dropping_host_memory_in_use_waits_for_the_kernel() {
    let fixture = fixture();
    let buffer = HostPtrBuffer::<u32>::new(&fixture.context, 1000).unwrap();
    let event = fixture.slow(&fixture.queue, buffer.arg(), 1000);
    drop(buffer);
    assert!(event.is_complete().unwrap(), "freed under a running kernel");
}

#[test]
fn a_noted_use_through_raw_handles_counts() {
    let fixture = fixture();
    if !fixture.svm(SvmCapabilities::COARSE) {
        return;
    }
    let buffer = SvmBuffer::<u32>::coarse(&fixture.context, 16).unwrap();
    let gate = RegularBuffer::<u32>::new(&fixture.context, 16).unwrap();
    // Stands for a command that was enqueued by someone else.
    let event = fixture.slow(&fixture.queue, gate.arg(), 16);
    buffer.note_use(&fixture.queue);
    drop(buffer);
    assert!(event.is_complete().unwrap());
}

#[test]
fn memory_waits_for_every_queue_that_used_it() {
    let fixture = fixture();
    if !fixture.svm(SvmCapabilities::COARSE) {
        return;
    }
    let buffer = SvmBuffer::<u32>::coarse(&fixture.context, 16).unwrap();
    let busy = fixture.context.queue().unwrap();
    let work = RegularBuffer::<u32>::new(&fixture.context, 16).unwrap();
    let gate = UserEvent::new(&fixture.context).unwrap();
    busy.wait_for(gate.event()).unwrap();
    let event = fixture.slow(&busy, work.arg(), 16);
    buffer.note_use(&busy);
    // More queues than the memory keeps without asking whether they have ended.
    for _ in 0..100 {
        let idle = fixture.context.queue().unwrap();
        idle.record().unwrap().wait().unwrap();
        buffer.note_use(&idle);
    }
    gate.complete().unwrap();
    buffer.wait_unused().unwrap();
    assert!(event.is_complete().unwrap(), "a queue was forgotten");
}

#[test]
fn a_regular_buffer_may_be_dropped_at_any_time() {
    let fixture = fixture();
    let buffer = RegularBuffer::<u32>::new(&fixture.context, 1 << 20).unwrap();
    let event = fixture.slow(&fixture.queue, buffer.arg(), 1 << 20);
    drop(buffer);
    event.wait().unwrap();
    fixture.queue.finish().unwrap();
}

#[test]
fn a_read_on_another_queue_sees_what_the_kernel_wrote() {
    let fixture = fixture();
    let reader = fixture.context.queue().unwrap();
    let mut regular = RegularBuffer::<u32>::new(&fixture.context, 1000).unwrap();
    regular.write(&reader, &vec![0; 1000]).unwrap();
    fixture.slow(&fixture.queue, regular.arg(), 1000);
    let mut last = [0u32];
    regular.read_at(&reader, 999, &mut last).unwrap();
    assert_eq!(last[0] & 1, 1, "read before the kernel on the other queue had ended");

    if fixture.svm(SvmCapabilities::COARSE) {
        let mut shared = SvmBuffer::<u32>::coarse(&fixture.context, 1000).unwrap();
        shared.write(&reader, &vec![0; 1000]).unwrap();
        fixture.slow(&fixture.queue, shared.arg(), 1000);
        assert_eq!(shared.map(&reader).unwrap()[999] & 1, 1);
    }
    if fixture.svm(SvmCapabilities::FINE_BUFFER) {
        let mut shared = SvmBuffer::<u32>::fine(&fixture.context, 1000).unwrap();
        shared.write(&reader, &vec![0; 1000]).unwrap();
        fixture.slow(&fixture.queue, shared.arg(), 1000);
        assert_eq!(shared.map(&reader).unwrap()[999] & 1, 1);
    }
}

/// A leaked guard leaves a map behind, which the next use undoes.
macro_rules! leaks {
    ($fixture:ident, $buffer:expr) => {
        let mut buffer = $buffer;
        buffer.write(&$fixture.queue, &[1u32; 100]).unwrap();
        let mut map = buffer.map_mut(&$fixture.queue).unwrap();
        map[7] = 700;
        std::mem::forget(map);
        std::mem::forget(buffer.map(&$fixture.queue).unwrap());
        let mut data = [0u32; 100];
        buffer.read(&$fixture.queue, &mut data).unwrap();
        assert_eq!((data[7], data[8]), (700, 1));
        buffer.write_at(&$fixture.queue, 8, &[800]).unwrap();
        assert_eq!(buffer.map(&$fixture.queue).unwrap()[7..9], [700, 800]);
        std::mem::forget(buffer.map_mut(&$fixture.queue).unwrap());
        drop(buffer);
        $fixture.queue.finish().unwrap();
    };
}

#[test]
fn a_leaked_guard_costs_no_soundness() {
    let fixture = fixture();
    leaks!(fixture, RegularBuffer::<u32>::new(&fixture.context, 100).unwrap());
    leaks!(fixture, HostPtrBuffer::<u32>::new(&fixture.context, 100).unwrap());
    if fixture.svm(SvmCapabilities::COARSE) {
        leaks!(fixture, SvmBuffer::<u32>::coarse(&fixture.context, 100).unwrap());
    }
    if fixture.svm(SvmCapabilities::FINE_BUFFER) {
        leaks!(fixture, SvmBuffer::<u32>::fine(&fixture.context, 100).unwrap());
    }
}

#[test]
fn sizes_that_no_device_has_are_refused() {
    let fixture = fixture();
    let context = &fixture.context;
    for len in [0, usize::MAX, usize::MAX / 4, isize::MAX as usize / 4] {
        assert!(RegularBuffer::<u32>::new(context, len).is_err(), "{len}");
        assert!(HostPtrBuffer::<u32>::new(context, len).is_err(), "{len}");
        assert!(SvmBuffer::<u32>::coarse(context, len).is_err(), "{len}");
    }
    let beyond = usize::try_from(context.device().max_alloc_bytes()).unwrap() + 1;
    let error = RegularBuffer::<u8>::new(context, beyond).unwrap_err().to_string();
    assert!(error.contains(&beyond.to_string()), "{error}");
    assert!(matches!(
        SvmBuffer::<[u32; 0]>::coarse(context, 4),
        Err(Error::Zero { .. })
    ));
}

/// The offset by which the allocator below shifts its memory.
const OFF: usize = 4;

static REAL: OnceLock<clmgr::Api> = OnceLock::new();

unsafe extern "C" fn misaligned_alloc(context: cl_context, flags: u64, bytes: usize, alignment: u32) -> *mut c_void {
    let alloc = REAL.get().unwrap().clSVMAlloc.unwrap();
    // SAFETY: the caller's arguments, with room for the offset.
    let start = unsafe { alloc(context, flags, bytes + 128, alignment) };
    start.wrapping_byte_add(OFF)
}

unsafe extern "C" fn misaligned_free(context: cl_context, start: *mut c_void) {
    let free = REAL.get().unwrap().clSVMFree.unwrap();
    // SAFETY: the memory is from `misaligned_alloc`.
    unsafe { free(context, start.wrapping_byte_sub(OFF)) };
}

#[test]
fn misaligned_memory_is_refused() {
    let misalign = |api: &mut clmgr::Api| {
        let _ = REAL.set(*api);
        api.clSVMAlloc = Some(misaligned_alloc);
        api.clSVMFree = Some(misaligned_free);
    };
    // SAFETY: the functions keep their contracts but for the alignment.
    let manager = unsafe { Manager::load_with(misalign) }.unwrap();
    let context = Context::new(&manager.devices()[0]).unwrap();
    if !common::has(&context, SvmCapabilities::COARSE) {
        return;
    }
    let refused = SvmBuffer::<u64>::coarse(&context, 10).unwrap_err();
    assert!(matches!(refused, Error::NotSupported { .. }), "{refused}");
    assert!(refused.to_string().contains("8 bytes"), "{refused}");
    let mut fits = SvmBuffer::<u32>::coarse(&context, 10).unwrap();
    let queue = context.queue().unwrap();
    // AMD's driver does not map from an address like this one.
    if let Ok(mut view) = fits.map_mut(&queue) {
        view[9] = 1;
    }
    // A pool's blocks are bytes, so they can start anywhere.
    let pool = MemoryPool::new(&context, BufferStrategy::SvmCoarse).unwrap();
    let mut pooled = pool.acquire::<u64>(&queue, 10).unwrap();
    let Err(refused) = pooled.map_mut(&queue).map(drop) else {
        panic!("a misaligned map")
    };
    assert!(matches!(refused, Error::NotSupported { .. }), "{refused}");
    assert!(pooled.map(&queue).is_err());
    queue.finish().unwrap();
}

#[test]
fn queues_that_are_gone_do_not_stay_with_the_memory_they_used() {
    let context = common::context();
    if !common::has(&context, SvmCapabilities::COARSE) {
        return;
    }
    let program = clmgr::Program::build(&context, "kernel void nothing(global uint *x) {}", "");
    let kernel = program.unwrap().kernel("nothing").unwrap();
    let memory = SvmBuffer::<u32>::coarse(&context, 10).unwrap();
    let gone: Vec<_> = (0..200)
        .map(|_| {
            let queue = context.queue().unwrap();
            let range = clmgr::NdRange::d1(1);
            // SAFETY: the kernel takes a buffer and leaves it alone.
            let event = unsafe { kernel.launch(&queue, range, &[memory.arg()]) }.unwrap();
            let (tell, told) = std::sync::mpsc::channel();
            event.on_complete(move |_| tell.send(()).unwrap_or_default()).unwrap();
            told.recv().unwrap();
            queue.downgrade()
        })
        .collect();
    let kept = gone.iter().filter(|queue| queue.upgrade().is_some());
    let kept = kept.count();
    assert!(kept <= 64, "{kept} of 200");
}
