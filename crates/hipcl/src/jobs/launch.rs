//! The options of every job that say where OpenCL's kernels are launched, and the choice if they do not.

use crate::outcome::Kernels;
use crate::{Error, Result};

/// When the host waits for the stages of an iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waits {
    /// After each.
    #[default]
    Stage,
    /// After OpenCL's, and after HIP's. On one stream only.
    Side,
    /// After all that the host need not look at before the next is queued. On one stream only.
    Iteration,
}

/// Where OpenCL's kernels are launched, and how.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Launch {
    /// Where OpenCL kernels run: on the HIP stream, or on an OpenCL queue with hand-offs (default: the stream where
    /// that works and no route is named, else the queue).
    #[arg(long, value_enum, value_name = "WHERE")]
    pub kernels: Option<Kernels>,
    /// Capture the stages on the HIP stream once, and replay them as a HIP graph. `note` captures two iterations (an
    /// odd number is rounded up to the next even one), `capon` makes two graphs around the inverse.
    #[arg(long)]
    pub graph: bool,
    /// When the host waits for stages that are not a graph.
    #[arg(skip)]
    pub waits: Waits,
}

/// Where OpenCL kernels run, and why there if the user did not say.
pub type Choice = (Kernels, Option<String>);

impl Launch {
    /// Makes the job where the user requested; else on the stream if that succeeds.
    pub(super) fn choose<J>(
        &self,
        route_is_named: bool,
        mut make: impl FnMut(Kernels) -> Result<J>,
    ) -> Result<(J, Choice)> {
        let only_on_stream = self.graph || self.waits != Waits::Stage;
        let kernels = match self.kernels {
            Some(Kernels::Queue) if self.graph => {
                return Err(Error::input(
                    "--graph needs all kernels on one HIP stream, but --kernels queue uses an OpenCL queue too; remove one of them",
                ));
            }
            Some(Kernels::Queue) if only_on_stream => {
                return Err(Error::input(
                    "kernels on an OpenCL queue need a wait after each stage; use that, or launch them on one stream",
                ));
            }
            Some(kernels) => kernels,
            None if only_on_stream => Kernels::Stream,
            None => {
                let why = if route_is_named {
                    let why = "a route was named, and routes join a queue and a stream; see --kernels stream";
                    why.to_owned()
                } else {
                    match make(Kernels::Stream) {
                        Ok(job) => return Ok((job, (Kernels::Stream, None))),
                        Err(error) => error.one_line(),
                    }
                };
                return Ok((make(Kernels::Queue)?, (Kernels::Queue, Some(why))));
            }
        };
        Ok((make(kernels)?, (kernels, None)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: Option<Kernels> = Some(Kernels::Stream);
    const QUEUE: Option<Kernels> = Some(Kernels::Queue);

    fn asked(kernels: Option<Kernels>, graph: bool) -> Launch {
        Launch {
            kernels,
            graph,
            ..Launch::default()
        }
    }

    fn works(kernels: Kernels) -> Result<Kernels> {
        Ok(kernels)
    }

    fn fails_on_a_stream(kernels: Kernels) -> Result<Kernels> {
        match kernels {
            Kernels::Stream => Err(Error::input("no\nway")),
            Kernels::Queue => Ok(kernels),
        }
    }

    #[test]
    fn the_stream_is_taken_where_it_works_and_else_the_queue_with_the_reason() {
        let chosen = |route| asked(None, false).choose(route, works).expect("a place to launch");
        assert_eq!(chosen(false), (Kernels::Stream, (Kernels::Stream, None)));
        let (job, (kernels, why)) = chosen(true);
        assert_eq!((job, kernels), (Kernels::Queue, Kernels::Queue));
        assert!(why.is_some_and(|why| why.contains("route")));
        let (job, (kernels, why)) = asked(None, false).choose(false, fails_on_a_stream).expect("the queue");
        assert_eq!((job, kernels), (Kernels::Queue, Kernels::Queue));
        assert_eq!(why.as_deref(), Some("no | way"));
    }

    #[test]
    fn what_was_asked_for_is_taken_or_refused() {
        for launch in [asked(STREAM, false), asked(STREAM, true), asked(None, true)] {
            let (job, choice) = launch.choose(true, works).expect("it");
            assert_eq!((job, choice), (Kernels::Stream, (Kernels::Stream, None)));
            let refused = launch.choose(false, fails_on_a_stream).expect_err("no queue instead");
            assert_eq!(refused.to_string(), "no\nway");
        }
        let (job, choice) = asked(QUEUE, false).choose(false, works).expect("it");
        assert_eq!((job, choice), (Kernels::Queue, (Kernels::Queue, None)));
        let refused = asked(QUEUE, true).choose(false, works);
        assert!(refused.is_err_and(|error| error.one_line().contains("--graph")));
        let together = Launch {
            waits: Waits::Side,
            ..asked(QUEUE, false)
        };
        let refused = together.choose(false, works);
        assert!(refused.is_err_and(|error| error.one_line().contains("a wait after each stage")));
    }
}
