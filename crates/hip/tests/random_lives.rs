//! Slices, futures, flags and graphs that outlive the steps that created them, leaked or dropped while work is queued:
//! the contents equal those of the same steps run in sequence.
//!
//! `HIP_MODEL_OPERATIONS` sets the number of operations, `HIP_MODEL_SEED` the seed. The model prints both when it
//! fails.

mod common;

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Waker};
use std::thread::{self, JoinHandle};

use common::{Gate, device};
use hip::rtc::Program;
use hip::{
    Completion, Condition, Device, DeviceBuffer, DeviceSlice, DeviceSliceMut, Flag, Function, GraphExec, LaunchConfig,
    MemPool, Stream,
};

const BUFFERS: usize = 12;
const STREAMS: usize = 5;
const LEN: usize = 192;
/// Operations per phase. In a phase some buffers are read-only and each of the others has one writer.
const PHASE: u64 = 12;

/// A generator that repeats the same sequence for the same seed (xorshift64*).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }

    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn pick<'a, T>(&mut self, things: &'a mut [T]) -> Option<&'a mut T> {
        let bound = things.len();
        (bound > 0).then(|| &mut things[self.below(bound)])
    }

    /// Takes one out; it is leaked, or dropped at once.
    fn lose<T>(&mut self, things: &mut Vec<T>) {
        if things.is_empty() {
            return;
        }
        let lost = things.swap_remove(self.below(things.len()));
        if self.one_in(2) {
            mem::forget(lost);
        }
    }
}

type Contents = Vec<u32>;

/// Streams that are blocked. Work that wrongly does not wait for them overtakes them, and shows.
#[derive(Default)]
struct Gates {
    closed: Vec<Gate>,
}

impl Gates {
    /// How often the unblocked streams get to run before a gate opens.
    const TURNS: usize = 200;

    fn close(&mut self, stream: &Stream) {
        if self.closed.len() < 2 {
            self.closed.push(Gate::close(stream));
        }
    }

    fn open_one(&mut self, dice: &mut Dice, streams: &[Stream]) {
        if self.closed.is_empty() {
            return;
        }
        let busy = |stream: &&Stream| !stream.is_idle().unwrap();
        for _ in 0..Self::TURNS {
            if streams.iter().filter(busy).count() <= 1 {
                break;
            }
            thread::yield_now();
        }
        self.closed.swap_remove(dice.below(self.closed.len()));
    }

    /// Call before anything that waits for streams.
    fn open(&mut self) {
        self.closed.clear();
    }
}

/// The device buffers, and their expected contents.
struct World {
    /// Dropped first if the model fails.
    gates: Gates,
    device: Device,
    pool: MemPool,
    add: Function,
    streams: Vec<Stream>,
    /// Streams that get no more work. They stay: memory is freed on them, and the last owner would wait for them at a
    /// closed gate.
    retired: Vec<Stream>,
    buffers: Vec<DeviceBuffer<u32>>,
    /// Which of them are freed in stream order.
    pooled: Vec<bool>,
    model: Vec<Contents>,
    /// Host functions that ran, and how many were queued.
    turns: Arc<AtomicU64>,
    queued_turns: u64,
    /// Threads that drop memory while it is in use.
    droppers: Vec<JoinHandle<()>>,
    held: Held,
}

/// Values that borrow no memory and live across phases. Nothing here is dropped often: freeing waits for streams and
/// opens all gates.
#[derive(Default)]
struct Held {
    futures: Vec<Completion>,
    flags: Vec<(Flag<u32>, u32)>,
    graphs: Vec<GraphExec>,
}

