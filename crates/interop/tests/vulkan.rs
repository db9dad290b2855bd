//! Memory and order shared with Vulkan, on the hardware at hand or on a software driver.
//!
//! Without a Vulkan driver of the bridge's device the tests say so and pass; `cargo xtask setup
//! --vulkan` gets one for the host platform.

mod common;

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use ash::vk;
use interop::vulkan::{Buffer, Link, Mechanism, Objects};
use interop::{Bridge, Grade, Options, Residency, Route};

/// Of the platform that the environment names, else the host platform.
fn bridge() -> Bridge {
    let selection = match std::env::var_os("HIPCL_PLATFORM") {
        Some(_) => platform::select().expect("the platform asked for"),
        None => common::host(),
    };
    Bridge::open(&selection, &Options::default()).expect("a bridge")
}

fn skipped(reason: &str) {
    let test = std::thread::current().name().unwrap_or("vulkan").to_owned();
    println!("skipped: {reason}");
    if let Some(path) = std::env::var_os("HIPCL_SKIP_LOG") {
        let log = std::fs::OpenOptions::new().append(true).open(path);
        let line = format!("vulkan::{test}: {reason}\n");
        let _ = log.and_then(|mut log| log.write_all(line.as_bytes()));
    }
}

/// `None`, with a message, where there is no Vulkan for this bridge.
fn link(bridge: &Bridge) -> Option<Link> {
    match Link::open(bridge) {
        Ok(link) => {
            println!("{}", link.report());
            Some(link)
        }
        // Where a loader was named, there must be a driver too.
        Err(error) if error.is_impossible() && std::env::var_os("HIPCL_VULKAN").is_none() => {
            skipped(&error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Commands that live until the test ends.
struct Commands<'a> {
    link: &'a Link,
    pool: vk::CommandPool,
    raw: vk::CommandBuffer,
}

impl<'a> Commands<'a> {
    fn record(link: &'a Link, work: impl FnOnce(&ash::Device, vk::CommandBuffer)) -> Self {
        let device = link.device();
        let info = vk::CommandPoolCreateInfo::default().queue_family_index(link.queue_family());
        let begin = vk::CommandBufferBeginInfo::default();
        // SAFETY: a living device; the pool is this thread's; `work` records what lives longer.
        unsafe {
            let pool = device.create_command_pool(&info, None).expect("a pool");
            let info = vk::CommandBufferAllocateInfo::default()
                .command_pool(pool)
                .command_buffer_count(1);
            let raw = device.allocate_command_buffers(&info).expect("commands")[0];
            device.begin_command_buffer(raw, &begin).expect("begin");
            work(device, raw);
            device.end_command_buffer(raw).expect("end");
            Self { link, pool, raw }
        }
    }

    fn fill(link: &'a Link, buffer: vk::Buffer, word: u32) -> Self {
        Self::record(link, |device, raw| {
            // SAFETY: the whole of a living buffer.
            unsafe { device.cmd_fill_buffer(raw, buffer, 0, vk::WHOLE_SIZE, word) };
        })
    }

    fn copy(link: &'a Link, from: vk::Buffer, to: vk::Buffer, bytes: u64) -> Self {
        Self::record(link, |device, raw| {
            let all = [vk::BufferCopy::default().size(bytes)];
            // SAFETY: both buffers have as many bytes.
            unsafe { device.cmd_copy_buffer(raw, from, to, &all) };
        })
    }

    fn run(&self, stream: &hip::Stream, buffers: &[vk::Buffer]) -> Mechanism {
        // SAFETY: recorded, and alive until the link has finished; the tests hold guards.
        unsafe { self.link.enqueue(stream, &[self.raw], buffers) }.expect("enqueued")
    }
}

impl Drop for Commands<'_> {
    fn drop(&mut self) {
        self.link.finish().expect("Vulkan ends");
        // SAFETY: nothing of it is in use.
        unsafe { self.link.device().destroy_command_pool(self.pool, None) };
    }
}

fn none() -> vk::BufferUsageFlags {
    vk::BufferUsageFlags::empty()
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("procfs").count()
}

/// Tests that count the process' descriptors must not run beside others.
static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(|poison| poison.into_inner())
}

#[test]
fn what_vulkan_writes_both_apis_read_and_what_they_write_vulkan_reads() {
    let _alone = alone();
    let bridge = bridge();
    let Some(link) = link(&bridge) else { return };
    // Neither a power of two nor a whole number of pages.
    const LEN: usize = 100_003;
    let mut source: Buffer<u32> = link.alloc(LEN, none()).expect("memory");
    let mut target: Buffer<u32> = link.alloc(LEN, none()).expect("memory");
    assert_eq!((source.len(), source.route()), (LEN, Route::ExternalFd));
    assert_ne!(source.residency(), Residency::Managed);
    let stream = bridge.stream().expect("a stream");
    let before = bridge.meter().snapshot();

    let data: Vec<u32> = (0..LEN as u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
    source.upload(&data).expect("up");
    let copy = Commands::copy(&link, source.raw(), target.raw(), 4 * LEN as u64);
    let (a, b) = (source.raw(), target.raw());
    {
        let _read = source.hip(&stream).expect("a guard");
        let _write = target.hip_mut(&stream).expect("a guard");
        assert_eq!(copy.run(&stream, &[a, b]), link.mechanism());
    }
    let mut found = vec![0; LEN];
    target.download(&mut found).expect("down");
    assert!(found == data, "Vulkan's copy is not what was uploaded");

    let fill = Commands::fill(&link, b, 0xC0FF_EE00);
    {
        let _write = target.hip_mut(&stream).expect("a guard");
        fill.run(&stream, &[b]);
    }
    target.download(&mut found).expect("down");
    assert!(found.iter().all(|&word| word == 0xC0FF_EE00));
    assert_eq!(bridge.meter().snapshot().since(&before).data_set, 0);
    assert!(bridge.take_deferred_errors().is_empty());
}

#[test]
fn kernels_of_both_apis_and_vulkan_take_turns_in_order() {
    let _alone = alone();
    let bridge = bridge();
    let Some(link) = link(&bridge) else { return };
    const LEN: usize = 1 << 16;
    const ROUNDS: u32 = 20;
    let mut here: Buffer<u32> = link.alloc(LEN, none()).expect("memory");
    let mut there: Buffer<u32> = link.alloc(LEN, none()).expect("memory");
    here.upload(&vec![0; LEN]).expect("up");
    let (add, plus) = kernels(&bridge);
    let (queue, stream) = (bridge.queue().expect("queue"), bridge.stream().expect("stream"));
    let (a, b) = (here.raw(), there.raw());
    let bytes = 4 * LEN as u64;
    let away = Commands::copy(&link, a, b, bytes);
    let erase = Commands::fill(&link, a, 0);
    let back = Commands::copy(&link, b, a, bytes);
    for _ in 0..ROUNDS {
        // SAFETY: one buffer of LEN words, one work-item each.
        unsafe {
            let guard = here.cl_mut(&queue).expect("a guard");
            add.launch(&queue, clmgr::NdRange::d1(LEN), &[guard.arg()])
                .expect("launched");
        }
        let mut guard = here.hip_mut(&stream).expect("a guard");
        let config = hip::LaunchConfig::linear(LEN, 256).expect("a grid");
        // SAFETY: as above.
        unsafe { plus.launch(&stream, config, &[&guard.slice_mut()]) }.expect("launched");
        let _there = there.hip_mut(&stream).expect("a guard");
        away.run(&stream, &[a, b]);
        erase.run(&stream, &[a]);
        back.run(&stream, &[a, b]);
    }
    let mut found = vec![0; LEN];
    here.download(&mut found).expect("down");
    let wrong = (0..LEN as u32)
        .filter(|&i| found[i as usize] != ROUNDS * (i + 3))
        .count();
    assert_eq!(wrong, 0, "words after {ROUNDS} rounds");
    assert!(bridge.take_deferred_errors().is_empty());
}

#[test]
fn a_buffer_outlives_its_link() {
    let _alone = alone();
    let bridge = bridge();
    let Some(link) = link(&bridge) else { return };
    let mut buffer: Buffer<u32> = link.alloc(1000, none()).expect("memory");
    drop(link);
    buffer.upload(&[7; 1000]).expect("up");
    let mut found = [0; 1000];
    buffer.download(&mut found).expect("down");
    assert_eq!(found, [7; 1000]);
}

#[test]
fn nothing_is_left_open() {
    let _alone = alone();
    let bridge = bridge();
    let Some(first) = link(&bridge) else { return };
    drop(first);
    let use_one = || {
        let link = Link::open(&bridge).expect("a link");
        let stream = bridge.stream().expect("a stream");
        for _ in 0..3 {
            let mut buffer: Buffer<u32> = link.alloc(1000, none()).expect("memory");
            let raw = buffer.raw();
            let fill = Commands::fill(&link, raw, 1);
            let _guard = buffer.hip_mut(&stream).expect("a guard");
            fill.run(&stream, &[raw]);
        }
    };
    // Drivers open things once.
    use_one();
    let before = open_descriptors();
    for _ in 0..5 {
        use_one();
    }
    assert_eq!(open_descriptors(), before);
    assert!(bridge.take_deferred_errors().is_empty());
}

#[test]
fn memory_that_cannot_be_is_refused_and_leaves_nothing() {
    let _alone = alone();
    let bridge = bridge();
    let Some(link) = link(&bridge) else { return };
    let before = open_descriptors();
    assert!(matches!(link.alloc::<u32>(0, none()), Err(interop::Error::Empty)));
    let error = link
        .alloc::<u32>(1 << 60, none())
        .expect_err("four exbibytes")
        .to_string();
    assert!(
        error.contains("vkAllocateMemory") || error.contains("vkCreateBuffer"),
        "{error}"
    );
    assert_eq!(open_descriptors(), before);
}

const ADD: &str = "__kernel void add(__global uint *x) { x[get_global_id(0)] += get_global_id(0); }";
const PLUS: &str = "extern \"C\" __global__ void plus(unsigned *x) { x[blockIdx.x * blockDim.x + threadIdx.x] += 3; }";

fn kernels(bridge: &Bridge) -> (clmgr::Kernel, hip::Function) {
    let add = bridge
        .programs()
        .get(ADD, "")
        .and_then(|program| program.kernel("add"))
        .expect("an OpenCL kernel");
    let plus = hip::rtc::Program::new(PLUS)
        .compile(bridge.hip_device())
        .and_then(|module| module.function("plus"))
        .expect("a HIP kernel");
    (add, plus)
}

/// `None`, checked for its reason, where the drivers share no semaphores.
fn by_semaphores(bridge: &Bridge, link: &Arc<Link>, limit: Option<Duration>) -> Option<Bridge> {
    match bridge.with_semaphores(link, limit) {
        Ok(bridge) => {
            let found = bridge.grades();
            let found = found.iter().find(|report| report.grade == Grade::Device);
            println!("{:?}", found.map(|report| &report.outcome));
            Some(bridge)
        }
        Err(interop::Error::NoGrade { grade, reason }) => {
            assert_eq!(grade, Grade::Device);
            // On hardware that is known to share them, the reason would be a fault.
            assert!(
                link.mechanism() == Mechanism::Host && reason.contains("semaphore"),
                "{reason}"
            );
            skipped(&reason);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn opencl_and_hip_hand_over_by_semaphores_of_vulkans() {
    let _alone = alone();
    let bridge = bridge();
    let Some(link) = link(&bridge).map(Arc::new) else {
        return;
    };
    let Some(bridge) = by_semaphores(&bridge, &link, None) else {
        return;
    };
    let by_host = link.bridge().with_grade(Grade::Host).expect("proven");
    for _ in 0..2 {
        println!("semaphores: {:?} a round", rounds(&bridge, Grade::Device));
        println!("host: {:?} a round", rounds(&by_host, Grade::Host));
    }
}

/// Both sides work on three buffers in turns, one queue on one stream: it hands over again before the
/// first wait is done. The time of a round, every word of which was checked.
fn rounds(bridge: &Bridge, grade: Grade) -> Duration {
    const LEN: usize = 1 << 20;
    const ROUNDS: u32 = 50;
    let (add, plus) = kernels(bridge);
    let (queue, stream) = (bridge.queue().expect("queue"), bridge.stream().expect("stream"));
    let mut buffers: Vec<_> = (0..3).map(|_| bridge.alloc::<u32>(LEN).expect("memory")).collect();
    for buffer in &mut buffers {
        buffer.upload(&vec![0; LEN]).expect("up");
        assert_eq!(buffer.grade(), grade);
    }
    let start = std::time::Instant::now();
    for _ in 0..ROUNDS {
        for buffer in &mut buffers {
            // SAFETY: one buffer of LEN words, one work-item each.
            unsafe {
                let guard = buffer.cl_mut(&queue).expect("a guard");
                let range = clmgr::NdRange::d1(LEN);
                add.launch(&queue, range, &[guard.arg()]).expect("launched");
            }
        }
        for buffer in &mut buffers {
            let mut guard = buffer.hip_mut(&stream).expect("a guard");
            let config = hip::LaunchConfig::linear(LEN, 256).expect("a grid");
            // SAFETY: as above.
            unsafe { plus.launch(&stream, config, &[&guard.slice_mut()]) }.expect("launched");
        }
    }
    stream.synchronize().expect("the last kernels end");
    let time = start.elapsed() / ROUNDS;
    let mut found = vec![0; LEN];
    for buffer in &buffers {
        buffer.download(&mut found).expect("down");
        let wrong = (0..LEN as u32)
            .filter(|&i| found[i as usize] != ROUNDS * (i + 3))
            .count();
        assert_eq!(wrong, 0, "words after {ROUNDS} rounds");
    }
    assert!(bridge.take_deferred_errors().is_empty());
    time
}

#[test]
fn a_side_that_never_ends_is_stood_in_for() {
    stands_in(false);
}

#[test]
fn a_side_that_never_ends_is_stood_in_for_while_vulkans_queue_is_held() {
    stands_in(true);
}

fn stands_in(is_vulkan_held: bool) {
    let _alone = alone();
    let bridge = bridge();
    let Some(link) = link(&bridge).map(Arc::new) else {
        return;
    };
    let limit = Duration::from_millis(500);
    let Some(bridge) = by_semaphores(&bridge, &link, Some(limit)) else {
        return;
    };
    let (queue, stream) = (bridge.queue().expect("queue"), bridge.stream().expect("stream"));
    let other = bridge.stream().expect("stream");
    let held = Held::new(link.device());
    let waits = Commands::record(&link, |device, raw| held.record(device, raw));
    if is_vulkan_held {
        waits.run(&other, &[]);
    }
    // Dropped first, so that the queue ends.
    let held = held.opening();
    let mut buffer = bridge.alloc::<u32>(1024).expect("memory");
    buffer.upload(&[0; 1024]).expect("up");
    let gate = bridge.hip_device().flag::<u64>().expect("a flag");
    stream.wait_flag(&gate, hip::Condition::AtLeast(1)).expect("held");
    drop(buffer.hip_mut(&stream).expect("a guard"));
    drop(buffer.cl_mut(&queue).expect("granted at once"));
    queue.finish().expect("the queue is let go");
    let late = buffer.cl(&queue).expect_err("told").to_string();
    assert!(late.contains("did not hand over"), "{late}");
    gate.store(1);
    stream.synchronize().expect("the stream ends");
    drop(buffer.cl_mut(&queue).expect("in order again"));
    drop(held);
}

/// Commands that wait until they are let go.
struct Held {
    device: ash::Device,
    event: vk::Event,
}

impl Held {
    fn new(device: &ash::Device) -> Self {
        let info = vk::EventCreateInfo::default();
        Self {
            device: device.clone(),
            // SAFETY: a living device. The event is as small as it is leaked.
            event: unsafe { device.create_event(&info, None) }.expect("an event"),
        }
    }

    fn record(&self, device: &ash::Device, raw: vk::CommandBuffer) {
        let (host, all) = (vk::PipelineStageFlags::HOST, vk::PipelineStageFlags::ALL_COMMANDS);
        // SAFETY: an event of the device that the host sets; commands that record.
        unsafe { device.cmd_wait_events(raw, &[self.event], host, all, &[], &[], &[]) };
    }

    /// Lets the commands go when it is dropped.
    fn opening(self) -> Opening {
        Opening(self)
    }
}

struct Opening(Held);

impl Drop for Opening {
    fn drop(&mut self) {
        // SAFETY: an event of a living device.
        unsafe { self.0.device.set_event(self.0.event) }.expect("set");
    }
}

/// A device as other code has it, and its end.
struct Theirs {
    instance: ash::Instance,
    device: Option<ash::Device>,
    // The loader goes last.
    _entry: ash::Entry,
}

impl Drop for Theirs {
    fn drop(&mut self) {
        // SAFETY: created below, and nothing uses either any more: the link and its buffers have let go.
        unsafe {
            if let Some(device) = &self.device {
                device.device_wait_idle().expect("idle");
                device.destroy_device(None);
            }
            self.instance.destroy_instance(None);
        }
    }
}

/// Objects of other code on the hardware of `link`, and whether their owner lives.
fn theirs(link: &Link) -> (Objects, Weak<Theirs>) {
    let extensions = [
        ash::khr::external_memory_fd::NAME.as_ptr(),
        ash::khr::external_semaphore_fd::NAME.as_ptr(),
    ];
    let has_semaphores = link.report().semaphores.is_ok();
    let extensions = &extensions[..1 + usize::from(has_semaphores)];
    // SAFETY: filled descriptions, a loader, and objects of its own.
    unsafe {
        let entry = match std::env::var_os("HIPCL_VULKAN") {
            Some(path) => ash::Entry::load_from(path),
            None => ash::Entry::load(),
        }
        .expect("the loader that the link has");
        let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_1);
        let info = vk::InstanceCreateInfo::default().application_info(&application);
        let instance = entry.create_instance(&info, None).expect("an instance");
        let mut theirs = Theirs {
            instance: instance.clone(),
            device: None,
            _entry: entry,
        };
        let all = instance.enumerate_physical_devices().expect("devices");
        let is_the_links = |physical: &vk::PhysicalDevice| {
            let mut ids = vk::PhysicalDeviceIDProperties::default();
            let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut ids);
            instance.get_physical_device_properties2(*physical, &mut properties);
            ids.device_uuid == link.report().device.uuid
        };
        let physical = all.into_iter().find(is_the_links).expect("the hardware");
        let queue_family = link.queue_family();
        let families = instance.get_physical_device_queue_family_properties(physical);
        let count = families[queue_family as usize].queue_count.min(2);
        let priorities = &[1.0, 1.0][..count as usize];
        let queues = [vk::DeviceQueueCreateInfo::default()
            .queue_family_index(queue_family)
            .queue_priorities(priorities)];
        let info = vk::DeviceCreateInfo::default()
            .queue_create_infos(&queues)
            .enabled_extension_names(extensions);
        let device = instance.create_device(physical, &info, None).expect("one");
        theirs.device = Some(device.clone());
        let owner = Arc::new(theirs);
        let lives = Arc::downgrade(&owner);
        let objects = Objects {
            instance,
            physical_device: physical,
            queue: device.get_device_queue(queue_family, 0),
            rescue: (count > 1).then(|| device.get_device_queue(queue_family, 1)),
            device,
            queue_family,
            has_semaphores,
            owner,
        };
        (objects, lives)
    }
}

#[test]
fn objects_of_other_code_are_used_and_live_as_long_as_the_last_buffer() {
    let _alone = alone();
    let bridge = bridge();
    let Some(own) = link(&bridge) else { return };
    let (objects, lives) = theirs(&own);
    let (queue_family, device) = (objects.queue_family, objects.device.handle());
    // SAFETY: the objects belong together, their owner is kept, and nothing else uses the queue.
    let link = unsafe { Link::adopt(&bridge, objects) }.expect("adopted");
    assert_eq!(link.queue_family(), queue_family);
    assert_eq!(link.device().handle(), device);
    assert_eq!(link.mechanism(), own.mechanism());
    let mut buffer: Buffer<u32> = link.alloc(1000, none()).expect("memory");
    buffer.upload(&[3; 1000]).expect("up");
    let stream = bridge.stream().expect("a stream");
    let fill = Commands::fill(&link, buffer.raw(), 0xBEEF);
    {
        let raw = buffer.raw();
        let _write = buffer.hip_mut(&stream).expect("a guard");
        fill.run(&stream, &[raw]);
    }
    let mut found = [0; 1000];
    buffer.download(&mut found).expect("down");
    assert_eq!(found, [0xBEEF; 1000]);
    drop(fill);
    drop(link);
    assert!(lives.upgrade().is_some(), "the buffer is in their memory");
    drop(buffer);
    assert!(lives.upgrade().is_none(), "nothing of it is left");
    assert!(bridge.take_deferred_errors().is_empty());
}

type Free = (vk::PFN_vkFreeMemory, vk::PFN_vkDestroyBuffer);
static FREE: OnceLock<Free> = OnceLock::new();
static FREED: AtomicUsize = AtomicUsize::new(0);

type Allocator<'a> = *const vk::AllocationCallbacks<'a>;

unsafe extern "system" fn free_memory(device: vk::Device, memory: vk::DeviceMemory, allocator: Allocator<'_>) {
    FREED.fetch_add(1, Ordering::Relaxed);
    let (free, _) = FREE.get().expect("set");
    // SAFETY: as called.
    unsafe { free(device, memory, allocator) };
}

unsafe extern "system" fn destroy_buffer(device: vk::Device, buffer: vk::Buffer, allocator: Allocator<'_>) {
    FREED.fetch_add(1, Ordering::Relaxed);
    let (_, destroy) = FREE.get().expect("set");
    // SAFETY: as called.
    unsafe { destroy(device, buffer, allocator) };
}

#[test]
fn memory_that_a_held_queue_will_use_is_not_freed() {
    let _alone = alone();
    let bridge = bridge();
    let Some(own) = link(&bridge) else { return };
    let (mut objects, lives) = theirs(&own);
    let device = objects.device.clone();
    let mut functions = device.fp_v1_0().clone();
    FREE.get_or_init(|| (functions.free_memory, functions.destroy_buffer));
    (functions.free_memory, functions.destroy_buffer) = (free_memory, destroy_buffer);
    objects.device = ash::Device::from_parts_1_3(
        device.handle(),
        functions,
        device.fp_v1_1().clone(),
        device.fp_v1_2().clone(),
        device.fp_v1_3().clone(),
    );
    let held = Held::new(&device);
    let queue = objects.queue;
    // SAFETY: living objects; the queue is not yet the link's; the pool is leaked with the device.
    unsafe {
        let info = vk::CommandPoolCreateInfo::default().queue_family_index(objects.queue_family);
        let pool = device.create_command_pool(&info, None).expect("a pool");
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(pool)
            .command_buffer_count(1);
        let commands = device.allocate_command_buffers(&info).expect("commands");
        let begin = vk::CommandBufferBeginInfo::default();
        device.begin_command_buffer(commands[0], &begin).expect("begin");
        held.record(&device, commands[0]);
        device.end_command_buffer(commands[0]).expect("end");
        let submit = vk::SubmitInfo::default().command_buffers(&commands);
        let none = vk::Fence::null();
        device.queue_submit(queue, &[submit], none).expect("held");
    }
    let held = held.opening();
    // SAFETY: the objects belong together, their owner is kept, and nothing else uses the queue.
    let error = unsafe { Link::adopt(&bridge, objects) }.expect_err("the proof does not end");
    assert!(error.to_string().contains("did not finish within"), "{error}");
    assert_eq!(FREED.load(Ordering::Relaxed), 0);
    assert_eq!(bridge.take_deferred_errors().len(), 1);
    // What was given to the queue runs now.
    drop(held);
    let lives = lives.upgrade().expect("kept with the memory");
    // SAFETY: the link is gone.
    unsafe { device.device_wait_idle() }.expect("idle");
    drop(lives);
}
