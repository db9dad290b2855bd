//! The OpenCL probe kernels on small data of exactly their size, for devices that check each access,
//! as `cargo xtask oclgrind` has.

use clmgr::{Arg, Context, Kernel, Manager, NdRange, Program, Queue, RegularBuffer};

const SOURCE: &str = include_str!("../kernels/probe.cl");
const WORDS: usize = 100;
const SEED: u32 = 0x5EED;

struct Rig {
    context: Context,
    queue: Queue,
    program: Program,
}

impl Rig {
    fn open() -> Self {
        let manager = Manager::load().unwrap_or_else(|error| panic!("{error}"));
        let context = Context::new(&manager.devices()[0]).unwrap();
        Self {
            queue: context.queue().unwrap(),
            program: Program::build(&context, SOURCE, "").unwrap(),
            context,
        }
    }

    fn kernel(&self, name: &str) -> Kernel {
        self.program.kernel(name).unwrap()
    }

    fn buffer(&self, data: &[u32]) -> RegularBuffer<u32> {
        let mut buffer = RegularBuffer::new(&self.context, data.len()).unwrap();
        buffer.write(&self.queue, data).unwrap();
        buffer
    }

    fn read(&self, buffer: &RegularBuffer<u32>) -> Vec<u32> {
        let mut data = vec![0; buffer.len()];
        buffer.read(&self.queue, &mut data).unwrap();
        data
    }

    /// The number of words that differ from the pattern.
    fn mismatches(&self, words: &RegularBuffer<u32>, seed: u32) -> u32 {
        let count = self.buffer(&[0]);
        let args = [words.arg(), Arg::scalar(&seed), count.arg()];
        // SAFETY: the kernel reads a word per work-item and counts in the one word of `count`.
        unsafe {
            self.kernel("probe_check")
                .launch(&self.queue, NdRange::d1(words.len()), &args)
        }
        .unwrap();
        self.read(&count)[0]
    }
}

#[test]
fn a_filled_buffer_has_the_pattern_and_every_altered_word_is_counted() {
    let rig = Rig::open();
    let mut words = rig.buffer(&[0; WORDS]);
    let args = [words.arg(), Arg::scalar(&SEED)];
    // SAFETY: the kernel writes a word per work-item.
    unsafe { rig.kernel("probe_fill").launch(&rig.queue, NdRange::d1(WORDS), &args) }.unwrap();
    assert_eq!(rig.mismatches(&words, SEED), 0);
    assert!(rig.mismatches(&words, SEED + 1) > 0);
    let mut data = rig.read(&words);
    for place in [0, 50, WORDS - 1] {
        data[place] ^= 1;
    }
    words.write(&rig.queue, &data).unwrap();
    assert_eq!(rig.mismatches(&words, SEED), 3);
}

#[test]
fn a_copy_has_the_bytes_of_its_source_and_the_empty_kernel_changes_none() {
    let rig = Rig::open();
    let data: Vec<u32> = (0..WORDS as u32).collect();
    let (from, to) = (rig.buffer(&data), rig.buffer(&[0; WORDS]));
    let (copy, nothing) = (rig.kernel("probe_copy"), rig.kernel("probe_nothing"));
    let copied = [from.arg(), to.arg()];
    // SAFETY: the first kernel copies four words per work-item, the second touches nothing.
    unsafe {
        copy.launch(&rig.queue, NdRange::d1(WORDS / 4), &copied).unwrap();
        nothing.launch(&rig.queue, NdRange::d1(WORDS), &[to.arg()]).unwrap();
    }
    assert_eq!(rig.read(&to), data);
}

#[test]
fn both_kernels_tell_one_address_and_leave_the_memory_alone() {
    let rig = Rig::open();
    let program = Program::build(&rig.context, include_str!("../kernels/reveal.cl"), "").unwrap();
    let data: Vec<u32> = (0..WORDS as u32).collect();
    let memory = rig.buffer(&data);
    let told = |name| {
        let mut address = [0];
        let answer = RegularBuffer::<u64>::new(&rig.context, 1).unwrap();
        let args = [memory.arg(), answer.arg()];
        let kernel = program.kernel(name).unwrap();
        // SAFETY: the kernel writes the one number of `answer`.
        unsafe { kernel.launch(&rig.queue, NdRange::d1(1), &args) }.unwrap();
        answer.read(&rig.queue, &mut address).unwrap();
        address[0]
    };
    let address = told("reveal");
    assert_ne!(address, 0);
    assert_eq!(told("reveal_written"), address);
    assert_eq!(rig.read(&memory), data);
}
