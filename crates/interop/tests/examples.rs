//! The examples check themselves; here they are run.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

/// The program: `cargo test` has built it beside the tests; where one test alone was asked for, cargo builds it now.
fn program(example: &str) -> Command {
    let here = std::env::current_exe().expect("this program has a path");
    let built: Option<PathBuf> = here
        .ancestors()
        .nth(2)
        .map(|folder| folder.join("examples").join(example));
    let mut command = match built.filter(|path| path.exists()) {
        Some(path) => Command::new(path),
        None => {
            let mut cargo = Command::new(env!("CARGO"));
            cargo.args(["run", "--quiet", "--package", "hipcl-interop", "--example", example]);
            if cfg!(feature = "vulkan") {
                cargo.args(["--features", "vulkan"]);
            }
            cargo
        }
    };
    command.env("HIPCL_PLATFORM", "host");
    command
}

fn with_arguments(example: &str, arguments: &[&Path]) -> Command {
    let mut command = program(example);
    if command.get_program() == env!("CARGO") {
        command.arg("--");
    }
    command.args(arguments);
    command
}

fn output(example: &str) -> String {
    output_of(program(example))
}

fn output_of(mut program: Command) -> String {
    let output = program.output().expect("the example starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    text
}

#[test]
fn every_grade_is_right_and_tells_of_a_side_that_never_ends() {
    let proven = common::grades().len();
    let text = output("08_grades");
    assert_eq!(text.matches("100 changes of side are right").count(), proven, "{text}");
    assert_eq!(
        text.matches("a side that never ends: OpenCL queue").count(),
        proven,
        "{text}"
    );
}

/// It checks the numbers and the copies itself.
#[test]
fn a_library_that_knows_cl_mem_only_works_on_shared_memory() {
    let text = output("16_clfft");
    if text.contains("skipped") {
        common::skipped(text.trim());
    }
}

/// It checks the direction that it finds in its own file; here a file of the caller's follows, and what is no such file.
#[test]
fn the_tutorial_finds_the_tone_of_its_own_file_and_draws_that_of_another() {
    assert!(output("17_your_own_job").contains("from 20 degrees"));

    let folder = tempfile::tempdir().expect("a folder");
    let (samples, picture) = (folder.path().join("broadside.cf32"), folder.path().join("picture.svg"));
    // Four antennas hear the same alternating signal at once: it comes from 0 degrees, at half the sample rate.
    let signal = (0..4 * 64).flat_map(|i| [if i % 2 == 0 { 1.0_f32 } else { -1.0 }, 0.0]);
    std::fs::write(&samples, signal.flat_map(f32::to_le_bytes).collect::<Vec<_>>()).expect("a file");
    let text = output_of(with_arguments(
        "17_your_own_job",
        &[samples.as_path(), "4".as_ref(), &picture],
    ));
    assert!(text.contains("bin 32 of 64, from 0 degrees"), "{text}");
    let drawn = std::fs::read_to_string(&picture).expect("a picture");
    assert!(
        drawn.starts_with("<svg") && drawn.contains("<polyline points='60,"),
        "{drawn}"
    );

    let refused = with_arguments("17_your_own_job", &[samples.as_path(), "7".as_ref(), &picture]).output();
    let refused = refused.expect("the example starts");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && said.contains("not 7 channels of complex samples"),
        "{said}"
    );
}

#[test]
fn the_guide_from_manager_opencl_is_right_in_rust() {
    assert!(output("15_moving").contains("all snippets are right"));
}

#[cfg(feature = "vulkan")]
#[test]
fn vulkan_draws_what_hip_computes_or_says_why_not() {
    let text = output("12_vulkan_sine");
    match std::env::var_os("HIPCL_VULKAN") {
        Some(_) => assert!(text.contains("points lit, every one right; 0 bytes"), "{text}"),
        None => assert!(
            text.contains("every one right") || text.contains("nothing drawn: "),
            "{text}"
        ),
    }
}

#[test]
fn every_sample_from_the_socket_is_right_with_one_buffer_and_with_two() {
    let text = output("09_double_buffer");
    for slots in ["1 slots", "2 slots"] {
        assert!(text.contains(&format!("{slots}, every sample right")), "{text}");
    }
    assert_eq!(text.matches("24 blocks in").count(), 2, "{text}");
}

#[test]
fn two_processes_are_right_by_each_carrier_and_one_of_them_may_be_killed() {
    let text = output("10_ipc");
    assert_eq!(text.matches("every word right").count(), 3, "{text}");
    assert!(
        text.contains("closed the link") && text.contains("killed: the memory is as it was"),
        "{text}"
    );
}

#[test]
fn a_descriptor_shows_the_same_words_here_and_in_another_process() {
    let text = output("07_dma_buf");
    // The processor's OpenCL allocates nothing that could be exported, and the example says so.
    assert!(
        text.contains("OpenCL's memory as a dma-buf for HIP: not here: "),
        "{text}"
    );
    assert!(
        text.contains("one process, hip-pointer by dma-buf: two addresses, the same words"),
        "{text}"
    );
    assert!(text.contains("two processes, by dma-buf: every word right"), "{text}");
}

#[test]
fn opencl_and_rocblas_work_on_one_buffer_in_shared_virtual_memory() {
    let text = output("05_svm_bridge");
    assert!(
        text.contains("0 bytes of the data set were copied") && text.contains("greatest difference from the reference"),
        "{text}"
    );
}

#[test]
fn the_buffer_of_a_library_that_knows_nothing_of_hip_is_multiplied_in_place() {
    let text = output("06_foreign_cl_mem");
    assert!(
        text.contains("0 bytes of the data set were copied") && text.contains("samples of other code, by gpu-va"),
        "{text}"
    );
    assert_eq!(text.matches("greatest difference").count(), 3, "{text}");
}

#[test]
fn blocks_divided_between_gpus_are_right_with_one_and_with_two() {
    let mut program_of_two = program("11_multi_gpu");
    program_of_two.env("HIP_HOST_DEVICES", "2");
    let text = output_of(program_of_two);
    for line in [
        "GPU 0: 6 blocks right",
        "GPU 1: 6 blocks right",
        "6 blocks gathered, every word right",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let text = output("11_multi_gpu");
    assert!(
        text.contains("one GPU: ") && text.contains("GPU 0: 12 blocks right"),
        "{text}"
    );
}

#[test]
fn fft_product_and_kernel_share_a_stream() {
    let text = output("13_one_stream");
    assert!(text.contains("the covariance is right"), "{text}");
}

#[test]
fn a_job_is_one_graph() {
    let text = output("14_graph");
    assert!(text.contains("20 blocks, one call each"), "{text}");
}
