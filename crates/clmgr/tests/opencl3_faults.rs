//! Two ways in which safe code corrupts memory with opencl3 0.12, tried on this crate.
//!
//! There, `SvmVec::allocate(64)` and then `reserve(56)` gives a vector that writes behind its
//! memory; and a buffer or a slice may be dropped while a non-blocking transfer still uses it.

mod common;

use std::mem;
use std::sync::mpsc;

use clmgr::{
    BufferStrategy, Context, Error, Event, HostPtrBuffer, MemoryPool, Pending, Queue, RegularBuffer, SvmBuffer,
    SvmCapabilities, UserEvent,
};

#[test]
fn less_than_before_is_less_and_more_than_before_is_more() {
    let context = common::context();
    let queue = context.queue().unwrap();
    for strategy in [BufferStrategy::Regular, BufferStrategy::SvmCoarse] {
        if strategy == BufferStrategy::SvmCoarse && !common::has(&context, SvmCapabilities::COARSE) {
            continue;
        }
        let pool = MemoryPool::new(&context, strategy).unwrap();
        // Neighbours, where memory that is written behind its end is likely to show.
        let mut neighbours: Vec<_> = (0..8).map(|_| pool.acquire::<u64>(&queue, 64).unwrap()).collect();
        for neighbour in &mut neighbours {
            neighbour.write(&queue, &[7; 64]).unwrap();
        }
        // 64, then 56 from the same block or another, then 64 again, and sizes around.
        for len in [64, 56, 64, 1, 63, 65, 56, 128, 64] {
            let mut lent = pool.acquire::<u64>(&queue, len).unwrap();
            assert_eq!(lent.len(), len);
            assert!(lent.block_bytes() >= len * 8, "{len}: {lent:?}");
            let data: Vec<u64> = (0..len as u64).collect();
            lent.write(&queue, &data).unwrap();
            let too_long = vec![1; len + 1];
            assert!(matches!(
                lent.write(&queue, &too_long),
                Err(Error::LengthMismatch { .. })
            ));
            let mut too_long = too_long;
            assert!(lent.read(&queue, &mut too_long).is_err());
            assert_eq!(lent.map(&queue).unwrap().len(), len);
            assert_eq!(lent.map_mut(&queue).unwrap()[..], data);
        }
        for neighbour in &neighbours {
            assert_eq!(neighbour.map(&queue).unwrap()[..], [7; 64]);
        }
    }
}

#[test]
fn a_vector_comes_back_with_its_own_length_and_capacity() {
    let context = common::context();
    let queue = context.queue().unwrap();
    let mut buffer = RegularBuffer::<u64>::new(&context, 64).unwrap();
    buffer.write(&queue, &[5; 64]).unwrap();
    // Room for 64, of which 56 are in use.
    let mut out = Vec::with_capacity(64);
    out.resize(56, 0);
    let (place, capacity) = (out.as_ptr(), out.capacity());
    let mut out = buffer.read_async(&queue, 4, out).unwrap().wait().unwrap();
    assert_eq!((out.as_ptr(), out.len(), out.capacity()), (place, 56, capacity));
    assert_eq!(out, [5; 56]);
    out.extend([6; 8]);
    let data = buffer.write_async(&queue, 0, out).unwrap().wait().unwrap();
    assert_eq!(data.len(), 64);
    assert_eq!(buffer.map(&queue).unwrap()[54..58], [5, 5, 6, 6]);
}

const LEN: usize = 1 << 16;

/// A queue whose commands can't begin before its gate is opened.
struct Gated {
    queue: Queue,
    gate: UserEvent,
}

impl Gated {
    fn new(context: &Context) -> Self {
        let queue = context.queue().unwrap();
        let gate = UserEvent::new(context).unwrap();
        queue.wait_for(gate.event()).unwrap();
        Self { queue, gate }
    }

    /// Opens the gate from another thread, which may be before or after `work` begins to wait.
    fn open_while(self, work: impl FnOnce()) -> Queue {
        let (begin, begun) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                begun.recv().unwrap();
                self.gate.complete().unwrap();
            });
            begin.send(()).unwrap();
            work();
        });
        self.queue
    }
}

