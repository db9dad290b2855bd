//! OpenCL programs, one per feature, each with a launch.

use clmgr::NdRange;

/// An argument. Buffers hold 32-bit words.
pub enum Given {
    /// `global const` or `constant` memory.
    Read(Vec<u32>),
    /// `global` memory.
    Write(Vec<u32>),
    /// A value.
    Value(Vec<u8>),
    /// `local` memory of this many bytes.
    Local(usize),
}

/// A kernel `k` and a launch of it.
pub struct Program {
    pub name: &'static str,
    pub source: &'static str,
    pub options: &'static str,
    pub range: NdRange,
    pub given: Vec<Given>,
    /// An extension that the device must have.
    pub needs: Option<&'static str>,
    /// The platforms on which a HIP stream refuses it, and a word of the reason.
    pub refused: Option<(&'static str, &'static str)>,
}

fn zeros(words: usize) -> Given {
    Given::Write(vec![0; words])
}

/// Numbers without a pattern.
fn noise(words: usize) -> Vec<u32> {
    let mut state = 0x2545_F491_u32;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    };
    (0..words).map(|_| next()).collect()
}

/// Numbers of either sign, below 100 in size.
fn floats(words: usize) -> Vec<u32> {
    let number = |bits: u32| ((bits >> 8) as f32 / (1 << 24) as f32 - 0.5) * 200.0;
    noise(words).into_iter().map(|bits| number(bits).to_bits()).collect()
}

fn value<T: bytemuck::Pod>(value: T) -> Given {
    Given::Value(bytemuck::bytes_of(&value).to_vec())
}

fn program(name: &'static str, range: NdRange, given: Vec<Given>, source: &'static str) -> Program {
    Program {
        name,
        source,
        options: "",
        range,
        given,
        needs: None,
        refused: None,
    }
}

pub fn programs() -> Vec<Program> {
    let mut list = ids();
    list.extend(memories());
    list.extend(values());
    list.extend(work());
    list.extend(extensions());
    list
}

/// What a work-item knows of its place.
fn ids() -> Vec<Program> {
    let d1 = |x, local| NdRange::d1_local(x, local);
    vec![
        program("one dimension", d1(96, 8), vec![zeros(96)],
            "kernel void k(global uint *o) { o[get_global_id(0)] = 7 * get_global_id(0) + get_global_size(0); }"),
        program("two dimensions", NdRange::d2(12, 10).with_local([4, 5, 1]), vec![zeros(120)],
            "kernel void k(global uint *o) {
                uint x = get_global_id(0), y = get_global_id(1);
                o[y * get_global_size(0) + x] = x | y << 8 | get_local_id(0) << 16 | get_local_id(1) << 24;
            }"),
        program("three dimensions", NdRange::d3(6, 4, 6).with_local([3, 2, 2]), vec![zeros(144)],
            "kernel void k(global uint *o) {
                uint x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
                o[(z * get_global_size(1) + y) * get_global_size(0) + x] = get_local_id(2) * 10000 + get_group_id(1) * 100 + get_group_id(0);
            }"),
        program("sizes of groups", d1(64, 16), vec![zeros(64)],
            "kernel void k(global uint *o) {
                o[get_global_id(0)] = get_num_groups(0) | get_local_size(0) << 8 | get_group_id(0) << 16 | get_num_groups(1) << 24;
            }"),
        program("number of dimensions, 1", d1(8, 4), vec![zeros(8)],
            "kernel void k(global uint *o) { o[get_global_id(0)] = 100 + get_work_dim(); }"),
        program("number of dimensions, 2", NdRange::d2(8, 1).with_local([4, 1, 1]), vec![zeros(8)],
            "kernel void k(global uint *o) { o[get_global_id(0)] = 100 + get_work_dim(); }"),
        program("number of dimensions, 3", NdRange::d3(8, 1, 1).with_local([4, 1, 1]), vec![zeros(8)],
            "kernel void k(global uint *o) { o[get_global_id(0)] = 100 + get_work_dim(); }"),
        program("an offset", d1(32, 8).with_offset([40, 0, 0]), vec![zeros(128)],
            "kernel void k(global uint *o) { o[get_global_id(0)] = 1000 * get_global_offset(0) + get_group_id(0) * get_local_size(0) + get_local_id(0); }"),
        program("offsets in three dimensions", NdRange::d3(4, 4, 2).with_local([2, 2, 1]).with_offset([1, 2, 3]), vec![zeros(320)],
            "kernel void k(global uint *o) {
                uint x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
                o[(z * 8 + y) * 8 + x] = x | y << 8 | z << 16 | get_global_offset(1) << 24;
            }"),
        program("an offset beside other arguments", d1(16, 4).with_offset([7, 0, 0]),
            vec![zeros(64), value(5_u32), Given::Read(noise(64)), value(2.5_f32)],
            "kernel void k(global uint *o, uint a, global const uint *x, float b) {
                uint i = get_global_id(0);
                o[i] = a + x[i] + (uint)(b * get_work_dim()) + get_global_offset(0);
            }"),
        program("work-groups left to the launch", NdRange::d1(60), vec![zeros(60)],
            "kernel void k(global uint *o) { o[get_global_id(0)] = 3 * get_global_id(0) + 1; }"),
        program("a prime number of work-items", NdRange::d1(97), vec![zeros(97)],
            "kernel void k(global uint *o) { o[get_global_id(0)] = get_global_id(0) ^ 0x55; }"),
        program("a demanded work-group", NdRange::d1(64), vec![zeros(64)],
            "kernel __attribute__((reqd_work_group_size(16, 1, 1))) void k(global uint *o) {
                o[get_global_id(0)] = get_local_size(0) * 100 + get_local_id(0);
            }"),
    ]
}

