//! Vectors. cuBLAS also writes a reduction over nothing: 0 as the result.

use super::routines;

routines! {
    /// Vector routines.
    pub(super) fn fill;

    [s d c z] axpy [plain] = "axpy_v2" (n: I, alpha: *const T, x: *const T, incx: I, y: *mut T, incy: I)
        nothing if n <= 0, needs alpha x y;
    [s d c z] copy [plain] = "copy_v2" (n: I, x: *const T, incx: I, y: *mut T, incy: I)
        nothing if n <= 0, needs x y;
    [s d c z] swap [plain] = "swap_v2" (n: I, x: *mut T, incx: I, y: *mut T, incy: I)
        nothing if n <= 0, needs x y;
    [s d c z] scal [plain] = "scal_v2" (n: I, alpha: *const T, x: *mut T, incx: I)
        nothing if n <= 0 || incx <= 0, needs alpha x;
    [cs zd] scal [plain] = "scal_v2" (n: I, alpha: *const R, x: *mut T, incx: I)
        nothing if n <= 0 || incx <= 0, needs alpha x;
    [s d] dot [plain] = "dot_v2" (n: I, x: *const T, incx: I, y: *const T, incy: I, result: *mut T)
        nothing if false, needs result;
    [c z] dotu [plain] = "dotu_v2" (n: I, x: *const T, incx: I, y: *const T, incy: I, result: *mut T)
        nothing if false, needs result;
    [c z] dotc [plain] = "dotc_v2" (n: I, x: *const T, incx: I, y: *const T, incy: I, result: *mut T)
        nothing if false, needs result;
    [s d sc dz] nrm2 [plain] = "nrm2_v2" (n: I, x: *const T, incx: I, result: *mut R)
        nothing if false, needs result;
    [s d sc dz] asum [plain] = "asum_v2" (n: I, x: *const T, incx: I, result: *mut R)
        nothing if false, needs result;
    [is id ic iz] amax [plain] = "amax_v2" (n: I, x: *const T, incx: I, result: *mut I)
        nothing if false, needs result;
    [is id ic iz] amin [plain] = "amin_v2" (n: I, x: *const T, incx: I, result: *mut I)
        nothing if false, needs result;
}
