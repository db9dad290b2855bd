//! The platforms, a file each: its [`Facts`](crate::Facts), and how its function tables are opened.

mod amd;
mod host;
mod nvidia;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::select::Extent;
use crate::{Error, Facts, LibraryReport, LibraryState, Tables};

/// Declares each platform by its name and its file, in the order in which they are tried.
macro_rules! platforms {
    ($($(#[$doc:meta])* $name:ident => $file:ident,)*) => {
        /// A platform: one implementation of HIP and its libraries.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Platform {
            $($(#[$doc])* $name,)*
        }

        impl Platform {
            /// Every platform, in the order in which they are tried.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// What is true of it.
            #[must_use]
            pub const fn facts(self) -> &'static Facts {
                match self {
                    $(Self::$name => &$file::FACTS,)*
                }
            }

            /// Loads its library of collectives: RCCL, NCCL, or the software device's double. It is not among the
            /// [`Tables`](crate::Tables), since RCCL's file has a gigabyte and few programs need it.
            ///
            /// # Errors
            /// [`Error::NoCollectives`] with what was tried, [`Error::NotBuilt`], and [`Error::MixedReleases`] if RCCL
            /// lies in another installation than HIP.
            pub fn collectives(self) -> Result<Arc<rccl_sys::Api>, Error> {
                self.load_collectives().map(|(api, _)| Arc::new(api))
            }

            /// Loads its library of collectives as [`collectives`](Self::collectives) does, and says where it lies, or why
            /// there is none.
            #[must_use]
            pub fn collectives_report(self) -> LibraryReport {
                let (state, functions) = match self.load_collectives() {
                    Ok((api, state)) => (state, api.present().count()),
                    Err(Error::NoCollectives { cause, remedy, .. }) => {
                        (LibraryState::Missing(format!("{cause}; {remedy}")), 0)
                    }
                    Err(error) => (LibraryState::Missing(error.to_string()), 0),
                };
                LibraryReport {
                    name: self.facts().collectives,
                    state,
                    functions,
                    release: None,
                }
            }

            fn load_collectives(self) -> Result<(rccl_sys::Api, LibraryState), Error> {
                match self {
                    $(Self::$name => $file::collectives(),)*
                }
            }

            /// Opens its libraries.
            pub(crate) fn open(self, extent: Extent) -> Result<(Tables, Vec<LibraryReport>), Error> {
                match self {
                    $(Self::$name => $file::tables(extent),)*
                }
            }
        }
    };
}

platforms! {
    /// AMD's own libraries.
    Amd => amd,
    /// The same ABI over CUDA.
    Nvidia => nvidia,
    /// The software device.
    Host => host,
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.facts().name)
    }
}

impl FromStr for Platform {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        let known = Self::ALL.iter().find(|platform| platform.facts().name == name);
        known.copied().ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_parsed_back() {
        for &platform in Platform::ALL {
            assert_eq!(platform.to_string().parse(), Ok(platform));
        }
        assert_eq!("cuda".parse::<Platform>(), Err(()));
    }

    #[test]
    fn a_model_is_the_last_resort() {
        let models = Platform::ALL.iter().map(|platform| platform.facts().is_model);
        assert!(models.is_sorted(), "a card that is there is taken first");
    }
}
