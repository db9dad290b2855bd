//! What one value for a device offers, and that every kind of buffer does what every other does.

mod common;

use std::fs;

use clmgr::{
    Arg, Buffer, BufferPolicy, BufferStrategy, Engine, Error, ExternalBuffer, Manager, NdRange, Needs, Program,
    ProgramCache, Queue, RegularBuffer, SvmBuffer, SvmGrain,
};

const SOURCE: &str = "kernel void twice(global uint *x) { x[get_global_id(0)] *= 2; }";
const LEN: usize = 64;

fn engine() -> Engine {
    let manager = Manager::load().unwrap_or_else(|error| panic!("{error}"));
    let device = manager.devices().remove(0);
    Engine::new(&manager, &device).unwrap()
}

/// One buffer of each kind that the device has, a foreign one included, and what keeps that alive.
fn one_of_each(engine: &Engine) -> (Vec<Buffer<u32>>, RegularBuffer<u32>) {
    let mut buffers: Vec<Buffer<u32>> = [
        BufferStrategy::Regular,
        BufferStrategy::SvmCoarse,
        BufferStrategy::SvmFine,
        BufferStrategy::SvmSystem,
        BufferStrategy::HostPtr,
    ]
    .into_iter()
    .filter_map(|strategy| engine.alloc_as(strategy, LEN).ok())
    .collect();
    let foreign = RegularBuffer::new(engine.context(), LEN).unwrap();
    // SAFETY: the handle is live, and the test uses it through the adopted buffer only.
    buffers.push(unsafe { engine.adopt(foreign.raw(), Needs::default()) }.unwrap());
    assert!(buffers.len() >= 3, "too few kinds to compare");
    (buffers, foreign)
}

fn contents(buffer: &Buffer<u32>, queue: &Queue) -> Vec<u32> {
    let mut all = vec![0; LEN];
    buffer.read(queue, &mut all).unwrap();
    all
}

fn numbers(first: u32) -> Vec<u32> {
    (first..first + LEN as u32).collect()
}

#[test]
fn every_kind_of_buffer_has_transfers_at_offsets_fills_and_a_raw_handle() {
    let engine = engine();
    let queue = engine.queue().unwrap();
    let (buffers, _foreign) = one_of_each(&engine);
    for mut buffer in buffers {
        let kind = buffer.strategy();
        buffer.write(&queue, &numbers(0)).unwrap();
        buffer.fill(&queue, 3, 5, 77).unwrap();
        buffer.write_at(&queue, 10, &[500, 501]).unwrap();
        assert_eq!(
            buffer.write_async(&queue, 20, vec![600; 4]).unwrap().wait().unwrap(),
            [600; 4]
        );
        let mut expected = numbers(0);
        expected[3..8].fill(77);
        expected[10..12].copy_from_slice(&[500, 501]);
        expected[20..24].fill(600);
        assert_eq!(contents(&buffer, &queue), expected, "{kind}");
        let mut part = [0; 4];
        buffer.read_at(&queue, 9, &mut part).unwrap();
        assert_eq!(part, [9, 500, 501, 12], "{kind}");
        let tail = buffer.read_async(&queue, 22, vec![0; 3]).unwrap().wait().unwrap();
        assert_eq!(tail, [600, 600, 24], "{kind}");

        assert_eq!(buffer.bytes(), LEN * 4);
        assert_eq!(buffer.context(), engine.context());
        match (buffer.arg(), buffer.raw(), buffer.as_ptr()) {
            (Arg::Mem(arg), Some(raw), None) => assert_eq!(arg, raw),
            (Arg::Svm(arg), None, Some(start)) => assert_eq!(arg, start.cast_const().cast()),
            handles => panic!("{kind}: {handles:?}"),
        }
        for refused in [
            buffer.read_at(&queue, LEN - 1, &mut [0; 2]).unwrap_err(),
            buffer.write_at(&queue, LEN + 1, &[0]).unwrap_err(),
            buffer.fill(&queue, 1, LEN, 0).unwrap_err(),
            buffer.read_async(&queue, usize::MAX, vec![0; 2]).unwrap_err(),
            buffer.write_async(&queue, LEN, vec![0]).unwrap_err(),
        ] {
            assert!(matches!(refused, Error::OutOfRange { .. }), "{kind}: {refused}");
        }
        assert_eq!(contents(&buffer, &queue), expected, "{kind}: a refused call wrote");
    }
}

#[test]
fn a_buffer_of_any_kind_copies_to_one_of_any_other() {
    let engine = engine();
    let queue = engine.queue().unwrap();
    let (mut targets, _one) = one_of_each(&engine);
    let (mut sources, _other) = one_of_each(&engine);
    for (number, source) in sources.iter_mut().enumerate() {
        for target in &mut targets {
            let pair = format!("{} to {}", source.strategy(), target.strategy());
            let first = 1000 * (number as u32 + 1);
            source.write(&queue, &numbers(first)).unwrap();
            target.write(&queue, &[7; LEN]).unwrap();
            target.copy_from(&queue, 5, source, 11, 20).unwrap().wait().unwrap();
            let mut expected = vec![7; LEN];
            expected[5..25].copy_from_slice(&numbers(first)[11..31]);
            assert_eq!(contents(target, &queue), expected, "{pair}");
            // Nothing is copied if there is nothing to copy, or the range is not the buffer's.
            target.copy_from(&queue, LEN, source, LEN, 0).unwrap().wait().unwrap();
            for (to, from, count) in [(LEN, 0, 1), (0, LEN - 1, 2), (0, 0, LEN + 1), (1, usize::MAX, 2)] {
                let error = target.copy_from(&queue, to, source, from, count).unwrap_err();
                assert!(matches!(error, Error::OutOfRange { .. }), "{pair}: {error}");
            }
            assert_eq!(contents(target, &queue), expected, "{pair}: a refused copy wrote");
        }
    }
}

