use std::ffi::{c_uint, c_void};
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::call::call;
use crate::layout::{aligned, not_null};
use crate::{Device, Result, Stream};

/// A word that streams and the host write and wait for: an order between a stream and anything that can write memory.
///
/// It is in host memory, and the device sees writes to it immediately. Streams that wait for it keep it alive. The last
/// of its owners frees it, which waits for all work of every device (see
/// [what the crate does not do](crate#what-it-does-not-do)). A stream whose condition never comes true waits for ever, and so does everything that
/// waits for that stream: on ROCm the wait is a kernel that reads the word over and over and holds a hardware queue,
/// behind which the writer may be stuck (rocclr/utils/flags.hpp, `GPU_STREAMOPS_CP_WAIT`). Let the host write the word,
/// or queue the write first.
///
/// ```no_run
/// # fn f(device: &hip::Device) -> hip::Result<()> {
/// let (producer, consumer) = (device.stream()?, device.stream()?);
/// let flag = device.flag::<u32>()?;
/// producer.write_flag(&flag, 1)?;
/// consumer.wait_flag(&flag, hip::Condition::AtLeast(1))?;
/// # Ok(())
/// # }
/// ```
#[doc(alias("hipStreamWaitValue32", "hipStreamWriteValue64"))]
pub struct Flag<W: Word> {
    memory: Arc<Memory<W>>,
}

/// When a waiting stream goes on, by the word's bits under a mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition<W> {
    /// The word is at least this, unsigned.
    AtLeast(W),
    /// The word is this.
    Equal(W),
    /// The word has one of these bits.
    AnyBitOf(W),
    /// The word lacks one of the bits that are not in this value: `!(word | value) != 0`.
    Nor(W),
}

/// The words that HIP can wait for: `u32` and `u64`.
pub trait Word: sealed::Sealed {}

impl Word for u32 {}
impl Word for u64 {}

mod sealed {
    use super::*;

    pub trait Sealed: Copy + Send + Sync + 'static {
        const ALL: Self;
        type Atomic;

        /// # Safety
        ///
        /// For `'a`, `word` is a live, aligned word that is only accessed atomically.
        unsafe fn atomic<'a>(word: NonNull<Self>) -> &'a Self::Atomic;

        /// With everything that was written before it.
        fn load(atomic: &Self::Atomic) -> Self;

        /// After everything that this thread wrote before.
        fn store(atomic: &Self::Atomic, value: Self);

        /// # Safety
        ///
        /// `word` is the device's address of a word that lives until the stream has done it.
        unsafe fn queue_wait(stream: &Stream, word: *mut c_void, wait: Wait<Self>) -> Result<()>;

        /// # Safety
        ///
        /// As `queue_wait`.
        unsafe fn queue_write(stream: &Stream, word: *mut c_void, value: Self) -> Result<()>;
    }

    #[derive(Debug)]
    pub struct Wait<W> {
        pub value: W,
        pub kind: c_uint,
        pub mask: W,
    }

    macro_rules! word {
        ($word:ty, $atomic:ty, $wait:ident, $write:ident) => {
            impl Sealed for $word {
                const ALL: Self = Self::MAX;
                type Atomic = $atomic;

                unsafe fn atomic<'a>(word: NonNull<Self>) -> &'a $atomic {
                    // SAFETY: the caller's promise is the callee's demand.
                    unsafe { <$atomic>::from_ptr(word.as_ptr()) }
                }

                fn load(atomic: &$atomic) -> Self {
                    atomic.load(Ordering::Acquire)
                }

                fn store(atomic: &$atomic, value: Self) {
                    atomic.store(value, Ordering::Release);
                }

                unsafe fn queue_wait(stream: &Stream, word: *mut c_void, wait: Wait<Self>) -> Result<()> {
                    let Wait { value, kind, mask } = wait;
                    // SAFETY: the stream is alive; the caller vouches for the word.
                    unsafe {
                        call!(
                            stream.device().runtime(),
                            $wait(stream.raw_uncaptured()?, word, value, kind, mask),
                            "{}({word:?}, {value:#x}, kind {kind}, mask {mask:#x})",
                            stringify!($wait)
                        )
                    }
                }

                unsafe fn queue_write(stream: &Stream, word: *mut c_void, value: Self) -> Result<()> {
                    // SAFETY: the stream is alive; the caller vouches for the word.
                    unsafe {
                        call!(
                            stream.device().runtime(),
                            $write(stream.raw_uncaptured()?, word, value, 0),
                            "{}({word:?}, {value:#x})",
                            stringify!($write)
                        )
                    }
                }
            }
        };
    }

    word!(u32, AtomicU32, hipStreamWaitValue32, hipStreamWriteValue32);
    word!(u64, AtomicU64, hipStreamWaitValue64, hipStreamWriteValue64);
}

