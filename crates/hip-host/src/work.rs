//! What a stream does, as functions.

use std::sync::Arc;

use crate::error::Result;

pub(crate) type Work = Box<dyn FnOnce() -> Result + Send>;

/// Work that can be done any number of times.
pub(crate) type Task = Arc<dyn Fn() -> Result + Send + Sync>;
