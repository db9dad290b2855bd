//! The ROCm releases that the bindings know, and the pinned packages that each is read from.
//!
//! Debian packages one release per suite, but not every library of it at the same time: a suite's HIP, rocBLAS and HSA
//! may be of different ROCm releases. So each package has its own [`Package::release`], and a [`Release`] is a set of
//! them.

use super::tables::Table;

/// One set of packages, named after its HIP.
#[derive(Debug)]
pub struct Release {
    /// Major and minor number of its HIP, such as `6.4`.
    pub name: &'static str,
    /// Whether the tables are made for it. An unsupported release only shows what it lacks.
    pub supported: bool,
    /// Where its packages come from.
    pub origin: Origin,
    /// The packages with the headers.
    pub headers: &'static [Package],
    /// The libraries themselves, of which only the dynamic symbols are read.
    pub libraries: &'static [Library],
}

/// Who publishes a release's packages.
#[derive(Debug)]
pub enum Origin {
    /// This suite of Debian: the real headers and libraries.
    Debian(&'static str),
    /// AMD's bindings for Python on the package index: HIP's declarations alone, from which headers are made again.
    Python {
        /// HIP's own number, as its library reports it.
        hip: &'static str,
        /// What the bindings import.
        imports: &'static [Package],
    },
}

/// A shared library and the package that has it.
#[derive(Debug)]
pub struct Library {
    /// The folder of its symbol lists below `xtask/symbols`.
    pub name: &'static str,
    /// The file's name up to `.so`.
    #[cfg_attr(
        not(feature = "codegen"),
        expect(dead_code, reason = "only `symbols --refresh` unpacks it")
    )]
    pub file: &'static str,
    pub package: Package,
}

/// One binary package.
#[derive(Debug)]
pub struct Package {
    pub name: &'static str,
    pub version: &'static str,
    /// The digests of its files: one, or one for each version of Python.
    pub sha256: &'static [&'static str],
}

/// The package that has HIP's declarations in releases which are read from AMD's bindings for Python.
pub const HIP_BINDINGS: &str = "rocm-bindings-hip";

