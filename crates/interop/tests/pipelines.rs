//! Pipelines overlap, keep order, push back, and lose nothing when a stage fails.

mod common;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};

use interop::pipeline::Cause;
use interop::{Bridge, OnError, Options, Pipeline, Slot, StageError};

type Failure = &'static str;
type Results = Vec<(u64, Result<u64, StageError<Failure>>)>;

/// Runs blocks `0..blocks` through `pipeline`, each carrying its number in its slot.
fn run(mut pipeline: Pipeline<'_, u64, Failure>, blocks: u64) -> (interop::pipeline::Summary, Results) {
    let mut results = Vec::new();
    let summary = pipeline
        .run(
            &mut (0..blocks),
            |slot, item| {
                *slot = item;
                Ok(())
            },
            |slot| Ok(*slot),
            |block, result| results.push((block, result)),
        )
        .expect("there are slots");
    (summary, results)
}

#[test]
fn a_stage_works_on_a_block_while_the_stage_before_works_on_the_next() {
    // The first stage does not end block 1 before the second has begun block 0, which itself does
    // not end before the first has begun block 1: only both at once can get past that.
    let (second_began, first_waits) = mpsc::channel();
    let (first_began, second_waits) = mpsc::channel();
    let pipeline = Pipeline::new(vec![0; 2])
        .stage("first", move |_, block| {
            if block == 1 {
                first_began.send(()).map_err(|_| "no receiver waits")?;
                first_waits.recv().map_err(|_| "no sender came")?;
            }
            Ok(())
        })
        .stage("second", move |_, block| {
            if block == 0 {
                second_began.send(()).map_err(|_| "no receiver waits")?;
                second_waits.recv().map_err(|_| "no sender came")?;
            }
            Ok(())
        });
    let (summary, results) = run(pipeline, 2);
    assert!(results.iter().all(|(_, result)| result.is_ok()), "{results:?}");
    let (first, second) = (&summary.stages[1], &summary.stages[2]);
    assert_eq!((&*first.name, &*second.name), ("first", "second"));
    assert!(
        first.spans[1].overlaps(&second.spans[0]),
        "{:?} {:?}",
        first.spans,
        second.spans
    );
}

#[test]
fn one_slot_means_one_block_at_a_time() {
    let at_work = AtomicUsize::new(0);
    let work = |_: &mut u64, _| {
        assert_eq!(at_work.fetch_add(1, Ordering::SeqCst), 0);
        std::thread::yield_now();
        at_work.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    };
    let pipeline = Pipeline::new(vec![0]).stage("a", work).stage("b", work);
    let (summary, results) = run(pipeline, 100);
    assert!(results.iter().all(|(_, result)| result.is_ok()));
    assert_eq!((summary.blocks, summary.failed), (100, 0));
}

#[test]
fn results_come_in_order_and_none_is_missing() {
    let pipeline = Pipeline::new(vec![0; 3])
        .stage("square", |slot: &mut u64, block| {
            assert_eq!(*slot, block);
            *slot *= block;
            Ok(())
        })
        .stage("yield", |_, block| {
            if block % 3 == 0 {
                std::thread::yield_now();
            }
            Ok(())
        });
    let (_, results) = run(pipeline, 500);
    assert_eq!(results.len(), 500);
    for (place, (block, result)) in (0_u64..).zip(&results) {
        assert_eq!(*block, place);
        assert_eq!(*result.as_ref().expect("no failure"), place * place);
    }
}

#[test]
fn a_failing_block_is_named_and_the_others_come_through() {
    let after = Mutex::new(Vec::new());
    let pipeline = Pipeline::new(vec![0; 4])
        .stage("picky", |_, block| match block {
            3 => Err("odd taste"),
            5 => panic!("block {block} is too much"),
            _ => Ok(()),
        })
        .stage("after", |_, block| {
            after.lock().expect("no panic").push(block);
            Ok(())
        });
    let (summary, results) = run(pipeline, 8);
    assert_eq!((summary.blocks, summary.failed), (8, 2));
    for (block, result) in &results {
        match (block, result) {
            (3, Err(error)) => {
                assert!(matches!(error.cause, Cause::Failed("odd taste")));
                assert_eq!(error.to_string(), "block 3 failed in stage `picky`: odd taste");
            }
            (5, Err(error)) => {
                assert!(matches!(&error.cause, Cause::Panicked(text) if text == "block 5 is too much"));
                assert_eq!(error.block, 5);
            }
            (block, result) => assert_eq!(result.as_ref().expect("no failure"), block),
        }
    }
    drop(results);
    assert_eq!(*after.lock().expect("no panic"), [0, 1, 2, 4, 6, 7]);
}

