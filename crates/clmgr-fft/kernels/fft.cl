// Batched complex FFT of length 2^a 3^b 5^c 7^d, by Stockham's method.
//
// The plan (src/fft) puts defines in front of this text:
//   FFT_N      length of the transforms that the kernel's passes make
//   FFT_SIGN   1.0f forward, -1.0f inverse
//   FFT_WIDE   defined: V is eight complex numbers, one work-item transforms eight columns at once.
//              Otherwise V is one complex number.
//   FFT_BODY   the passes, in order
// and what the texts want that follow: fft_ends.cl, and one of fft_wide.cl, fft_narrow.cl and fft_tile.cl.
//
// A pass of radix R over a transform of length N, with S the product of the radices before it and
// M = N / (R * S), does for all p < M and q < S:
//   y[q + S * (R * p + j)] = w^(p j) * (transform of length R of x[q + S * (p + M * i)])[j]
// with w = exp(-2 pi i / (R * M)) for the forward direction.

#ifdef FFT_WIDE
typedef float16 V;
#define SWAP(v) ((v).s1032547698badcfe)
#define ALTERNATING(a, b) ((V)(a, b, a, b, a, b, a, b, a, b, a, b, a, b, a, b))
#else
typedef float2 V;
#define SWAP(v) ((v).yx)
#define ALTERNATING(a, b) ((V)(a, b))
#endif

// a - i b forward, a + i b inverse; and the opposite.
#define ADD_TURNED(a, b) fma(SWAP(b), ALTERNATING(FFT_SIGN, -FFT_SIGN), a)
#define SUB_TURNED(a, b) fma(SWAP(b), ALTERNATING(-FFT_SIGN, FFT_SIGN), a)
#define TURNED(b) (SWAP(b) * ALTERNATING(FFT_SIGN, -FFT_SIGN))

#define SIN_60 0.866025403784438647f
#define COS_72 0.309016994374947424f
#define SIN_72 0.951056516295153572f
#define COS_144 -0.809016994374947424f
#define SIN_144 0.587785252292473129f
#define COS_51 0.623489801858733530525f
#define SIN_51 0.781831482468029808708f
#define COS_103 -0.222520933956314404289f
#define SIN_103 0.974927912181823607018f
#define COS_154 -0.900968867902419126236f
#define SIN_154 0.433883739117558120475f
#define SQRT_HALF 0.707106781186547524f
#define COS_22 0.923879532511286756f
#define SIN_22 0.382683432365089772f
#define COS_11 0.980785280403230449f
#define SIN_11 0.195090322016128268f
#define COS_34 0.831469612302545237f
#define SIN_34 0.555570233019602225f

static inline void fft1(V *a) {}

static inline void fft2(V *a) {
    V t = a[0] - a[1];
    a[0] += a[1];
    a[1] = t;
}

static inline void fft3(V *a) {
    V sum = a[1] + a[2];
    V difference = (a[1] - a[2]) * SIN_60;
    V base = fma(sum, (V)(-0.5f), a[0]);
    a[0] += sum;
    a[1] = ADD_TURNED(base, difference);
    a[2] = SUB_TURNED(base, difference);
}

static inline void fft4(V *a) {
    V s02 = a[0] + a[2], d02 = a[0] - a[2];
    V s13 = a[1] + a[3], d13 = a[1] - a[3];
    a[0] = s02 + s13;
    a[1] = ADD_TURNED(d02, d13);
    a[2] = s02 - s13;
    a[3] = SUB_TURNED(d02, d13);
}

static inline void fft5(V *a) {
    V s14 = a[1] + a[4], d14 = a[1] - a[4];
    V s23 = a[2] + a[3], d23 = a[2] - a[3];
    V base1 = fma(s23, (V)(COS_144), fma(s14, (V)(COS_72), a[0]));
    V base2 = fma(s23, (V)(COS_72), fma(s14, (V)(COS_144), a[0]));
    V side1 = fma(d23, (V)(SIN_144), d14 * SIN_72);
    V side2 = fma(d23, (V)(-SIN_72), d14 * SIN_144);
    a[0] += s14 + s23;
    a[1] = ADD_TURNED(base1, side1);
    a[2] = ADD_TURNED(base2, side2);
    a[3] = SUB_TURNED(base2, side2);
    a[4] = SUB_TURNED(base1, side1);
}

// The angles are multiples of a seventh of a turn, 51 degrees.
static inline void fft7(V *a) {
    V s1 = a[1] + a[6], d1 = a[1] - a[6];
    V s2 = a[2] + a[5], d2 = a[2] - a[5];
    V s3 = a[3] + a[4], d3 = a[3] - a[4];
    V base1 = fma(s3, (V)(COS_154), fma(s2, (V)(COS_103), fma(s1, (V)(COS_51), a[0])));
    V base2 = fma(s3, (V)(COS_51), fma(s2, (V)(COS_154), fma(s1, (V)(COS_103), a[0])));
    V base3 = fma(s3, (V)(COS_103), fma(s2, (V)(COS_51), fma(s1, (V)(COS_154), a[0])));
    V side1 = fma(d3, (V)(SIN_154), fma(d2, (V)(SIN_103), d1 * SIN_51));
    V side2 = fma(d3, (V)(-SIN_51), fma(d2, (V)(-SIN_154), d1 * SIN_103));
    V side3 = fma(d3, (V)(SIN_103), fma(d2, (V)(-SIN_51), d1 * SIN_154));
    a[0] += s1 + s2 + s3;
    a[1] = ADD_TURNED(base1, side1);
    a[2] = ADD_TURNED(base2, side2);
    a[3] = ADD_TURNED(base3, side3);
    a[4] = SUB_TURNED(base3, side3);
    a[5] = SUB_TURNED(base2, side2);
    a[6] = SUB_TURNED(base1, side1);
}

