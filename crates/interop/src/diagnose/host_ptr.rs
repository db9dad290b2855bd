//! HIP memory as an OpenCL buffer object, where that was seen to work.

use std::fmt;

use bytemuck::Pod;
use clmgr::{ExternalBuffer, Needs};
use platform::Selection;

use super::Step;
use crate::backing::{HipObject, HipPointer, gate};
use crate::bridge::open::{Libraries, Pair, Ready};
use crate::bridge::pairing;
use crate::bridge::probe::{WORDS, pattern};
use crate::core::Core;
use crate::handoff;
use crate::memory::bytes_of;
use crate::{Bridge, Category, Direction, Error, Options, Result, Route, Shared};

/// Proof that an OpenCL driver takes HIP memory by `CL_MEM_USE_HOST_PTR`, in place, for kernels and for its own
/// transfers.
///
/// A driver may also refuse, copy, or end the process. So a process that may end seeks the proof
/// ([`seek`](Self::seek)), and its text is carried to the one that goes on ([`from_text`](Self::from_text)). `hipcl
/// doctor` does the first half and prints the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPtrProof {
    /// The devices and drivers that it covers.
    of: String,
}

impl HostPtrProof {
    /// Tries it on the pair of devices that `options` describes: a buffer object of HIP memory, patterns in both
    /// directions by kernels and by OpenCL's transfers, the address that a kernel receives, and the release. `observe`
    /// is called before each step: the last one is where a process died. Where several OpenCL devices may be the HIP
    /// device, they are tried in turn.
    ///
    /// A proof is worth something only after the process that found it has ended well: a driver may
    /// also crash at its exit.
    ///
    /// # Errors
    /// The first thing that went wrong: no pair, the driver's refusal, [`Error::PatternMismatch`] or
    /// [`Error::AddressesDiffer`] for a copy, [`Error::Unsupported`] where OpenCL does not reach HIP memory at all.
    pub fn seek(selection: &Selection, options: &Options, observe: impl FnMut(Step)) -> Result<Self> {
        // SAFETY: the hooks change no table.
        unsafe { Self::seek_with(selection, options, |_| {}, observe) }
    }

    /// As [`seek`](Self::seek), with a hook as for [`Bridge::open_with`].
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    ///
    /// # Safety
    /// As [`Bridge::open_with`].
    ///
    /// ```compile_fail,E0133
    /// # use interop::{HostPtrProof, Options};
    /// # let selection = platform::select().unwrap();
    /// let proof = HostPtrProof::seek_with(
    ///     &selection,
    ///     &Options::default(),
    ///     |api| api.clFinish = None,
    ///     |_| {},
    /// );
    /// ```
    pub unsafe fn seek_with(
        selection: &Selection,
        options: &Options,
        hook: impl Fn(&mut clmgr::Api),
        mut observe: impl FnMut(Step),
    ) -> Result<Self> {
        observe(Step::Pair);
        // SAFETY: the caller's promise.
        let libraries = unsafe { Libraries::load_with(selection, hook) }?;
        let hip = libraries.hip.device(options.hip_device.unwrap_or(0))?;
        let devices = libraries.manager.devices();
        let candidates = pairing::candidates(selection.platform(), &hip, &devices, options.opencl_device)?;
        let mut refusal = None;
        for (device, paired_by) in candidates {
            let ready = Pair::new(&device, &hip, paired_by).and_then(|pair| libraries.ready(pair, options));
            match ready.and_then(|ready| prove(&ready, &mut observe)) {
                Ok(proof) => return Ok(proof),
                Err(error) => _ = refusal.get_or_insert(error),
            }
        }
        Err(refusal.unwrap_or(Error::NotPossible { tried: Vec::new() }))
    }

    /// The proof with this text (`Display`). A bridge that receives it compares its devices and drivers with its own.
    ///
    /// # Safety
    /// The text is that of [`seek`](Self::seek) in a process on this system that has ended well since,
    /// with the drivers that this process has. Else OpenCL may end this process, or work on memory
    /// that is not there.
    #[must_use]
    pub unsafe fn from_text(text: &str) -> Self {
        Self {
            of: text.trim().to_owned(),
        }
    }

    fn check(&self, core: &Core) -> Result<()> {
        let here = identity(core)?;
        if self.of == here {
            return Ok(());
        }
        Err(Error::Unsupported {
            route: Route::HipPointer,
            reason: format!(
                "the proof for CL_MEM_USE_HOST_PTR was made on `{}`, but this bridge uses `{here}`; make one there",
                self.of
            ),
        })
    }
}

impl fmt::Display for HostPtrProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.of)
    }
}

/// What decides whether it works, in one line: a change of any part voids the proof.
fn identity(core: &Core) -> Result<String> {
    let (hip, cl) = (&core.hip_device, core.context.device());
    let versions = core.hip.versions()?;
    let place = hip
        .pci_address()
        .map_or_else(|_| "nowhere".to_owned(), |pci| pci.to_string());
    let text = format!(
        "{} {} (driver {}) {} at {place}, {} {} driver {} `{}` of {}",
        core.platform,
        versions.runtime,
        versions.driver,
        hip.name()?.trim(),
        cl.platform_name().trim(),
        cl.platform_version().trim(),
        cl.driver_version().trim(),
        cl.name().trim(),
        cl.library_path().display()
    );
    Ok(text.replace(char::is_control, " "))
}