#[test]
fn a_copy_from_another_context_is_refused_whatever_the_kinds() {
    let (here, there) = (engine(), engine());
    let queue = here.queue().unwrap();
    let (mut targets, _one) = one_of_each(&here);
    let (sources, _other) = one_of_each(&there);
    for source in &sources {
        for target in &mut targets {
            let error = target.copy_from(&queue, 0, source, 0, 1).unwrap_err();
            let pair = format!("{} to {}", source.strategy(), target.strategy());
            assert!(matches!(error, Error::ContextMismatch { .. }), "{pair}: {error}");
        }
    }
}

#[test]
fn a_foreign_buffer_is_written_from_and_read_to_shared_virtual_memory() {
    let engine = engine();
    let queue = engine.queue().unwrap();
    let foreign = RegularBuffer::<u32>::new(engine.context(), LEN).unwrap();
    // SAFETY: the handle is live, and the test uses it through the adopted buffer only.
    let mut adopted =
        unsafe { ExternalBuffer::<u32>::wrap(engine.external(), foreign.raw(), Needs::default()) }.unwrap();
    let mut tried = 0;
    for grain in [SvmGrain::Coarse, SvmGrain::Fine, SvmGrain::System] {
        let Ok(mut shared) = SvmBuffer::<u32>::new(engine.context(), LEN, grain) else {
            continue;
        };
        tried += 1;
        adopted.write(&queue, &[0; LEN]).unwrap();
        shared.write(&queue, &numbers(100)).unwrap();
        adopted.write_from(&queue, 4, &shared, 40, 10).unwrap();
        shared.write(&queue, &[9; LEN]).unwrap();
        adopted.read_to(&queue, 2, &mut shared, 30, 5).unwrap().wait().unwrap();
        let mut all = [0; LEN];
        shared.read(&queue, &mut all).unwrap();
        assert_eq!(all[28..37], [9, 9, 0, 0, 140, 141, 142, 9, 9], "{grain:?}");
    }
    if tried == 0 {
        common::skipped("the device has no shared virtual memory");
    }
}

#[test]
fn an_engine_compiles_a_source_once_wherever_it_comes_from() {
    let engine = engine();
    let engine = {
        let programs = ProgramCache::in_memory(engine.context());
        engine.with_programs(programs).unwrap()
    };
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("twice.cl");
    fs::write(&text, SOURCE).unwrap();
    let twice = engine.kernel(SOURCE, "twice").unwrap();
    engine.program_file(&text, "").unwrap();
    engine.clone().program(SOURCE, "").unwrap();
    let stats = engine.programs().stats();
    assert_eq!((stats.compiled, stats.memory_hits), (1, 2), "{stats:?}");

    let queue = engine.queue().unwrap();
    let mut data = engine.alloc_from(&queue, &numbers(1)).unwrap();
    // SAFETY: the kernel touches the buffer's elements, which nothing else uses.
    unsafe { twice.launch(&queue, NdRange::d1(LEN), &[data.arg()]) }.unwrap();
    assert_eq!(
        contents(&data, &queue),
        numbers(1).iter().map(|x| 2 * x).collect::<Vec<_>>()
    );
    data.write_at(&queue, 0, &[0]).unwrap();

    // What is no text is refused here, and loaded where the caller answers for it.
    if !common::tells_code(engine.context()) {
        return;
    }
    let binary = engine.program(SOURCE, "").unwrap().binary().unwrap();
    if std::str::from_utf8(&binary).is_ok() {
        return common::skipped("the device's code is text");
    }
    let path = folder.path().join("twice.bin");
    fs::write(&path, &binary).unwrap();
    let error = engine.program_file(&path, "").unwrap_err().to_string();
    assert!(
        error.contains("twice.bin") && error.contains("Program::from_file"),
        "{error}"
    );
    // SAFETY: the driver made the binary just now.
    let again = unsafe { Program::from_file(engine.context(), &path, "") }.unwrap();
    assert_eq!(again.kernel_names().unwrap(), ["twice"]);
    let missing = engine.program_file(&folder.path().join("none.cl"), "").unwrap_err();
    assert!(missing.to_string().contains("none.cl"), "{missing}");
}

#[test]
fn the_parts_of_an_engine_are_of_its_context_and_follow_what_was_chosen() {
    let (engine, other) = (engine(), engine());
    let refused = engine.clone().with_programs(other.programs().clone()).unwrap_err();
    assert!(matches!(refused, Error::ContextMismatch { .. }), "{refused}");
    assert!(matches!(engine.clone().with_queues(0).unwrap_err(), Error::Zero { .. }));

    let engine = engine
        .with_queues(1)
        .unwrap()
        .with_policy(BufferPolicy::preset("host-access").unwrap());
    drop(engine.queue().unwrap());
    drop(engine.queue().unwrap());
    assert_eq!(engine.queues().created(), 1);
    assert_eq!(engine.buffers().policy(), &BufferPolicy::preset("host-access").unwrap());
    let buffer = engine.alloc::<u8>(16).unwrap();
    assert!(buffer.explain().contains("host-access"), "{}", buffer.explain());
    assert_eq!(buffer.context(), engine.context());
    assert_eq!(engine.programs().context(), engine.context());
    assert_eq!(engine.queue().unwrap().context(), engine.context());

    let foreign = RegularBuffer::<u8>::new(other.context(), 16).unwrap();
    // SAFETY: the handle is live, and the test does not use it.
    let refused = unsafe { engine.adopt::<u8>(foreign.raw(), Needs::default()) }.unwrap_err();
    assert!(matches!(refused, Error::ContextMismatch { .. }), "{refused}");
}