/// The word, freed with its last owner; queued waits and writes are owners.
struct Memory<W> {
    host: NonNull<W>,
    device_address: *mut c_void,
    device: Device,
}

// SAFETY: the word is only accessed atomically, and page-locked memory belongs to the process, not to a thread.
unsafe impl<W: Send> Send for Memory<W> {}
// SAFETY: as for `Send`.
unsafe impl<W: Sync> Sync for Memory<W> {}

impl<W: Word> Condition<W> {
    fn under(self, mask: W) -> sealed::Wait<W> {
        let (kind, value) = match self {
            Self::AtLeast(value) => (hip_sys::hipStreamWaitValueGte, value),
            Self::Equal(value) => (hip_sys::hipStreamWaitValueEq, value),
            Self::AnyBitOf(value) => (hip_sys::hipStreamWaitValueAnd, value),
            Self::Nor(value) => (hip_sys::hipStreamWaitValueNor, value),
        };
        sealed::Wait { value, kind, mask }
    }
}

impl Device {
    /// A word of 0 for streams of this device to wait for.
    ///
    /// # Errors
    ///
    /// Out of page-locked memory.
    pub fn flag<W: Word>(&self) -> Result<Flag<W>> {
        self.make_current()?;
        let mut raw = ptr::null_mut();
        let flags = hip_sys::hipHostMallocCoherent | hip_sys::hipHostMallocMapped;
        // Eight bytes for either word: zeroing them is the same then.
        // SAFETY: writes one pointer to the address given; the flags are HIP's.
        unsafe {
            call!(
                self.runtime(),
                hipHostMalloc(&mut raw, 8, flags),
                "hipHostMalloc(8 bytes, {flags:#x})"
            )?;
        }
        let mut memory = Memory {
            host: not_null::<W>(raw, "hipHostMalloc")?,
            device_address: ptr::null_mut(),
            device: self.clone(),
        };
        aligned(memory.host, "hipHostMalloc")?;
        // SAFETY: eight fresh bytes that no other code knows.
        unsafe { ptr::write_bytes(raw.cast::<u8>(), 0, 8) };
        // SAFETY: writes one pointer to the address given; the memory is HIP's own.
        unsafe {
            call!(
                self.runtime(),
                hipHostGetDevicePointer(&mut memory.device_address, raw, 0),
                "hipHostGetDevicePointer({raw:?})"
            )?;
        }
        Ok(Flag {
            memory: Arc::new(memory),
        })
    }
}

impl<W: Word> Flag<W> {
    /// The word now, with everything that was written before it.
    #[must_use]
    pub fn load(&self) -> W {
        W::load(self.word())
    }

    /// Sets the word, after everything that this thread wrote before.
    pub fn store(&self, value: W) {
        W::store(self.word(), value);
    }

    fn word(&self) -> &W::Atomic {
        // SAFETY: alive, aligned as page-locked memory is, and accessed by the host only through this.
        unsafe { W::atomic(self.memory.host) }
    }
}

impl Stream {
    /// Work queued here from now on waits until `flag` meets the condition. The host does not wait.
    ///
    /// # Errors
    ///
    /// A flag of another device, or HIP refused the wait.
    #[doc(alias("hipStreamWaitValue32", "hipStreamWaitValue64"))]
    pub fn wait_flag<W: Word>(&self, flag: &Flag<W>, condition: Condition<W>) -> Result<()> {
        self.wait_flag_masked(flag, condition, W::ALL)
    }

