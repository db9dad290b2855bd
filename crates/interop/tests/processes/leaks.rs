//! A hundred times the same leaves nothing behind.

use interop::{Carrier, Listener};

use crate::child::{step, stepped};
use crate::exchange::memory;
use crate::wire::{ACCEPTED, message, pair, receive, send};
use crate::{LEN, LIMIT, Second, alone, open};

/// How many this process has open.
pub fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("/proc").count()
}

/// Pages of this process that hold something.
fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).expect("a number")
}

#[test]
fn a_hundred_exchanges_with_another_process_leave_nothing() {
    let _alone = alone();
    let bridge = open();
    let folder = tempfile::tempdir().expect("a folder");
    let listener = Listener::bind(folder.path().join("link")).expect("a listener");
    let role = format!("work-often {}", listener.path().display());
    let (second, _stdin) = Second::start(&role);
    let mut before = None;
    for round in 0..100 {
        let carrier = Carrier::ALL[round % Carrier::ALL.len()];
        // SAFETY: the other process is this test.
        let link = unsafe { listener.accept(LIMIT) }.expect("it connects");
        let mut joint = memory(&bridge, carrier)
            .export_by(carrier, link.with_limit(LIMIT))
            .expect("an export");
        joint.upload(&[round as u32; LEN]).expect("an upload");
        step(&bridge, &mut joint);
        joint.pass().expect("passed");
        joint.take().expect("a turn");
        let mut words = [0; LEN];
        joint.download(&mut words).expect("a download");
        assert_eq!(words, [stepped(stepped(round as u32)); LEN]);
        drop(joint);
        // The first rounds fill caches.
        if round == 20 {
            let info = bridge.hip_device().memory_info().expect("a device");
            before = Some((descriptors(), info.free, resident_kib()));
        }
    }
    let (fds, free, resident) = before.expect("more than twenty rounds");
    assert_eq!(descriptors(), fds);
    assert_eq!(bridge.hip_device().memory_info().expect("a device").free, free);
    // 80 buffers would be 1.6 MB.
    assert!(resident_kib() < resident + 1024, "{resident} KiB before");
    drop(listener);
    second.ended_well();
    assert!(bridge.take_deferred_errors().is_empty());
    assert!(bridge.hip_runtime().take_deferred_errors().is_empty());
}

#[test]
fn a_hundred_importers_that_go_without_a_word_leave_nothing() {
    let _alone = alone();
    let bridge = open();
    let mut before = None;
    for round in 0..100 {
        let carrier = Carrier::ALL[round % Carrier::ALL.len()];
        let (link, theirs) = pair();
        // An importer that has nothing but the socket, whose end is what a kill leaves.
        send(&theirs, &message(ACCEPTED), &[]);
        let mut joint = memory(&bridge, carrier).export_by(carrier, link).expect("an export");
        assert_eq!(receive(&theirs).len(), 256);
        if round % 2 == 0 {
            joint.pass().expect("passed");
        }
        drop(theirs);
        joint.set_limit(LIMIT);
        let data = joint.into_shared().expect("the memory is this process's");
        drop(data);
        if round == 20 {
            let info = bridge.hip_device().memory_info().expect("a device");
            before = Some((descriptors(), info.free));
        }
    }
    let info = bridge.hip_device().memory_info().expect("a device");
    assert_eq!(before, Some((descriptors(), info.free)));
    assert!(bridge.take_deferred_errors().is_empty());
}
