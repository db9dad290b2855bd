//! Programs, kernels, queues and events.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};

use clmgr::{
    Arg, CommandQueuePool, Context, Error, Kernel, NdRange, Program, Queue, RegularBuffer, SvmBuffer, SvmCapabilities,
};

const SOURCE: &str = "
kernel void affine(global const uint *x, global uint *y, uint factor, uint offset) {
    y[get_global_id(0)] = x[get_global_id(0)] * factor + offset;
}
kernel void reversed(global uint *x, local uint *scratch) {
    uint i = get_local_id(0), n = get_local_size(0);
    scratch[i] = x[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    x[i] = scratch[n - 1 - i];
}
kernel void chain(global uint *x, uint step) { x[0] = x[0] * 3u + step; }
";

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

/// Launches without memory that could be misused: the arguments are expected to be refused.
fn refused(kernel: &Kernel, queue: &Queue, range: NdRange, args: &[Arg<'_>]) -> String {
    // SAFETY: the launch is refused before the kernel runs.
    match unsafe { kernel.launch(queue, range, args) } {
        Ok(_) => panic!("{args:?} over {range:?} was launched"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn one_kernel_serves_many_threads_without_mixing_their_arguments() {
    let fixture = fixture();
    let kernel = fixture.program.kernel("affine").unwrap();
    let shared = common::has(&fixture.context, SvmCapabilities::COARSE);
    std::thread::scope(|scope| {
        for thread in 0..8u32 {
            let (kernel, context) = (&kernel, &fixture.context);
            scope.spawn(move || {
                let queue = context.queue().unwrap();
                let input: Vec<u32> = (0..256).map(|i| i + thread).collect();
                let mut result = vec![0u32; 256];
                let mut x = RegularBuffer::new(context, 256).unwrap();
                let y = RegularBuffer::<u32>::new(context, 256).unwrap();
                x.write(&queue, &input).unwrap();
                let mut s = None;
                if shared && thread % 2 == 0 {
                    let mut from = SvmBuffer::coarse(context, 256).unwrap();
                    from.write(&queue, &input).unwrap();
                    s = Some((from, SvmBuffer::<u32>::coarse(context, 256).unwrap()));
                }
                for round in 0..100u32 {
                    let (factor, offset) = (thread * 1000 + 1, round);
                    let (from, to) = match &s {
                        Some((from, to)) if round % 2 == 0 => (from.arg(), to.arg()),
                        _ => (x.arg(), y.arg()),
                    };
                    let args = [from, to, Arg::scalar(&factor), Arg::scalar(&offset)];
                    // SAFETY: all memory holds 256 elements and is this thread's own.
                    unsafe { kernel.launch(&queue, NdRange::d1(256), &args) }.unwrap();
                    match &s {
                        Some((_, to)) if round % 2 == 0 => to.read(&queue, &mut result).unwrap(),
                        _ => y.read(&queue, &mut result).unwrap(),
                    }
                    for (input, &result) in input.iter().zip(&result) {
                        assert_eq!(result, input.wrapping_mul(factor).wrapping_add(offset));
                    }
                }
            });
        }
    });
}

#[test]
fn arguments_that_do_not_fit_are_refused_before_the_driver_sees_them() {
    let fixture = fixture();
    let kernel = fixture.program.kernel("affine").unwrap();
    let buffer = RegularBuffer::<u32>::new(&fixture.context, 16).unwrap();
    let (a, one) = (buffer.arg(), Arg::scalar(&1u32));
    let range = NdRange::d1(16);
    let text = refused(&kernel, &fixture.queue, range, &[a, a, one]);
    assert!(
        text.contains("`affine`") && text.contains("got 3 arguments, it takes 4"),
        "{text}"
    );
    assert!(refused(&kernel, &fixture.queue, range, &[a, a, one, one, one]).contains("5 arguments"));
    assert!(refused(&kernel, &fixture.queue, range, &[a, a, one, Arg::Bytes(&[])]).contains("argument 3"));
    let null = Arg::Mem(std::ptr::null_mut());
    assert!(refused(&kernel, &fixture.queue, range, &[a, null, one, one]).contains("argument 1: a null buffer"));
    assert!(
        refused(
            &kernel,
            &fixture.queue,
            range,
            &[a, Arg::Svm(std::ptr::null()), one, one]
        )
        .contains("null pointer")
    );
    let double = Arg::scalar(&1.0f64);
    let text = refused(&kernel, &fixture.queue, range, &[a, a, double, one]);
    assert!(
        text.contains("argument 2") || text.contains("CL_INVALID_ARG_SIZE"),
        "{text}"
    );
    refused(&kernel, &fixture.queue, range, &[one, a, one, one]);
    for bad in [NdRange::d1(0), NdRange::d1_local(16, 5), NdRange { dims: 7, ..range }] {
        refused(&kernel, &fixture.queue, bad, &[a, a, one, one]);
    }
    let elsewhere = common::context().queue().unwrap();
    // SAFETY: the launch is refused.
    let mismatch = unsafe { kernel.launch(&elsewhere, range, &[a, a, one, one]) };
    assert!(matches!(mismatch, Err(Error::ContextMismatch { .. })));
    let foreign = RegularBuffer::<u32>::new(&common::context(), 16).unwrap();
    // SAFETY: the launch is refused.
    let mismatch = unsafe { kernel.launch(&fixture.queue, range, &[a, foreign.arg(), one, one]) };
    assert!(matches!(mismatch, Err(Error::ContextMismatch { .. })));
}

#[test]
fn local_memory_and_work_groups_reach_the_kernel() {
    let fixture = fixture();
    let kernel = fixture.program.kernel("reversed").unwrap();
    let mut buffer = RegularBuffer::new(&fixture.context, 32).unwrap();
    let data: Vec<u32> = (0..32).collect();
    buffer.write(&fixture.queue, &data).unwrap();
    let args = [buffer.arg(), Arg::Local(32 * 4)];
    // SAFETY: buffer and local memory hold the 32 elements of the one work-group.
    unsafe { kernel.launch(&fixture.queue, NdRange::d1_local(32, 32), &args) }.unwrap();
    let mut result = vec![0; 32];
    buffer.read(&fixture.queue, &mut result).unwrap();
    assert!(result.iter().rev().copied().eq(0..32));
}

#[test]
fn a_queue_runs_in_order_and_waits_for_events_of_others() {
    let fixture = fixture();
    let kernel = fixture.program.kernel("chain").unwrap();
    let mut buffer = RegularBuffer::new(&fixture.context, 1).unwrap();
    buffer.write(&fixture.queue, &[1u32]).unwrap();
    let queues: Vec<Queue> = (0..3).map(|_| fixture.context.queue().unwrap()).collect();
    let mut expected = 1u32;
    let mut last = None;
    for step in 0..300u32 {
        let queue = &queues[step as usize / 10 % 3];
        if step % 10 == 0
            && let Some(event) = &last
        {
            queue.wait_for(event).unwrap();
        }
        // SAFETY: each launch comes after the one before, by its queue or by its event.
        last = Some(unsafe { kernel.launch(queue, NdRange::d1(1), &[buffer.arg(), Arg::scalar(&step)]) }.unwrap());
        expected = expected.wrapping_mul(3).wrapping_add(step);
    }
    let mut result = [0];
    buffer.read(&fixture.queue, &mut result).unwrap();
    assert_eq!(result[0], expected);
}

#[test]
fn events_tell_completion_and_times() {
    let fixture = fixture();
    let queue = fixture.context.profiling_queue().unwrap();
    let kernel = fixture.program.kernel("chain").unwrap();
    let buffer = RegularBuffer::<u32>::new(&fixture.context, 1).unwrap();
    // SAFETY: the buffer holds the one element.
    let event = unsafe { kernel.launch(&queue, NdRange::d1(1), &[buffer.arg(), Arg::scalar(&1u32)]) }.unwrap();
    event.wait().unwrap();
    assert!(event.is_complete().unwrap());
    let times = event.profile().unwrap();
    assert!(
        times.queued_ns <= times.started_ns && times.started_ns <= times.ended_ns,
        "{times:?}"
    );
    let record = queue.record().unwrap();
    queue.finish().unwrap();
    assert!(record.is_complete().unwrap());
    // SAFETY: as above.
    let plain = unsafe { kernel.launch(&fixture.queue, NdRange::d1(1), &[buffer.arg(), Arg::scalar(&1u32)]) }.unwrap();
    plain.wait().unwrap();
    assert!(
        plain
            .profile()
            .unwrap_err()
            .to_string()
            .contains("CL_PROFILING_INFO_NOT_AVAILABLE")
    );
}

#[test]
fn a_program_that_does_not_build_shows_its_line() {
    let context = common::context();
    let source = "kernel void f(global int *x) {\n    x[0] = nowhere;\n}\n";
    let error = Program::build(&context, source, "-DX=1").unwrap_err();
    let text = error.to_string();
    for part in [
        "clBuildProgram",
        "-DX=1",
        "line 2",
        "x[0] = nowhere;",
        context.device().name(),
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert!(!text.contains('\n'), "{text}");
    let Error::Build(failure) = error else {
        panic!("another error: {text}");
    };
    assert!(failure.log.contains("nowhere"));
    assert!(Program::build(&context, "", "").is_err());
    assert!(Program::build(&context, "kernel void f(void) {}\0", "").is_err());
    assert!(Program::build(&context, "kernel void f(void) {}", "-D\0").is_err());
}

#[test]
fn an_unknown_kernel_is_named_with_those_there_are() {
    let fixture = fixture();
    let text = fixture.program.kernel("affin").unwrap_err().to_string();
    assert!(
        text.contains("`affin`") && text.contains("affine") && text.contains("chain"),
        "{text}"
    );
    assert!(fixture.program.kernel("a\0").is_err());
}

#[test]
fn a_pool_never_lends_more_than_its_cap_and_serves_everyone() {
    const CAP: usize = 3;
    let fixture = fixture();
    let pool = CommandQueuePool::new(&fixture.context, CAP).unwrap();
    assert_eq!(pool.created(), 0);
    let lent = AtomicUsize::new(0);
    let served = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..16u32 {
            let (pool, context, lent, served) = (&pool, &fixture.context, &lent, &served);
            scope.spawn(move || {
                let mut buffer = RegularBuffer::new(context, 64).unwrap();
                for round in 0..25 {
                    let lease = pool.lease().unwrap();
                    assert!(lent.fetch_add(1, Ordering::SeqCst) < CAP);
                    buffer.write(&lease, &[thread * 100 + round; 64]).unwrap();
                    let mut result = [0; 64];
                    buffer.read(&lease, &mut result).unwrap();
                    assert_eq!(result, [thread * 100 + round; 64]);
                    lent.fetch_sub(1, Ordering::SeqCst);
                    drop(lease);
                    served.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    assert_eq!(served.load(Ordering::SeqCst), 16 * 25);
    assert!((1..=CAP).contains(&pool.created()));
    assert!(matches!(
        CommandQueuePool::new(&fixture.context, 0),
        Err(Error::Zero { .. })
    ));
}

#[test]
fn a_returned_queue_is_lent_again() {
    let fixture = fixture();
    let pool = CommandQueuePool::new(&fixture.context, 4).unwrap();
    let first = pool.lease().unwrap().raw();
    for _ in 0..10 {
        assert_eq!(pool.lease().unwrap().raw(), first);
    }
    assert_eq!(pool.created(), 1);
}

#[test]
fn times_come_with_the_leases_that_ask_for_them_and_the_cap_holds_for_both_kinds() {
    let fixture = fixture();
    let kernel = fixture.program.kernel("chain").unwrap();
    let buffer = RegularBuffer::<u32>::new(&fixture.context, 1).unwrap();
    let pool = CommandQueuePool::new(&fixture.context, 2).unwrap();
    let run = |lease: &Queue| {
        let args = [buffer.arg(), Arg::scalar(&1u32)];
        // SAFETY: the buffer holds the one element, and the launches follow each other.
        let event = unsafe { kernel.launch(lease, NdRange::d1(1), &args) }.unwrap();
        event.wait().unwrap();
        event.profile()
    };
    let (plain, timed) = (pool.lease().unwrap(), pool.lease_profiling().unwrap());
    assert!(!plain.is_profiling() && timed.is_profiling());
    assert!(run(&plain).is_err());
    let times = run(&timed).unwrap();
    assert!(times.started_ns <= times.ended_ns, "{times:?}");
    assert_eq!(
        times.run_time().as_nanos(),
        u128::from(times.ended_ns - times.started_ns)
    );
    assert_eq!(pool.created(), 2);
    drop((plain, timed));
    // At the cap, a queue of the other kind makes room.
    let both = [pool.lease_profiling().unwrap(), pool.lease_profiling().unwrap()];
    assert!(both.iter().all(|lease| run(lease).is_ok()));
    assert_eq!(pool.created(), 2);
    drop(both);
    assert!(run(&pool.lease().unwrap()).is_err());
    assert_eq!(pool.created(), 2);
}

#[test]
fn objects_keep_their_context_alive() {
    let (queue, kernel, mut buffer) = {
        let fixture = fixture();
        let buffer = RegularBuffer::<u32>::new(&fixture.context, 1).unwrap();
        (fixture.queue.clone(), fixture.program.kernel("chain").unwrap(), buffer)
    };
    buffer.write(&queue, &[2]).unwrap();
    // SAFETY: the buffer holds the one element.
    unsafe { kernel.launch(&queue, NdRange::d1(1), &[buffer.arg(), Arg::scalar(&4u32)]) }.unwrap();
    let mut result = [0];
    buffer.read(&queue, &mut result).unwrap();
    assert_eq!(result, [10]);
}
