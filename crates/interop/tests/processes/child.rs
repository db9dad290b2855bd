//! What the second process does.

use interop::{Bridge, Carrier, Error, Joint, Link, PeerError};

use crate::{LEN, LIMIT, common, open};

/// Names the role; without it the program is the first process.
pub const ROLE: &str = "HIPCL_TEST_ROLE";

#[test]
#[ignore = "run by other tests in a process of its own"]
fn the_second_process() {
    let Ok(role) = std::env::var(ROLE) else {
        return common::skipped("it runs only as a second process, which another test starts");
    };
    // SAFETY: nothing else here uses standard input.
    let link = unsafe { Link::from_stdin() }.expect("a link").with_limit(LIMIT);
    // A process that this one starts gets no connection that it could end.
    let inherited = std::fs::read_link("/proc/self/fd/0").expect("standard input");
    assert_eq!(inherited.to_str(), Some("/dev/null"));
    let (name, argument) = role.split_once(' ').unwrap_or((&role, ""));
    match name {
        "work" => work(&open(), link),
        "queue" => queue(&open(), link),
        "take-a-late-turn" => take_a_late_turn(&open(), link),
        "import-and-die" => import_and_die(&open(), link),
        "import-and-keep" => import_and_keep(&open(), link),
        "take-and-die" => take_and_die(&open(), link),
        "die" => die(),
        "export-and-die" => export_and_die(&open(), link, carrier(argument)),
        "pass-and-die" => pass_and_die(&open(), link, carrier(argument)),
        "export-and-drop" => export_and_drop(&open(), link, carrier(argument)),
        "work-often" => work_often(&open(), argument),
        other => panic!("no role {other}"),
    }
}

fn carrier(name: &str) -> Carrier {
    name.parse().expect("a carrier")
}

fn import(bridge: &Bridge, link: Link) -> interop::Result<Joint<u32>> {
    // SAFETY: the first process runs this program too.
    unsafe { bridge.import(link) }
}

fn die() -> ! {
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)
        .expect("a process may kill itself");
    unreachable!("it was killed")
}

/// One step in each API.
pub fn step(bridge: &Bridge, joint: &mut Joint<u32>) {
    let (mul, add) = kernels(bridge);
    let (queue, stream) = (bridge.queue().expect("a queue"), bridge.stream().expect("a stream"));
    let len = joint.len();
    let guard = joint.cl_mut(&queue).expect("access");
    // SAFETY: the kernel touches the words of the buffer.
    unsafe { mul.launch(&queue, clmgr::NdRange::d1(len), &[guard.arg()]) }.expect("a launch");
    drop(guard);
    let mut guard = joint.hip_mut(&stream).expect("access");
    let config = hip::LaunchConfig::linear(len, 256).expect("a grid");
    // SAFETY: the kernel touches as many words as it is told.
    unsafe { add.launch(&stream, config, &[&guard.slice_mut(), &(len as u32)]) }.expect("a launch");
}

pub fn kernels(bridge: &Bridge) -> (clmgr::Kernel, hip::Function) {
    let mul = bridge
        .programs()
        .get("kernel void mul(global uint *x) { x[get_global_id(0)] *= 3u; }", "")
        .and_then(|program| program.kernel("mul"))
        .expect("a kernel");
    let add = hip::rtc::Program::new(
        "extern \"C\" __global__ void add(unsigned int *x, unsigned int n) {
            unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) x[i] += 7u;
        }",
    )
    .compile(bridge.hip_device())
    .and_then(|module| module.function("add"))
    .expect("a kernel");
    (mul, add)
}

/// What [`step`] does to a word.
pub fn stepped(x: u32) -> u32 {
    x.wrapping_mul(3).wrapping_add(7)
}

/// Takes turns until the other side ends.
fn work(bridge: &Bridge, link: Link) {
    let mut joint = import(bridge, link).expect("an import");
    loop {
        match joint.take() {
            Ok(()) => {}
            Err(Error::Peer(PeerError::Gone { .. })) => return,
            Err(error) => panic!("{error}"),
        }
        step(bridge, &mut joint);
        joint.pass().expect("the turn is passed");
    }
}

/// One turn, passed while the work still runs.
fn queue(bridge: &Bridge, link: Link) {
    let mut joint = import(bridge, link).expect("an import");
    joint.take().expect("a turn");
    step(bridge, &mut joint);
    joint.pass_queued().expect("the turn is passed");
    assert!(matches!(
        joint.download(&mut [0; LEN]),
        Err(Error::Peer(PeerError::NotOurTurn { .. }))
    ));
}

/// The first process lets go of work that has not ended.
fn take_a_late_turn(bridge: &Bridge, link: Link) {
    let mut joint = import(bridge, link).expect("an import");
    let error = joint.take().expect_err("OpenCL is at work there");
    let text = error.to_string();
    assert!(
        matches!(error, Error::Peer(PeerError::Failed { .. })) && text.contains("did not hand over to HIP stream"),
        "{text}"
    );
    assert!(joint.has_turn());
}

fn import_and_die(bridge: &Bridge, link: Link) {
    let joint = import(bridge, link).expect("an import");
    assert!(!joint.has_turn());
    die()
}

/// Never looks at the link again.
fn import_and_keep(bridge: &Bridge, link: Link) {
    let _joint = import(bridge, link).expect("an import");
    loop {
        std::thread::park();
    }
}

fn take_and_die(bridge: &Bridge, link: Link) {
    let mut joint = import(bridge, link).expect("an import");
    joint.take().expect("a turn");
    step(bridge, &mut joint);
    die()
}

fn exported(bridge: &Bridge, link: Link, carrier: Carrier) -> Joint<u32> {
    let mut data = match carrier {
        Carrier::HipFd => bridge.alloc_exportable(LEN),
        _ => bridge.alloc_on(interop::Route::HipPointer, LEN),
    }
    .expect("memory");
    let pattern: Vec<u32> = (0..LEN as u32).collect();
    data.upload(&pattern).expect("an upload");
    data.export_by(carrier, link).expect("an export")
}

fn export_and_die(bridge: &Bridge, link: Link, carrier: Carrier) {
    let _joint = exported(bridge, link, carrier);
    die()
}

fn pass_and_die(bridge: &Bridge, link: Link, carrier: Carrier) {
    let mut joint = exported(bridge, link, carrier);
    joint.pass().expect("passed");
    // The other side has looked at the memory once it passes the turn back.
    joint.take().expect("a turn");
    joint.pass().expect("passed");
    die()
}

fn export_and_drop(bridge: &Bridge, link: Link, carrier: Carrier) {
    let mut joint = exported(bridge, link, carrier);
    joint.pass().expect("passed");
    drop(joint);
    assert!(bridge.take_deferred_errors().is_empty());
}

/// As `work`, over one link after the other, until the listener is gone.
fn work_often(bridge: &Bridge, path: &str) {
    // SAFETY: the other process is this test.
    while let Ok(link) = unsafe { Link::connect(path) } {
        match import(bridge, link.with_limit(LIMIT)) {
            Ok(mut joint) => {
                joint.take().expect("a turn");
                step(bridge, &mut joint);
                joint.pass().expect("passed");
            }
            Err(Error::Peer(PeerError::Gone { .. })) => return,
            Err(error) => panic!("{error}"),
        }
    }
}
