//! The OpenCL libraries of this process and their devices.

use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use opencl_sys::cl_mem;
use parking_lot::Mutex;

use crate::api::Api;
use crate::device::Device;
use crate::error::{Result, Tried};
use crate::external::ExternalContexts;
use crate::loader::{self, Library, Origin};
use crate::platform;
use crate::queue::Queue;
use crate::strict_amd::{self, StrictAmd};

/// How a library was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LibraryKind {
    /// Named by `HIPCL_OPENCL`.
    Named,
    /// The system's ICD loader.
    SystemLoader,
    /// A driver named by a file in a `hipcl-opencl` folder.
    Driver,
}

impl fmt::Display for LibraryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Named => "named by HIPCL_OPENCL",
            Self::SystemLoader => "the system's ICD loader",
            Self::Driver => "named by a driver file in hipcl-opencl",
        })
    }
}

/// A library in use.
#[derive(Clone, Debug)]
pub struct LibraryInfo {
    /// The path or name that it was opened by.
    pub path: PathBuf,
    /// How it was found.
    pub kind: LibraryKind,
    /// The names of its platforms.
    pub platforms: Vec<String>,
}

/// Every OpenCL device that this process can reach. A clone is cheap.
#[derive(Clone)]
pub struct Manager(Arc<Inner>);

struct Inner {
    libraries: Vec<LibraryInfo>,
    devices: Vec<Device>,
    tried: Vec<Tried>,
    external: Mutex<HashMap<PathBuf, ExternalContexts>>,
}

impl Manager {
    /// Finds OpenCL: the library that `HIPCL_OPENCL` names and no other; else the system's ICD
    /// loader and every driver named by a `*.icd` file in a `hipcl-opencl` folder beside or above
    /// the executable; in programs and tests that cargo starts, also in a `target` folder of their
    /// package or above it. Such a folder, its files and the libraries that they name must belong to
    /// the process's user or to root, and no other user may write them.
    ///
    /// With `HIPCL_OPENCL_STRICT=amd` every library is put behind [`StrictAmd`].
    ///
    /// # Errors
    ///
    /// [`Error::NoRuntime`](crate::Error::NoRuntime) with everything that was tried if no device
    /// was found, or if `HIPCL_OPENCL_STRICT` has another value.
    pub fn load() -> Result<Self> {
        // SAFETY: the hook changes no table.
        unsafe { Self::load_with(|_| {}) }
    }

    /// As [`load`](Self::load); `hook` may replace functions in each library's table before any of
    /// them is called, for instance to count them.
    ///
    /// What `hook` returns lives for as long as any object made through these tables: the manager, its devices,
    /// and their contexts, queues and memory.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    ///
    /// # Safety
    ///
    /// Each function that `hook` puts into a table can be called like the OpenCL function of that
    /// name, from any thread and for the life of the process, and either does what that function
    /// guarantees or returns an error.
    ///
    /// ```compile_fail,E0133
    /// A function that does not do what its slot promises would make every safe call unsound.
    /// let manager = clmgr::Manager::load_with(|api| api.clFinish = None);
    /// ```
    pub unsafe fn load_with<K: Send + Sync + 'static>(hook: impl Fn(&mut Api) -> K) -> Result<Self> {
        // Drivers set themselves up on the first call, and not all can while two threads make it:
        // PoCL then answers that it has no device.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _alone = ONE_AT_A_TIME.lock();
        let strict = match std::env::var(strict_amd::VARIABLE) {
            Ok(value) if value == "amd" => true,
            Ok(value) if !value.is_empty() => {
                return Err(loader::nothing_found(vec![Tried {
                    path: strict_amd::VARIABLE.into(),
                    reason: format!("unknown value `{value}`; use `amd`"),
                }]));
            }
            _ => false,
        };
        let kept = RefCell::new(Vec::new());
        let (opened, mut tried) = loader::open_all(&|api| {
            if strict {
                // SAFETY: the table was just filled from the library.
                unsafe { StrictAmd::wrap(api) };
            }
            kept.borrow_mut().push(hook(api));
        });
        let kept: Arc<dyn Any + Send + Sync> = Arc::new(kept.into_inner());
        let mut libraries = Vec::new();
        let mut devices: Vec<Device> = Vec::new();
        for found in opened {
            let library = Arc::new(Library {
                path: found.path.clone(),
                _kept: Arc::clone(&kept),
            });
            let mut platforms = Vec::new();
            for (platform, api) in found.platforms {
                let mut refused = |reason: String| {
                    tried.push(Tried {
                        path: found.path.clone(),
                        reason,
                    });
                };
                match platform::device_ids(&api, platform) {
                    Ok(ids) if ids.is_empty() => refused(platform::without_device(&api, platform)),
                    Ok(ids) => {
                        for id in ids {
                            match Device::query(library.clone(), api, platform, id) {
                                Ok(device) => {
                                    let name = device.platform_name().to_owned();
                                    if !platforms.contains(&name) {
                                        platforms.push(name);
                                    }
                                    devices.push(device);
                                }
                                Err(error) => refused(error.to_string()),
                            }
                        }
                    }
                    Err(error) => refused(error.to_string()),
                }
            }
            if !platforms.is_empty() {
                libraries.push(LibraryInfo {
                    path: found.path,
                    kind: match found.origin {
                        Origin::Variable => LibraryKind::Named,
                        Origin::System => LibraryKind::SystemLoader,
                        Origin::DriverFile => LibraryKind::Driver,
                    },
                    platforms,
                });
            }
        }
        if devices.is_empty() {
            return Err(loader::nothing_found(tried));
        }
        Ok(Self(Arc::new(Inner {
            libraries,
            devices,
            tried,
            external: Mutex::default(),
        })))
    }

    /// The libraries that offer devices, in search order.
    #[must_use]
    pub fn libraries(&self) -> &[LibraryInfo] {
        &self.0.libraries
    }

    /// The devices, in the order of their libraries and platforms.
    #[must_use]
    pub fn devices(&self) -> Vec<Device> {
        self.0.devices.clone()
    }

    /// Adopts foreign contexts, queues and buffers of the library that `device` came from.
    #[must_use]
    pub fn external(&self, device: &Device) -> ExternalContexts {
        self.0
            .external
            .lock()
            .entry(device.library_path().to_owned())
            .or_insert_with(|| ExternalContexts::new(self, device))
            .clone()
    }

    /// A queue that commands for a foreign buffer can go to, see
    /// [`ExternalContexts::queue_for_buffer`].
    ///
    /// # Errors
    ///
    /// As [`ExternalContexts::queue_for_buffer`].
    ///
    /// # Safety
    ///
    /// `buffer` is null or a live memory object of the library that `device` came from.
    pub unsafe fn queue_for_buffer(&self, device: &Device, buffer: cl_mem) -> Result<Queue> {
        // SAFETY: the caller's promise.
        unsafe { self.external(device).queue_for_buffer(buffer) }
    }

    /// The libraries that were tried and offer no device.
    #[must_use]
    pub fn tried(&self) -> &[Tried] {
        &self.0.tried
    }
}

impl ExternalContexts {
    /// For the objects of the library that `device` came from.
    #[must_use]
    pub fn new(manager: &Manager, device: &Device) -> Self {
        let devices = manager
            .devices()
            .into_iter()
            .filter(|known| known.shares_library(device))
            .collect();
        Self::of(*device.api(), devices)
    }
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Manager")
            .field("libraries", &self.0.libraries)
            .field("devices", &self.0.devices)
            .finish_non_exhaustive()
    }
}