impl World {
    fn new() -> Self {
        let device = device();
        let source = "extern \"C\" __global__ void add(const unsigned *x, unsigned *y) {
            unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
            y[i] = 3 * y[i] + x[i] + i + 1;
        }";
        let add = Program::new(source).compile(&device).unwrap();
        Self {
            gates: Gates::default(),
            pool: device.mem_pool().unwrap(),
            add: add.function("add").unwrap(),
            streams: (0..STREAMS).map(|_| device.stream().unwrap()).collect(),
            retired: Vec::new(),
            buffers: (0..BUFFERS).map(|_| device.alloc_zeroed(LEN).unwrap()).collect(),
            pooled: vec![false; BUFFERS],
            model: vec![vec![0; LEN]; BUFFERS],
            turns: Arc::default(),
            queued_turns: 0,
            droppers: Vec::new(),
            held: Held::default(),
            device,
        }
    }

    /// Some operations with slices that are kept from one to the next.
    fn phase(&mut self, dice: &mut Dice, operations: u64) {
        let Self {
            device,
            pool,
            add,
            streams,
            buffers,
            pooled,
            model,
            held,
            gates,
            ..
        } = self;
        let streams = &streams[..];
        // Read by all, and not written in this phase.
        let mut shared: Vec<(usize, &DeviceBuffer<u32>)> = Vec::new();
        // Each with a single owner; `writers` holds the slices that stay with one stream.
        let mut own: Vec<(usize, &mut DeviceBuffer<u32>)> = Vec::new();
        for (index, buffer) in buffers.iter_mut().enumerate() {
            if dice.one_in(2) {
                shared.push((index, buffer));
            } else {
                own.push((index, buffer));
            }
        }
        let mut readers: Vec<(usize, DeviceSlice<'_, u32>)> = Vec::new();
        let mut writers: Vec<(usize, DeviceSliceMut<'_, u32>)> = Vec::new();
        for _ in 0..operations {
            let stream = &streams[dice.below(STREAMS)];
            match dice.below(24) {
                // Not while memory is being freed: that may block other HIP calls until the streams are done.
                0 if self.droppers.iter().all(JoinHandle::is_finished) => gates.close(stream),
                1 => gates.open_one(dice, streams),
                _ => {}
            }
            match dice.below(100) {
                // Grants another reader; the earlier ones continue.
                0..25 => {
                    if let Some((index, buffer)) = dice.pick(&mut shared) {
                        readers.push((*index, buffer.on(stream).unwrap()));
                    }
                }
                25..70 => {
                    let Some(&mut (from, source)) = dice.pick(&mut readers) else {
                        continue;
                    };
                    let stream = source.stream();
                    // A slice taken long ago, or just now.
                    let old = writers.iter_mut().find(|(_, slice)| slice.stream() == stream);
                    let (to, target) = match (old, dice.pick(&mut own)) {
                        (Some((to, slice)), _) => (*to, slice.reborrow()),
                        (None, Some((to, buffer))) => (*to, buffer.on_mut(stream).unwrap()),
                        (None, None) => continue,
                    };
                    work(dice, add, source, target, &mut held.graphs);
                    advance(model, from, to);
                }
                70..76 => {
                    // Stays with this stream until the phase ends, unless it is lost.
                    if !own.is_empty() {
                        let (index, buffer) = own.swap_remove(dice.below(own.len()));
                        writers.push((index, buffer.on_mut(stream).unwrap()));
                    }
                }
                76..80 => match dice.one_in(2) {
                    true => dice.lose(&mut readers),
                    false => dice.lose(&mut writers),
                },
                80..83 => held.futures.push(stream.completion().unwrap()),
                83..86 => {
                    if let Some(future) = dice.pick(&mut held.futures) {
                        let mut context = Context::from_waker(Waker::noop());
                        let future = std::pin::Pin::new(future);
                        // One call is enough: a ready future must not be polled again.
                        if Future::poll(future, &mut context).is_ready() {
                            held.futures.clear();
                        }
                    } else {
                        dice.lose(&mut held.futures);
                    }
                }
                86 => {
                    let flag = device.flag::<u32>().unwrap();
                    stream.write_flag(&flag, 1).unwrap();
                    held.flags.push((flag, 1));
                }
                87..90 => {
                    if let Some((flag, value)) = dice.pick(&mut held.flags) {
                        // Its write is queued, so the wait ends.
                        stream.wait_flag(flag, Condition::AtLeast(*value)).unwrap();
                    }
                    if held.flags.len() > 4 {
                        gates.open();
                        dice.lose(&mut held.flags);
                    }
                }
                90..93 => {
                    let turns = self.turns.clone();
                    let turn = move || {
                        turns.fetch_add(1, Ordering::Relaxed);
                    };
                    stream.host_function(turn).unwrap();
                    self.queued_turns += 1;
                }
                93 if held.graphs.len() > 4 => {
                    gates.open();
                    dice.lose(&mut held.graphs);
                }
                // Many readers at once.
                94..97 => {
                    let Some(&mut (from, source)) = dice.pick(&mut shared) else {
                        continue;
                    };
                    for (to, target) in &mut own {
                        let stream = &streams[dice.below(STREAMS)];
                        let slices = (source.on(stream).unwrap(), target.on_mut(stream).unwrap());
                        launch(add, slices.0, &slices.1);
                        advance(model, from, *to);
                    }
                }
                97..99 => {
                    // The memory is freed while work on it is queued, and its place is soon reused.
                    if let Some((index, buffer)) = dice.pick(&mut own) {
                        let kind = dice.below(16);
                        let mut fresh = match kind {
                            0 => device.alloc(LEN).unwrap(),
                            1..8 => stream.alloc(LEN).unwrap(),
                            _ => pool.alloc(stream, LEN).unwrap(),
                        };
                        // Perhaps on a stream other than the one it came from.
                        let first = &streams[dice.below(STREAMS)];
                        fresh.on_mut(first).unwrap().fill_zero().unwrap();
                        model[*index].fill(0);
                        let old = mem::replace(*buffer, fresh);
                        if mem::replace(&mut pooled[*index], kind != 0) {
                            // Does not wait for any stream.
                            drop(old);
                        } else {
                            gates.open();
                            self.droppers.push(thread::spawn(move || drop(old)));
                        }
                    }
                }
                _ => {
                    if let Some((index, buffer)) = dice.pick(&mut shared) {
                        gates.open();
                        check(*index, buffer, stream, &model[*index]);
                    }
                }
            }
        }
        if dice.one_in(2) {
            mem::forget(readers);
        }
        while held.futures.len() > 8 {
            dice.lose(&mut held.futures);
        }
    }

    /// Some streams read a buffer through slices that were all taken before the first one is used, then another stream
    /// writes it. One stream is blocked, and nothing else makes the others wait for it.
    fn fan(&mut self, dice: &mut Dice) {
        self.gates.open();
        self.join_droppers();
        for stream in &self.streams {
            stream.synchronize().unwrap();
        }
        let Self {
            add,
            streams,
            buffers,
            model,
            gates,
            ..
        } = self;
        let streams = &streams[..];
        let source = dice.below(BUFFERS);
        // Perhaps the stream that wrote it also reads it.
        let other = (source + 1 + dice.below(BUFFERS - 1)) % BUFFERS;
        let write = |dice: &mut Dice, buffers: &mut [DeviceBuffer<u32>], model: &mut [Contents]| {
            let stream = &streams[dice.below(STREAMS)];
            let [from, to] = buffers.get_disjoint_mut([other, source]).unwrap();
            let slices = (from.on(stream).unwrap(), to.on_mut(stream).unwrap());
            launch(add, slices.0, &slices.1);
            advance(model, other, source);
        };
        if dice.one_in(2) {
            write(dice, buffers, model);
        }
        gates.close(&streams[dice.below(STREAMS)]);
        let (before, rest) = buffers.split_at_mut(source);
        let (shared, after) = rest.split_first_mut().unwrap();
        let mut slices: Vec<_> = (0..1 + dice.below(4))
            .map(|_| shared.on(&streams[dice.below(STREAMS)]).unwrap())
            .collect();
        let mut targets: Vec<_> = (before.iter_mut().enumerate())
            .chain((source + 1..).zip(after))
            .filter(|(index, _)| *index != other)
            .collect();
        while !slices.is_empty() {
            let slice = slices.swap_remove(dice.below(slices.len()));
            let (to, target) = targets.swap_remove(dice.below(targets.len()));
            let target = target.on_mut(slice.stream()).unwrap();
            launch(add, slice, &target);
            advance(model, source, to);
        }
        write(dice, buffers, model);
        gates.open_one(dice, streams);
    }

    fn replace_a_stream(&mut self, dice: &mut Dice) {
        self.gates.open();
        let fresh = self.device.stream().unwrap();
        let old = mem::replace(&mut self.streams[dice.below(STREAMS)], fresh);
        self.retired.push(old);
        self.join_droppers();
    }

    /// With all gates open.
    fn join_droppers(&mut self) {
        for dropper in self.droppers.drain(..) {
            dropper.join().unwrap();
        }
    }

    fn end(mut self) {
        self.gates.open();
        self.join_droppers();
        let last = self.device.stream().unwrap();
        for (index, buffer) in self.buffers.iter().enumerate() {
            check(index, buffer, &last, &self.model[index]);
        }
        self.device.synchronize().unwrap();
        assert_eq!(self.turns.load(Ordering::Relaxed), self.queued_turns);
        drop((self.buffers, self.held, self.streams, self.retired));
        last.synchronize().unwrap();
        assert_eq!(self.pool.usage().unwrap().used, 0);
        let deferred = self.device.runtime().take_deferred_errors();
        assert!(deferred.is_empty(), "{deferred:?}");
    }
}

/// `target = 3 * target + source + position`, by a kernel or by a one-kernel graph that is dropped while it runs.
fn work(
    dice: &mut Dice,
    add: &Function,
    source: DeviceSlice<'_, u32>,
    target: DeviceSliceMut<'_, u32>,
    graphs: &mut Vec<GraphExec>,
) {
    let stream = source.stream();
    if !dice.one_in(40) {
        return launch(add, source, &target);
    }
    let graph = stream.capture(|stream| {
        assert!(stream.is_capturing());
        launch(add, source, &target);
        Ok(())
    });
    let graph = graph.unwrap().instantiate().unwrap();
    // SAFETY: the slices are those of the captured kernel, whose module lives as long as the model.
    unsafe { graph.launch(stream, &[&source, &target]) }.unwrap();
    graphs.push(graph);
}

/// `target = 3 * target + source + position`.
fn launch(add: &Function, source: DeviceSlice<'_, u32>, target: &DeviceSliceMut<'_, u32>) {
    let config = LaunchConfig::linear(LEN, 64).unwrap();
    // SAFETY: as many threads as elements; the kernel reads the one and writes the other.
    unsafe { add.launch(source.stream(), config, &[&source, target]) }.unwrap();
}

/// The same for the model.
fn advance(model: &mut [Contents], from: usize, to: usize) {
    let [source, target] = model.get_disjoint_mut([from, to]).unwrap();
    for (i, (y, x)) in (1..).zip(target.iter_mut().zip(source)) {
        *y = y.wrapping_mul(3).wrapping_add(*x).wrapping_add(i);
    }
}

fn check(index: usize, buffer: &DeviceBuffer<u32>, stream: &Stream, expected: &Contents) {
    let mut seen = vec![99; LEN];
    buffer.copy_to_slice(stream, &mut seen).unwrap();
    assert!(seen == *expected, "buffer {index} has different contents");
}

fn number(variable: &str, otherwise: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().expect(variable),
        Err(_) => otherwise,
    }
}

#[test]
fn values_that_live_on_or_leak_do_not_change_contents() {
    let operations = number("HIP_MODEL_OPERATIONS", 20_000);
    let seed = number("HIP_MODEL_SEED", 1);
    eprintln!("HIP_MODEL_OPERATIONS={operations} HIP_MODEL_SEED={seed}");
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut world = World::new();
    let mut done = 0;
    while done < operations {
        // Late completion turns a missing wait into wrong contents.
        let now = PHASE.min(operations - done);
        world.phase(&mut dice, now);
        done += now;
        if dice.one_in(3) {
            world.fan(&mut dice);
        }
        if dice.one_in(100) {
            world.replace_a_stream(&mut dice);
        }
    }
    world.end();
}
