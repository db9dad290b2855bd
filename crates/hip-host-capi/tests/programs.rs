//! The C interface, tried by C programs that `g++` compiles against ROCm's real headers and links with
//! `libhip_host.so`.
//!
//! The headers are those that `cargo xtask codegen` unpacks; without them, and without valgrind for the second round,
//! the tests are skipped and say so.

mod toolchain;

use toolchain::{Program, Run};

/// One test for each program and tool.
macro_rules! programs {
    ($($plain:ident $checked:ident: $source:literal $(, $variable:literal = $value:literal)*;)*) => {$(
        #[test]
        fn $plain() {
            Program::new($source).run(stringify!($plain), Run::Plain, &[$(($variable, $value)),*]);
        }

        #[test]
        fn $checked() {
            Program::new($source).run(stringify!($checked), Run::Valgrind, &[$(($variable, $value)),*]);
        }
    )*};
}

programs! {
    the_program_of_the_readme_runs the_program_of_the_readme_passes_valgrind:
        "readme.cpp";
    versions_errors_and_devices_read_as_declared versions_errors_and_devices_pass_valgrind:
        "device.cpp", "HIP_HOST_DEVICES" = "2";
    several_devices_work_together several_devices_pass_valgrind:
        "peer.cpp", "HIP_HOST_DEVICES" = "2";
    rows_and_slices_copy_and_fill rows_and_slices_pass_valgrind:
        "pitched.cpp";
    memory_in_stream_order_and_managed memory_in_stream_order_passes_valgrind:
        "pool.cpp";
    addresses_and_memory_are_put_together addresses_and_memory_pass_valgrind:
        "virtual.cpp";
    descriptors_become_device_memory descriptors_pass_valgrind:
        "external.cpp";
    processes_share_memory_and_events processes_pass_valgrind:
        "ipc.cpp";
    streams_wait_for_words_and_write_them words_pass_valgrind:
        "value.cpp";
    graphs_are_made_captured_and_launched graphs_pass_valgrind:
        "graph.cpp";
    occupancy_names_and_pointers_are_told queries_pass_valgrind:
        "query.cpp";
    blocks_of_a_cooperative_launch_wait_for_each_other cooperative_launches_pass_valgrind:
        "cooperative.cpp";
    hsa_knows_agents_addresses_and_descriptors hsa_passes_valgrind:
        "hsa.cpp", "HIP_HOST_DEVICES" = "2", "HIP_HOST_ARCHITECTURE" = "gfx908:sramecc+:xnack-";
    rocsolver_tells_by_info_what_it_could_not_do rocsolver_passes_valgrind:
        "solver.cpp";
    rocblas_levels_batches_and_transfers_agree rocblas_levels_pass_valgrind:
        "levels.cpp";
    queued_forms_do_what_the_waiting_ones_do queued_forms_pass_valgrind:
        "queued.cpp";
    rocblas_and_rocsolver_are_in_the_same_library rocblas_and_rocsolver_pass_valgrind:
        "blas.cpp";
    what_is_not_built_says_so_and_nothing_else_happens what_is_not_built_passes_valgrind:
        "not_built.cpp";
    device_code_for_amd_is_registered_and_never_runs device_code_for_amd_passes_valgrind:
        "binary.cpp";
    memory_of_every_kind_keeps_its_rules memory_of_every_kind_passes_valgrind:
        "memory.cpp";
    streams_and_events_order_work streams_and_events_pass_valgrind:
        "stream.cpp";
    kernels_compile_load_and_run kernels_pass_valgrind:
        "kernel.cpp";
}
