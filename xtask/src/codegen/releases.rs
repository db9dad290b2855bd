//! The ROCm releases that the bindings know, and the pinned packages that each is read from.
//!
//! Debian packages one release per suite, but not every library of it at the same time: a suite's HIP, rocBLAS and HSA may
//! be of different ROCm releases. So each package has its own [`Package::release`], and a [`Release`] is a set of them.

/// One set of packages, named after its HIP.
#[derive(Debug)]
pub struct Release {
    /// Major and minor number of its HIP, such as `6.4`.
    pub name: &'static str,
    /// Debian's suite that carries the packages.
    pub suite: &'static str,
    /// The packages with the headers.
    pub headers: &'static [Package],
}

/// One binary package of the distribution.
#[derive(Debug)]
pub struct Package {
    pub name: &'static str,
    pub version: &'static str,
    pub sha256: &'static str,
}

/// Oldest first.
pub const RELEASES: [Release; 3] = [
    Release {
        name: "5.7",
        suite: "trixie",
        headers: &[
            Package {
                name: "libamdhip64-dev",
                version: "5.7.1-6+deb13u1",
                sha256: "471242c9d89ce6aca57b2dc75eabbeb872d787f70d3b92144c58bb444e6256a1",
            },
            Package {
                name: "libhsa-runtime-dev",
                version: "6.1.2-3",
                sha256: "210550164784b6f12067b6cfd8a9386f6855d12a5fdd768b14839c85c35e48c0",
            },
            Package {
                name: "librocblas-dev",
                version: "5.5.1+dfsg-7",
                sha256: "6807acd8e4bcc065559d60e78fb7cd62cd7379da68a5fdcd934410f7f08f5df2",
            },
            Package {
                name: "librocsolver-dev",
                version: "5.5.1-7",
                sha256: "742a5e8d6fcfc71001256ea9df2f05b60a5c22c68b23590716986c1cfedfea4a",
            },
        ],
    },
    Release {
        name: "6.4",
        suite: "testing",
        headers: &[
            Package {
                name: "libamdhip64-dev",
                version: "6.4.3-5",
                sha256: "f2a3a542d41883f87a45e2d0554c1c84ccf350c836b9e8b35473dadbc34ced5e",
            },
            Package {
                name: "libhsa-runtime-dev",
                version: "6.4.3+dfsg-5",
                sha256: "ee294edb1c087a4df853da341112752514d5f4f48510ba69b04698b904e35500",
            },
            Package {
                name: "librocblas-dev",
                version: "6.4.4-4",
                sha256: "b86fdbe87a20759346214cbe961895bd25dea58e2303739de65b71c34eb5b05b",
            },
            Package {
                name: "librocsolver-dev",
                version: "6.4.3-2+b1",
                sha256: "1fa5aadaa28087c4422af4af03734d5c9eaf7b61729b8910cdd1b9b1eb0d1448",
            },
        ],
    },
    Release {
        name: "7.2",
        suite: "experimental",
        headers: &[
            Package {
                name: "libamdhip64-dev",
                version: "7.2.4-1~exp2",
                sha256: "28ae316c5be2d33b53fae8f2151e76a758f84aa3493abafeaef935e49cc5ba07",
            },
            Package {
                name: "libhsa-runtime-dev",
                version: "7.2.4+dfsg-1~exp1",
                sha256: "18b204f235cfb402833ecfc4c8a3d80842c038df3925e4e0148173a70e3d4c32",
            },
            Package {
                name: "librocblas-dev",
                version: "7.2.4-1~exp1",
                sha256: "615ad67764a3dcfef8db7ac5b24458222bc0b1bb69b2fbf5a50c04bc74fc75b0",
            },
            Package {
                name: "librocsolver-dev",
                version: "7.2.4-1~exp1+b1",
                sha256: "74df6a508e9c251b597627d965418dc5c5499f6158b9f7a5202d0e783a510890",
            },
        ],
    },
];

impl Release {
    /// The header package of this name, if the release has it.
    #[cfg(test)]
    pub fn header_package(&self, name: &str) -> Option<&'static Package> {
        self.headers.iter().find(|package| package.name == name)
    }
}

impl Package {
    /// Major and minor number of the ROCm release that the package was made from.
    #[cfg(test)]
    pub fn release(&self) -> &'static str {
        let second_dot = self.version.match_indices('.').nth(1);
        second_dot.map_or(self.version, |(at, _)| &self.version[..at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_set_is_named_after_its_hip_and_the_sets_are_in_order() {
        let mut before = (0, 0);
        for release in &RELEASES {
            let hip = release.header_package("libamdhip64-dev").expect("HIP");
            assert_eq!(hip.release(), release.name);
            let (major, minor) = release.name.split_once('.').expect("two numbers");
            let number = (major.parse().expect("major"), minor.parse().expect("minor"));
            assert!(number > before, "{number:?} after {before:?}");
            before = number;
        }
    }

    #[test]
    fn every_package_is_pinned_by_a_digest() {
        for package in RELEASES.iter().flat_map(|release| release.headers) {
            assert_eq!(package.sha256.len(), 64, "{}", package.name);
            assert!(
                package
                    .sha256
                    .bytes()
                    .all(|digit| digit.is_ascii_hexdigit()),
                "{}",
                package.name
            );
        }
    }
}