/// Oldest first.
pub const RELEASES: [Release; 5] = [
    Release {
        name: "5.2",
        supported: false,
        origin: Origin::Debian("bookworm"),
        headers: &[
            Package {
                name: "libamdhip64-dev",
                version: "5.2.3-8",
                sha256: &["1f87b72e5aa86025c6cb96312c75ee7f549c42475f4bc51049ab7b67cc4e762e"],
            },
            Package {
                name: "libhsa-runtime-dev",
                version: "5.2.3-3",
                sha256: &["7b5d021c2718818d597cd9439581757931ecdc8e346c1f5e7aab664793b53fb0"],
            },
        ],
        libraries: &[
            Library {
                name: "hip",
                file: "libamdhip64",
                package: Package {
                    name: "libamdhip64-5",
                    version: "5.2.3-8",
                    sha256: &["e89c3757b6ca16b7a03374a0a42402ab19e9e7000251d47379838be965330ebd"],
                },
            },
            Library {
                name: "hsa",
                file: "libhsa-runtime64",
                package: Package {
                    name: "libhsa-runtime64-1",
                    version: "5.2.3-3",
                    sha256: &["9b633756945b16124376b274dbc681e4022c2b9704b8bdfa04637b09c7bfad93"],
                },
            },
        ],
    },
    Release {
        name: "5.7",
        supported: true,
        origin: Origin::Debian("trixie"),
        headers: &[
            Package {
                name: "libamdhip64-dev",
                version: "5.7.1-6+deb13u1",
                sha256: &["471242c9d89ce6aca57b2dc75eabbeb872d787f70d3b92144c58bb444e6256a1"],
            },
            Package {
                name: "libhsa-runtime-dev",
                version: "6.1.2-3",
                sha256: &["210550164784b6f12067b6cfd8a9386f6855d12a5fdd768b14839c85c35e48c0"],
            },
            Package {
                name: "librccl-dev",
                version: "5.4.3-3+b1",
                sha256: &["87e977a72579fcc891c37be5169f051699b9ab3822bef1331f6d33a0e66fd571"],
            },
            Package {
                name: "librocblas-dev",
                version: "5.5.1+dfsg-7",
                sha256: &["6807acd8e4bcc065559d60e78fb7cd62cd7379da68a5fdcd934410f7f08f5df2"],
            },
            Package {
                name: "librocsolver-dev",
                version: "5.5.1-7",
                sha256: &["742a5e8d6fcfc71001256ea9df2f05b60a5c22c68b23590716986c1cfedfea4a"],
            },
        ],
        libraries: &[
            Library {
                name: "hip",
                file: "libamdhip64",
                package: Package {
                    name: "libamdhip64-5",
                    version: "5.7.1-6+deb13u1",
                    sha256: &["a60c313b59c09d776190a6e70b13337992240227f365ce4b91bb476d47a776d7"],
                },
            },
            Library {
                name: "hsa",
                file: "libhsa-runtime64",
                package: Package {
                    name: "libhsa-runtime64-1",
                    version: "6.1.2-3",
                    sha256: &["5633b84b2f6527b19d70db064cfbbaf37b426f3a1a826316de115c8acb8c196d"],
                },
            },
            Library {
                name: "rccl",
                file: "librccl",
                package: Package {
                    name: "librccl1",
                    version: "5.4.3-3+b1",
                    sha256: &["735e8e0a69f88489bdbd0a8b69bc75a376da92f1129b9ed80a38c99726bfe3a7"],
                },
            },
            Library {
                name: "rocblas",
                file: "librocblas",
                package: Package {
                    name: "librocblas0",
                    version: "5.5.1+dfsg-7",
                    sha256: &["951dfa1a46ee275dace455f396640cfc63a47927455a0903b73c4e50030574c1"],
                },
            },
            Library {
                name: "rocsolver",
                file: "librocsolver",
                package: Package {
                    name: "librocsolver0",
                    version: "5.5.1-7",
                    sha256: &["8b3763a18c7bebc244337432bbef5e1ff4ac4dcf56bba32e766b4070c3afaee0"],
                },
            },
        ],
    },
    Release {
        name: "6.4",
        supported: true,
        origin: Origin::Debian("testing"),
        headers: &[
            Package {
                name: "libamdhip64-dev",
                version: "6.4.3-5",
                sha256: &["f2a3a542d41883f87a45e2d0554c1c84ccf350c836b9e8b35473dadbc34ced5e"],
            },
            Package {
                name: "libhsa-runtime-dev",
                version: "6.4.3+dfsg-5",
                sha256: &["ee294edb1c087a4df853da341112752514d5f4f48510ba69b04698b904e35500"],
            },
            Package {
                name: "librocblas-dev",
                version: "6.4.4-4",
                sha256: &["b86fdbe87a20759346214cbe961895bd25dea58e2303739de65b71c34eb5b05b"],
            },
            Package {
                name: "librocsolver-dev",
                version: "6.4.3-2+b1",
                sha256: &["1fa5aadaa28087c4422af4af03734d5c9eaf7b61729b8910cdd1b9b1eb0d1448"],
            },
        ],
        libraries: &[
            Library {
                name: "hip",
                file: "libamdhip64",
                package: Package {
                    name: "libamdhip64-6",
                    version: "6.4.3-5",
                    sha256: &["0c90c3f0a1f02ab5525a11c5b1879f1cb05bee9c7a2a79aa36863f57c85f7177"],
                },
            },
            Library {
                name: "hiprtc",
                file: "libhiprtc",
                package: Package {
                    name: "libhiprtc6",
                    version: "6.4.3-5",
                    sha256: &["cfe65df612e88fa34b2e7c37f99378b6823cd3c3b9e37b249bc15929b0160f08"],
                },
            },
            Library {
                name: "hsa",
                file: "libhsa-runtime64",
                package: Package {
                    name: "libhsa-runtime64-1",
                    version: "6.4.3+dfsg-5",
                    sha256: &["ca6a3f8a844010ee4ccd0165af5ed21192dbfe58a1ce1f2360037fe797bf27d0"],
                },
            },
            Library {
                name: "rocblas",
                file: "librocblas",
                package: Package {
                    name: "librocblas4",
                    version: "6.4.4-4",
                    sha256: &["05613a07d3fba2feaa8b81a86a22bc142dd4fb6630c44c416883a33bf22a1cdb"],
                },
            },
            Library {
                name: "rocsolver",
                file: "librocsolver",
                package: Package {
                    name: "librocsolver0",
                    version: "6.4.3-2+b1",
                    sha256: &["e3d28ea70903d1a0d0f68875ea4bf91f1957eeae1f961151e9ccf5452906b17d"],
                },
            },
        ],
    },
    Release {
        name: "7.2",
        supported: true,
        origin: Origin::Debian("experimental"),
        headers: &[
            Package {
                name: "libamdhip64-dev",
                version: "7.2.4-1~exp2",
                sha256: &["28ae316c5be2d33b53fae8f2151e76a758f84aa3493abafeaef935e49cc5ba07"],
            },
            Package {
                name: "libhsa-runtime-dev",
                version: "7.2.4+dfsg-1~exp1",
                sha256: &["18b204f235cfb402833ecfc4c8a3d80842c038df3925e4e0148173a70e3d4c32"],
            },
            Package {
                name: "librccl-dev",
                version: "7.2.4-1~exp3",
                sha256: &["c224353521f931fc9e9eb0800e401d5dde27d428a144f86d3766e52b9f40fdd5"],
            },
            Package {
                name: "librocblas-dev",
                version: "7.2.4-1~exp1",
                sha256: &["615ad67764a3dcfef8db7ac5b24458222bc0b1bb69b2fbf5a50c04bc74fc75b0"],
            },
            Package {
                name: "librocsolver-dev",
                version: "7.2.4-1~exp1+b1",
                sha256: &["74df6a508e9c251b597627d965418dc5c5499f6158b9f7a5202d0e783a510890"],
            },
        ],
        libraries: &[
            Library {
                name: "hip",
                file: "libamdhip64",
                package: Package {
                    name: "libamdhip64-7",
                    version: "7.2.4-1~exp2",
                    sha256: &["265743c8647c0200b014062d3fdcea617c1b7c87a214f666a86dc1da8dd53192"],
                },
            },
            Library {
                name: "hiprtc",
                file: "libhiprtc",
                package: Package {
                    name: "libhiprtc7",
                    version: "7.2.4-1~exp2",
                    sha256: &["85b88195e47ac59c640bc57e3623030363cbedf4f145bc4fcaba88d7087a6038"],
                },
            },
            Library {
                name: "hsa",
                file: "libhsa-runtime64",
                package: Package {
                    name: "libhsa-runtime64-1",
                    version: "7.2.4+dfsg-1~exp1",
                    sha256: &["5298b55763e0f756f154f4fb9e142b0a93cb8584ef57e6f26127d295e9d08641"],
                },
            },
            Library {
                name: "rccl",
                file: "librccl",
                package: Package {
                    name: "librccl1",
                    version: "7.2.4-1~exp3",
                    sha256: &["505da86bed73fa221b97681410dcdb25a6a4b05be9bf40023a976ba9936f060f"],
                },
            },
            Library {
                name: "rocblas",
                file: "librocblas",
                package: Package {
                    name: "librocblas5",
                    version: "7.2.4-1~exp1",
                    sha256: &["d7b0bdb3ca744edc42894c0774c0f4d2341acb42190808dc49251c0d1319b685"],
                },
            },
            Library {
                name: "rocsolver",
                file: "librocsolver",
                package: Package {
                    name: "librocsolver0",
                    version: "7.2.4-1~exp1+b1",
                    sha256: &["851981df23b9d2a5f00399b57498ac8efbccd203639283e28eb2a3154bc6b717"],
                },
            },
        ],
    },
    Release {
        name: "10.0",
        supported: true,
        origin: Origin::Python {
            hip: "7.15",
            imports: &[Package {
                name: "rocm-bindings-core",
                version: "10.0.0.0.1.2",
                sha256: &[
                    "2296f7154bf569fdfe5819f9c41e26510dfe24eb7bfe957f9432bf7faa72d66f",
                    "943da68c125cbc7f9ecdc8106241881ae29b36fd6b20e62ac0a7bc2782a41041",
                    "5f6111926679b4d64b79dd547a737d38814b77cb39b1db95d790c55958009d90",
                ],
            }],
        },
        headers: &[Package {
            name: HIP_BINDINGS,
            version: "10.0.0.0.1.2",
            sha256: &[
                "89b3f6018e49b817d94e531aa455d672ce89852a4472434a0c2ee00a07d18241",
                "b288d26fac3ab77d2f25f4b832397abb1d01157871f23226f9dd389e92b22ee4",
                "9d31be6c1a4c19d4ded2f2222da3f4bce14d81c58680bd119bffce983e466039",
            ],
        }],
        libraries: &[],
    },
];

