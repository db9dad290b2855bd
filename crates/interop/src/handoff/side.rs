use std::fmt;
use std::time::Duration;

use crate::access::User;
use crate::{Error, Grade};

/// A queue or stream by its handle, for messages; it keeps nothing alive.
#[derive(Clone, Copy)]
pub(crate) enum Side {
    Cl { queue: usize },
    Hip { stream: usize, device: usize },
    Caller,
}

impl Side {
    pub(crate) fn of(user: &User) -> Self {
        match user {
            User::Cl(queue) => Self::Cl {
                queue: queue.raw().addr(),
            },
            User::Hip(stream) => Self::Hip {
                stream: stream.raw().addr(),
                device: stream.device().ordinal(),
            },
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cl { queue } => write!(f, "OpenCL queue {queue:#x}"),
            Self::Hip { stream, device } => write!(f, "HIP stream {stream:#x} of device {device}"),
            Self::Caller => f.write_str("the calling thread"),
        }
    }
}

/// Who hands over to whom.
#[derive(Clone, Copy)]
pub(crate) struct Parties {
    pub(crate) grade: Grade,
    pub(crate) before: Side,
    pub(crate) after: Side,
}

impl Parties {
    pub(crate) fn late(&self, limit: Duration) -> Error {
        Error::HandoffTimeout {
            grade: self.grade,
            before: self.before.to_string(),
            after: self.after.to_string(),
            limit,
        }
    }

    pub(crate) fn failed(&self, cause: impl Into<Error>) -> Error {
        Error::HandoffFailed {
            grade: self.grade,
            before: self.before.to_string(),
            after: self.after.to_string(),
            cause: Box::new(cause.into()),
        }
    }
}
