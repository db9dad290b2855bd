use platform::Selection;

use super::{Step, bridge_by_host, on_first_pair};
use crate::bridge::open::Libraries;
use crate::bridge::probe::{WORDS, uncopied};
use crate::process::LinkEnd;
use crate::{Bridge, Carrier, Direction, Error, Joint, Link, Options, Residency, Result, Route, Shared};

/// Seeds of the patterns: the first process's and the second's.
const THERE: u32 = 0x5EED_0002;
const BACK: u32 = 0x0DD_BA12;

/// Whether memory goes to a second process by one carrier.
///
/// As with a [`Trial`](super::Trial), a driver that crashes takes the process along: try an unknown machine in a
/// process of its own.
#[derive(Clone, Debug)]
pub struct CarrierTrial {
    /// Where the memory lives, if patterns went to the second process and others came back: OpenCL's to HIP and HIP's
    /// to OpenCL, each way. Else why not.
    pub outcome: Result<Residency, String>,
    /// Whether no memory can leave by this carrier here, which is no failure.
    pub impossible: bool,
}

impl CarrierTrial {
    /// Tries only `carrier`, on the device that `options` describes; its `route`, `grade` and `policy` play no part.
    /// `start` starts the process that calls [`second`](Self::second), and gives it this end of the link; it is not
    /// called if there is no memory to share. `observe` is called before each step.
    ///
    /// # Errors
    /// If OpenCL or HIP is missing, no two devices pair, or the probe's kernels do not compile. It is not an error if the
    /// memory does not go there.
    pub fn run(
        selection: &Selection,
        options: &Options,
        carrier: Carrier,
        start: impl FnOnce(LinkEnd),
        mut observe: impl FnMut(Step),
    ) -> Result<Self> {
        observe(Step::Pair);
        let libraries = Libraries::load(selection)?;
        on_first_pair(&libraries, options, |pair| {
            observe(Step::Allocate);
            let bridge = bridge_by_host(&libraries, pair, options)?;
            let memory = match memory(&bridge, carrier) {
                Ok(memory) => memory,
                Err(error) => return Ok(Self::of(Err(error))),
            };
            observe(Step::Share);
            let (link, theirs) = Link::pair()?;
            start(theirs);
            let joint = memory.export_by(carrier, link);
            Ok(Self::of(
                joint
                    .map_err(|not| not.error)
                    .and_then(|joint| there_and_back(&bridge, joint, &mut observe)),
            ))
        })
    }

    /// The second process's part: it takes the memory, checks the patterns and writes others.
    ///
    /// # Errors
    /// As [`run`](Self::run); also if the memory cannot be taken, or a pattern is wrong.
    ///
    /// # Safety
    /// At the other end of `link`, a process of the same program is in [`run`](Self::run).
    pub unsafe fn second(
        selection: &Selection,
        options: &Options,
        link: Link,
        mut observe: impl FnMut(Step),
    ) -> Result<()> {
        observe(Step::Pair);
        let libraries = Libraries::load(selection)?;
        on_first_pair(&libraries, options, |pair| {
            let bridge = bridge_by_host(&libraries, pair, options)?;
            observe(Step::Share);
            // SAFETY: the other process describes its own memory, and takes turns as this one does.
            let mut joint = unsafe { bridge.import::<u32>(link) }?;
            let (core, probe) = (bridge.core(), bridge.probe());
            uncopied(core, joint.route(), || {
                for direction in Direction::BOTH {
                    observe(Step::Cross(direction));
                    joint.take()?;
                    probe.check(core, joint.view()?, direction, THERE)?;
                    probe.write(core, joint.granted_mut()?, direction, BACK)?;
                    joint.pass()?;
                }
                Ok(())
            })
        })
    }

    fn of(outcome: Result<Residency>) -> Self {
        Self {
            impossible: outcome.as_ref().is_err_and(Error::is_impossible),
            outcome: outcome.map_err(|error| error.to_string()),
        }
    }
}

/// Memory of the kind that leaves by this carrier. OpenCL's own leaves as a dma-buf, but not that of a processor.
fn memory(bridge: &Bridge, carrier: Carrier) -> Result<Shared<u32>> {
    let on = |route| bridge.alloc_on(route, WORDS);
    match carrier {
        Carrier::HipFd => bridge.alloc_exportable(WORDS),
        Carrier::DmaBuf if !bridge.core().platform.facts().is_model => {
            on(Route::SvmCoarse).or_else(|_| on(Route::HipPointer))
        }
        Carrier::DmaBuf | Carrier::IpcHandle => on(Route::HipPointer),
    }
}

fn there_and_back(bridge: &Bridge, mut joint: Joint<u32>, observe: &mut impl FnMut(Step)) -> Result<Residency> {
    let (core, probe) = (bridge.core(), bridge.probe());
    uncopied(core, joint.route(), || {
        for direction in Direction::BOTH {
            observe(Step::Cross(direction));
            probe.write(core, joint.granted_mut()?, direction, THERE)?;
            joint.pass()?;
            joint.take()?;
            probe.check(core, joint.view()?, direction, BACK)?;
        }
        Ok(joint.residency())
    })
}
