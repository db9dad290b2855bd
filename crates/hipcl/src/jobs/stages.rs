//! The stages of an iteration: each waited for and timed, several with one wait, or recorded as a graph.
//!
//! A job says what its stages are once; [`Waits`](super::Waits) decides which of them the host waits for together.

use std::fmt::{self, Display, Formatter};
use std::time::Instant;

use rocblas::Handle;

use super::Waits;
use super::sides::Sides;
use crate::timing::{ApiName, StageTimer, Work};
use crate::{Error, Result};

/// Receives the stages of an iteration, in order.
pub(super) struct Stages<'t> {
    /// None while a graph records them.
    clock: Option<Clock<'t>>,
    /// Those that were not waited for yet.
    group: Option<Group>,
}

struct Clock<'t> {
    timer: &'t mut StageTimer,
    sides: &'t Sides,
    waits: Waits,
}

/// Stages that are waited for together.
struct Group {
    span: Span,
    api: ApiName,
    /// How many graphs replay some of them.
    graphs: u32,
    start: Instant,
}

/// Stages that follow one another.
#[derive(Clone, Copy)]
pub(super) struct Span {
    first: &'static str,
    last: &'static str,
    /// What their algorithms have to do.
    pub work: Work,
}

/// Stages as a HIP graph.
pub(super) struct Recorded {
    pub graph: hip::GraphExec,
    pub span: Span,
}

impl Stages<'_> {
    /// Runs the stages that `work` names. The last one has been waited for when this returns.
    pub fn timed<R>(
        timer: &mut StageTimer,
        sides: &Sides,
        waits: Waits,
        work: impl FnOnce(&mut Stages<'_>) -> Result<R>,
    ) -> Result<R> {
        let mut stages = Stages {
            clock: Some(Clock { timer, sides, waits }),
            group: None,
        };
        let result = work(&mut stages)?;
        stages.end()?;
        Ok(result)
    }

    /// Records the stages that `work` names, and runs nothing. `blas` is the handle that they use.
    pub fn record(
        sides: &Sides,
        blas: Option<&Handle>,
        work: impl FnOnce(&mut Stages<'_>) -> Result<()>,
    ) -> Result<Recorded> {
        let mut stages = Stages {
            clock: None,
            group: None,
        };
        let mut worked = Ok(());
        let graph = match blas {
            Some(blas) => blas.capture(|_| {
                worked = work(&mut stages);
                Ok(())
            }),
            None => {
                let recorded = sides.stream.capture(|_| {
                    worked = work(&mut stages);
                    Ok(())
                });
                recorded.map_err(rocblas::Error::from)
            }
        };
        worked?;
        let span = stages.group.map_or(Span::NONE, |group| group.span);
        let ready = graph.and_then(|graph| Ok(graph.instantiate()?));
        Ok(Recorded {
            graph: ready.map_err(|error| not_recorded(&span.to_string(), &error))?,
            span,
        })
    }

    /// A stage, whose work `queue` queues without waiting for it. `work` is what the stage's algorithm has to do; a
    /// number is its memory traffic in bytes.
    pub fn stage<R>(
        &mut self,
        name: &'static str,
        api: ApiName,
        work: impl Into<Work>,
        queue: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let span = Span {
            first: name,
            last: name,
            work: work.into(),
        };
        self.add(span, api, 0, queue)
    }

    /// Stages that a graph replays; `launch` launches it.
    pub fn replay(&mut self, span: Span, launch: impl FnOnce() -> Result<()>) -> Result<()> {
        self.add(span, ApiName::Hip, 1, launch)
    }

    fn add<R>(&mut self, span: Span, api: ApiName, graphs: u32, queue: impl FnOnce() -> Result<R>) -> Result<R> {
        let waits = self.clock.as_ref().map(|clock| clock.waits);
        if waits == Some(Waits::Side) && self.group.as_ref().is_some_and(|it| it.api != api) {
            self.end()?;
        }
        match &mut self.group {
            Some(group) => {
                group.span.last = span.last;
                group.span.work += span.work;
                group.graphs += graphs;
                if group.api != api {
                    // All of them are on HIP's stream.
                    group.api = ApiName::Hip;
                }
            }
            None => {
                self.group = Some(Group {
                    span,
                    api,
                    graphs,
                    start: Instant::now(),
                });
            }
        }
        let result = queue().map_err(|error| match waits {
            Some(_) => error,
            None => not_recorded(span.first, &error),
        })?;
        if waits == Some(Waits::Stage) {
            self.end()?;
        }
        Ok(result)
    }

    /// Waits for what was queued, and keeps the time.
    fn end(&mut self) -> Result<()> {
        let (Some(clock), Some(group)) = (&mut self.clock, self.group.take()) else {
            return Ok(());
        };
        clock.sides.wait(group.api)?;
        let elapsed = group.start.elapsed();
        let name = match group.graphs {
            0 => group.span.to_string(),
            1 => format!("{}, graph", group.span),
            graphs => format!("{}, {graphs} graphs", group.span),
        };
        clock.timer.keep(&name, group.api, group.span.work, elapsed);
        Ok(())
    }
}

impl Span {
    const NONE: Self = Self {
        first: "nothing",
        last: "nothing",
        work: Work {
            bytes: 0,
            operations: 0,
        },
    };
}

impl Display for Span {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            f.write_str(self.first)
        } else {
            write!(f, "{} to {}", self.first, self.last)
        }
    }
}