/// A panic payload that panics again each time it is dropped.
struct Stubborn(u32);

impl Drop for Stubborn {
    fn drop(&mut self) {
        if let Some(left) = self.0.checked_sub(1) {
            std::panic::panic_any(Self(left));
        }
    }
}

#[test]
fn a_panic_whose_payload_panics_when_it_is_dropped_fails_its_block_only() {
    let pipeline = Pipeline::new(vec![0; 2]).stage("stubborn", |_, block| {
        if block == 1 {
            std::panic::panic_any(Stubborn(2));
        }
        Ok(())
    });
    let (summary, results) = run(pipeline, 4);
    assert_eq!((summary.blocks, summary.failed), (4, 1));
    let failed = results[1].1.as_ref().expect_err("it panicked");
    assert!(matches!(&failed.cause, Cause::Panicked(text) if text == "no message"));
}

#[test]
fn an_error_that_panics_when_it_is_dropped_fails_its_block_only() {
    let fails = |harmless| {
        move |_: &mut (), block| match block {
            1 => Err(Stubborn(harmless)),
            _ => Ok(()),
        }
    };
    // The pipeline reports only the first failure of a block.
    let mut pipeline = Pipeline::new(vec![(); 2]).batched_stage("both", 2, fails(0), fails(2));
    let mut failed = Vec::new();
    let summary = pipeline
        .run(
            &mut (0..4_u64),
            |(), _| Ok(()),
            |()| Ok(()),
            |block, result: Result<(), StageError<Stubborn>>| {
                if let Err(StageError { cause, .. }) = result {
                    assert!(matches!(cause, Cause::Failed(Stubborn(0))));
                    failed.push(block);
                }
            },
        )
        .expect("there are slots");
    assert_eq!((summary.blocks, failed), (4, vec![1]));
}

#[test]
fn after_a_stop_what_is_in_flight_comes_out_and_the_rest_stays_with_the_producer() {
    let mut producer = 0..100_u64;
    let mut pipeline = Pipeline::new(vec![0_u64; 2])
        .on_error(OnError::Stop)
        .stage("fails", |_, block| match block {
            4 => Err("enough"),
            _ => Ok(()),
        });
    let mut seen = Vec::new();
    let summary = pipeline
        .run(
            &mut producer,
            |slot, item| {
                *slot = item;
                Ok(())
            },
            |slot| Ok(*slot),
            |block, result: Result<u64, StageError<Failure>>| seen.push((block, result.is_ok())),
        )
        .expect("there are slots");
    let next = producer.next().expect("the producer was not emptied");
    assert_eq!(summary.blocks, next, "what was taken came out");
    assert_eq!(seen.len() as u64, next);
    assert!(next <= 4 + 1 + 2, "two slots: block {next} was never begun");
    for (place, (block, well)) in (0..).zip(seen) {
        assert_eq!((block, well), (place, place != 4));
    }
}

#[test]
fn the_producer_is_not_asked_for_more_than_there_are_slots() {
    const SLOTS: u64 = 3;
    let (taken, out) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut producer = std::iter::repeat_with(|| {
        let taken = taken.fetch_add(1, Ordering::SeqCst) + 1;
        // A slot is free again after the download, before the consumer has counted the result.
        let in_flight = taken - out.load(Ordering::SeqCst);
        assert!(in_flight <= SLOTS, "{in_flight} blocks are in flight");
    })
    .take(200);
    let mut pipeline = Pipeline::<_, Failure>::new(vec![(); SLOTS as usize]).stage("s", |(), _| Ok(()));
    let mut results = 0;
    pipeline
        .run(
            &mut producer,
            |(), ()| Ok(()),
            |()| {
                out.fetch_add(1, Ordering::SeqCst);
                Ok(())
            },
            |_, _| results += 1,
        )
        .expect("there are slots");
    assert_eq!(results, 200);
}

#[test]
fn a_consumer_that_stands_still_stops_the_producer() {
    const SLOTS: u64 = 2;
    let taken = AtomicU64::new(0);
    let mut producer = (0..50_u64).inspect(|_| {
        taken.fetch_add(1, Ordering::SeqCst);
    });
    let mut pipeline = Pipeline::<_, Failure>::new(vec![0_u64; SLOTS as usize]);
    let mut results = 0;
    pipeline
        .run(
            &mut producer,
            |slot, item| {
                *slot = item;
                Ok(())
            },
            |slot| Ok(*slot),
            |block, _| {
                results += 1;
                // In flight, waiting as results, one that waits to become a result, one in the hand.
                let most = block + 2 * SLOTS + 2;
                assert!(taken.load(Ordering::SeqCst) <= most);
            },
        )
        .expect("there are slots");
    assert_eq!(results, 50);
}

