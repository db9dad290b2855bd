//! Devices: how many, what they report about themselves, and which one a thread works with.

mod attributes;
mod calls;
mod context;
mod peer;
mod settings;

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) use calls::*;
pub(crate) use context::*;
use hip_sys::hipError_t;
use parking_lot::Mutex;
pub(crate) use peer::*;
pub(crate) use settings::*;

use crate::error::Result;
use crate::log;

/// Threads of a block: gfx9's limit.
pub(crate) const MAX_THREADS_PER_BLOCK: u32 = 1024;
/// Lanes of a wavefront on gfx9.
pub(crate) const WARP: u32 = 64;
/// Local memory of a block in bytes: gfx9's 64 KiB.
pub(crate) const MAX_SHARED_BYTES: u32 = 64 * 1024;
pub(crate) const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65536, 65536];

/// Rows begin at multiples of this: what gfx9 wants of an image made from a buffer.
pub(crate) const ROW_ALIGNMENT: usize = 256;

/// A PCI domain no firmware hands out, so the model is never taken for a real card.
pub(crate) const PCI_DOMAIN: u16 = 0x7fff;

/// One software device.
pub(crate) struct Device {
    pub(crate) ordinal: usize,
    pub(crate) total_bytes: usize,
    pub(crate) used_bytes: AtomicUsize,
    peers: Peers,
    settings: Mutex<Settings>,
    contexts: AtomicUsize,
}

impl Device {
    fn new(ordinal: usize, total_bytes: usize) -> Self {
        Self {
            ordinal,
            total_bytes,
            used_bytes: AtomicUsize::new(0),
            peers: Peers::default(),
            settings: Mutex::default(),
            contexts: AtomicUsize::new(0),
        }
    }

    pub(crate) fn name(&self) -> String {
        format!(
            "hipcl host device ({}, {} threads)",
            cpu_model(),
            crate::workers::width()
        )
    }

    /// The sixteen characters that name the device; as on ROCm they are the hexadecimal digits themselves, and HSA's
    /// name for the same device is "GPU-" followed by them (hipamd/src/hip_device.cpp, `hipDeviceGetUuid`).
    pub(crate) fn uuid(&self) -> [u8; 16] {
        let mut text = [b'0'; 16];
        text.copy_from_slice(format!("686f7374{:08x}", self.ordinal).as_bytes());
        text
    }

    fn pci_address(&self) -> String {
        format!("{PCI_DOMAIN:04x}:{:02x}:00.0", self.ordinal)
    }

    pub(crate) fn free_bytes(&self) -> usize {
        self.total_bytes.saturating_sub(self.used_bytes.load(Ordering::Relaxed))
    }
}

/// gfx9's compute capability as HIP reports it.
const CAPABILITY: (c_int, c_int) = (9, 0);

/// The counterpart of a gfx name, unless `HIP_HOST_ARCHITECTURE` is set: programs written for AMD's chips choose
/// code by it, and some start on no other.
pub(crate) fn architecture() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let own = || "host".to_owned();
        let Ok(name) = std::env::var("HIP_HOST_ARCHITECTURE") else {
            return own();
        };
        let is_part = |c: char| c.is_ascii_alphanumeric() || "-+:_".contains(c);
        if (1..64).contains(&name.len()) && name.chars().all(is_part) {
            return name;
        }
        log::warn(&format!(
            "HIP_HOST_ARCHITECTURE=`{name}` is not a name such as gfx908:sramecc+:xnack-: using `host`"
        ));
        own()
    })
}

fn cpu_model() -> &'static str {
    static MODEL: OnceLock<String> = OnceLock::new();
    MODEL.get_or_init(|| {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let line = info.lines().find(|line| line.starts_with("model name"));
        let model = line
            .and_then(|line| line.split_once(':'))
            .map(|(_, model)| model.trim());
        model
            .filter(|model| !model.is_empty())
            .unwrap_or(std::env::consts::ARCH)
            .to_owned()
    })
}

fn physical_bytes() -> usize {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = info.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<usize>().ok());
    kib.map_or(4 << 30, |kib| kib * 1024)
}

/// All devices: `HIP_HOST_DEVICES` of them, one if unset. They share the machine's memory in equal parts.
pub(crate) fn all() -> &'static [Device] {
    static DEVICES: OnceLock<Vec<Device>> = OnceLock::new();
    DEVICES.get_or_init(|| {
        let count = match std::env::var("HIP_HOST_DEVICES") {
            Err(_) => 1,
            Ok(text) => match text.trim().parse::<usize>() {
                Ok(count) if count <= 64 => count,
                _ => {
                    log::warn(&format!(
                        "HIP_HOST_DEVICES=`{text}` is not a number from 0 to 64: using one device"
                    ));
                    1
                }
            },
        };
        let each = physical_bytes() / count.max(1);
        (0..count).map(|ordinal| Device::new(ordinal, each)).collect()
    })
}

thread_local! {
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

/// The calling thread's device.
pub(crate) fn current() -> Result<&'static Device> {
    all().get(CURRENT.get()).ok_or(hipError_t::hipErrorNoDevice)
}

fn set_current(device: &Device) {
    CURRENT.set(device.ordinal);
}

pub(crate) fn by_ordinal(ordinal: c_int) -> Result<&'static Device> {
    if all().is_empty() {
        return Err(hipError_t::hipErrorNoDevice);
    }
    usize::try_from(ordinal)
        .ok()
        .and_then(|ordinal| all().get(ordinal))
        .ok_or(hipError_t::hipErrorInvalidDevice)
}
