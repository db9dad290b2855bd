//! What [`Turns`](super::turns) blocks with; its model check has another one of the same shape.

pub(super) use parking_lot::{Condvar, Mutex, MutexGuard};

pub(super) fn wait<'a, T>(condvar: &Condvar, mut guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(&mut guard);
    guard
}
