//! The layers: which crate may use which.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// What each crate of the workspace may use of the others. Tests may use more, see [`FOR_TESTS`].
const MAY_USE: &[(&str, &[&str])] = &[
    ("rocm-loader", &[]),
    ("kernel-cache", &[]),
    ("hip-sys", &["rocm-loader"]),
    ("rocblas-sys", &["rocm-loader", "hip-sys"]),
    ("rocsolver-sys", &["rocm-loader", "hip-sys", "rocblas-sys"]),
    ("hsa-sys", &["rocm-loader"]),
    ("rccl-sys", &["rocm-loader", "hip-sys"]),
    ("hip-host", &["kernel-cache", "hip-sys", "hsa-sys"]),
    (
        "hip-host-blas",
        &["hip-host", "hip-sys", "rocblas-sys", "rocsolver-sys"],
    ),
    ("hip-host-rccl", &["hip-host", "hip-sys", "rccl-sys"]),
    ("hip-cuda", &["rocm-loader", "hip-sys", "rocblas-sys", "rocsolver-sys"]),
    (
        "hip-host-capi",
        &[
            "hip-host",
            "hip-host-blas",
            "hip-sys",
            "rocblas-sys",
            "rocsolver-sys",
            "hsa-sys",
        ],
    ),
    (
        "platform",
        &[
            "rocm-loader",
            "hip-sys",
            "rocblas-sys",
            "rocsolver-sys",
            "hsa-sys",
            "hip-host",
            "hip-host-blas",
            "hip-host-rccl",
            "rccl-sys",
            "hip-cuda",
        ],
    ),
    ("hip", &["kernel-cache", "rocm-loader", "hip-sys"]),
    (
        "rocblas",
        &["rocm-loader", "hip", "hip-sys", "rocblas-sys", "rocsolver-sys"],
    ),
    ("rccl", &["rocm-loader", "hip", "hip-sys", "rccl-sys"]),
    ("clmgr", &["kernel-cache"]),
    ("clmgr-fft", &["clmgr"]),
    (
        "interop",
        &[
            "kernel-cache",
            "hip",
            "rccl",
            "rocblas",
            "clmgr",
            "clmgr-fft",
            "platform",
            "rocm-loader",
            "hip-sys",
            "rocblas-sys",
            "rocsolver-sys",
            "hsa-sys",
        ],
    ),
    (
        "hipcl",
        &[
            "interop",
            "platform",
            "hip",
            "rccl-sys",
            "rocblas",
            "clmgr",
            "clmgr-fft",
            "hip-cuda",
        ],
    ),
    (
        "interop-capi",
        &["interop", "platform", "hip", "rocblas", "clmgr", "clmgr-fft"],
    ),
    (
        "layout-test",
        &["hip-sys", "rocblas-sys", "rocsolver-sys", "hsa-sys", "rccl-sys"],
    ),
    ("book", &[]),
    ("xtask", &[]),
];

/// What tests may use in addition: the host platform, to have something to run on.
const FOR_TESTS: &[(&str, &[&str])] = &[
    ("hip", &["platform", "hip-host"]),
    (
        "rocblas",
        // Itself: that is how its tests ask for its features.
        &[
            "platform",
            "hip-host",
            "hip-host-blas",
            "rocblas-sys",
            "rocsolver-sys",
            "rocblas",
        ],
    ),
    ("rccl", &["hip-host", "hip-host-rccl"]),
    ("hip-cuda", &["hip", "rccl", "rccl-sys"]),
    ("interop", &["hip-host", "hip-host-rccl", "rccl"]),
    ("hipcl", &["hip-host", "hip-sys"]),
    // Its code is examples for all of them.
    (
        "book",
        &["clmgr", "clmgr-fft", "hip", "hip-sys", "interop", "platform", "rocblas"],
    ),
];

/// Crates from outside that only these may use.
const RESERVED: &[(&str, &[&str])] = &[
    // A parser of C is a tool for the developer, not a dependency of the user.
    ("bindgen", &["xtask"]),
    // Types and constants; only the OpenCL side and the crate that joins the two sides need them.
    ("opencl-sys", &["clmgr", "interop"]),
    // CUDA is one platform's business.
    ("cudarc", &["hip-cuda"]),
    // Unsound, or blind to extensions under the usual loader.
    ("opencl3", &[]),
    ("cl3", &[]),
];

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone)]
struct Use {
    name: String,
    for_tests: bool,
    features: BTreeSet<String>,
}

/// Who depends on whom, directly.
#[derive(Debug, Default)]
pub struct Graph(BTreeMap<String, Vec<Use>>);

