use crate::{Error, LibraryReport, Platform, Tables};

/// The chosen platform, its tables, and how it came to be chosen.
///
/// Safe code trusts the tables, so it cannot change them:
///
/// ```compile_fail,E0616
/// let mut selection = platform::select()?;
/// selection.tables.rocblas = None;
/// # Ok::<(), platform::Error>(())
/// ```
///
/// ```compile_fail,E0133
/// let mut selection = platform::select()?;
/// selection.tables_mut().rocblas = None;
/// # Ok::<(), platform::Error>(())
/// ```
///
/// ```compile_fail,E0616
/// let mut selection = platform::select()?;
/// selection.platform = platform::Platform::Amd;
/// # Ok::<(), platform::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Selection {
    platform: Platform,
    tables: Tables,
    /// One line: the reason for the choice, and the platforms that were skipped.
    pub why: String,
    /// Every library of the platform, found or missing.
    pub libraries: Vec<LibraryReport>,
}

impl Selection {
    /// The platform.
    #[must_use]
    pub fn platform(&self) -> Platform {
        self.platform
    }

    /// Its function tables.
    #[must_use]
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Its function tables. Functions can be replaced, for example to observe calls.
    ///
    /// # Safety
    /// Each function that is put into a table can be called like the platform's function of that
    /// name, from any thread and for the life of the process, and either does what that function
    /// guarantees or returns an error. So does each of [`ForeignHooks`](crate::ForeignHooks).
    pub unsafe fn tables_mut(&mut self) -> &mut Tables {
        &mut self.tables
    }
}

/// Selects by `HIPCL_PLATFORM`, else by `HIP_PLATFORM`, else by the devices that are present.
///
/// # Errors
/// An unknown name, a platform that is not in this build, a library that cannot be loaded, or a
/// requested platform that has no device. Without a request this never fails while the host
/// platform is built in.
pub fn select() -> Result<Selection, Error> {
    by_environment(Extent::All)
}

fn by_environment(extent: Extent) -> Result<Selection, Error> {
    for variable in ["HIPCL_PLATFORM", "HIP_PLATFORM"] {
        if let Some(value) = std::env::var_os(variable).filter(|value| !value.is_empty()) {
            return named(&value.to_string_lossy(), variable, extent);
        }
    }
    automatic(extent)
}

/// Selects by name; `None` selects by the devices that are present and ignores the environment.
///
/// # Errors
/// As [`select`].
pub fn select_named(name: Option<&str>) -> Result<Selection, Error> {
    match name {
        Some(name) => named(name, "the program's request", Extent::All),
        None => automatic(Extent::All),
    }
}

/// Chooses by name; `asked_by` says in messages where the name came from, such as the option `--platform` of a command.
///
/// # Errors
/// As [`select`].
pub fn select_asked(name: &str, asked_by: &'static str) -> Result<Selection, Error> {
    named(name, asked_by, Extent::All)
}

/// As [`select_asked`], or as [`select`] without a request, for a program that needs the runtime alone: rocBLAS and
/// rocSOLVER stay unloaded and are reported as missing for this reason. On an emulated MI100 with ROCm 7.2.4, where the
/// two files have 0.9 GB, a probe of `hipcl doctor` took 3.4 to 5.0 s with them and 0.3 s without.
///
/// # Errors
/// As [`select`].
pub fn select_runtime(asked: Option<(&str, &'static str)>) -> Result<Selection, Error> {
    match asked {
        Some((name, asked_by)) => named(name, asked_by, Extent::Runtime),
        None => by_environment(Extent::Runtime),
    }
}

/// Which libraries of a platform to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    All,
    /// Without the libraries of linear algebra.
    Runtime,
}

impl Extent {
    /// Why a library of linear algebra is left out, if it is.
    pub(crate) fn left_out(self) -> Option<String> {
        (self == Self::Runtime).then(|| "the program requested only the runtime".to_owned())
    }
}

fn named(name: &str, source_name: &'static str, extent: Extent) -> Result<Selection, Error> {
    let platform: Platform = name.parse().map_err(|()| Error::Unknown {
        name: name.to_owned(),
        source_name,
    })?;
    let (mut selection, _) = open(platform, extent, Some(source_name))?;
    selection.why = format!("requested by {source_name}");
    Ok(selection)
}