#[test]
fn a_pipeline_runs_again_with_the_same_slots_and_not_at_all_without() {
    let mut pipeline = Pipeline::<_, Failure>::new(vec![0_u64; 2]);
    for _ in 0..3 {
        let mut results = 0;
        pipeline
            .run(
                &mut (0..5_u64),
                |slot, item| {
                    *slot = item;
                    Ok(())
                },
                |slot| Ok(*slot),
                |_, _| results += 1,
            )
            .expect("the slots came back");
        assert_eq!(results, 5);
    }
    let consumer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let panics = |_, _: Result<(), StageError<Failure>>| panic!("the consumer's own");
        pipeline.run(&mut (0..5_u64), |_, _| Ok(()), |_| Ok(()), panics)
    }));
    assert!(consumer.is_err(), "the threads ended and the panic came through");
    let error = pipeline
        .run(&mut (0..5_u64), |_, _| Ok(()), |_| Ok(()), |_, _| {})
        .expect_err("the slots went with the panic")
        .to_string();
    assert!(error.contains("no slot"), "{error}");
}

const CL: &str = "
__kernel void add(__global uint *x, uint k)
{
    x[get_global_id(0)] += k;
}";

const HIP: &str = r#"
extern "C" __global__ void times(unsigned int *x, unsigned int k)
{
    x[blockIdx.x * blockDim.x + threadIdx.x] *= k;
}"#;

#[test]
fn both_apis_work_on_different_blocks_at_once_under_every_grade() {
    const LEN: usize = 1 << 12;
    let selection = common::selection();
    let any =
        Bridge::open(&selection, &Options::default()).expect("a bridge; run `cargo xtask setup` if OpenCL is missing");
    let add = any.programs().get(CL, "").and_then(|program| program.kernel("add"));
    let add = add.expect("an OpenCL kernel");
    let times = hip::rtc::Program::new(HIP)
        .name("pipelines.hip")
        .compile(any.hip_device())
        .and_then(|module| module.function("times"))
        .expect("a HIP kernel");
    let (add, times) = (&add, &times);
    for grade in common::grades().iter().copied() {
        let bridge = any.with_grade(grade).expect("a proven grade");
        let slots = bridge.slots::<u32>(4, LEN).expect("slots");
        // HIP's stage of block 0 is held inside its stream until OpenCL's stage of block 1 has begun,
        // which does not end before the stream has come so far.
        let (opencl_began, hip_waits) = mpsc::channel();
        let (hip_began, opencl_waits) = mpsc::channel();
        let mut hip = Some((hip_began, hip_waits));
        let mut pipeline = Pipeline::new(slots)
            .stage("opencl", move |slot: &mut Slot<u32>, block| {
                if block == 1 {
                    let _ = opencl_began.send(());
                    let _ = opencl_waits.recv();
                }
                let guard = slot.data.cl_mut(&slot.queue)?;
                let args = [guard.arg(), clmgr::Arg::scalar(&7_u32)];
                // SAFETY: `add` takes a buffer of LEN words and a uint.
                unsafe { add.launch(&slot.queue, clmgr::NdRange::d1(LEN), &args) }?;
                Ok::<_, interop::Error>(slot.queue.finish()?)
            })
            .stage("hip", move |slot: &mut Slot<u32>, _| {
                if let Some((began, opencl)) = hip.take() {
                    slot.stream.host_function(move || {
                        let _ = began.send(());
                        let _ = opencl.recv();
                    })?;
                }
                let mut guard = slot.data.hip_mut(&slot.stream)?;
                let config = hip::LaunchConfig::linear(LEN, 256)?;
                // SAFETY: `times` takes a pointer to LEN words and a uint.
                unsafe { times.launch(&slot.stream, config, &[&guard.slice_mut(), &3_u32]) }?;
                Ok(slot.stream.synchronize()?)
            });
        let mut blocks = (0..20_u32).map(|block| vec![block; LEN]);
        let mut expected = 0..20_u32;
        let summary = pipeline
            .run(
                &mut blocks,
                |slot, block: Vec<u32>| slot.data.upload(&block),
                |slot| {
                    let mut words = vec![0; LEN];
                    slot.data.download(&mut words)?;
                    Ok(words)
                },
                |_, words| {
                    let words = words.expect("no stage fails");
                    let input = expected.next().expect("as many as went in");
                    assert!(words.iter().all(|word| *word == (input + 7) * 3), "{grade}");
                },
            )
            .expect("there are slots");
        assert_eq!((summary.blocks, summary.failed), (20, 0), "{grade}");
        let (opencl, hip) = (&summary.stages[1], &summary.stages[2]);
        assert!(opencl.spans[1].overlaps(&hip.spans[0]), "{grade}\n{summary}");
    }
}