impl Graph {
    /// Reads the answer of `cargo metadata --no-deps`.
    pub fn of(metadata: &Value) -> Self {
        let mut graph = Self::default();
        for package in metadata["packages"].as_array().into_iter().flatten() {
            let uses = package["dependencies"].as_array();
            let uses = uses.into_iter().flatten().map(|dependency| Use {
                name: string(&dependency["name"]),
                for_tests: dependency["kind"] == "dev",
                features: dependency["features"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(string)
                    .collect(),
            });
            graph.0.insert(string(&package["name"]), uses.collect());
        }
        graph
    }
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_string()
}

fn row<'a>(table: &'a [(&str, &'a [&'a str])], name: &str) -> Option<&'a [&'a str]> {
    let found = table.iter().find(|(key, _)| *key == name);
    found.map(|(_, allowed)| *allowed)
}

/// Every arrow that points where it must not.
pub fn violations(graph: &Graph) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, uses) in &graph.0 {
        let Some(allowed) = row(MAY_USE, name) else {
            problems.push(format!("crate {name} has no layer; add it to xtask/src/tidy/arrows.rs"));
            continue;
        };
        let in_tests = row(FOR_TESTS, name).unwrap_or_default();
        for used in uses {
            let other = used.name.as_str();
            let ours = graph.0.contains_key(other);
            let permitted = allowed.contains(&other) || (used.for_tests && in_tests.contains(&other));
            if ours && !permitted {
                let when = if used.for_tests { " in its tests" } else { "" };
                problems.push(format!("{name} must not depend on {other}{when}"));
            }
            if row(RESERVED, other).is_some_and(|users| !users.contains(&name.as_str())) {
                problems.push(format!("{name} must not depend on {other}"));
            }
            if other == "opencl-sys" && used.features.contains("static") {
                problems.push(format!("{name} must not link OpenCL (opencl-sys feature `static`)"));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(uses: &[(&str, &str, Option<&str>)]) -> Graph {
        let packages: Vec<Value> = MAY_USE
            .iter()
            .map(|(name, _)| {
                let dependencies: Vec<Value> = uses
                    .iter()
                    .filter(|(user, _, _)| user == name)
                    .map(|(_, used, kind)| serde_json::json!({"name": used, "kind": kind}))
                    .collect();
                serde_json::json!({"name": name, "dependencies": dependencies})
            })
            .collect();
        Graph::of(&serde_json::json!({ "packages": packages }))
    }

    #[test]
    fn arrows_that_point_down_are_allowed() {
        let sound = graph(&[
            ("hip", "hip-sys", None),
            ("interop", "clmgr", None),
            ("interop", "hip", None),
            ("clmgr", "opencl-sys", None),
            ("hip", "platform", Some("dev")),
            ("hip", "thiserror", None),
        ]);
        assert_eq!(violations(&sound), Vec::<String>::new());
    }

    #[test]
    fn a_planted_arrow_between_the_two_sides_is_found() {
        for (user, used, kind) in [
            ("hip", "clmgr", None),
            ("clmgr", "hip", None),
            ("clmgr", "hip", Some("dev")),
            ("clmgr", "hip-sys", Some("build")),
            ("hip", "platform", None),
            ("hip-host", "hip", None),
            ("hip-sys", "hip", None),
            ("rocblas", "opencl-sys", None),
            ("hip-sys", "bindgen", Some("build")),
            ("hipcl", "opencl3", None),
            ("xtask", "clmgr", None),
        ] {
            let problems = violations(&graph(&[(user, used, kind)]));
            assert_eq!(problems.len(), 1, "{user} -> {used}: {problems:?}");
            assert!(problems[0].contains(user) && problems[0].contains(used));
        }
    }

    #[test]
    fn the_layers_themselves_allow_no_way_between_the_two_sides_or_around_in_a_circle() {
        fn reach<'a>(from: &'a str, seen: &mut BTreeSet<&'a str>) {
            for used in row(MAY_USE, from).unwrap_or_default() {
                if seen.insert(used) {
                    reach(used, seen);
                }
            }
        }
        for (name, _) in MAY_USE {
            let mut seen = BTreeSet::new();
            reach(name, &mut seen);
            assert!(!seen.contains(name), "{name} can reach itself");
            let both = seen.contains("hip") && seen.contains("clmgr");
            assert_eq!(
                both,
                ["interop", "hipcl", "interop-capi"].contains(name),
                "{name} knows both sides"
            );
        }
    }

    #[test]
    fn linking_opencl_at_build_time_is_found() {
        let metadata = serde_json::json!({"packages": [{
            "name": "clmgr",
            "dependencies": [{"name": "opencl-sys", "kind": null, "features": ["static"]}],
        }]});
        assert_eq!(violations(&Graph::of(&metadata)).len(), 1);
    }

    #[test]
    fn a_new_crate_needs_a_place() {
        let metadata = serde_json::json!({"packages": [{"name": "newcomer", "dependencies": []}]});
        assert_eq!(violations(&Graph::of(&metadata)).len(), 1);
    }
}
