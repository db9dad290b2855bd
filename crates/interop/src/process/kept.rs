//! Memory that this process has dropped while another one may still have it open by a handle.

use super::link::Socket;
use crate::Shared;
use bytemuck::Pod;
use parking_lot::Mutex;
use std::any::Any;
use std::sync::Arc;

/// Each until the other process hangs up. They keep their bridge alive: if the other process never does, all of it
/// stays until this one ends.
#[derive(Default)]
pub(crate) struct Kept(Mutex<Vec<Lent>>);

struct Lent {
    socket: Arc<Socket>,
    _memory: Box<dyn Any + Send>,
}

/// A buffer kept only for its destructor.
struct Memory<T: Pod>(#[allow(dead_code, reason = "for its destructor")] Shared<T>);

// SAFETY: what else is in a `Shared<T>` is `Send`; of `T` it has the type alone, whose values lie on the device, and its
// destructor makes none of them.
unsafe impl<T: Pod> Send for Memory<T> {}

const _: () = {
    const fn is_send<S: Send>() {}
    // The rest of the argument above.
    is_send::<Shared<u8>>();
};

impl Kept {
    /// Signals the other end that nothing more comes, and listens to it.
    pub(super) fn keep<T: Pod>(&self, memory: Shared<T>, socket: Arc<Socket>) {
        socket.finish();
        self.0.lock().push(Lent {
            socket,
            _memory: Box::new(Memory(memory)),
        });
    }

    /// Frees what no process has open any more, and counts the rest.
    pub(crate) fn sweep(&self) -> usize {
        let mut kept = self.0.lock();
        let gone: Vec<_> = kept
            .extract_if(.., |lent| lent.socket.is_hung_up())
            .collect();
        let left = kept.len();
        // A destructor waits for drivers: not under the lock.
        drop(kept);
        drop(gone);
        left
    }
}