impl Release {
    /// The library that has the functions of this table.
    pub fn library(&self, table: &Table) -> Option<&'static Library> {
        table
            .libraries
            .iter()
            .find_map(|name| self.libraries.iter().find(|library| library.name == *name))
    }

    /// The package with the declarations that Debian has in the package of this name, if the release has it.
    pub fn header_package(&self, name: &str) -> Option<&'static Package> {
        let name = match (&self.origin, name) {
            (Origin::Python { .. }, "libamdhip64-dev") => HIP_BINDINGS,
            _ => name,
        };
        self.headers.iter().find(|package| package.name == name)
    }

    /// Debian's suite, if the packages are from there.
    pub fn suite(&self) -> Option<&'static str> {
        match self.origin {
            Origin::Debian(suite) => Some(suite),
            Origin::Python { .. } => None,
        }
    }

    /// What a reader calls the release: AMD numbers HIP on its own since ROCm 10.
    #[cfg(feature = "codegen")]
    pub fn title(&self) -> String {
        match self.origin {
            Origin::Debian(_) => self.name.to_owned(),
            Origin::Python { hip, .. } => format!("{} (HIP {hip})", self.name),
        }
    }
}

impl Package {
    /// Major number of that release.
    #[cfg(feature = "codegen")]
    pub fn major(&self) -> u32 {
        super::since::number(self.release()).0
    }

