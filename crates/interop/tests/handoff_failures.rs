//! Failed work is told across the border. Alone in its program: the failures are the process's.

use interop::{Bridge, Error, Grade, Options};

const HIP: &str = r#"
extern "C" __global__ void fill(unsigned int *x)
{
    x[threadIdx.x] = 7;
}"#;

/// Every kernel launch fails when the stream gets to it, until dropped.
struct Failing;

impl Failing {
    fn launches() -> Self {
        hip_host::faults::set_failures("async/hipModuleLaunchKernel:*").expect("a rule");
        Self
    }
}

impl Drop for Failing {
    fn drop(&mut self) {
        hip_host::faults::set_failures("").expect("no rule");
    }
}

#[test]
fn a_failure_of_hip_work_reaches_whoever_uses_the_buffer_next() {
    let selection = platform::select_named(Some("host")).expect("the host platform");
    let any = Bridge::open(&selection, &Options::default())
        .expect("a bridge; run `cargo xtask setup` if OpenCL is missing");
    let module = hip::rtc::Program::new(HIP)
        .name("fill.hip")
        .compile(any.hip_device())
        .expect("a kernel");
    let fill = module.function("fill").expect("fill");
    let proven = any.grades().iter().filter(|report| report.works());
    for grade in proven.map(|report| report.grade) {
        let bridge = any.with_grade(grade).expect("a proven grade");
        let (queue, stream) = (
            bridge.queue().expect("a queue"),
            bridge.stream().expect("a stream"),
        );
        let mut shared = bridge.alloc::<u32>(64).expect("memory");
        shared.upload(&[1; 64]).expect("an upload");
        let failing = Failing::launches();
        {
            let mut guard = shared.hip_mut(&stream).expect("access for HIP");
            let config = hip::LaunchConfig::linear(64, 64).expect("a grid");
            // SAFETY: `fill` takes a pointer to 64 words.
            unsafe { fill.launch(&stream, config, &[&guard.slice_mut()]) }.expect("a launch");
        }
        let granted = shared.cl(&queue).map(drop);
        let error = match grade {
            Grade::Host => granted.expect_err("the kernel failed"),
            _ => {
                granted.expect("the caller does not wait");
                // Not stuck; whether it fails too is the driver's choice.
                let _ = queue.finish();
                shared.cl(&queue).map(drop).expect_err("the kernel failed")
            }
        };
        drop(failing);
        if grade != Grade::Host {
            assert!(matches!(error, Error::HandoffFailed { .. }), "{error}");
            let text = error.to_string();
            assert!(
                text.contains("HIP stream") && text.contains("OpenCL queue"),
                "{text}"
            );
            // The stream tells its own user, too.
            stream.synchronize().expect_err("the kernel failed");
        }
        let mut words = [0; 64];
        shared
            .download(&mut words)
            .expect("access after the failure");
        assert_eq!(words, [1; 64], "{grade}");
        drop(shared);
        assert!(bridge.take_deferred_errors().is_empty());
    }
}
