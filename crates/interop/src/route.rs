use std::fmt;
use std::str::FromStr;

/// A way for both APIs to reach one data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Route {
    /// Coarse-grain SVM owned by OpenCL: device memory, one address for both APIs.
    SvmCoarse,
    /// Page-aligned host memory, `CL_MEM_USE_HOST_PTR` for OpenCL and registered with HIP.
    HostPinned,
    /// One allocation per API and a copy at every change of side. Never chosen silently.
    Staging,
}

impl Route {
    /// Every route that this version can take, best first.
    pub const ALL: [Self; 3] = [Self::SvmCoarse, Self::HostPinned, Self::Staging];

    /// Whether a change of side copies the data set.
    #[must_use]
    pub fn is_copy(self) -> bool {
        self == Self::Staging
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SvmCoarse => "svm-coarse",
            Self::HostPinned => "host-pinned",
            Self::Staging => "staging",
        })
    }
}

/// The name is not a route.
#[derive(Debug, thiserror::Error)]
#[error("unknown route `{0}`; use svm-coarse, host-pinned or staging")]
pub struct UnknownRoute(String);

impl FromStr for Route {
    type Err = UnknownRoute;

    fn from_str(name: &str) -> Result<Self, UnknownRoute> {
        Self::ALL
            .into_iter()
            .find(|route| route.to_string() == name)
            .ok_or_else(|| UnknownRoute(name.to_owned()))
    }
}

/// What may be done where no direct route is possible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Never copy: [`Error::NotPossible`](crate::Error::NotPossible) instead.
    #[default]
    DirectOnly,
    /// Copy if no direct route works between the two devices.
    PreferDirect,
    /// As `PreferDirect`, and also when a direct allocation fails at run time.
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
        let error = "svm"
            .parse::<Route>()
            .expect_err("`svm` is not a route")
            .to_string();
        assert!(
            error.contains("`svm`") && error.contains("svm-coarse"),
            "{error}"
        );
    }
}
