//! The archive as its user sees it: unpacked somewhere, with a C++ compiler, and CMake where there is one.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::error::{Error, Result};
use crate::setup::remove_folder;
use crate::workspace::Workspace;

/// What every example prints if it is right.
const RIGHT: &str = "copies of the data set 0 bytes";

/// Unpacks the archive, builds its examples, and runs them on the software device.
pub fn run(workspace: &Workspace, archive: &Path, name: &str) -> Result<()> {
    // Below the folder that holds the OpenCL runtime, where programs find it.
    let folder = workspace.target().join("dist-trial");
    remove_folder(&folder).map_err(|error| Error::io(folder.display(), error))?;
    let build = folder.join("build");
    fs::create_dir_all(&build).map_err(|error| Error::io(build.display(), error))?;
    success(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(&folder))?;
    // Not where it was packed, nor by its first name: nothing may depend on either.
    let prefix = folder.join("moved");
    fs::rename(folder.join(name), &prefix).map_err(|error| Error::io(prefix.display(), error))?;

    let flags = flags(&prefix)?;
    let examples = prefix.join("share/hipcl/examples");
    for (compiler, standard, source) in [
        ("gcc", "-std=c11", "c/covariance.c"),
        ("g++", "-std=c++17", "cpp/covariance.cpp"),
    ] {
        let program = build.join(source.replace('/', "-"));
        success(
            Command::new(compiler)
                .args([standard, "-Wall", "-Wextra", "-pedantic", "-Werror"])
                .arg(examples.join(source))
                .args(&flags)
                .arg(format!("-Wl,-rpath,{}", prefix.join("lib").display()))
                .arg("-lm")
                .arg("-o")
                .arg(&program),
        )?;
        right(&program)?;
        println!("{source}: built with {compiler} by the flags of hipcl.pc, and right");
    }
    with_cmake(&prefix, &examples, &build)?;

    let version = output(Command::new(prefix.join("bin/hipcl")).arg("--version"))?;
    let page = prefix.join("share/man/man1/hipcl.1");
    let page = fs::read_to_string(&page).map_err(|error| Error::io(page.display(), error))?;
    if !page.contains("doctor") {
        return Err(Error::Failed("the manual's page does not name `doctor`".into()));
    }
    println!("bin/hipcl: {}", version.trim());
    remove_folder(&folder).map_err(|error| Error::io(folder.display(), error))
}

/// What pkg-config says; where there is none, what it would.
fn flags(prefix: &Path) -> Result<Vec<String>> {
    let folder = prefix.join("lib/pkgconfig");
    let asked = Command::new("pkg-config")
        .args(["--cflags", "--libs", "hipcl"])
        .env("PKG_CONFIG_PATH", &folder)
        .output();
    let text = match asked {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
        Ok(output) => return Err(Error::Failed(String::from_utf8_lossy(&output.stderr).into_owned())),
        Err(_) => {
            println!("no pkg-config: its flags are read from hipcl.pc");
            let file = folder.join("hipcl.pc");
            let text = fs::read_to_string(&file).map_err(|error| Error::io(file.display(), error))?;
            expanded(&text, &folder)
        }
    };
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

/// The flags of a file for pkg-config that lies in this folder.
fn expanded(text: &str, folder: &Path) -> String {
    let mut variables = vec![("pcfiledir".to_owned(), folder.display().to_string())];
    let mut flags = Vec::new();
    for line in text.lines() {
        let replace = |value: &str| {
            let replaced = variables.iter().rev();
            replaced.fold(value.to_owned(), |value, (name, by)| {
                value.replace(&format!("${{{name}}}"), by)
            })
        };
        if let Some(value) = ["Cflags: ", "Libs: "].iter().find_map(|key| line.strip_prefix(key)) {
            flags.push(replace(value));
        } else if let Some((name, value)) = line.split_once('=').filter(|(name, _)| !name.contains([' ', ':', '#'])) {
            let value = replace(value);
            variables.push((name.to_owned(), value));
        }
    }
    flags.join(" ")
}

/// All examples with CMake, and versions that do not go with this one.
fn with_cmake(prefix: &Path, examples: &Path, build: &Path) -> Result<()> {
    if Command::new("cmake").arg("--version").output().is_err() {
        println!("not tried: CMake, which is not installed");
        return Ok(());
    }
    let folder = build.join("cmake");
    let configure = || {
        let mut command = Command::new("cmake");
        command
            .arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display()))
            .arg("-S");
        command
    };
    success(configure().arg(examples).arg("-B").arg(&folder))?;
    success(Command::new("cmake").arg("--build").arg(&folder))?;
    for program in ["covariance-c", "covariance-cpp", "covariance-static"] {
        right(&folder.join(program))?;
        println!("{program}: built with CMake, and right");
    }
    for (version, is_found) in [
        ("0.1", true),
        ("0.1.0", true),
        ("0.1.99", false),
        ("0.0", false),
        ("1.0", false),
    ] {
        let project = build.join(format!("version-{version}"));
        fs::create_dir_all(&project).map_err(|error| Error::io(project.display(), error))?;
        let text = format!(
            "cmake_minimum_required(VERSION 3.13)\nproject(version C)\nfind_package(hipcl {version} REQUIRED)\n"
        );
        let file = project.join("CMakeLists.txt");
        fs::write(&file, text).map_err(|error| Error::io(file.display(), error))?;
        let output = configure().arg(&project).arg("-B").arg(project.join("build")).output();
        let output = output.map_err(|error| Error::io("cmake", error))?;
        if output.status.success() != is_found {
            return Err(Error::Failed(format!(
                "find_package(hipcl {version}) must {}: {}",
                if is_found { "succeed" } else { "fail" },
                String::from_utf8_lossy(&output.stderr)
            )));
        }
    }
    Ok(())
}

/// Runs an example, which checks itself.
fn right(program: &Path) -> Result<()> {
    let text = output(Command::new(program).env("HIPCL_PLATFORM", "host"))?;
    match text.contains(RIGHT) {
        true => Ok(()),
        false => Err(Error::Failed(format!(
            "{}: not `{RIGHT}` but {text}",
            program.display()
        ))),
    }
}

fn success(command: &mut Command) -> Result<()> {
    output(command).map(|_| ())
}

/// What a command that succeeds prints.
fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| Error::Missing(format!("cannot start {name}: {error}; install it")))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.success() {
        true => Ok(text),
        false => Err(Error::Failed(format!(
            "{name} ended with {}: {text}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_are_those_of_pkg_config() {
        let workspace = Workspace::discover().unwrap();
        let text = fs::read_to_string(workspace.root().join("crates/interop-capi/package/hipcl.pc")).unwrap();
        let flags = expanded(&text, Path::new("/p/lib/pkgconfig"));
        assert_eq!(
            flags,
            "-I/p/lib/pkgconfig/../../include -L/p/lib/pkgconfig/../../lib -lhipcl"
        );
    }
}