#[test]
fn a_batched_stage_queues_all_waiting_blocks_before_it_waits_for_one() {
    let log = Mutex::new(Vec::new());
    let note = |what: &'static str, block| log.lock().expect("no panic").push((what, block));
    // Block 0 makes a batch alone: block 1 is let on its way when that batch has begun. It stays in
    // that batch's hands until blocks 1 to 3 wait behind it.
    let (let_go, held) = mpsc::channel();
    let (began, first_began) = mpsc::channel();
    let pipeline = Pipeline::new(vec![0; 5])
        .stage("before", move |_, block| {
            if block == 1 {
                first_began.recv().map_err(|_| "no sender came")?;
            }
            if block == 4 {
                let_go.send(()).map_err(|_| "no receiver waits")?;
            }
            Ok(())
        })
        .batched_stage(
            "batched",
            3,
            move |_, block| {
                note("queue", block);
                if block == 0 {
                    began.send(()).map_err(|_| "no receiver waits")?;
                    held.recv().map_err(|_| "no sender came")?;
                }
                if block == 2 { Err("odd taste") } else { Ok(()) }
            },
            move |_, block| {
                note("wait", block);
                Ok(())
            },
        );
    let (summary, results) = run(pipeline, 5);
    let failed: Vec<_> = results
        .iter()
        .filter(|(_, result)| result.is_err())
        .map(|(block, _)| *block)
        .collect();
    assert_eq!(failed, [2]);
    assert_eq!(summary.stages[2].blocks, 5);
    assert!(summary.stages[2].busy <= summary.elapsed, "counted once");
    let log = log.into_inner().expect("no panic");
    for block in 0..5 {
        let place = |what| log.iter().position(|entry| *entry == (what, block));
        assert!(
            place("queue").expect("queued") < place("wait").expect("waited for"),
            "{log:?}"
        );
    }
    // Blocks 1 to 3 waited while the first one was queued; block 4 may have.
    let second_batch: Vec<_> = log[2..8].to_vec();
    let expected: Vec<_> = ["queue", "wait"]
        .into_iter()
        .flat_map(|what| (1..4).map(move |block| (what, block)))
        .collect();
    assert_eq!(log[..2], [("queue", 0), ("wait", 0)]);
    assert_eq!(second_batch, expected, "{log:?}");
}

#[test]
fn a_batch_on_the_device_comes_out_as_if_it_had_been_worked_on_alone() {
    let platform = common::selection();
    let bridge = Bridge::open(&platform, &Options::default()).expect("a bridge");
    let add = bridge
        .programs()
        .get(
            "__kernel void add(__global float *x) { x[get_global_id(0)] += 1.0f; }",
            "",
        )
        .and_then(|program| program.kernel("add"))
        .expect("the kernel builds");
    let twice = hip::rtc::Program::new("extern \"C\" __global__ void twice(float *x) { x[threadIdx.x] *= 2.0f; }")
        .compile(bridge.hip_device())
        .and_then(|module| module.function("twice"))
        .expect("the kernel builds");
    let mut pipeline = Pipeline::new(bridge.slots::<f32>(6, 256).expect("six slots"))
        .batched_stage(
            "add",
            3,
            |slot: &mut Slot<f32>, _| {
                let guard = slot.data.cl_mut(&slot.queue)?;
                // SAFETY: `add` takes one buffer and touches 256 floats.
                unsafe { add.launch(&slot.queue, clmgr::NdRange::d1(256), &[guard.arg()]) }?;
                Ok::<_, interop::Error>(())
            },
            |slot, _| Ok(slot.queue.finish()?),
        )
        .batched_stage(
            "twice",
            3,
            |slot, _| {
                let mut guard = slot.data.hip_mut(&slot.stream)?;
                let config = hip::LaunchConfig::linear(256, 256)?;
                // SAFETY: `twice` takes one float pointer and touches 256 floats.
                unsafe { twice.launch(&slot.stream, config, &[&guard.slice_mut()]) }?;
                Ok(())
            },
            |slot, _| Ok(slot.stream.synchronize()?),
        );
    let mut next = 0;
    pipeline
        .run(
            &mut (0..40_u32).map(|n| vec![n as f32; 256]),
            |slot, block: Vec<f32>| slot.data.upload(&block),
            |slot| {
                let mut result = vec![0.0; 256];
                slot.data.download(&mut result)?;
                Ok(result)
            },
            |block, result| {
                let result = result.expect("no stage fails");
                assert_eq!(block, next);
                assert_eq!(result, [2.0 * (block as f32 + 1.0); 256]);
                next += 1;
            },
        )
        .expect("there are slots");
    assert_eq!(next, 40);
}
