//! The two ways to launch the four kernels.
//!
//! | `--kernels` | OpenCL's kernels run on | HIP's run on | the data set |
//! |---|---|---|---|
//! | `queue` | an OpenCL queue | a HIP stream | changes sides twice an iteration |
//! | `stream` | the same HIP stream as HIP's | that stream | stays with HIP |

use interop::{Bridge, Counts, HipGuardMut, Shared};

use super::kernels::{ClHalf, ClOnStream, HipHalf};
use super::{Options, Waits, traffic};
use crate::outcome::Kernels;
use crate::timing::{ApiName, StageTimer};
use crate::{C32, Error, Result};

/// Where OpenCL's kernels run, with what is launched if that is a stream; and why there if the user did not say.
pub(super) type Chosen<S> = (Option<S>, Option<String>);

/// Follows what the user asked for; else takes the stream where `on_stream` succeeds.
pub(super) fn choose<S>(
    options: &Options,
    route_is_named: bool,
    on_stream: impl FnOnce() -> Result<S>,
) -> Result<Chosen<S>> {
    let only_on_stream = options.graph || options.waits != Waits::Kernel;
    match options.kernels {
        Some(Kernels::Queue) if only_on_stream => Err(Error::input(
            "--graph is for kernels on one HIP stream, and --kernels queue has two sides; leave one of them out",
        )),
        Some(Kernels::Queue) => Ok((None, None)),
        None if only_on_stream => Ok((Some(on_stream()?), None)),
        Some(Kernels::Stream) => Ok((Some(on_stream()?), None)),
        None if route_is_named => {
            let why = "a route was named, and a route joins two sides; see --kernels stream";
            Ok((None, Some(why.to_owned())))
        }
        None => match on_stream() {
            Ok(on_stream) => Ok((Some(on_stream), None)),
            Err(error) => Ok((None, Some(error.one_line()))),
        },
    }
}

/// Two sides: each stage waited for, the data set handed from side to side by guards.
pub(super) fn by_queue(
    bridge: &Bridge,
    timer: &mut StageTimer,
    x: &mut Shared<C32>,
    squared: &mut Shared<f32>,
) -> Result<Counts> {
    let count = x.len();
    let (opencl, hip) = (ClHalf::new(bridge, count)?, HipHalf::new(bridge, count)?);
    let (queue, stream) = (&opencl.queue, &hip.stream);
    timer.run(bridge, |timer| {
        let step = timer.steps();
        {
            let x = x.cl_mut(queue)?;
            timer.stage("add", ApiName::OpenCl, in_place(count), || {
                // SAFETY: the guard is of this queue, and the buffer of the length that the half was made for.
                unsafe { opencl.add(x.arg()) }?;
                Ok(queue.finish()?)
            })?;
            timer.stage("rotate 30 deg", ApiName::OpenCl, in_place(count), || {
                // SAFETY: as above.
                unsafe { opencl.rotate(x.arg()) }?;
                Ok(queue.finish()?)
            })?;
        }
        let mut x = x.hip_mut(stream)?;
        let mut squared = squared.hip_mut(stream)?;
        hip_stages(timer, &hip, step, &mut x, &mut squared)
    })
}

/// The two HIP kernels, each waited for.
fn hip_stages(
    timer: &mut StageTimer,
    hip: &HipHalf,
    step: usize,
    x: &mut HipGuardMut<'_, C32>,
    squared: &mut HipGuardMut<'_, f32>,
) -> Result<()> {
    let count = x.slice_mut().len();
    timer.stage("scale", ApiName::Hip, in_place(count), || {
        hip.scale(&mut x.slice_mut(), step)?;
        Ok(hip.stream.synchronize()?)
    })?;
    timer.stage("magnitude", ApiName::Hip, to_magnitude(count), || {
        hip.magnitude(&mut x.slice_mut(), &mut squared.slice_mut())?;
        Ok(hip.stream.synchronize()?)
    })
}

