//! The C interface of Scalide's runtime: the part of scalide.h that this example needs, and safe types for it.
use std::ffi::CStr;
use std::marker::PhantomData;
use std::os::raw::{c_char, c_int};
use std::ptr::{null, null_mut};

const MAX_RANK: usize = 8;
const F32: i32 = 0; // SCALIDE_F32 of dtypes.h

#[repr(C)]
pub struct Program {
    private: [u8; 0],
}
#[repr(C)]
struct RawContext {
    private: [u8; 0],
}
#[repr(C)]
struct RawBinding {
    private: [u8; 0],
}
/// scalide_array
#[repr(C)]
struct RawArray {
    data: *mut f32,
    scale: *mut f32,
    dtype: i32,
    rank: i32,
    extent: [i64; MAX_RANK],
    stride: [i64; MAX_RANK],
}

extern "C" {
    fn scalide_dense_array(data: *mut f32, scale: *mut f32, dtype: i32, rank: i32, extent: *const i64) -> RawArray;
    fn scalide_status_string(status: c_int) -> *const c_char;
    fn scalide_context_create(options: *const u8, context: *mut *mut RawContext) -> c_int;
    fn scalide_context_destroy(context: *mut RawContext);
    fn scalide_message(context: *const RawContext) -> *const c_char;
    fn scalide_bind(context: *mut RawContext, program: *const Program, arrays: *const RawArray, count: usize, binding: *mut *mut RawBinding) -> c_int;
    fn scalide_run(binding: *mut RawBinding) -> c_int;
    fn scalide_binding_destroy(binding: *mut RawBinding);
}

/// The text of the runtime at this address. The runtime never returns NULL here.
unsafe fn text(address: *const c_char) -> String {
    CStr::from_ptr(address).to_string_lossy().into_owned()
}

pub struct Context {
    handle: *mut RawContext,
}

impl Context {
    /// A context with all CPUs of the process.
    pub fn new() -> Result<Context, String> {
        let mut handle = null_mut();
        match unsafe { scalide_context_create(null(), &mut handle) } {
            0 => Ok(Context { handle }),
            status => Err(unsafe { text(scalide_status_string(status)) }),
        }
    }

    fn check(&self, status: c_int) -> Result<(), String> {
        match status {
            0 => Ok(()),
            _ => Err(unsafe { text(scalide_message(self.handle)) }),
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        unsafe { scalide_context_destroy(self.handle) }
    }
}

/// Elements and a shape. The memory has 64-byte alignment, which arrays need that a run updates in place.
pub struct Array {
    shape: Vec<i64>,
    count: usize,
    lines: Vec<Line>,
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; 16]);

impl Array {
    pub fn new(shape: &[i64], values: &[f32]) -> Array {
        let count = shape.iter().product::<i64>() as usize;
        assert_eq!(count, values.len(), "an element for each place of the shape");
        let mut array = Array { shape: shape.to_vec(), count, lines: vec![Line([0.0; 16]); count / 16 + 1] };
        for (place, value) in values.iter().enumerate() {
            array.lines[place / 16].0[place % 16] = *value;
        }
        array
    }

    pub fn values(&self) -> Vec<f32> {
        (0..self.count).map(|place| self.lines[place / 16].0[place % 16]).collect()
    }

    fn descriptor(&mut self) -> RawArray {
        let data = self.lines.as_mut_ptr() as *mut f32;
        unsafe { scalide_dense_array(data, null_mut(), F32, self.shape.len() as i32, self.shape.as_ptr()) }
    }
}

/// A program with its arrays. It keeps the arrays borrowed, because a run writes to them.
pub struct Binding<'a> {
    handle: *mut RawBinding,
    context: &'a Context,
    arrays: PhantomData<&'a mut Array>,
}

impl<'a> Binding<'a> {
    /// Binds arrays in the order of the arguments of the program.
    pub fn new(context: &'a Context, program: &'a Program, arrays: Vec<&'a mut Array>) -> Result<Binding<'a>, String> {
        let descriptors: Vec<RawArray> = arrays.into_iter().map(Array::descriptor).collect();
        let mut handle = null_mut();
        let status = unsafe { scalide_bind(context.handle, program, descriptors.as_ptr(), descriptors.len(), &mut handle) };
        context.check(status)?;
        Ok(Binding { handle, context, arrays: PhantomData })
    }

    pub fn run(&mut self) -> Result<(), String> {
        self.context.check(unsafe { scalide_run(self.handle) })
    }
}

impl<'a> Drop for Binding<'a> {
    fn drop(&mut self) {
        unsafe { scalide_binding_destroy(self.handle) }
    }
}
