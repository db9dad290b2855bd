//! HIP's headers made again from AMD's bindings for Python, for releases of which no distribution has the real ones.

use std::fs;
use std::path::{Path, PathBuf};

use xshell::{Shell, cmd};

use super::Result;
use super::pxd::{self, Measured};
use super::releases::Package;

/// Reads what the compiled bindings know. It runs in Python.
const MEASURE: &str = include_str!("measure.py");

/// AMD's declarations in the wheel, the header that each becomes, and the one that it builds on.
const HEADERS: [(&str, &str, Option<&str>); 2] = [
    ("cyhip.pxd", "hip/hip_runtime_api.h", None),
    ("cyhiprtc.pxd", "hip/hiprtc.h", Some("hip/hip_runtime_api.h")),
];

/// Fetches the wheels for this machine's Python, unless they are here already, and writes the headers of HIP `hip` into
/// `include`.
pub fn unpack(shell: &Shell, work: &Path, packages: &[&Package], hip: &str, include: &Path) -> Result<()> {
    let unpacked = fetch(shell, work, packages)?;
    let script = work.join("measure.py");
    fs::write(&script, MEASURE)?;
    // Isolated: nothing of the user's own Python is imported.
    let text = cmd!(shell, "python3 -I {script} {unpacked}")
        .quiet()
        .read()
        .map_err(|error| format!("cannot read the numbers of AMD's bindings: {error}"))?;
    let measured = Measured::parse(&text)?;
    let number = |part: &str| measured.value(&format!("HIP_VERSION_{part}"));
    let found = format!("{}.{}", number("MAJOR")?, number("MINOR")?);
    if found != hip {
        return Err(format!("the bindings belong to HIP {found}, not to {hip}").into());
    }
    for (source, header, build_on) in HEADERS {
        let path = unpacked.join("rocm/bindings").join(source);
        let source = fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let target = include.join(header);
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(target, pxd::header(&source, &measured, build_on)?)?;
    }
    Ok(())
}

/// The folder with the unpacked wheels. pip chooses the file for its own Python and compares it with the pinned
/// digests.
fn fetch(shell: &Shell, work: &Path, packages: &[&Package]) -> Result<PathBuf> {
    // Wheels of another version must not be unpacked too.
    let version = packages.first().map_or("", |package| package.version);
    let wheels = work.join("wheels").join(version);
    fs::create_dir_all(&wheels)?;
    let mut requirements = String::new();
    for Package { name, version, sha256 } in packages {
        requirements += &format!("{name}=={version}");
        for digest in *sha256 {
            requirements += &format!(" --hash=sha256:{digest}");
        }
        requirements.push('\n');
    }
    let list = wheels.join("requirements.txt");
    fs::write(&list, requirements)?;
    let download = |index: &[&str]| {
        cmd!(
            shell,
            "python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes
             {index...} --find-links {wheels} --dest {wheels} --requirement {list}"
        )
        .quiet()
    };
    // What is here with a pinned digest needs no network.
    let here = download(&["--no-index"]).ignore_stdout().ignore_stderr();
    if here.run().is_err() {
        let names: Vec<&str> = packages.iter().map(|package| package.name).collect();
        println!("codegen: fetching {}", names.join(" and "));
        download(&[])
            .run()
            .map_err(|_| format!("pip cannot download the pinned {}", names.join(" and ")))?;
    }
    let unpacked = wheels.join("unpacked");
    if unpacked.exists() {
        fs::remove_dir_all(&unpacked)?;
    }
    for entry in fs::read_dir(&wheels)? {
        let file = entry?.path();
        if file.extension().is_some_and(|extension| extension == "whl") {
            cmd!(shell, "python3 -m zipfile -e {file} {unpacked}").quiet().run()?;
        }
    }
    Ok(unpacked)
}
