//! A child process does what may crash or hang: this program again, as `hipcl doctor-probe SUBJECT`.
//!
//! | module | side |
//! |---|---|
//! | `child` | parent: starts a process, waits until it ends or the time limit, reports how it ended |
//! | `prober` | parent: passes the subject on the command line, and reads the reply, one line of JSON |
//! | `answer` | child: loads the libraries, examines the subject, replies |
//! | `opencl`, `hip`, `collectives`, `route`, `host_ptr`, `grade`, `one_stream`, `carrier`, `allocation` | the kinds of subject |
//! | `signal` | names of signals |

mod allocation;
mod answer;
mod carrier;
mod child;
mod collectives;
mod grade;
mod hip;
mod host_ptr;
mod one_stream;
mod opencl;
mod prober;
mod route;
mod signal;

use std::fmt;
use std::str::FromStr;

pub(super) use allocation::Tried as AllocationTried;
pub use answer::main;
pub(super) use carrier::Tried as CarrierTried;
pub(super) use grade::Tried as GradeTried;
pub(super) use hip::Hip;
pub(super) use host_ptr::HostPtrTried;
use interop::{Allocation, Carrier, Grade, Route};
pub(super) use one_stream::Tried as OneStreamTried;
pub(super) use opencl::OpenCl;
use platform::Platform;
pub use prober::Death;
pub(super) use prober::{Prober, Reply};
pub use route::Crossing;
pub(super) use route::Tried as RouteTried;

/// What one child looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The OpenCL libraries and their devices.
    OpenCl,
    /// The platform, its libraries, its devices and its compiler.
    Hip,
    /// The platform's library of collectives.
    Collectives(Platform),
    /// HIP memory as an OpenCL buffer object.
    HostPtr,
    /// One route.
    Route(Route),
    /// One way to hand over, on memory of one route.
    Grade(Grade, Route),
    /// OpenCL kernels on HIP streams.
    OneStream,
    /// One way into another process.
    Carrier(Carrier),
    /// That process, which the probe of a carrier starts.
    Second,
    /// One call that allocates.
    Allocation(Allocation),
}

/// Begins the name of a grade, which the name of a route follows.
const GRADE: &str = "grade:";
/// Begins the name of the platform whose library of collectives is looked for.
const COLLECTIVES: &str = "collectives:";
/// Begins the name of a carrier: one of them is also a route's.
const CARRIER: &str = "carrier:";
/// Begins the name of an allocation.
const ALLOCATION: &str = "allocation:";

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OpenCl => f.write_str("opencl"),
            Self::Hip => f.write_str("hip"),
            Self::Collectives(platform) => write!(f, "{COLLECTIVES}{platform}"),
            Self::HostPtr => f.write_str("host-ptr"),
            Self::OneStream => f.write_str("one-stream"),
            Self::Carrier(carrier) => write!(f, "{CARRIER}{carrier}"),
            Self::Second => f.write_str("second"),
            Self::Route(route) => write!(f, "{route}"),
            Self::Grade(grade, route) => write!(f, "{GRADE}{grade}:{route}"),
            Self::Allocation(allocation) => write!(f, "{ALLOCATION}{allocation}"),
        }
    }
}

/// The text is not a subject.
#[derive(Debug, thiserror::Error)]
pub enum UnknownSubject {
    /// Of the rest there are only routes.
    #[error(transparent)]
    Route(#[from] interop::UnknownRoute),
    /// No platform.
    #[error("no platform is called `{0}`")]
    Platform(String),
    /// No grade.
    #[error(transparent)]
    Grade(#[from] interop::UnknownGrade),
    /// No carrier.
    #[error(transparent)]
    Carrier(#[from] interop::UnknownCarrier),
    /// No allocation.
    #[error(transparent)]
    Allocation(#[from] interop::UnknownAllocation),
}

impl FromStr for Subject {
    type Err = UnknownSubject;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(rest) = text.strip_prefix(GRADE) {
            let (grade, route) = rest.split_once(':').unwrap_or((rest, ""));
            return Ok(Self::Grade(grade.parse()?, route.parse()?));
        }
        if let Some(name) = text.strip_prefix(COLLECTIVES) {
            let platform = name.parse().map_err(|()| UnknownSubject::Platform(name.to_owned()))?;
            return Ok(Self::Collectives(platform));
        }
        if let Some(name) = text.strip_prefix(CARRIER) {
            return Ok(Self::Carrier(name.parse()?));
        }
        if let Some(name) = text.strip_prefix(ALLOCATION) {
            return Ok(Self::Allocation(name.parse()?));
        }
        Ok(match text {
            "opencl" => Self::OpenCl,
            "hip" => Self::Hip,
            "host-ptr" => Self::HostPtr,
            "one-stream" => Self::OneStream,
            "second" => Self::Second,
            route => Self::Route(route.parse()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_is_found_by_the_name_it_prints() {
        let mut all = vec![
            Subject::OpenCl,
            Subject::Hip,
            Subject::HostPtr,
            Subject::OneStream,
            Subject::Second,
            Subject::Collectives(Platform::Host),
        ];
        all.extend(Route::ALL.map(Subject::Route));
        all.extend(Grade::ALL.map(|grade| Subject::Grade(grade, Route::GpuVa)));
        all.extend(Carrier::ALL.map(Subject::Carrier));
        all.extend(Allocation::ALL.map(Subject::Allocation));
        for subject in all {
            let found = subject.to_string().parse::<Subject>();
            assert_eq!(found.expect("own name"), subject);
        }
        for text in ["grade:host", "grade:none:gpu-va", "carrier:", "allocation:", "nothing"] {
            assert!(text.parse::<Subject>().is_err(), "{text}");
        }
    }
}