fn not_recorded(stages: &str, error: &dyn Display) -> Error {
    Error::input(format!(
        "cannot record `{stages}` as a HIP graph ({error}); run without --graph"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Kernels;
    use crate::timing::Rates;

    fn sides() -> Sides {
        let selection = platform::select().expect("a platform");
        let options = interop::Options::default();
        let bridge = interop::Bridge::open(&selection, &options).expect("a bridge");
        Sides::new(&bridge, Kernels::Stream).expect("a stream")
    }

    fn three(stages: &mut Stages<'_>) -> Result<()> {
        stages.stage("a", ApiName::OpenCl, 1, || Ok(()))?;
        stages.stage("b", ApiName::OpenCl, 2, || Ok(()))?;
        stages.stage("c", ApiName::Hip, 4, || Ok(()))
    }

    /// Name and API of each row, and the traffic, of what a timer keeps of the three stages.
    fn kept(sides: &Sides, waits: Waits) -> (Vec<(String, ApiName)>, u64) {
        let mut timer = StageTimer::new(1, 0);
        Stages::timed(&mut timer, sides, waits, three).expect("three stages");
        timer.iteration_done();
        let stages = timer.stages(Rates::default());
        let names = stages.into_iter().map(|stage| (stage.name, stage.api));
        (names.collect(), timer.iteration_bytes())
    }

    #[test]
    fn stages_that_are_waited_for_together_are_one_row_with_all_of_their_traffic() {
        let sides = sides();
        let row = |name: &str, api| (name.to_owned(), api);
        let (opencl, hip) = (ApiName::OpenCl, ApiName::Hip);
        let each = vec![row("a", opencl), row("b", opencl), row("c", hip)];
        assert_eq!(kept(&sides, Waits::Stage), (each, 7));
        let by_side = vec![row("a to b", opencl), row("c", hip)];
        assert_eq!(kept(&sides, Waits::Side), (by_side, 7));
        let all = vec![row("a to c", hip)];
        assert_eq!(kept(&sides, Waits::Iteration), (all, 7));
    }

    #[test]
    fn a_stage_that_a_graph_cannot_hold_is_named_with_the_remedy() {
        let sides = sides();
        let recorded = Stages::record(&sides, None, three).expect("an empty graph");
        assert_eq!(
            (recorded.span.to_string(), recorded.span.work.bytes),
            ("a to c".to_owned(), 7)
        );
        let error = Stages::record(&sides, None, |stages| {
            three(stages)?;
            stages.stage("d", ApiName::Hip, 0, || Ok(sides.stream.synchronize()?))
        });
        let error = error.err().expect("a wait can't be recorded").one_line();
        assert!(
            error.contains("`d`") && error.contains("run without --graph"),
            "{error}"
        );
        // The stream is usable afterwards.
        sides.wait(ApiName::Hip).expect("an idle stream");
    }
}
