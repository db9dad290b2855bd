use std::fmt;
use std::str::FromStr;

use crate::{Error, LibraryReport, Tables, amd};

/// A platform: one implementation of HIP and its libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Platform {
    /// AMD's own libraries.
    Amd,
    /// The same ABI over CUDA.
    Nvidia,
    /// The software device.
    Host,
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Amd => "amd",
            Self::Nvidia => "nvidia",
            Self::Host => "host",
        })
    }
}

impl FromStr for Platform {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        match name {
            "amd" => Ok(Self::Amd),
            "nvidia" => Ok(Self::Nvidia),
            "host" => Ok(Self::Host),
            _ => Err(()),
        }
    }
}

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
#[derive(Clone)]
pub struct Selection {
    platform: Platform,
    tables: Tables,
    /// One line: what decided, and what was passed over.
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

/// Chooses by `HIPCL_PLATFORM`, else `HIP_PLATFORM`, else by what is present.
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

/// Chooses by name; `None` chooses by what is present and ignores the environment.
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
        (self == Self::Runtime).then(|| "the program asked for the runtime alone".to_owned())
    }
}

fn named(name: &str, source_name: &'static str, extent: Extent) -> Result<Selection, Error> {
    let platform = name.parse().map_err(|()| Error::Unknown {
        name: name.to_owned(),
        source_name,
    })?;
    let why = format!("asked for by {source_name}");
    match platform {
        Platform::Amd => {
            let (tables, libraries) = amd::tables(extent)?;
            with_device(platform, tables, libraries, why, Some(source_name))
        }
        Platform::Nvidia => nvidia(why, Some(source_name), extent),
        Platform::Host => host(why, extent),
    }
}

/// The selection, if its HIP has a device.
fn with_device(
    platform: Platform,
    tables: Tables,
    libraries: Vec<LibraryReport>,
    why: String,
    asked_by: Option<&'static str>,
) -> Result<Selection, Error> {
    match amd::device_count(&tables.hip) {
        Ok(_) => Ok(Selection {
            platform,
            tables,
            why,
            libraries,
        }),
        Err(cause) => Err(Error::NoDevice {
            platform,
            cause,
            asked_by,
            libraries,
        }),
    }
}

fn automatic(extent: Extent) -> Result<Selection, Error> {
    let amd_passed_over = match amd::tables(extent) {
        Ok((tables, libraries)) => match amd::device_count(&tables.hip) {
            Ok(count) => {
                return Ok(Selection {
                    platform: Platform::Amd,
                    tables,
                    why: format!("HIP reports {count} AMD device(s)"),
                    libraries,
                });
            }
            Err(cause) => format!("amd passed over: {cause}"),
        },
        Err(error) => format!("amd passed over: {error}"),
    };
    let why = format!("{amd_passed_over}; CUDA reports a device");
    let nvidia_passed_over = match nvidia(why, None, extent) {
        Ok(selection) => return Ok(selection),
        Err(Error::NotBuilt { .. }) => "nvidia is not in this build".to_owned(),
        Err(error) => format!("nvidia passed over: {error}"),
    };
    host(
        format!("nothing asked for; {amd_passed_over}; {nvidia_passed_over}"),
        extent,
    )
}

#[cfg(feature = "nvidia")]
fn nvidia(why: String, asked_by: Option<&'static str>, extent: Extent) -> Result<Selection, Error> {
    let (tables, libraries) = crate::nvidia::tables(extent)?;
    with_device(Platform::Nvidia, tables, libraries, why, asked_by)
}

#[cfg(not(feature = "nvidia"))]
fn nvidia(_why: String, _asked_by: Option<&'static str>, _extent: Extent) -> Result<Selection, Error> {
    Err(Error::NotBuilt {
        platform: Platform::Nvidia,
        remedy: "build with the feature `nvidia`, or ask for the platform amd or host",
    })
}

#[cfg(feature = "host")]
fn host(why: String, extent: Extent) -> Result<Selection, Error> {
    let (tables, libraries) = crate::host::tables(extent);
    Ok(Selection {
        platform: Platform::Host,
        tables,
        why,
        libraries,
    })
}

#[cfg(not(feature = "host"))]
fn host(_why: String, _extent: Extent) -> Result<Selection, Error> {
    Err(Error::NotBuilt {
        platform: Platform::Host,
        remedy: "build with the feature `host` of the crate `platform`",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_refused_with_the_choices() {
        let error = select_named(Some("cuda")).err().expect("`cuda` is not a platform");
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
        let error = select_named(Some("nvidia")).err().expect("nvidia is not built");
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
            assert!(state.contains("the runtime alone"), "{state}");
        }
        assert!(selection.why.contains("a test"), "{}", selection.why);
    }

    #[cfg(feature = "host")]
    #[test]
    fn the_automatic_choice_says_why() {
        let selection = select_named(None).expect("the host platform is built in");
        assert!(!selection.why.is_empty());
        if selection.platform == Platform::Host {
            assert!(selection.why.contains("amd passed over"), "{}", selection.why);
        }
    }
}