/// The first platform that has a device.
fn automatic(extent: Extent) -> Result<Selection, Error> {
    let mut why = vec!["chosen automatically".to_owned()];
    let mut refused = None;
    for &platform in Platform::ALL {
        match open(platform, extent, None) {
            Ok((mut selection, devices)) => {
                why.push(format!(
                    "{platform} has {devices} device{}",
                    if devices == 1 { "" } else { "s" }
                ));
                selection.why = why.join("; ");
                return Ok(selection);
            }
            Err(error) => {
                why.push(match &error {
                    Error::NotBuilt { .. } => format!("{platform} is not in this build"),
                    Error::NoDevice { cause, .. } | Error::NoLibrary { cause, .. } => {
                        format!("{platform} skipped: {cause}")
                    }
                    other => format!("{platform} skipped: {other}"),
                });
                refused = Some(error);
            }
        }
    }
    Err(refused.expect("there are platforms, and each was refused"))
}

/// The platform, and how many devices it has, which is at least one.
fn open(platform: Platform, extent: Extent, asked_by: Option<&'static str>) -> Result<(Selection, i32), Error> {
    let (tables, libraries) = platform.open(extent)?;
    match device_count(&tables.hip) {
        Ok(count) => {
            let selection = Selection {
                platform,
                tables,
                why: String::new(),
                libraries,
            };
            Ok((selection, count))
        }
        Err(cause) => Err(Error::NoDevice {
            platform,
            cause,
            asked_by,
            libraries,
        }),
    }
}

/// How many devices HIP reports, at least one, or why there is none.
fn device_count(hip: &hip_sys::Api) -> Result<i32, String> {
    let (Some(init), Some(get_count)) = (hip.hipInit, hip.hipGetDeviceCount) else {
        return Err("the HIP library lacks hipInit or hipGetDeviceCount".into());
    };
    // SAFETY: hipInit takes reserved flags that must be 0.
    let status = unsafe { init(0) };
    if status != hip_sys::hipError_t::hipSuccess {
        return Err(format!("hipInit(0) returned {}", status.0));
    }
    let mut count = 0;
    // SAFETY: `count` is a valid place for one int.
    let status = unsafe { get_count(&mut count) };
    match status {
        hip_sys::hipError_t::hipSuccess if count > 0 => Ok(count),
        hip_sys::hipError_t::hipSuccess => Err("hipGetDeviceCount found no device".into()),
        other => Err(format!("hipGetDeviceCount returned {} (no device)", other.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_refused_with_the_choices() {
        let error = select_named(Some("cuda")).expect_err("`cuda` is not a platform");
        let text = error.to_string();
        assert!(
            text.contains("`cuda`") && text.contains("amd, nvidia or host"),
            "{text}"
        );
        assert!(!text.contains('\n'));
    }

    #[cfg(not(feature = "nvidia"))]
    #[test]
    fn a_platform_that_is_not_built_is_refused_not_replaced() {
        let error = select_named(Some("nvidia")).expect_err("nvidia is not built");
        assert!(
            matches!(
                error,
                Error::NotBuilt {
                    platform: Platform::Nvidia,
                    ..
                }
            ),
            "{error}"
        );
    }

    #[cfg(feature = "nvidia")]
    #[test]
    fn without_a_driver_nvidia_is_refused_with_the_places_tried() {
        match select_named(Some("nvidia")) {
            Ok(selection) => assert_eq!(selection.platform, Platform::Nvidia),
            Err(Error::NoLibrary { platform, cause }) => {
                assert_eq!(platform, Platform::Nvidia);
                assert!(cause.contains("libcuda.so.1"), "{cause}");
            }
            // A driver without a card.
            Err(Error::NoDevice { platform, .. }) => assert_eq!(platform, Platform::Nvidia),
            Err(error) => panic!("{error}"),
        }
    }

    #[cfg(feature = "host")]
    #[test]
    fn a_runtime_alone_has_no_linear_algebra_and_says_why() {
        let selection = select_runtime(Some(("host", "a test"))).expect("the host platform");
        let tables = selection.tables();
        assert!(tables.rtc.is_some() && tables.hsa.is_some());
        assert!(tables.rocblas.is_none() && tables.rocsolver.is_none());
        for name in ["rocBLAS", "rocSOLVER"] {
            let report = selection.libraries.iter().find(|it| it.name == name);
            let state = report.expect("a report").state.to_string();
            assert!(state.contains("only the runtime"), "{state}");
        }
        assert!(selection.why.contains("a test"), "{}", selection.why);
    }

    #[cfg(feature = "host")]
    #[test]
    fn the_automatic_choice_says_why() {
        let selection = select_named(None).expect("the host platform is built in");
        assert!(!selection.why.is_empty());
        if selection.platform == Platform::Host {
            assert!(selection.why.contains("amd skipped"), "{}", selection.why);
        }
    }
}