fn prove(ready: &Ready, observe: &mut impl FnMut(Step)) -> Result<HostPtrProof> {
    let (core, probe) = (&ready.core, &ready.probe);
    let _scope = core.meter.scope(Category::Control);
    observe(Step::Allocate);
    gate(core, Route::HipPointer)?;
    let memory = HipPointer::allocate(core, WORDS * size_of::<u32>())?;
    observe(Step::Wrap);
    // SAFETY: this is the trial, whose caller was told that the process may end.
    let object = unsafe { HipObject::over(core, memory) }?;
    object.check_address(core)?;
    let mut words = Shared::<u32>::over(core, &handoff::by_host(), Box::new(object), true)?;
    for direction in Direction::BOTH {
        observe(Step::Cross(direction));
        probe.cross(core, &mut words, direction)?;
    }
    observe(Step::Transfer);
    let seed = 0x0B1E_C700;
    let expected: Vec<u32> = (0..WORDS).map(|place| pattern(place, seed)).collect();
    with_object(core, &mut words, |object| Ok(object.write(&core.queue, &expected)?))?;
    let unread = probe.hip_check(core, &words, seed)?;
    agree(unread as usize, Direction::OpenClToHip)?;
    let seed = seed + 1;
    probe.hip_fill(core, &mut words, seed)?;
    let mut found = vec![0; WORDS];
    with_object(core, &mut words, |object| Ok(object.read(&core.queue, &mut found)?))?;
    let wrong = |(place, word): &(usize, &u32)| **word != pattern(*place, seed);
    let unread = found.iter().enumerate().filter(wrong).count();
    agree(unread, Direction::HipToOpenCl)?;
    observe(Step::Release);
    drop(words);
    // The first is the cause; the others stay for the bridge's owner.
    let mut deferred = core.deferred.lock();
    let mut errors = deferred.take().into_iter();
    let first = errors.next();
    errors.for_each(|error| deferred.push(error));
    drop(deferred);
    match first {
        Some(error) => Err(error),
        None => Ok(HostPtrProof { of: identity(core)? }),
    }
}

fn with_object(
    core: &Core,
    words: &mut Shared<u32>,
    work: impl FnOnce(&mut ExternalBuffer<u32>) -> Result<()>,
) -> Result<()> {
    let guard = words.cl_mut(&core.queue)?;
    let clmgr::Arg::Mem(raw) = guard.arg() else {
        unreachable!("the memory is a buffer object")
    };
    // SAFETY: the guard's object is alive, and this is its only user.
    let object = unsafe { ExternalBuffer::wrap(&core.external, raw, Needs::default()) };
    work(&mut object?)
}

fn agree(mismatches: usize, direction: Direction) -> Result<()> {
    let (writer, reader) = direction.ends();
    match u32::try_from(mismatches).unwrap_or(u32::MAX) {
        0 => Ok(()),
        mismatches => Err(Error::PatternMismatch {
            route: Route::HipPointer,
            writer,
            reader,
            mismatches,
            words: WORDS,
        }),
    }
}

/// HIP memory for OpenCL code that takes buffer objects and no pointers.
impl Bridge {
    /// A shared buffer in HIP memory ([`Route::HipPointer`]) that OpenCL has as a buffer object: a guard's argument is
    /// the object, and never the bare address.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the proof is for other devices or drivers than this bridge's; as
    /// [`alloc_on`](Self::alloc_on).
    #[doc(alias = "CL_MEM_USE_HOST_PTR")]
    pub fn alloc_hip_object<T: Pod>(&self, len: usize, proof: &HostPtrProof) -> Result<Shared<T>> {
        let bytes = bytes_of::<T>(len)?;
        proof.check(self.core())?;
        gate(self.core(), Route::HipPointer)?;
        self.object_over(HipPointer::allocate(self.core(), bytes)?)
    }

    /// As [`adopt_hip`](Self::adopt_hip), as a buffer object.
    ///
    /// # Errors
    /// As [`adopt_hip`](Self::adopt_hip) and [`alloc_hip_object`](Self::alloc_hip_object).
    ///
    /// # Safety
    /// As [`adopt_hip`](Self::adopt_hip).
    pub unsafe fn adopt_hip_object<T: Pod>(
        &self,
        ptr: *mut T,
        len: usize,
        owner: impl Send + Sync + 'static,
        proof: &HostPtrProof,
    ) -> Result<Shared<T>> {
        let bytes = bytes_of::<T>(len)?;
        proof.check(self.core())?;
        // SAFETY: the caller's promise.
        let memory = unsafe { HipPointer::adopted(self.core(), ptr.cast(), bytes, Box::new(owner)) }?;
        self.object_over(memory)
    }

    fn object_over<T: Pod>(&self, memory: HipPointer) -> Result<Shared<T>> {
        // SAFETY: the proof is of this bridge's devices and drivers.
        let object = unsafe { HipObject::over(self.core(), memory) }?;
        self.share(Box::new(object), true)
    }
}