static inline void fft8(V *a) {
    V even[4] = {a[0], a[2], a[4], a[6]};
    V odd[4] = {a[1], a[3], a[5], a[7]};
    fft4(even);
    fft4(odd);
    V odd1 = ADD_TURNED(odd[1], odd[1]) * SQRT_HALF;
    V odd3 = SUB_TURNED(odd[3], odd[3]) * -SQRT_HALF;
    a[0] = even[0] + odd[0];
    a[4] = even[0] - odd[0];
    a[1] = even[1] + odd1;
    a[5] = even[1] - odd1;
    a[2] = ADD_TURNED(even[2], odd[2]);
    a[6] = SUB_TURNED(even[2], odd[2]);
    a[3] = even[3] + odd3;
    a[7] = even[3] - odd3;
}

// v times cos - i sin forward, its conjugate inverse.
#define ROTATED(v, cosine, sine) fma(v, (V)(cosine), TURNED(v) * (sine))

static inline void fft16(V *a) {
    V b[4][4];
    for (uint i = 0; i < 4; ++i) {
        b[i][0] = a[i];
        b[i][1] = a[i + 4];
        b[i][2] = a[i + 8];
        b[i][3] = a[i + 12];
        fft4(b[i]);
    }
    b[1][1] = ROTATED(b[1][1], COS_22, SIN_22);
    b[1][2] = ADD_TURNED(b[1][2], b[1][2]) * SQRT_HALF;
    b[1][3] = ROTATED(b[1][3], SIN_22, COS_22);
    b[2][1] = ADD_TURNED(b[2][1], b[2][1]) * SQRT_HALF;
    b[2][2] = TURNED(b[2][2]);
    b[2][3] = SUB_TURNED(b[2][3], b[2][3]) * -SQRT_HALF;
    b[3][1] = ROTATED(b[3][1], SIN_22, COS_22);
    b[3][2] = SUB_TURNED(b[3][2], b[3][2]) * -SQRT_HALF;
    b[3][3] = ROTATED(b[3][3], -COS_22, -SIN_22);
    for (uint k = 0; k < 4; ++k) {
        V c[4] = {b[0][k], b[1][k], b[2][k], b[3][k]};
        fft4(c);
        a[k] = c[0];
        a[k + 4] = c[1];
        a[k + 8] = c[2];
        a[k + 12] = c[3];
    }
}

static inline void fft32(V *a) {
    V b[4][8];
    for (uint i = 0; i < 4; ++i) {
        for (uint m = 0; m < 8; ++m)
            b[i][m] = a[i + 4 * m];
        fft8(b[i]);
    }
    b[1][1] = ROTATED(b[1][1], COS_11, SIN_11);
    b[1][2] = ROTATED(b[1][2], COS_22, SIN_22);
    b[1][3] = ROTATED(b[1][3], COS_34, SIN_34);
    b[1][4] = ADD_TURNED(b[1][4], b[1][4]) * SQRT_HALF;
    b[1][5] = ROTATED(b[1][5], SIN_34, COS_34);
    b[1][6] = ROTATED(b[1][6], SIN_22, COS_22);
    b[1][7] = ROTATED(b[1][7], SIN_11, COS_11);
    b[2][1] = ROTATED(b[2][1], COS_22, SIN_22);
    b[2][2] = ADD_TURNED(b[2][2], b[2][2]) * SQRT_HALF;
    b[2][3] = ROTATED(b[2][3], SIN_22, COS_22);
    b[2][4] = TURNED(b[2][4]);
    b[2][5] = ROTATED(b[2][5], -SIN_22, COS_22);
    b[2][6] = SUB_TURNED(b[2][6], b[2][6]) * -SQRT_HALF;
    b[2][7] = ROTATED(b[2][7], -COS_22, SIN_22);
    b[3][1] = ROTATED(b[3][1], COS_34, SIN_34);
    b[3][2] = ROTATED(b[3][2], SIN_22, COS_22);
    b[3][3] = ROTATED(b[3][3], -SIN_11, COS_11);
    b[3][4] = SUB_TURNED(b[3][4], b[3][4]) * -SQRT_HALF;
    b[3][5] = ROTATED(b[3][5], -COS_11, SIN_11);
    b[3][6] = ROTATED(b[3][6], -COS_22, -SIN_22);
    b[3][7] = ROTATED(b[3][7], -SIN_34, -COS_34);
    for (uint k = 0; k < 8; ++k) {
        V c[4] = {b[0][k], b[1][k], b[2][k], b[3][k]};
        fft4(c);
        for (uint j = 0; j < 4; ++j)
            a[k + 8 * j] = c[j];
    }
}

static inline float2 product(float2 a, float2 b) {
    return (float2)(fma(a.x, b.x, -a.y * b.y), fma(a.x, b.y, a.y * b.x));
}

#ifdef FFT_WIDE
// The products of eight pairs of complex numbers.
static inline V times_each(V v, V w) {
    V re = w.s0022446688aaccee;
    V im = w.s1133557799bbddff * ALTERNATING(-1.0f, 1.0f);
    return fma(v, re, SWAP(v) * im);
}

static inline V load8(global const float2 *from) { return vload16(0, (global const float *)from); }
static inline void store8(V v, global float2 *to) { vstore16(v, 0, (global float *)to); }
#endif