/// The three kinds, with what the test needs of them.
trait Kind: Sized {
    fn new(context: &Context) -> Option<Self>;
    fn fill(&mut self, queue: &Queue, value: u32) -> Event;
    fn read(&self, queue: &Queue, out: Vec<u32>) -> Pending<u32>;
    fn write(&mut self, queue: &Queue, data: Vec<u32>) -> Pending<u32>;
}

macro_rules! kind {
    ($buffer:ident, $new:expr) => {
        impl Kind for $buffer<u32> {
            fn new(context: &Context) -> Option<Self> {
                let new: fn(&Context) -> Option<Self> = $new;
                new(context)
            }
            fn fill(&mut self, queue: &Queue, value: u32) -> Event {
                self.fill(queue, 0, LEN, value).unwrap()
            }
            fn read(&self, queue: &Queue, out: Vec<u32>) -> Pending<u32> {
                self.read_async(queue, 0, out).unwrap()
            }
            fn write(&mut self, queue: &Queue, data: Vec<u32>) -> Pending<u32> {
                self.write_async(queue, 0, data).unwrap()
            }
        }
    };
}

kind!(RegularBuffer, |context| Some(RegularBuffer::new(context, LEN).unwrap()));
kind!(HostPtrBuffer, |context| Some(HostPtrBuffer::new(context, LEN).unwrap()));
kind!(SvmBuffer, |context| common::has(context, SvmCapabilities::COARSE)
    .then(|| SvmBuffer::coarse(context, LEN).unwrap()));

/// Memory of the transfers' size, which an allocator would make of what was freed too early.
fn bystanders() -> Vec<Vec<u32>> {
    (0..8).map(|_| vec![0xABAD_CAFE; LEN]).collect()
}

fn check<B: Kind>() {
    let context = common::context();
    let Some(mut buffer) = B::new(&context) else {
        return;
    };

    // The buffer goes first: the transfer reads it whole.
    let gated = Gated::new(&context);
    buffer.fill(&gated.queue, 11);
    let pending = buffer.read(&gated.queue, vec![0; LEN]);
    gated.open_while(|| drop(buffer));
    assert!(pending.wait().unwrap().iter().all(|&x| x == 11));

    // The host's memory goes first: the drop waits, and no other memory is written.
    let mut buffer = B::new(&context).unwrap();
    let gated = Gated::new(&context);
    buffer.fill(&gated.queue, 12);
    let pending = buffer.read(&gated.queue, vec![0; LEN]);
    let event = pending.event().clone();
    let queue = gated.open_while(|| drop(pending));
    assert!(event.is_complete().unwrap(), "the memory was freed under the device");
    queue.finish().unwrap();

    // Nothing waits at all: the memory is lost, and no other is written.
    let gated = Gated::new(&context);
    buffer.fill(&gated.queue, 13);
    mem::forget(buffer.read(&gated.queue, vec![0; LEN]));
    let others = bystanders();
    let queue = gated.open_while(|| drop(buffer));
    queue.finish().unwrap();
    assert!(others.iter().flatten().all(|&x| x == 0xABAD_CAFE));

    // The source of a write is dropped, or given up, before the device reads it.
    for forget in [false, true] {
        let mut buffer = B::new(&context).unwrap();
        let gated = Gated::new(&context);
        let pending = buffer.write(&gated.queue, vec![14; LEN]);
        let queue = gated.open_while(|| match forget {
            true => mem::forget(pending),
            false => drop(pending),
        });
        let others = bystanders();
        let data = buffer.read(&queue, vec![0; LEN]).wait().unwrap();
        assert!(data.iter().all(|&x| x == 14));
        drop(others);
    }

    // Queue and context go before the transfer ends: both live on in it.
    let mut buffer = B::new(&context).unwrap();
    let gated = Gated::new(&context);
    buffer.fill(&gated.queue, 15);
    let pending = buffer.read(&gated.queue, vec![0; LEN]);
    let queue = gated.open_while(|| drop((buffer, context)));
    drop(queue);
    assert!(pending.wait().unwrap().iter().all(|&x| x == 15));
}

#[test]
fn a_regular_buffer_or_its_transfer_may_go_at_any_time() {
    check::<RegularBuffer<u32>>();
}

#[test]
fn a_host_buffer_or_its_transfer_may_go_at_any_time() {
    check::<HostPtrBuffer<u32>>();
}

#[test]
fn shared_memory_or_its_transfer_may_go_at_any_time() {
    check::<SvmBuffer<u32>>();
}