    /// Major and minor number of the ROCm release that the package was made from.
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
    fn the_bindings_know_the_newest_hip_as_the_newest() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent();
        let path = root.expect("the workspace").join("crates/hip-sys/src/versions.rs");
        let text = std::fs::read_to_string(path).expect("the crate's own numbers");
        let newest = RELEASES.last().expect("there are some");
        let hip = match newest.origin {
            Origin::Debian(_) => newest.name,
            Origin::Python { hip, .. } => hip,
        };
        let number = hip.replace('.', ", ");
        let line = format!("pub const NEWEST: Release = Release::new({number});");
        assert!(text.contains(&line), "versions.rs lacks `{line}`");
    }

    #[test]
    fn every_package_is_pinned_by_a_digest() {
        let imported = RELEASES.iter().flat_map(|release| match release.origin {
            Origin::Python { imports, .. } => imports,
            Origin::Debian(_) => &[],
        });
        let headers = RELEASES.iter().flat_map(|release| release.headers);
        for package in headers.chain(imported) {
            assert!(!package.sha256.is_empty(), "{}", package.name);
            for digest in package.sha256 {
                assert_eq!(digest.len(), 64, "{}", package.name);
                assert!(
                    digest.bytes().all(|digit| digit.is_ascii_hexdigit()),
                    "{}",
                    package.name
                );
            }
        }
    }
}
