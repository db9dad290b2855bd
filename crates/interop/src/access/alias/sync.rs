//! The locks of the views, in one place so that the model can replace them.

pub(super) use parking_lot::{Mutex, MutexGuard};
pub(super) use std::sync::atomic::{AtomicBool, Ordering};
