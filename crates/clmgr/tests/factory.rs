//! Which kind of memory a factory takes, what it says about it, and that it never takes another.

mod common;

use clmgr::{
    Arg, Buffer, BufferFactory, BufferPolicy, BufferRequest, BufferRule, BufferStrategy, Context, Error, Kernel,
    NdRange, Program, Queue, RegularBuffer, SvmBuffer, SvmCapabilities, SvmGrain,
};

const SOURCE: &str = "kernel void add(global uint *x, uint value) { x[get_global_id(0)] += value; }";

fn open() -> (Context, Queue, Kernel) {
    let context = common::context();
    let queue = context.queue().unwrap();
    let program = Program::build(&context, SOURCE, "").unwrap();
    (context, queue, program.kernel("add").unwrap())
}

fn is_offered(context: &Context, strategy: BufferStrategy) -> bool {
    let svm = context.device().svm();
    match strategy {
        BufferStrategy::SvmCoarse => svm.contains(SvmCapabilities::COARSE),
        BufferStrategy::SvmFine => svm.contains(SvmCapabilities::FINE_BUFFER),
        BufferStrategy::SvmSystem => svm.contains(SvmCapabilities::FINE_SYSTEM),
        BufferStrategy::Regular | BufferStrategy::HostPtr => true,
        BufferStrategy::External => false,
    }
}

const ALL: [BufferStrategy; 6] = [
    BufferStrategy::Regular,
    BufferStrategy::SvmCoarse,
    BufferStrategy::SvmFine,
    BufferStrategy::SvmSystem,
    BufferStrategy::HostPtr,
    BufferStrategy::External,
];

#[test]
fn a_kind_that_was_asked_for_is_given_or_refused_and_works_like_every_other() {
    let (context, queue, add) = open();
    let factory = BufferFactory::new(&context);
    for strategy in ALL {
        let made: Result<Buffer<u32>, Error> = factory.alloc(100, BufferRequest::Exactly(strategy));
        match made {
            Ok(mut buffer) => {
                assert!(is_offered(&context, strategy));
                assert_eq!(buffer.strategy(), strategy);
                assert!(buffer.explain().starts_with(&format!("{strategy}: ")));
                buffer.write(&queue, &[3; 100]).unwrap();
                let args = [buffer.arg(), Arg::scalar(&1u32)];
                // SAFETY: the kernel adds to the buffer's first 50 elements; nothing else uses it.
                unsafe { add.launch(&queue, NdRange::d1(50), &args) }.unwrap();
                buffer.map_mut(&queue).unwrap()[99] = 5;
                assert_eq!(buffer.map(&queue).unwrap()[..2], [4, 4]);
                let mut data = [0; 100];
                buffer.read(&queue, &mut data).unwrap();
                assert_eq!((data[0], data[49], data[50], data[99]), (4, 4, 3, 5));
            }
            Err(error) => assert!(
                !is_offered(&context, strategy) && matches!(error, Error::NotSupported { .. }),
                "{strategy}: {error}"
            ),
        }
    }
}

#[test]
fn a_threshold_decides_by_bytes() {
    let (context, ..) = open();
    let threshold = 4096;
    let policy = BufferPolicy::by_size(threshold, BufferStrategy::HostPtr);
    let factory = BufferFactory::with_policy(&context, policy);
    for (bytes, strategy) in [
        (4, BufferStrategy::Regular),
        (threshold - 4, BufferStrategy::Regular),
        (threshold, BufferStrategy::HostPtr),
        (8 * threshold, BufferStrategy::HostPtr),
    ] {
        let buffer: Buffer<u32> = factory.alloc(bytes / 4, BufferRequest::Best).unwrap();
        assert_eq!(buffer.strategy(), strategy, "{bytes} bytes");
        // The explanation of a buffer is the one that could be had before.
        assert_eq!(buffer.explain(), factory.explain(BufferRequest::Best, bytes));
        assert!(buffer.explain().contains("by-size"), "{}", buffer.explain());
    }
    assert!(
        factory
            .explain(BufferRequest::Best, threshold)
            .contains("not regular: up to 4095 bytes")
    );
}

