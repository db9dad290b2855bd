use std::fmt;
use std::str::FromStr;

/// What is true of a route.
struct Facts {
    /// On the command line and in reports.
    name: &'static str,
    /// Whether both APIs must see the same address.
    has_one_address: bool,
    /// Whether it needs a platform on which both APIs use one address space.
    needs_one_address_space: bool,
    /// Whether a change of side copies the data set.
    is_copy: bool,
    /// What to know before naming a route that is not automatic.
    warning: Option<&'static str>,
    /// The oldest ROCm release on which it can work.
    oldest_rocm: Option<&'static str>,
}

/// Declares every route once, best first; a fact that is left out does not compile.
macro_rules! routes {
    (
        $(#[$outer:meta])*
        enum Route;
        $($(#[$doc:meta])* $route:ident { $($fact:ident: $value:expr,)* })*
    ) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Route {
            $($(#[$doc])* $route,)*
        }

        impl Route {
            /// Every route, best first.
            pub const ALL: [Self; [$(Self::$route),*].len()] = [$(Self::$route),*];

            fn facts(self) -> Facts {
                match self {
                    $(Self::$route => Facts { $($fact: $value,)* },)*
                }
            }
        }
    };
}

routes! {
    /// A way for both APIs to reach one data set.
    ///
    /// | route | memory of | OpenCL sees | HIP sees | on request only |
    /// |---|---|---|---|---|
    /// | [`SvmCoarse`](Self::SvmCoarse) | OpenCL, device | SVM pointer, `cl_mem` view | the same address | |
    /// | [`GpuVa`](Self::GpuVa) | OpenCL, device | `cl_mem` | the address a kernel told | |
    /// | [`ExternalFd`](Self::ExternalFd) | HIP, device | imported `cl_mem` | its own allocation | |
    /// | [`DmaBuf`](Self::DmaBuf) | OpenCL, device | as `SvmCoarse` | an import of its own, at another address | |
    /// | [`HipPointer`](Self::HipPointer) | HIP, device | raw pointer argument | its own allocation | |
    /// | [`HostPinned`](Self::HostPinned) | host | `CL_MEM_USE_HOST_PTR` | registered memory | |
    /// | [`SvmFine`](Self::SvmFine) | OpenCL, **host** on a discrete GPU | SVM pointer, `cl_mem` view | the same address | yes |
    /// | [`Managed`](Self::Managed) | HIP, moves | raw pointer argument | managed memory | yes |
    /// | [`Staging`](Self::Staging) | each its own | `cl_mem` | its own allocation | by [`Policy`] |
    enum Route;

    /// Coarse-grain SVM owned by OpenCL: device memory, one address for both APIs. HIP uses it in
    /// kernels, rocBLAS and rocSOLVER, not in copies.
    SvmCoarse {
        name: "svm-coarse",
        has_one_address: true,
        needs_one_address_space: true,
        is_copy: false,
        warning: None,
        oldest_rocm: OLDEST_WITH_BINDINGS,
    }

    /// A plain `cl_mem`, for code that takes nothing else: HIP uses the address that a kernel of one work-item reports,
    /// after the HSA runtime has confirmed its owner.
    GpuVa {
        name: "gpu-va",
        has_one_address: true,
        needs_one_address_space: true,
        is_copy: false,
        warning: None,
        oldest_rocm: OLDEST_WITH_BINDINGS,
    }

    /// Exportable HIP memory whose descriptor OpenCL imports (`cl_khr_external_memory_opaque_fd`).
    ExternalFd {
        name: "external-fd",
        has_one_address: false,
        needs_one_address_space: false,
        is_copy: false,
        warning: None,
        // No release has `cl_khr_external_memory` (rocclr/device/rocm/rocsettings.cpp).
        oldest_rocm: None,
    }

    /// OpenCL memory, exported by the HSA runtime as a dma-buf and imported by HIP, so HIP has its own object for it
    /// and may copy, share and send it.
    DmaBuf {
        name: "dma-buf",
        has_one_address: false,
        needs_one_address_space: true,
        is_copy: false,
        warning: None,
        oldest_rocm: OLDEST_WITH_BINDINGS,
    }

    /// HIP memory, passed to OpenCL kernels as a raw pointer.
    HipPointer {
        name: "hip-pointer",
        has_one_address: true,
        needs_one_address_space: true,
        is_copy: false,
        warning: None,
        oldest_rocm: OLDEST_WITH_BINDINGS,
    }

    /// Page-aligned host memory, `CL_MEM_USE_HOST_PTR` for OpenCL and registered with HIP.
    HostPinned {
        name: "host-pinned",
        has_one_address: false,
        needs_one_address_space: false,
        is_copy: false,
        warning: None,
        oldest_rocm: OLDEST_WITH_BINDINGS,
    }

    /// Fine-grain SVM. On a discrete GPU it lies in host memory, which the device reads over its link.
    SvmFine {
        name: "svm-fine",
        has_one_address: true,
        needs_one_address_space: true,
        is_copy: false,
        warning: Some("fine-grained SVM is in host memory on a discrete GPU: every access crosses the link"),
        oldest_rocm: OLDEST_WITH_BINDINGS,
    }

    /// HIP managed memory, passed to OpenCL kernels as a raw pointer. Its pages move, or stay on
    /// the host where the device cannot fault (XNACK off).
    Managed {
        name: "managed",
        has_one_address: true,
        needs_one_address_space: true,
        is_copy: false,
        warning: Some("managed pages move at each hand-off, or stay in host memory where XNACK is off"),
        oldest_rocm: OLDEST_WITH_BINDINGS,
    }

    /// One allocation per API and a copy at every change of side. Never chosen silently.
    Staging {
        name: "staging",
        has_one_address: false,
        needs_one_address_space: false,
        is_copy: true,
        warning: None,
        oldest_rocm: OLDEST_WITH_BINDINGS,
    }
}

/// HIP accepts an address that it did not allocate since 5.6 (rocclr/device/rocm/rocdevice.cpp, `GetArenaMemObj`), and
/// `hsa_amd_portable_export_dmabuf` came with the same release; 5.7 is the oldest that this workspace has bindings for.
const OLDEST_WITH_BINDINGS: Option<&str> = Some("5.7");

impl Route {
    /// Whether a change of side copies the data set.
    #[must_use]
    pub fn is_copy(self) -> bool {
        self.facts().is_copy
    }

    /// Whether the route is chosen without being named, as far as the [`Policy`] permits it.
    #[must_use]
    pub fn is_automatic(self) -> bool {
        self.warning().is_none()
    }

    /// What to know before naming a route that is not automatic.
    #[must_use]
    pub fn warning(self) -> Option<&'static str> {
        self.facts().warning
    }

    /// The oldest ROCm release on which the route can work, by its sources; `None` where ROCm's OpenCL supports it in
    /// no release.
    #[must_use]
    pub fn oldest_rocm(self) -> Option<&'static str> {
        self.facts().oldest_rocm
    }

    /// Whether both APIs must see the same address.
    pub(crate) fn has_one_address(self) -> bool {
        self.facts().has_one_address
    }

    /// Whether it needs a platform on which both APIs use one address space.
    pub(crate) fn needs_one_address_space(self) -> bool {
        self.facts().needs_one_address_space
    }

    /// The name on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.facts().name
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The name is not a route.
#[derive(Debug, thiserror::Error)]
#[error("unknown route `{name}`; use {}", Route::ALL.map(Route::name).join(", "))]
pub struct UnknownRoute {
    name: String,
}

impl FromStr for Route {
    type Err = UnknownRoute;

    fn from_str(name: &str) -> Result<Self, UnknownRoute> {
        Self::ALL
            .into_iter()
            .find(|route| route.name() == name)
            .ok_or_else(|| UnknownRoute { name: name.to_owned() })
    }
}

/// What may be done where the best route is not possible, or fails at run time.
///
/// Routes that are not [automatic](Route::is_automatic) are taken only if they are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Policy {
    /// Take another direct route, never copy: [`Error::NotPossible`](crate::Error::NotPossible)
    /// instead.
    #[default]
    DirectOnly,
    /// Copy if no direct route works between the two devices.
    PreferDirect,
    /// As `PreferDirect`, and also when every direct route fails at run time.
    AllowCopy,
}

#[cfg(test)]
mod tests {
    use super::Route;

    #[test]
    fn every_route_is_found_by_the_name_it_prints() {
        for route in Route::ALL {
            assert_eq!(route.to_string().parse::<Route>().expect("own name"), route);
        }
        let error = "svm".parse::<Route>().expect_err("`svm` is not a route").to_string();
        assert!(
            error.contains("`svm`") && error.contains("svm-coarse") && error.contains("staging"),
            "{error}"
        );
    }
}
