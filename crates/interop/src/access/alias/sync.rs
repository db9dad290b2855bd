//! The locks of the views, in one place so that the model can replace them.

pub(super) use std::sync::atomic::{AtomicBool, Ordering};

pub(super) use parking_lot::{Mutex, MutexGuard};
