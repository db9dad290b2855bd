//! Buffers that this process drops while the other one may still have them open by a handle.

use std::any::Any;
use std::sync::Arc;

use bytemuck::Pod;

use super::link::Socket;
use crate::Shared;
use crate::core::Lent;

struct Buffer {
    socket: Arc<Socket>,
    _memory: Box<dyn Any + Send>,
}

impl Lent for Buffer {
    fn is_back(&self) -> bool {
        self.socket.is_hung_up()
    }
}

/// A buffer kept only for its destructor.
struct Memory<T: Pod>(#[allow(dead_code, reason = "for its destructor")] Shared<T>);

// SAFETY: what else is in a `Shared<T>` is `Send`; of `T` it has the type alone, whose values lie on the device, and
// its destructor makes none of them.
unsafe impl<T: Pod> Send for Memory<T> {}

const _: () = {
    const fn is_send<S: Send>() {}
    // The rest of the argument above.
    is_send::<Shared<u8>>();
};

/// Signals the other end that nothing more comes, and keeps the memory until that hangs up.
pub(super) fn keep<T: Pod>(memory: Shared<T>, socket: Arc<Socket>) {
    socket.finish();
    let core = Arc::clone(memory.core());
    core.kept.keep(Box::new(Buffer {
        socket,
        _memory: Box::new(Memory(memory)),
    }));
}
