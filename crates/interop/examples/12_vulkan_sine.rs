//! HIP computes three sine waves in memory that Vulkan allocated, and Vulkan draws them off-screen.
//!
//! One curve's memory serves all three waves: HIP may write the next only when Vulkan has drawn the
//! one before. Semaphores see to that where HIP takes them, else the host does. A compute shader
//! draws, so that devices without graphics can do it too. The picture is compared with one that the
//! processor draws.
//!
//! `cargo run -p hipcl-interop --features vulkan --example 12_vulkan_sine [PICTURE.png]`

use std::error::Error;
use std::io::Cursor;

use ash::vk;
use interop::vulkan::{Buffer, Link};
use interop::{Bridge, Options};

/// As in `draw.wgsl`.
const WIDTH: usize = 1024;
const HEIGHT: usize = 512;
/// Red, green, blue: the phases in radians.
const PHASES: [f32; 3] = [0.0, 2.094_395, 4.188_79];
const PERIOD: f32 = 400.0;

fn main() -> Result<(), Box<dyn Error>> {
    let bridge = Bridge::open(&platform::select()?, &Options::default())?;
    let link = match Link::open(&bridge) {
        Ok(link) => link,
        Err(reason) if reason.is_impossible() => {
            println!("nothing drawn: {reason}");
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    println!("{} and {}", bridge.report().hip_device, link.report());

    let storage = vk::BufferUsageFlags::STORAGE_BUFFER;
    let mut curve: Buffer<f32> = link.alloc(WIDTH + 2, storage)?;
    let mut pixels: Buffer<u32> = link.alloc(WIDTH * HEIGHT, storage)?;
    let black = [0xFF00_0000; 1];
    pixels.upload(&black.repeat(WIDTH * HEIGHT))?;
    let sine = hip::rtc::Program::new(include_str!("../kernels/sine.hip"))
        .name("sine.hip")
        .compile(bridge.hip_device())?
        .function("sine")?;
    let drawing = Drawing::new(&link, &curve, &pixels)?;
    let stream = bridge.stream()?;
    let (from, to) = (curve.raw(), pixels.raw());
    let before = bridge.meter().snapshot();
    {
        let mut curve = curve.hip_mut(&stream)?;
        let _pixels = pixels.hip_mut(&stream)?;
        let config = hip::LaunchConfig::linear(WIDTH + 2, 256)?;
        for (wave, phase) in PHASES.into_iter().enumerate() {
            let (count, wave) = (WIDTH as u32 + 1, wave as f32);
            let slice = curve.slice_mut();
            // SAFETY: the kernel takes a pointer to count + 1 floats, the count and three floats.
            unsafe { sine.launch(&stream, config, &[&slice, &count, &PERIOD, &phase, &wave]) }?;
            // SAFETY: recorded once, submitted one after the other; the commands use these two
            // buffers, for which there are guards, and live until the stream was waited for.
            unsafe { link.enqueue(&stream, &[drawing.commands], &[from, to]) }?;
        }
    }
    stream.synchronize()?;
    link.finish()?;
    let copied = bridge.meter().snapshot().since(&before).data_set;

    let mut picture = vec![0; WIDTH * HEIGHT];
    pixels.download(&mut picture)?;
    let lit = check(&picture)?;
    println!(
        "3 waves drawn in order by {}, {lit} points lit, every one right; {copied} bytes copied in between",
        link.mechanism()
    );
    if copied != 0 {
        return Err("the waves were copied".into());
    }
    if let Some(path) = std::env::args_os().nth(1) {
        let mut png = png::Encoder::new(std::fs::File::create(&path)?, WIDTH as u32, HEIGHT as u32);
        png.set_color(png::ColorType::Rgba);
        png.write_header()?.write_image_data(bytemuck::cast_slice(&picture))?;
        println!("{}", path.display());
    }
    Ok(())
}

/// Every point that is not on the very edge of a line, against the processor's sine. The number that
/// is lit.
fn check(picture: &[u32]) -> Result<usize, Box<dyn Error>> {
    let row = |wave: usize, edge: usize| {
        let turns = edge as f64 / f64::from(PERIOD);
        let height = (std::f64::consts::TAU * turns + f64::from(PHASES[wave])).sin();
        (0.5 - 0.45 * height) * HEIGHT as f64
    };
    for (place, &found) in picture.iter().enumerate() {
        let (x, middle) = (place % WIDTH, (place / WIDTH) as f64 + 0.5);
        for wave in 0..3 {
            let (left, right) = (row(wave, x), row(wave, x + 1));
            let inside = (middle - (left.min(right) - 2.0)).min(left.max(right) + 2.0 - middle);
            let lit = match found >> (8 * wave) & 0xFF {
                0xFF => true,
                0 => false,
                other => return Err(format!("channel {wave} at {place} is {other}").into()),
            };
            // Single precision moves a line by less than that.
            if inside.abs() > 0.02 && lit != (inside > 0.0) {
                let y = place / WIDTH;
                return Err(format!("wave {wave}: the point at column {x}, row {y} is wrong").into());
            }
        }
    }
    Ok(picture.iter().filter(|&&point| point != 0xFF00_0000).count())
}

/// Commands that draw the curve into the picture, and what they are made of.
struct Drawing<'a> {
    link: &'a Link,
    shader: vk::ShaderModule,
    bindings: vk::DescriptorSetLayout,
    layout: vk::PipelineLayout,
    pipeline: vk::Pipeline,
    descriptors: vk::DescriptorPool,
    pool: vk::CommandPool,
    commands: vk::CommandBuffer,
}

impl<'a> Drawing<'a> {
    fn new(link: &'a Link, curve: &Buffer<f32>, pixels: &Buffer<u32>) -> Result<Self, Box<dyn Error>> {
        let device = link.device();
        let words = ash::util::read_spv(&mut Cursor::new(include_bytes!("../kernels/draw.spv")))?;
        let storage = vk::DescriptorType::STORAGE_BUFFER;
        let binding = |number| {
            vk::DescriptorSetLayoutBinding::default()
                .binding(number)
                .descriptor_type(storage)
                .descriptor_count(1)
                .stage_flags(vk::ShaderStageFlags::COMPUTE)
        };
        // What was made is destroyed also if the next step fails: null handles are free to destroy.
        let mut this = Self {
            link,
            shader: vk::ShaderModule::null(),
            bindings: vk::DescriptorSetLayout::null(),
            layout: vk::PipelineLayout::null(),
            pipeline: vk::Pipeline::null(),
            descriptors: vk::DescriptorPool::null(),
            pool: vk::CommandPool::null(),
            commands: vk::CommandBuffer::null(),
        };
        // SAFETY: a living device, filled descriptions, and objects of this device alone; the
        // shader was made for these two bindings and checks its bounds.
        unsafe {
            let info = vk::ShaderModuleCreateInfo::default().code(&words);
            this.shader = device.create_shader_module(&info, None)?;
            let both = [binding(0), binding(1)];
            let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&both);
            this.bindings = device.create_descriptor_set_layout(&info, None)?;
            let layouts = [this.bindings];
            let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&layouts);
            this.layout = device.create_pipeline_layout(&info, None)?;
            let stage = vk::PipelineShaderStageCreateInfo::default()
                .stage(vk::ShaderStageFlags::COMPUTE)
                .module(this.shader)
                .name(c"draw");
            let info = vk::ComputePipelineCreateInfo::default()
                .stage(stage)
                .layout(this.layout);
            this.pipeline = device
                .create_compute_pipelines(vk::PipelineCache::null(), &[info], None)
                .map_err(|(_, code)| code)?[0];

            let sizes = [vk::DescriptorPoolSize::default().ty(storage).descriptor_count(2)];
            let info = vk::DescriptorPoolCreateInfo::default().max_sets(1).pool_sizes(&sizes);
            this.descriptors = device.create_descriptor_pool(&info, None)?;
            let info = vk::DescriptorSetAllocateInfo::default()
                .descriptor_pool(this.descriptors)
                .set_layouts(&layouts);
            let set = device.allocate_descriptor_sets(&info)?[0];
            let whole = |buffer| [vk::DescriptorBufferInfo::default().buffer(buffer).range(vk::WHOLE_SIZE)];
            let buffers = [whole(curve.raw()), whole(pixels.raw())];
            let write = |number: usize| {
                vk::WriteDescriptorSet::default()
                    .dst_set(set)
                    .dst_binding(number as u32)
                    .descriptor_type(storage)
                    .buffer_info(&buffers[number])
            };
            device.update_descriptor_sets(&[write(0), write(1)], &[]);

            let info = vk::CommandPoolCreateInfo::default().queue_family_index(link.queue_family());
            this.pool = device.create_command_pool(&info, None)?;
            let info = vk::CommandBufferAllocateInfo::default()
                .command_pool(this.pool)
                .command_buffer_count(1);
            let commands = device.allocate_command_buffers(&info)?[0];
            this.commands = commands;
            // The next wave may be submitted while this one is drawn.
            let info = vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE);
            device.begin_command_buffer(commands, &info)?;
            let compute = vk::PipelineBindPoint::COMPUTE;
            device.cmd_bind_pipeline(commands, compute, this.pipeline);
            device.cmd_bind_descriptor_sets(commands, compute, this.layout, 0, &[set], &[]);
            device.cmd_dispatch(commands, (WIDTH * HEIGHT / 64) as u32, 1, 1);
            device.end_command_buffer(commands)?;
        }
        Ok(this)
    }
}

impl Drop for Drawing<'_> {
    fn drop(&mut self) {
        let device = self.link.device();
        if self.link.finish().is_err() {
            // Still in use.
            return;
        }
        // SAFETY: made here, and nothing of it is in use.
        unsafe {
            device.destroy_command_pool(self.pool, None);
            device.destroy_descriptor_pool(self.descriptors, None);
            device.destroy_pipeline(self.pipeline, None);
            device.destroy_pipeline_layout(self.layout, None);
            device.destroy_descriptor_set_layout(self.bindings, None);
            device.destroy_shader_module(self.shader, None);
        }
    }
}
