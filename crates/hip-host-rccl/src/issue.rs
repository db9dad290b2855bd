//! Calls on their way into streams, and into graphs.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use hip_host::library;
use hip_sys::{hipError_t, hipStream_t, hipStreamCaptureStatus};

use crate::comm::Rank;
use crate::group::{Call, HIP, on_device};
use crate::place::Place;
use crate::status::{Failure, Outcome, from_hip};

/// What one stream does at once: all calls arrive before the first is waited for.
struct Command {
    calls: Vec<(Call, Place)>,
    ran: bool,
}

impl Command {
    /// Gives each call its place.
    fn begin(calls: &[Call]) -> Outcome<Self> {
        let mut command = Self {
            calls: Vec::new(),
            ran: false,
        };
        for call in calls {
            let place = call.rank.meeting.issue(call.rank.rank, &call.operation)?;
            command.calls.push((call.clone(), place));
        }
        Ok(command)
    }

    fn run(mut self) {
        self.ran = true;
        let arrived: Vec<_> = self
            .calls
            .iter()
            .map(|(call, place)| call.rank.meeting.arrive(call.rank.rank, *place, call.operation))
            .collect();
        let mut outcome = Ok(());
        // All of them: each has memory of this stream until its wait has ended.
        for wait in arrived {
            outcome = outcome.and(wait());
        }
        if let Err(failure) = outcome {
            fail_stream(&failure);
        }
    }
}

/// The results are not there, so the stream fails. It logs the text and passes the panic on to no hook.
fn fail_stream(failure: &Failure) -> ! {
    let text = failure.text.to_string_lossy().into_owned();
    std::panic::resume_unwind(Box::new(text))
}

impl Drop for Command {
    fn drop(&mut self) {
        for (call, _) in &self.calls {
            let meeting = &call.rank.meeting;
            if !self.ran {
                // It has its place, and will never arrive there.
                let what = call.operation.describe();
                let text = format!("{what}: the stream of rank {} could not take it", call.rank.rank);
                meeting.fail_with(Failure::system(text));
            }
            meeting.leave(call.rank.rank);
        }
    }
}

/// Calls that a graph repeats. Their communicators know of it.
struct Recorded(Vec<Call>);

impl Recorded {
    fn new(calls: Vec<Call>) -> Self {
        calls.iter().for_each(|call| call.rank.graphs.add());
        Self(calls)
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        self.0.iter().for_each(|call| call.rank.graphs.remove());
    }
}

/// The calls of one stream.
struct Queue {
    stream: usize,
    device: c_int,
    calls: Vec<Call>,
    /// The capture that records what the stream gets.
    capture: Option<u64>,
}

/// Whether the end of some is to be asked for.
pub(crate) fn issue(name: &'static str, calls: Vec<Call>) -> Outcome<bool> {
    let busy: Vec<_> = calls
        .iter()
        .map(|call| call.rank.clone())
        .filter(|rank| !rank.blocking)
        .collect();
    let mut queues: Vec<Queue> = Vec::new();
    for call in calls {
        // Default streams have one handle on all devices.
        let key = (call.stream, call.rank.device);
        match queues.iter_mut().find(|queue| (queue.stream, queue.device) == key) {
            Some(queue) => queue.calls.push(call),
            None => queues.push(Queue {
                stream: key.0,
                device: key.1,
                calls: vec![call],
                capture: None,
            }),
        }
    }
    for queue in &mut queues {
        queue.capture = on_device(queue.device, || capture(name, queue.stream as hipStream_t))?;
    }
    check_captures(name, &queues)?;
    for queue in queues {
        queue.issue(name)?;
    }
    busy.iter().for_each(|rank| rank.progress.begin(false));
    Ok(!busy.is_empty())
}

/// The capture that the stream is part of.
fn capture(name: &'static str, stream: hipStream_t) -> Outcome<Option<u64>> {
    let (mut status, mut id) = (hipStreamCaptureStatus::hipStreamCaptureStatusNone, 0);
    // SAFETY: writes two numbers to the addresses given.
    from_hip(name, unsafe {
        (HIP.hipStreamGetCaptureInfo.expect("built"))(stream, &mut status, &mut id)
    })?;
    match status {
        hipStreamCaptureStatus::hipStreamCaptureStatusNone => Ok(None),
        hipStreamCaptureStatus::hipStreamCaptureStatusActive => Ok(Some(id)),
        _ => from_hip(name, hipError_t::hipErrorStreamCaptureInvalidated).map(|()| None),
    }
}

/// All calls of a communicator in one group are in one graph, or in none: the real library says so too.
fn check_captures(name: &str, queues: &[Queue]) -> Outcome {
    let mut seen: Vec<(&Arc<Rank>, Option<u64>)> = Vec::new();
    for queue in queues {
        for Call { rank, .. } in &queue.calls {
            let mut others = seen.iter();
            if others.any(|(other, capture)| Arc::ptr_eq(other, rank) && *capture != queue.capture) {
                return Err(Failure::usage(format!(
                    "{name}: calls of a communicator in one group are captured by different graphs, or only some are"
                )));
            }
            seen.push((rank, queue.capture));
        }
    }
    Ok(())
}

impl Queue {
    fn issue(mut self, name: &'static str) -> Outcome {
        let stream = self.stream;
        if self.capture.is_none() {
            let command = Command::begin(&self.calls)?;
            return on_device(self.device, || {
                let work = move || command.run();
                from_hip(name, library::issue_awaited(stream as hipStream_t, name, work))
            });
        }
        self.calls.iter_mut().for_each(|call| call.operation.captured = true);
        on_device(self.device, || {
            let stream = stream as hipStream_t;
            from_hip(name, library::begin(stream).err().unwrap_or(hipError_t::hipSuccess))?;
            // A launch finds out if some of it is gone.
            self.calls.iter().try_for_each(|call| touch(name, call))?;
            let recorded = Recorded::new(self.calls);
            let begin = move || {
                let command = Command::begin(&recorded.0);
                move || match command {
                    Ok(command) => command.run(),
                    Err(failure) => fail_stream(&failure),
                }
            };
            from_hip(name, library::issue_placed(stream, name, begin))
        })
    }
}

fn touch(name: &str, Call { rank, operation, .. }: &Call) -> Outcome {
    // Its size was looked at when it was checked.
    let (read, written) = operation.bytes(rank.rank, rank.meeting.ranks()).unwrap_or((0, 0));
    for (address, bytes) in [(operation.send, read), (operation.recv, written)] {
        if bytes > 0 {
            let checked = library::check(address as *const c_void, bytes);
            from_hip(name, checked.err().unwrap_or(hipError_t::hipSuccess))?;
        }
    }
    Ok(())
}
