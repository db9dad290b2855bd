use std::fmt;
use std::str::FromStr;

/// How work of one API is ordered after work of the other.
///
/// A bridge proves every grade when it is opened ([`Bridge::grades`](crate::Bridge::grades)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Grade {
    /// The calling thread waits: `clFinish` before HIP work, `hipStreamSynchronize` before OpenCL
    /// work. The only grade that every pair of drivers offers, and the fastest when nothing else is queued. It has no
    /// time limit unless [`Options::handoff_limit`](crate::Options::handoff_limit) sets one: a side that never ends
    /// blocks its caller forever. `clFinish` does not report a command that failed. With a limit the host asks an event
    /// instead, which does.
    Host,
    /// The drivers' own threads hand over and the calling thread goes on: OpenCL's event callback releases a waiting
    /// stream, HIP's stream callback completes a user event that the queue waits for. For programs that queue ahead, or
    /// whose thread has other work.
    Callback,
    /// The device hands over. From OpenCL to HIP a kernel writes a number into memory that both see, and the stream
    /// waits for it; the other direction is as with [`Callback`](Self::Callback). Experimental, and only on request:
    /// neither driver guarantees it. Where both drivers import Vulkan semaphores, these hand over in both directions
    /// (feature `vulkan`, `Bridge::with_semaphores`).
    Device,
}

impl Grade {
    /// Every grade, the least demanding first.
    pub const ALL: [Self; 3] = [Self::Host, Self::Callback, Self::Device];
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "host",
            Self::Callback => "callback",
            Self::Device => "device",
        })
    }
}

/// The name is not a grade.
#[derive(Debug, thiserror::Error)]
#[error("unknown hand-off grade `{0}`; use host, callback or device")]
pub struct UnknownGrade(String);

impl FromStr for Grade {
    type Err = UnknownGrade;

    fn from_str(name: &str) -> Result<Self, UnknownGrade> {
        Self::ALL
            .into_iter()
            .find(|grade| grade.to_string() == name)
            .ok_or_else(|| UnknownGrade(name.to_owned()))
    }
}

/// What the probe of one grade found.
#[derive(Clone, Debug)]
pub struct GradeReport {
    /// The grade.
    pub grade: Grade,
    /// How it works here if a pattern crossed in both directions under it, else why it is unavailable.
    pub outcome: Result<Mechanisms, String>,
}

impl GradeReport {
    /// Whether the grade was proven.
    #[must_use]
    pub fn works(&self) -> bool {
        self.outcome.is_ok()
    }
}

/// What hands over, by direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mechanisms {
    /// From an OpenCL queue to a HIP stream.
    pub cl_to_hip: &'static str,
    /// From a HIP stream to an OpenCL queue.
    pub hip_to_cl: &'static str,
}

impl fmt::Display for Mechanisms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "OpenCL to HIP by {}, HIP to OpenCL by {}",
            self.cl_to_hip, self.hip_to_cl
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Grade;

    #[test]
    fn every_grade_is_found_by_the_name_it_prints() {
        for grade in Grade::ALL {
            assert_eq!(grade.to_string().parse::<Grade>().expect("own name"), grade);
        }
        let error = "flag".parse::<Grade>().expect_err("no grade").to_string();
        assert!(error.contains("`flag`") && error.contains("callback"), "{error}");
    }
}
