//! What the [`Table`](super::Table) is built of; its model check has others of the same shape.

pub(super) use std::sync::atomic::{AtomicPtr, AtomicU64, fence};

pub(super) use parking_lot::Mutex;
