use bytemuck::Pod;
use hip::LaunchConfig;

use super::{Peer, PeerPath, no_peer};
use crate::backing::PeerAccess;
use crate::memory::SharedAllocation;
use crate::values::Access;
use crate::{Error, Result, Route, Shared};

const BLOCK: u32 = 256;
/// Bytes of what a thread copies at once.
const WIDE: usize = 16;

impl Peer {
    /// Copies all of `source`, of the first bridge, to `destination`, of the second, in the order of `stream`, also of
    /// the second. Both buffers record the stream: it comes after the writers of the one and the users of the other,
    /// and their next users come after it. The calling thread waits for OpenCL work on them, not for HIP work or the
    /// copy.
    ///
    /// Where HIP knows both memories, HIP copies (`hipMemcpyPeerAsync`). OpenCL memory is not passed to that call (ROCm
    /// would take it for host memory): a kernel of the second device reads it, after the HSA runtime has granted the
    /// access.
    ///
    /// HIP's copy is counted, as [`Category::DataSet`](crate::Category::DataSet) unless you open another scope; a
    /// kernel's is not.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::ReadOnly`], [`Error::OtherOwner`] for a buffer or stream of another bridge,
    /// [`Error::SameBytes`] if both buffers show some of the same bytes;
    /// [`Error::NoPeer`] where one of the two is OpenCL memory and no kernel reaches the source: it names the one to
    /// move; driver errors.
    #[track_caller]
    pub fn copy<T: Pod>(&self, source: &Shared<T>, destination: &mut Shared<T>, stream: &hip::Stream) -> Result<()> {
        if source.len() != destination.len() {
            return Err(Error::LengthMismatch {
                what: "a copy to a peer",
                given: source.len(),
                expected: destination.len(),
            });
        }
        destination.check_writable()?;
        self.check_owners(source, Some(destination), stream)?;
        // One place from here on: a reader elsewhere may put another in its stead.
        let from = source.allocation();
        let to = destination.allocation();
        if from.shows_bytes_of(to) {
            return Err(Error::SameBytes {
                what: "a copy to a peer",
            });
        }
        let by_hip = from.backing().is_known_to_hip() && to.backing().is_known_to_hip();
        if !by_hip && let Err(reason) = self.reach(from)? {
            return Err(self.no_copy(&reason, from, to));
        }
        if by_hip {
            self.open(from)?;
        }
        self.admit(from, stream, Access::Read)?;
        self.admit(to, stream, Access::Write)?;
        let bytes = source.len() * size_of::<T>();
        let (from, to) = (from.backing().hip_ptr(), to.backing().hip_ptr());
        // SAFETY: both have as many bytes; the stream was admitted as a reader of the one and the only user of the
        // other, and neither is freed before it has been waited for.
        unsafe {
            if by_hip {
                self.copy_by_hip(from, to, bytes, stream)
            } else {
                self.copy_by_kernel(from, to, bytes, stream)
            }
        }
    }

    /// Lets the second device in where HIP would otherwise copy through the host: a mapping is its own device's alone.
    fn open(&self, source: &SharedAllocation) -> Result<()> {
        if self.report.path == PeerPath::Direct
            && let PeerAccess::Mapped(access) = source.backing().peer_access()
        {
            access.enable(self.to.hip_device())?;
        }
        Ok(())
    }

    /// That no kernel copies, and neither does HIP, for a memory that is not its own: which, and where it could be.
    fn no_copy(&self, reason: &str, from: &SharedAllocation, to: &SharedAllocation) -> Error {
        let not_hips: Vec<_> = [("source", from), ("destination", to)]
            .into_iter()
            .filter(|(_, allocation)| !allocation.backing().is_known_to_hip())
            .map(|(which, allocation)| format!("the {which} from {}", allocation.route()))
            .collect();
        let wanted = match self.to.report().platform.facts().one_address_space {
            true => Route::HipPointer,
            false => Route::ExternalFd,
        };
        let reason = format!(
            "{reason}, and HIP copies only its own memory; move {} to {wanted} (Shared::move_to)",
            not_hips.join(" and ")
        );
        no_peer(&self.from, &self.to, reason)
    }

    /// # Safety
    /// `bytes` bytes are at both addresses, in order of `stream`, and HIP knows them.
    unsafe fn copy_by_hip(&self, from: *const u8, to: *mut u8, bytes: usize, stream: &hip::Stream) -> Result<()> {
        // SAFETY: the caller's promise; the source's stream names its device only.
        unsafe {
            let source = hip::DeviceSlice::from_hip_raw_parts(from, bytes, self.from.main_stream());
            hip::DeviceSliceMut::from_hip_raw_parts(to, bytes, stream).copy_from_peer_unchecked(source)
        }?;
        Ok(())
    }

    /// # Safety
    /// `bytes` bytes are at both addresses, in order of `stream`, whose device reaches them.
    unsafe fn copy_by_kernel(&self, from: *const u8, to: *mut u8, bytes: usize, stream: &hip::Stream) -> Result<()> {
        let aligned = from.addr().is_multiple_of(WIDE) && to.addr().is_multiple_of(WIDE);
        let wide = if aligned { bytes / WIDE } else { 0 };
        let rest = bytes - wide * WIDE;
        let kernels = self.to.probe().hip();
        // SAFETY: the caller's promise; both kernels take two pointers and a 64-bit count of elements and stay below
        // it.
        unsafe {
            if wide > 0 {
                let source = hip::DeviceSlice::from_raw_parts(from, bytes, stream);
                let destination = hip::DeviceSliceMut::from_raw_parts(to, bytes, stream);
                let config = LaunchConfig::linear(wide, BLOCK)?;
                let args: [&dyn hip::KernelArg; 3] = [&source, &destination, &(wide as u64)];
                kernels.copy.launch(stream, config, &args)?;
            }
            if rest > 0 {
                let (from, to) = (from.add(wide * WIDE), to.add(wide * WIDE));
                let source = hip::DeviceSlice::from_raw_parts(from, rest, stream);
                let destination = hip::DeviceSliceMut::from_raw_parts(to, rest, stream);
                let config = LaunchConfig::linear(rest, BLOCK)?;
                let args: [&dyn hip::KernelArg; 3] = [&source, &destination, &(rest as u64)];
                kernels.copy_bytes.launch(stream, config, &args)?;
            }
        }
        Ok(())
    }
}