    /// As [`Stream::wait_flag`], looking only at the bits of `mask`.
    ///
    /// # Errors
    ///
    /// As [`Stream::wait_flag`].
    pub fn wait_flag_masked<W: Word>(&self, flag: &Flag<W>, condition: Condition<W>, mask: W) -> Result<()> {
        let wait = condition.under(mask);
        self.use_flag(flag, "Stream::wait_flag", |word| {
            // SAFETY: the stream keeps the word until it is done.
            unsafe { W::queue_wait(self, word, wait) }
        })
    }

    /// Sets `flag` once the work queued so far is done. The host does not wait.
    ///
    /// # Errors
    ///
    /// A flag of another device, or HIP refused the write.
    #[doc(alias("hipStreamWriteValue32", "hipStreamWriteValue64"))]
    pub fn write_flag<W: Word>(&self, flag: &Flag<W>, value: W) -> Result<()> {
        self.use_flag(flag, "Stream::write_flag", |word| {
            // SAFETY: the stream keeps the word until it is done.
            unsafe { W::queue_write(self, word, value) }
        })
    }

    /// As [`Stream::wait_flag`], for a word in any memory that the device reaches, another runtime's too.
    ///
    /// # Safety
    ///
    /// `word` is the device's address of an aligned word that lives until the wait is over, and nothing writes it but
    /// by atomic stores while the stream may read it.
    ///
    /// # Errors
    ///
    /// HIP refused the wait, memory that it cannot reach included.
    #[doc(alias("hipStreamWaitValue32", "hipStreamWaitValue64"))]
    pub unsafe fn wait_word<W: Word>(&self, word: *mut W, condition: Condition<W>) -> Result<()> {
        self.not_recording("a wait for a word")?;
        self.device().make_current()?;
        // SAFETY: the caller's promise is the callee's demand.
        unsafe { W::queue_wait(self, word.cast(), condition.under(W::ALL)) }
    }

    /// As [`Stream::write_flag`], for a word in any memory that the device reaches, another runtime's too.
    ///
    /// # Safety
    ///
    /// `word` is the device's address of an aligned word that lives until the write is done, and nothing accesses it
    /// but atomically while the stream may write it.
    ///
    /// # Errors
    ///
    /// HIP refused the write, memory that it cannot reach included.
    #[doc(alias("hipStreamWriteValue32", "hipStreamWriteValue64"))]
    pub unsafe fn write_word<W: Word>(&self, word: *mut W, value: W) -> Result<()> {
        self.not_recording("a write of a word")?;
        self.device().make_current()?;
        // SAFETY: the caller's promise is the callee's demand.
        unsafe { W::queue_write(self, word.cast(), value) }
    }

    fn use_flag<W: Word>(
        &self,
        flag: &Flag<W>,
        call: &'static str,
        queue: impl FnOnce(*mut c_void) -> Result<()>,
    ) -> Result<()> {
        flag.memory.device.check_same(self.device(), call, "stream")?;
        self.not_recording("a flag")?;
        self.device().make_current()?;
        self.queue_with(&flag.memory, || queue(flag.memory.device_address))
    }
}

impl<W: Word> Clone for Flag<W> {
    fn clone(&self) -> Self {
        Self {
            memory: self.memory.clone(),
        }
    }
}

impl<W: Word> fmt::Debug for Flag<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flag")
            .field("address", &self.memory.device_address)
            .finish_non_exhaustive()
    }
}

impl<W> Drop for Memory<W> {
    fn drop(&mut self) {
        let host = self.host.as_ptr().cast::<c_void>();
        let freed = self.device.make_current().and_then(|()| {
            // SAFETY: memory of `hipHostMalloc`, freed once; no stream uses it, for each that may is an owner.
            unsafe { call!(self.device.runtime(), hipHostFree(host), "hipHostFree({host:?})") }
        });
        if let Err(error) = freed {
            self.device.runtime().defer(error);
        }
    }
}