/// One stream: the same stages, and nothing is handed over. Or with one wait for all four, or for a graph of two iterations.
pub(super) fn by_stream(
    bridge: &Bridge,
    timer: &mut StageTimer,
    opencl: &ClOnStream,
    options: &Options,
    x: &mut Shared<C32>,
    squared: &mut Shared<f32>,
) -> Result<Counts> {
    let count = x.len();
    let hip = HipHalf::new(bridge, count)?;
    let stream = &hip.stream;
    // HIP's for the whole loop.
    let (mut x, mut squared) = (x.hip_mut(stream)?, squared.hip_mut(stream)?);
    if !options.graph && options.waits == Waits::Kernel {
        return timer.run(bridge, |timer| {
            timer.stage("add", ApiName::OpenCl, in_place(count), || {
                // SAFETY: the guard's buffer is of the length that the kernels were made for.
                unsafe { opencl.add(stream, x.arg()) }?;
                Ok(stream.synchronize()?)
            })?;
            timer.stage("rotate 30 deg", ApiName::OpenCl, in_place(count), || {
                // SAFETY: as above.
                unsafe { opencl.rotate(stream, x.arg()) }?;
                Ok(stream.synchronize()?)
            })?;
            hip_stages(timer, &hip, timer.steps(), &mut x, &mut squared)
        });
    }

    let opencl_half = |x: &mut HipGuardMut<'_, C32>| {
        // SAFETY: as above.
        unsafe {
            opencl.add(stream, x.arg())?;
            opencl.rotate(stream, x.arg())
        }
    };
    let hip_half =
        |x: &mut HipGuardMut<'_, C32>, squared: &mut HipGuardMut<'_, f32>, step: usize| {
            hip.scale(&mut x.slice_mut(), step)?;
            hip.magnitude(&mut x.slice_mut(), &mut squared.slice_mut())
        };
    if !options.graph {
        return timer.run(bridge, |timer| {
            let step = timer.steps();
            if options.waits == Waits::Side {
                timer.stage("OpenCL's two", ApiName::OpenCl, 2 * in_place(count), || {
                    opencl_half(&mut x)?;
                    Ok(stream.synchronize()?)
                })?;
                let bytes = in_place(count) + to_magnitude(count);
                return timer.stage("HIP's two", ApiName::Hip, bytes, || {
                    hip_half(&mut x, &mut squared, step)?;
                    Ok(stream.synchronize()?)
                });
            }
            timer.stage("four kernels", ApiName::Hip, traffic(count), || {
                opencl_half(&mut x)?;
                hip_half(&mut x, &mut squared, step)?;
                Ok(stream.synchronize()?)
            })
        });
    }
    let mut queue_all = |step: usize| {
        opencl_half(&mut x)?;
        hip_half(&mut x, &mut squared, step)
    };
    let graph = stream
        .capture_told::<Error>(
            |_| Ok(()),
            // The factor of `scale` is recorded with it, and alternates.
            |_| (0..GRAPH_STEPS as usize).try_for_each(&mut queue_all),
        )?
        .instantiate()?;
    timer.run(bridge, |timer| {
        timer.stage("four kernels, graph", ApiName::Hip, traffic(count), || {
            // SAFETY: the graph works on these two buffers, which the guards hold in place.
            unsafe { graph.launch(stream, &[&x.slice_mut(), &squared.slice_mut()]) }?;
            Ok(stream.synchronize()?)
        })
    })
}

/// Iterations in a graph, one for each factor.
pub(super) const GRAPH_STEPS: u32 = 2;

/// Traffic of a kernel that changes all samples.
fn in_place(count: usize) -> u64 {
    (2 * count * size_of::<C32>()) as u64
}

fn to_magnitude(count: usize) -> u64 {
    (count * (size_of::<C32>() + size_of::<f32>())) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(kernels: Option<Kernels>, graph: bool) -> Options {
        Options {
            kernels,
            graph,
            ..Options::default()
        }
    }

    #[test]
    fn the_stream_is_taken_where_it_works_and_else_the_queue_with_the_reason() {
        let chosen = |route| choose(&asked(None, false), route, || Ok(7)).expect("a way");
        assert_eq!(chosen(false), (Some(7), None));
        let (on_stream, why) = chosen(true);
        assert!(on_stream.is_none() && why.is_some_and(|why| why.contains("route")));
        let fails = || Err::<u8, _>(Error::input("no\nway"));
        let (on_stream, why) = choose(&asked(None, false), false, fails).expect("a way");
        assert_eq!((on_stream, why.as_deref()), (None, Some("no | way")));
    }

    #[test]
    fn what_was_asked_for_is_taken_or_refused() {
        let works = || Ok(7);
        let fails = || Err::<u8, _>(Error::input("no way"));
        let (stream, queue) = (Some(Kernels::Stream), Some(Kernels::Queue));
        for options in [asked(stream, false), asked(stream, true), asked(None, true)] {
            assert_eq!(choose(&options, true, works).expect("it"), (Some(7), None));
            let refused = choose(&options, false, fails).expect_err("no queue instead");
            assert_eq!(refused.to_string(), "no way");
        }
        assert_eq!(
            choose(&asked(queue, false), false, works).expect("it"),
            (None, None)
        );
        assert!(choose(&asked(queue, true), false, works).is_err());
    }
}