/// Every address space.
fn memories() -> Vec<Program> {
    let groups = NdRange::d1_local(64, 16);
    vec![
        program("local memory of the kernel", groups, vec![zeros(64), Given::Read(noise(64))],
            "kernel void k(global uint *o, global const uint *x) {
                local uint t[16];
                uint l = get_local_id(0);
                t[l] = x[get_global_id(0)];
                barrier(CLK_LOCAL_MEM_FENCE);
                o[get_global_id(0)] = t[15 - l];
            }"),
        program("a local argument", groups, vec![zeros(64), Given::Read(noise(64)), Given::Local(64)],
            "kernel void k(global uint *o, global const uint *x, local uint *t) {
                uint l = get_local_id(0);
                t[l] = x[get_global_id(0)];
                barrier(CLK_LOCAL_MEM_FENCE);
                o[get_global_id(0)] = t[(l + 5) & 15];
            }"),
        program("two local arguments", groups, vec![zeros(64), Given::Local(64), Given::Read(noise(64)), Given::Local(64)],
            "kernel void k(global uint *o, local uint *a, global const uint *x, local uint *b) {
                uint l = get_local_id(0);
                a[l] = x[get_global_id(0)];
                b[l] = ~x[get_global_id(0)] + l;
                barrier(CLK_LOCAL_MEM_FENCE);
                o[get_global_id(0)] = a[15 - l] * 3 + b[l ^ 1];
            }"),
        program("local arguments of three types and sizes", groups,
            vec![Given::Local(5), Given::Local(16 * 16), zeros(64), Given::Local(16 * 8), Given::Read(noise(64))],
            "kernel void k(local uchar *c, local float4 *f, global uint *o, local ulong *u, global const uint *x) {
                uint l = get_local_id(0), v = x[get_global_id(0)];
                if (l < 5) c[l] = v;
                f[l] = (float4)(l, v & 255, 2, 3);
                u[l] = (ulong)v << 20 | l;
                barrier(CLK_LOCAL_MEM_FENCE);
                o[get_global_id(0)] = c[l % 5] + (uint)f[15 - l].x + (uint)f[l].y + (uint)(u[(l + 3) & 15] >> 20);
            }"),
        program("a local argument beside local memory of the kernel", groups,
            vec![zeros(64), Given::Local(64), Given::Read(noise(64)), Given::Local(16)],
            "kernel void k(global uint *o, local uint *a, global const uint *x, local uchar *b) {
                local uint own[16];
                local uchar odd[3];
                uint l = get_local_id(0);
                a[l] = x[get_global_id(0)];
                own[l] = l * 1000;
                b[l] = l;
                if (l < 3) odd[l] = 200 + l;
                barrier(CLK_LOCAL_MEM_FENCE);
                o[get_global_id(0)] = a[15 - l] + own[(l + 1) & 15] + b[l ^ 3] + odd[l % 3];
            }"),
        program("a constant table", NdRange::d1_local(32, 8), vec![zeros(32)],
            "constant uint table[8] = { 3, 1, 4, 1, 5, 9, 2, 6 };
             kernel void k(global uint *o) { uint i = get_global_id(0); o[i] = table[i & 7] * 10 + table[2]; }"),
        program("a constant argument", NdRange::d1_local(32, 8), vec![zeros(32), Given::Read(noise(16))],
            "kernel void k(global uint *o, constant uint *c) { uint i = get_global_id(0); o[i] = c[i & 15] + c[3]; }"),
        program("constants through one function", NdRange::d1_local(32, 8), vec![zeros(32), Given::Read(noise(16)), value(1_u32)],
            "constant uint table[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
             uint at(constant uint *p, uint i) { return p[i & 15] + p[0]; }
             kernel void k(global uint *o, constant uint *c, uint which) {
                uint i = get_global_id(0);
                constant uint *p = (i & 1) == which ? table : c;
                o[i] = at(p, i) + at(table + 2, i >> 1 & 7);
             }"),
        program("constant structures and vectors", NdRange::d1_local(16, 8), vec![zeros(16)],
            "typedef struct { float4 a; uint b; } entry;
             constant entry list[2] = { { (float4)(1, 2, 3, 4), 7 }, { (float4)(5, 6, 7, 8), 9 } };
             kernel void k(global uint *o) {
                uint i = get_global_id(0);
                float4 a = list[i & 1].a;
                o[i] = (uint)(a.x * 1000 + a.y * 100 + a.z * 10 + a.w) + list[i >> 1 & 1].b;
             }"),
        Program {
            refused: Some(("nvidia", "address of a `constant`")),
            ..program("addresses of constants in a constant", NdRange::d1_local(16, 8), vec![zeros(16)],
                "constant uint first[4] = { 1, 2, 3, 4 }, second[4] = { 50, 60, 70, 80 };
                 constant uint *constant list[2] = { first, second };
                 kernel void k(global uint *o) { uint i = get_global_id(0); o[i] = list[i & 1][i >> 1 & 3]; }")
        },
        program("private arrays", NdRange::d1_local(32, 8), vec![zeros(32), Given::Read(noise(32))],
            "kernel void k(global uint *o, global const uint *x) {
                uint i = get_global_id(0), p[9];
                for (uint j = 0; j < 9; j++) p[j] = x[(i + j) & 31];
                for (uint j = 0; j < 8; j++) if (p[j] > p[j + 1]) { uint t = p[j]; p[j] = p[j + 1]; p[j + 1] = t; }
                o[i] = p[8] ^ p[x[i] & 7];
            }"),
        program("one memory as several types", NdRange::d1_local(16, 4), vec![zeros(64), Given::Read(noise(64))],
            "kernel void k(global uchar4 *o, global const ushort2 *x) {
                uint i = get_global_id(0);
                for (uint j = 0; j < 4; j++) { ushort2 v = x[4 * i + j]; o[4 * i + j] = (uchar4)(v.y, v.x >> 8, v.x, v.y >> 8); }
            }"),
        program("volatile and restrict pointers", NdRange::d1_local(16, 4), vec![zeros(16), Given::Read(noise(16))],
            "kernel void k(volatile global uint *restrict o, global const uint *restrict x) { uint i = get_global_id(0); o[i] = x[i]; o[i] += x[15 - i]; }"),
        program("structures in memory", NdRange::d1_local(16, 4), vec![zeros(64), Given::Read(noise(64))],
            "typedef struct { uint a; uchar b[4]; float c; int d; } item;
             kernel void k(global item *o, global const item *x) {
                uint i = get_global_id(0);
                item v = x[i];
                v.a += v.b[3]; v.b[0] = v.a; v.d = -v.d; v.c = (float)v.b[1];
                o[i] = v;
             }"),
    ]
}

#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Small {
    a: u32,
    b: [u8; 4],
    c: f32,
}

#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Nested {
    big: u64,
    small: [Small; 2],
    last: [u16; 4],
}

/// Values of every size.
fn values() -> Vec<Program> {
    let range = NdRange::d1_local(16, 4);
    let small = Small {
        a: 11,
        b: [1, 2, 3, 250],
        c: 0.5,
    };
    let nested = Nested {
        big: 1 << 40 | 77,
        small: [small, Small { a: 99, ..small }],
        last: [9, 8, 7, 60_000],
    };
    vec![
        program("numbers of every size", range,
            vec![value(-3_i8), zeros(16), value(-300_i16), value(7_u8), value(-70_000_i32), value(65_000_u16), value(-(1_i64 << 40)), value(1.25_f32), value(u64::MAX)],
            "kernel void k(char a, global uint *o, short b, uchar c, int d, ushort e, long f, float g, ulong h) {
                uint i = get_global_id(0);
                o[i] = (uint)(a + b + c + d + e + (int)(f >> 20) + (int)(g * 4)) + (uint)(h >> 60) + i;
            }"),
        program("vectors", range,
            vec![value([1.0_f32, 2.0, 3.0, 4.0]), zeros(16), value([5_i32, -6]), value([9_u8; 16]), value([1_u64, 2, 3, 4, 5, 6, 7, 8]), value([1_u16, 2])],
            "kernel void k(float4 a, global uint *o, int2 b, uchar16 c, ulong8 d, ushort2 e) {
                uint i = get_global_id(0);
                o[i] = (uint)dot(a, (float4)(1, 10, 100, 1000)) + b.x - b.y + c.sf + (uint)(d.s7 * d.s1) + e.y + i;
            }"),
        program("a vector of three", range, vec![value([1.0_f32, 2.0, 3.0, 0.0]), zeros(16), value(6_u32)],
            "kernel void k(float3 a, global uint *o, uint b) { uint i = get_global_id(0); o[i] = (uint)(a.x + 10 * a.y + 100 * a.z) + b * i; }"),
        program("a structure", range, vec![zeros(16), value(small), value(3_u32)],
            "typedef struct { uint a; uchar b[4]; float c; } small;
             kernel void k(global uint *o, small s, uint n) { uint i = get_global_id(0); o[i] = s.a * n + s.b[i & 3] + (uint)(s.c * 8); }"),
        program("a structure of structures", range, vec![value(7_u8), value(nested), zeros(16)],
            "typedef struct { uint a; uchar b[4]; float c; } small;
             typedef struct { ulong big; small s[2]; ushort last[4]; } nested;
             kernel void k(uchar first, nested s, global uint *o) {
                uint i = get_global_id(0);
                o[i] = first + (uint)s.big + (uint)(s.big >> 32) + s.s[i & 1].a + s.s[1].b[i >> 2] + s.last[i & 3];
             }"),
        program("many arguments", range, {
            let mut given = vec![zeros(16)];
            given.extend((0..20_u32).map(|n| value(n * n)));
            given.extend([Given::Read(noise(16)), Given::Local(16), Given::Read(noise(16))]);
            given
        },
            "kernel void k(global uint *o, uint a, uint b, uint c, uint d, uint e, uint f, uint g, uint h, uint i, uint j,
                           uint l, uint m, uint n, uint p, uint q, uint r, uint s, uint t, uint u, uint v,
                           global const uint *x, local uint *w, global const uint *y) {
                uint z = get_global_id(0);
                w[get_local_id(0)] = x[z];
                barrier(CLK_LOCAL_MEM_FENCE);
                o[z] = a + 2*b + 3*c + 4*d + 5*e + 6*f + 7*g + 8*h + 9*i + 10*j + 11*l + 12*m + 13*n + 14*p + 15*q + 16*r + 17*s + 18*t + 19*u + 20*v
                     + w[3 - get_local_id(0)] + y[z];
            }"),
    ]
}

/// What kernels do.
fn work() -> Vec<Program> {
    let groups = NdRange::d1_local(256, 64);
    vec![
        program("atomic sums in global memory", groups, vec![zeros(8), Given::Read(noise(256))],
            "kernel void k(global uint *o, global const uint *x) {
                uint v = x[get_global_id(0)];
                atomic_add(o + (v & 3), v);
                atomic_max(o + 4, v);
                atomic_xor(o + 5, v);
                atomic_inc(o + 6);
            }"),
        program("a histogram in local memory", groups, vec![zeros(64), Given::Read(noise(256)), Given::Local(64)],
            "kernel void k(global uint *o, global const uint *x, local uint *bins) {
                uint l = get_local_id(0);
                if (l < 16) bins[l] = 0;
                barrier(CLK_LOCAL_MEM_FENCE);
                atomic_inc(bins + (x[get_global_id(0)] >> 28));
                barrier(CLK_LOCAL_MEM_FENCE);
                if (l < 16) o[get_group_id(0) * 16 + l] = bins[l];
            }"),
        program("a tree of sums", groups, vec![zeros(4), Given::Read(floats(256)), Given::Local(256)],
            "kernel void k(global float *o, global const float *x, local float *t) {
                uint l = get_local_id(0);
                t[l] = x[get_global_id(0)];
                for (uint step = get_local_size(0) / 2; step > 0; step /= 2) {
                    barrier(CLK_LOCAL_MEM_FENCE);
                    if (l < step) t[l] += t[l + step];
                }
                if (l == 0) o[get_group_id(0)] = t[0];
            }"),
        program("a stencil over a tile", NdRange::d2(32, 16).with_local([8, 8, 1]),
            vec![zeros(512), Given::Read(floats(512)), Given::Local(400)],
            "kernel void k(global float *o, global const float *x, local float *t) {
                int gx = get_global_id(0), gy = get_global_id(1), w = get_global_size(0), h = get_global_size(1);
                int lx = get_local_id(0), ly = get_local_id(1);
                for (int j = ly; j < 10; j += 8) for (int i = lx; i < 10; i += 8) {
                    int sx = clamp((int)get_group_id(0) * 8 + i - 1, 0, w - 1), sy = clamp((int)get_group_id(1) * 8 + j - 1, 0, h - 1);
                    t[j * 10 + i] = x[sy * w + sx];
                }
                barrier(CLK_LOCAL_MEM_FENCE);
                int c = (ly + 1) * 10 + lx + 1;
                o[gy * w + gx] = t[c - 1] + t[c + 1] + t[c - 10] + t[c + 10] - 4 * t[c];
            }"),
        program("branches and loops of different length", groups, vec![zeros(256), Given::Read(noise(256))],
            "kernel void k(global uint *o, global const uint *x) {
                uint i = get_global_id(0), v = x[i], steps = 0;
                if (i % 7 == 3) return;
                while (v != 1 && steps < 40) { v = v & 1 ? v / 3 + 1 : v / 2; v = v ? v : 1; steps++; }
                switch (i & 3) { case 0: o[i] = steps; break; case 1: o[i] = v; break; default: o[i] = v + steps; }
            }"),
        program("integers of 64 bits", groups, vec![zeros(256), Given::Read(noise(256))],
            "kernel void k(global uint *o, global const uint *x) {
                uint i = get_global_id(0);
                ulong a = (ulong)x[i] << 32 | x[255 - i];
                ulong m = mul_hi(a, a ^ 0x123456789abcdefUL);
                o[i] = (uint)(m >> 7) + popcount(x[i]) + clz(x[i] | 1) + (uint)(a % 1000003);
            }"),
        program("functions of floats", groups, vec![zeros(256), Given::Read(floats(256))],
            "kernel void k(global float *o, global const float *x) {
                uint i = get_global_id(0);
                float v = x[i];
                o[i] = sin(v) + exp(-fabs(v)) * sqrt(fabs(v)) + fma(v, v, 1.0f) / (1.0f + fabs(v)) + pow(fabs(v) + 1, 0.3f);
            }"),
        program("vector functions", groups, vec![zeros(1024), Given::Read(floats(1024))],
            "kernel void k(global float4 *o, global const float4 *x) {
                uint i = get_global_id(0);
                float4 v = x[i], w = x[255 - i];
                o[i] = select(v.wzyx, w, v > w) + clamp(v, -1.0f, 1.0f) * dot(v, w) + convert_float4(convert_int4_rtz(w));
            }"),
        program("copies of a work-group", groups, vec![zeros(256), Given::Read(noise(256)), Given::Local(256)],
            "kernel void k(global uint *o, global const uint *x, local uint *t) {
                event_t e = async_work_group_copy(t, x + get_group_id(0) * 64, 64, 0);
                wait_group_events(1, &e);
                t[get_local_id(0)] += 5;
                barrier(CLK_LOCAL_MEM_FENCE);
                e = async_work_group_copy(o + get_group_id(0) * 64, t, 64, 0);
                wait_group_events(1, &e);
            }"),
        program("functions with pointers", groups, vec![zeros(256), Given::Read(noise(256)), Given::Local(256)],
            "void put(local uint *t, uint i, uint v) { t[i] = v; }
             uint take(local const uint *t, global const uint *x, uint i) { return t[i] + x[i]; }
             kernel void k(global uint *o, global const uint *x, local uint *t) {
                uint l = get_local_id(0);
                put(t, 63 - l, x[get_global_id(0)]);
                barrier(CLK_LOCAL_MEM_FENCE);
                o[get_global_id(0)] = take(t, x + get_group_id(0) * 64, l);
             }"),
        Program {
            refused: Some(("amd", "printf")),
            ..program("printf", NdRange::d1_local(4, 4), vec![zeros(4)],
                "kernel void k(global uint *o) { uint i = get_global_id(0); o[i] = i + 1; if (i == 2) printf(\"item %u of %s\\n\", i, \"four\"); }")
        },
        Program {
            options: "-DBY=9 -cl-mad-enable",
            ..program("options", NdRange::d1_local(16, 4), vec![zeros(16)],
                "kernel void k(global uint *o) { o[get_global_id(0)] = BY * get_global_id(0); }")
        },
    ]
}

/// What a device need not have.
fn extensions() -> Vec<Program> {
    let groups = NdRange::d1_local(128, 32);
    vec![
        Program {
            needs: Some("cl_khr_fp64"),
            ..program("doubles", groups, vec![zeros(256), Given::Read(noise(128)), value(0.1_f64), value([1.0_f64, 2.0])],
                "#pragma OPENCL EXTENSION cl_khr_fp64 : enable
                 kernel void k(global double *o, global const uint *x, double by, double2 w) {
                    uint i = get_global_id(0); o[i] = x[i] * by + sqrt((double)x[i]) / w.y - w.x;
                 }")
        },
        Program {
            needs: Some("cl_khr_fp64"),
            ..program("doubles in a local argument", groups, vec![Given::Local(12), zeros(256), Given::Local(32 * 128), Given::Read(noise(128))],
                "#pragma OPENCL EXTENSION cl_khr_fp64 : enable
                 kernel void k(local uint *few, global double *o, local double16 *t, global const uint *x) {
                    uint l = get_local_id(0), i = get_global_id(0);
                    if (l < 3) few[l] = l + 1;
                    t[l] = (double16)(x[i]) * 0.5;
                    barrier(CLK_LOCAL_MEM_FENCE);
                    o[i] = t[31 - l].s7 + few[l % 3];
                 }")
        },
        program("halves in memory", groups, vec![zeros(64), Given::Read(floats(128))],
            "kernel void k(global half *o, global const float *x) { uint i = get_global_id(0); vstore_half_rte(x[i] * 1.5f + vload_half(0, o + i), i, o); }"),
        Program {
            needs: Some("cl_khr_fp16"),
            ..program("halves", groups, vec![zeros(64), Given::Read(floats(128))],
                "#pragma OPENCL EXTENSION cl_khr_fp16 : enable
                 kernel void k(global half *o, global const float *x) { uint i = get_global_id(0); half h = (half)x[i]; o[i] = h * h + (half)0.5f; }")
        },
        Program {
            needs: Some("cl_khr_subgroups"),
            // AMD's compiler has its functions from OpenCL C 2.0 on.
            options: "-cl-std=CL2.0",
            ..program("sub-groups", groups, vec![zeros(128), Given::Read(noise(128))],
                "#pragma OPENCL EXTENSION cl_khr_subgroups : enable
                 kernel void k(global uint *o, global const uint *x) {
                    uint i = get_global_id(0);
                    uint sum = sub_group_reduce_add(x[i] & 0xFFFF), first = sub_group_broadcast(x[i], 0);
                    o[i] = sum + (first >> 16) + get_sub_group_local_id() + get_max_sub_group_size();
                 }")
        },
        Program {
            needs: Some("cl_khr_int64_base_atomics"),
            ..program("atomics of 64 bits", groups, vec![zeros(8), Given::Read(noise(128))],
                "#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
                 kernel void k(volatile global ulong *o, global const uint *x) { uint v = x[get_global_id(0)]; atom_add(o + (v & 3), (ulong)v << 8); }")
        },
    ]
}
