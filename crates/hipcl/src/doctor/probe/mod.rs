//! What may crash or hang is asked of a child process: this program again, as `hipcl doctor-probe SUBJECT`.
//!
//! | module | side |
//! |---|---|
//! | `child` | parent: starts a process, waits for so long, says how it ended |
//! | `ask` | parent: the question on the command line, the answer on one line of JSON |
//! | `answer` | child: loads the libraries, looks, answers |
//! | `opencl`, `hip`, `route`, `host_ptr` | the kinds of subject |
//! | `signal` | names of signals |

mod answer;
mod ask;
mod child;
mod hip;
mod host_ptr;
mod opencl;
mod route;
mod signal;

pub use answer::main;
pub use ask::Death;
pub(super) use ask::{Asker, Told};
pub(super) use hip::Hip;
pub(super) use host_ptr::Sought;
pub(super) use opencl::OpenCl;
pub use route::Crossing;
pub(super) use route::Tried as RouteTried;

use interop::Route;
use std::fmt;
use std::str::FromStr;

/// What one child looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The OpenCL libraries and their devices.
    OpenCl,
    /// The platform, its libraries, its devices and its compiler.
    Hip,
    /// HIP's memory as a buffer object of OpenCL's.
    HostPtr,
    /// One route.
    Route(Route),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OpenCl => f.write_str("opencl"),
            Self::Hip => f.write_str("hip"),
            Self::HostPtr => f.write_str("host-ptr"),
            Self::Route(route) => write!(f, "{route}"),
        }
    }
}

impl FromStr for Subject {
    type Err = interop::UnknownRoute;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "opencl" => Self::OpenCl,
            "hip" => Self::Hip,
            "host-ptr" => Self::HostPtr,
            route => Self::Route(route.parse()?),
        })
    }
}