#[test]
fn a_preset_takes_the_first_of_its_kinds_that_the_device_has() {
    let (context, ..) = open();
    for name in BufferPolicy::PRESETS {
        let policy = BufferPolicy::preset(name).unwrap();
        let factory = BufferFactory::with_policy(&context, policy.clone());
        let first = policy
            .rules()
            .iter()
            .map(|rule| rule.strategy)
            .find(|strategy| is_offered(&context, *strategy))
            .unwrap();
        let buffer: Buffer<f32> = factory.alloc(8, BufferRequest::Best).unwrap();
        assert_eq!(buffer.strategy(), first, "{name}");
        let text = buffer.explain();
        assert!(text.starts_with(&format!("{first}: ")) && text.contains(name), "{text}");
        assert!(text.contains(context.device().name()) && !text.contains('\n'), "{text}");
    }
}

#[test]
fn a_policy_that_serves_no_such_size_refuses_with_the_reason_of_each_rule() {
    let (context, ..) = open();
    let rules = [
        BufferRule::any_size(BufferStrategy::Regular).at_least(1 << 20),
        BufferRule::any_size(BufferStrategy::External),
        BufferRule::any_size(BufferStrategy::HostPtr).at_most(64),
    ];
    let factory = BufferFactory::with_policy(&context, BufferPolicy::new("mine", rules));
    let error = factory.alloc::<u8>(100, BufferRequest::Best).unwrap_err();
    assert!(matches!(error, Error::NotSupported { .. }), "{error}");
    let text = error.to_string();
    for part in [
        "policy mine",
        "not regular: from 1048576 bytes on",
        "not external: only adopted",
        "not host-ptr: up to 64 bytes",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(factory.explain(BufferRequest::Best, 100), format!("refused: {text}"));
    let none = BufferFactory::with_policy(&context, BufferPolicy::new("empty", []));
    assert!(none.alloc::<u8>(100, BufferRequest::Best).is_err());
    assert!(matches!(
        none.alloc::<u8>(0, BufferRequest::Best),
        Err(Error::Zero { .. })
    ));
}

#[test]
fn memory_of_the_host_is_shared_in_place_and_has_no_buffer_object() {
    let (context, queue, add) = open();
    if !common::has(&context, SvmCapabilities::FINE_SYSTEM) {
        let refused = SvmBuffer::<u32>::system(&context, 8);
        assert!(matches!(refused, Err(Error::NotSupported { .. })));
        return;
    }
    let mut memory = SvmBuffer::<u32>::system(&context, 1000).unwrap();
    assert_eq!(memory.grain(), SvmGrain::System);
    assert_eq!(memory.as_ptr().addr() % 4096, 0);
    assert!(memory.map(&queue).unwrap().iter().all(|&x| x == 0));
    let args = [memory.arg(), Arg::scalar(&7u32)];
    // SAFETY: the kernel adds to the memory's elements; nothing else uses them.
    unsafe { add.launch(&queue, NdRange::d1(1000), &args) }.unwrap();
    let start = memory.as_ptr().cast_const();
    let map = memory.map(&queue).unwrap();
    assert_eq!(map.as_ptr(), start);
    assert!(map.iter().all(|&x| x == 7));
    drop(map);
    assert!(matches!(memory.view(), Err(Error::NotSupported { .. })));

    let mut source = RegularBuffer::<u32>::new(&context, 12).unwrap();
    source.write(&queue, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]).unwrap();
    memory.copy_from(&queue, 10, &source, 2, 3).unwrap();
    let from = clmgr::BoxLayout::rows(1, 1, 4);
    let to = clmgr::BoxLayout::rows(0, 0, 100);
    memory.copy_box_from(&queue, [2, 2, 1], to, &source, from).unwrap();
    // Only the memory's own uses are waited for from here on.
    drop(source);
    let mut data = vec![0; 1000];
    memory.read(&queue, &mut data).unwrap();
    assert_eq!(data[..2], [5, 6]);
    assert_eq!(data[100..102], [9, 10]);
    assert_eq!(data[9..14], [7, 2, 3, 4, 7]);
    assert!(matches!(
        memory.copy_from(&queue, 999, &RegularBuffer::<u32>::new(&context, 2).unwrap(), 0, 2),
        Err(Error::OutOfRange { .. })
    ));
}
