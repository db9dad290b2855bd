//! Collectives of RCCL on shared memory, between OpenCL's kernels: two software devices, a rank on each.

#[path = "../common/mod.rs"]
mod common;
mod ranks;

use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use interop::{Bridge, Bridges, Grade, Options, Shared};
use rccl::{Communicator, Library, ReduceOp};

const LEN: usize = 3000;

/// Every test begins here. Communicators on the same devices may wait for each other, so one test has them at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    static DEVICES: Once = Once::new();
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: nothing reads the environment before the first test has it.
    DEVICES.call_once(|| unsafe { std::env::set_var("HIP_HOST_DEVICES", "2") });
    alone
}

/// One device: its rank, its memory, and OpenCL's side of it.
struct Rank {
    bridge: Bridge,
    communicator: Communicator,
    add: clmgr::Kernel,
    times: hip::Function,
    queue: clmgr::Queue,
    stream: hip::Stream,
    data: Shared<u32>,
}

impl Rank {
    fn all(grade: Grade) -> (Library, Vec<Self>) {
        // SAFETY: the table is the software device's, as the bridges are.
        let library = unsafe { Library::from_tables(Arc::new(hip_host_rccl::rccl_api())) };
        let options = Options {
            grade: Some(grade),
            ..Options::default()
        };
        let Bridges { bridges, refused } = Bridge::open_all(&common::host(), &options).expect("bridges");
        assert!(refused.is_empty(), "{refused:?}");
        let devices: Vec<_> = bridges.iter().map(|bridge| bridge.hip_device().clone()).collect();
        assert_eq!(devices.len(), 2);
        let communicators = Communicator::all(&library, &devices).expect("communicators");
        let both = bridges.into_iter().zip(communicators);
        let ranks = both.map(|(bridge, communicator)| {
            let program = bridge.programs().get(include_str!("../../kernels/counter.cl"), "");
            let module = hip::rtc::Program::new(include_str!("../../kernels/counter.hip"))
                .name("counter.hip")
                .compile(bridge.hip_device())
                .expect("a module");
            let mut data = bridge.alloc(LEN).expect("memory");
            data.upload(&[1; LEN]).expect("an upload");
            Self {
                times: module.function("times").expect("a kernel"),
                add: program.expect("a program").kernel("add").expect("a kernel"),
                queue: bridge.queue().expect("a queue"),
                stream: bridge.stream().expect("a stream"),
                bridge,
                communicator,
                data,
            }
        });
        let ranks = ranks.collect();
        (library, ranks)
    }

    /// By OpenCL, on its queue.
    fn add(&mut self, number: u32, leaks: bool) {
        let guard = self.data.cl_mut(&self.queue).expect("access");
        let args = [guard.arg(), clmgr::Arg::scalar(&number)];
        // SAFETY: `add` takes a buffer of LEN words and a uint.
        unsafe { self.add.launch(&self.queue, clmgr::NdRange::d1(LEN), &args) }.expect("a launch");
        if leaks {
            std::mem::forget(guard);
        }
    }

    /// Whatever is given to the queue from now on waits for the test.
    fn hold_queue(&self) -> clmgr::UserEvent {
        let held = clmgr::UserEvent::new(self.bridge.cl_context()).expect("an event");
        self.queue.wait_for(held.event()).expect("a wait");
        held
    }

    fn contents(&self) -> Vec<u32> {
        self.communicator.wait(&self.stream).expect("no rank has failed");
        let mut words = vec![0; LEN];
        self.data.download(&mut words).expect("a download");
        words
    }
}

fn sum_of_all(library: &Library, ranks: &mut [Rank]) {
    library
        .group(|group| {
            ranks.iter_mut().try_for_each(|rank| {
                group.all_reduce_in_place(&rank.communicator, &mut rank.data, ReduceOp::Sum, &rank.stream)
            })
        })
        .expect("a group");
}

#[test]
fn a_collective_runs_after_the_kernels_before_it_and_before_those_after_it() {
    let _alone = alone();
    for grade in common::grades().iter().copied() {
        let (library, mut ranks) = Rank::all(grade);
        // A hand-off by the host waits for the kernel itself, so there the queue is not held.
        let held: Vec<_> = ranks
            .iter()
            .filter(|_| grade != Grade::Host)
            .map(Rank::hold_queue)
            .collect();
        for (number, rank) in ranks.iter_mut().enumerate() {
            // One guard is dropped, the other leaked.
            rank.add(10 * number as u32, number == 1);
        }
        sum_of_all(&library, &mut ranks);
        if grade != Grade::Host {
            ranks.iter_mut().for_each(|rank| rank.add(100, false));
        }
        held.into_iter()
            .for_each(|held| held.complete().expect("the gate opens"));
        if grade == Grade::Host {
            ranks.iter_mut().for_each(|rank| rank.add(100, false));
        }
        for rank in &ranks {
            assert_eq!(rank.contents(), [1 + 11 + 100; LEN], "{grade:?}");
        }
    }
}

/// Also of those that another thread had.
#[test]
fn a_collective_runs_after_the_work_of_guards_on_other_streams() {
    let _alone = alone();
    for grade in common::grades().iter().copied() {
        let (library, mut ranks) = Rank::all(grade);
        let (open, gates): (Vec<_>, Vec<_>) = ranks
            .iter_mut()
            .map(|rank| {
                let other = rank.bridge.stream().expect("a stream");
                let flag = rank.bridge.hip_device().flag::<u64>().expect("a flag");
                other.wait_flag(&flag, hip::Condition::AtLeast(1)).expect("held");
                // On a thread of its own, which has ended when the collective is queued.
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        let mut guard = rank.data.hip_mut(&other).expect("access");
                        let config = hip::LaunchConfig::linear(LEN, 250).expect("a launch");
                        // SAFETY: `times` takes a pointer to LEN words, a whole number of blocks, and a uint.
                        unsafe { rank.times.launch(&other, config, &[&guard.slice_mut(), &3_u32]) }.expect("a launch");
                    });
                });
                (flag, other)
            })
            .unzip();
        // The host waits for the other stream itself, so there the gate opens before.
        let release = || open.iter().for_each(|flag| flag.store(1));
        if grade == Grade::Host {
            release();
        }
        sum_of_all(&library, &mut ranks);
        release();
        for rank in &ranks {
            assert_eq!(rank.contents(), [6; LEN], "{grade:?}");
        }
        drop(gates);
    }
}

#[test]
fn a_collective_of_threads_reads_memory_that_others_read_too() {
    let _alone = alone();
    let (_library, mut ranks) = Rank::all(common::grades()[0]);
    for (number, rank) in ranks.iter_mut().enumerate() {
        rank.data.upload(&[number as u32 + 1; LEN]).expect("an upload");
    }
    let gathered = std::thread::scope(|scope| {
        let threads: Vec<_> = ranks
            .into_iter()
            .map(|rank| {
                scope.spawn(move || {
                    let mut all = rank.bridge.alloc::<u32>(2 * LEN).expect("memory");
                    // OpenCL reads meanwhile.
                    let reader = rank.data.cl(&rank.queue).expect("access");
                    rank.communicator
                        .all_gather(&rank.data, &mut all, &rank.stream)
                        .expect("queued");
                    rank.communicator.wait(&rank.stream).expect("no rank has failed");
                    drop(reader);
                    let mut words = vec![0; 2 * LEN];
                    all.download(&mut words).expect("a download");
                    words
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect::<Vec<_>>()
    });
    assert_eq!(gathered, vec![[[1; LEN], [2; LEN]].concat(); 2]);
}
