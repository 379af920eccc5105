//! The fast half of the canonical walk: plain JSON objects, borrowed.
//!
//! Under the GIL nothing can change an object while no Python code runs, so members are sorted and
//! written without a reference of our own to any of them. The walk only calls functions of the C
//! API that run no Python code on the exact built-in types, and gives up ([`Unusual`]) on
//! anything else before it is touched; [`crate::signature`] then does the whole walk the careful
//! way. Without a GIL it always gives up.

use turnwarden_signature::Canon;

/// Something that only the careful walk can write: a subclass, a large int, a lone surrogate, a
/// value or key that is no JSON, deep nesting.
pub(crate) struct Unusual;

#[cfg(not(Py_GIL_DISABLED))]
pub(crate) use with_gil::write_value;

/// Gives up: other threads may change anything at any time.
#[cfg(Py_GIL_DISABLED)]
pub(crate) fn write_value(
    _value: &pyo3::Bound<'_, pyo3::PyAny>,
    _canon: &mut Canon,
) -> Result<(), Unusual> {
    Err(Unusual)
}

#[cfg(not(Py_GIL_DISABLED))]
mod with_gil {
    use std::cell::RefCell;
    use std::cmp::Ordering;
    use std::ffi::c_int;
    use std::ptr;

    use pyo3::ffi;
    use pyo3::prelude::*;
    use turnwarden_signature::{KeyHead, Ranking, compare_keys};

    use super::{Canon, Unusual};

    /// Deeper arguments may be circular: the careful walk finds out.
    const MAX_DEPTH: usize = 32;

    /// Memory that a thread keeps between walks.
    const KEPT_MEMBERS: usize = 2048;

    /// Writes a value made of exact built-in types. What was written before giving up stays.
    pub(crate) fn write_value(value: &Bound<'_, PyAny>, canon: &mut Canon) -> Result<(), Unusual> {
        thread_local! {
            static MEMBERS: RefCell<Vec<Member>> = const { RefCell::new(Vec::new()) };
        }
        MEMBERS.with(|members| {
            let mut members = members.try_borrow_mut().map_err(|_| Unusual)?;
            members.clear();
            members.shrink_to(KEPT_MEMBERS);
            let mut walk = Walk {
                canon,
                members: &mut members,
            };
            // SAFETY: the GIL is held (`value` proves it), and the caller's reference keeps
            // `value` alive, which keeps alive all that it holds.
            unsafe { walk.value(value.as_ptr(), 0) }
        })
    }

    struct Walk<'a> {
        canon: &'a mut Canon,
        /// Members of the dicts that are open: a stack.
        members: &'a mut Vec<Member>,
    }

    /// A member of a dict; the pointers are borrowed from it.
    #[derive(Clone, Copy)]
    struct Member {
        head: KeyHead,
        key: *const u8,
        key_length: usize,
        value: *mut ffi::PyObject,
    }

    impl Member {
        /// SAFETY: as for [`Walk::value`].
        unsafe fn key(&self) -> &[u8] {
            // SAFETY: pointer and length come from `text_of` of a key that is still alive.
            unsafe { std::slice::from_raw_parts(self.key, self.key_length) }
        }
    }

    impl Walk<'_> {
        /// SAFETY: here and below, the GIL is held and all objects are alive; no function that is
        /// called runs Python code before this walk ends or gives up.
        unsafe fn value(&mut self, value: *mut ffi::PyObject, depth: usize) -> Result<(), Unusual> {
            unsafe {
                if self.scalar(value)? {
                    return Ok(());
                }
                if depth >= MAX_DEPTH {
                    return Err(Unusual);
                }
                let kind = ffi::Py_TYPE(value);
                if kind == &raw mut ffi::PyDict_Type {
                    self.dict(value, depth + 1)
                } else if kind == &raw mut ffi::PyList_Type {
                    self.canon.begin_array();
                    for index in 0..ffi::PyList_Size(value) {
                        let item = ffi::PyList_GetItem(value, index);
                        self.item(item, depth + 1)?;
                    }
                    self.canon.end_array();
                    Ok(())
                } else {
                    self.canon.begin_array();
                    for index in 0..ffi::PyTuple_Size(value) {
                        let item = ffi::PyTuple_GetItem(value, index);
                        self.item(item, depth + 1)?;
                    }
                    self.canon.end_array();
                    Ok(())
                }
            }
        }

        /// Writes a value in a container: most are scalars, without a call.
        #[allow(clippy::inline_always)] // a tenth of the time of small values
        #[inline(always)]
        unsafe fn item(&mut self, value: *mut ffi::PyObject, depth: usize) -> Result<(), Unusual> {
            unsafe {
                if self.scalar(value)? {
                    Ok(())
                } else {
                    self.value(value, depth)
                }
            }
        }

        /// Writes a scalar; false for a container.
        #[allow(clippy::inline_always)] // see `item`
        #[inline(always)]
        unsafe fn scalar(&mut self, value: *mut ffi::PyObject) -> Result<bool, Unusual> {
            unsafe {
                let kind = ffi::Py_TYPE(value);
                if kind == &raw mut ffi::PyUnicode_Type {
                    let (text, length) = text_of(value)?;
                    self.canon.string(std::slice::from_raw_parts(text, length));
                } else if kind == &raw mut ffi::PyLong_Type {
                    self.canon.integer(integer_of(value)?);
                } else if kind == &raw mut ffi::PyDict_Type
                    || kind == &raw mut ffi::PyList_Type
                    || kind == &raw mut ffi::PyTuple_Type
                {
                    return Ok(false);
                } else if kind == &raw mut ffi::PyFloat_Type {
                    self.canon.float(ffi::PyFloat_AsDouble(value));
                } else if value == ffi::Py_None() {
                    self.canon.null();
                } else if kind == &raw mut ffi::PyBool_Type {
                    self.canon.boolean(value == ffi::Py_True());
                } else {
                    return Err(Unusual);
                }
            }
            Ok(true)
        }

        unsafe fn dict(&mut self, dict: *mut ffi::PyObject, depth: usize) -> Result<(), Unusual> {
            self.canon.begin_object();
            let first = self.members.len();
            unsafe {
                self.collect_members(dict)?;
                let members = self.members.get_mut(first..).unwrap_or_default();
                let count = members.len();
                let ranking = Ranking::of(members.iter().map(|member| member.head.prefix()));
                if ranking.is_none() {
                    members.sort_unstable_by(|left, right| compare(left, right));
                }
                for place in 0..count {
                    let index = ranking.map_or(place, |ranking| ranking.at(place));
                    let Some(&member) = self.members.get(first + index) else {
                        break;
                    };
                    self.canon.key(member.head, member.key());
                    self.item(member.value, depth)?;
                }
            }
            self.members.truncate(first);
            self.canon.end_object();
            Ok(())
        }

        unsafe fn collect_members(&mut self, dict: *mut ffi::PyObject) -> Result<(), Unusual> {
            let mut position = 0;
            let (mut key, mut value) = (ptr::null_mut(), ptr::null_mut());
            unsafe {
                while ffi::PyDict_Next(dict, &raw mut position, &raw mut key, &raw mut value) != 0 {
                    if ffi::Py_TYPE(key) != &raw mut ffi::PyUnicode_Type {
                        return Err(Unusual);
                    }
                    let (text, length) = text_of(key)?;
                    self.members.push(Member {
                        head: KeyHead::of(std::slice::from_raw_parts(text, length)),
                        key: text,
                        key_length: length,
                        value,
                    });
                }
            }
            Ok(())
        }
    }

    /// SAFETY: as for [`Walk::value`].
    unsafe fn compare(left: &Member, right: &Member) -> Ordering {
        left.head
            .prefix()
            .compare(right.head.prefix())
            // SAFETY: both members are of a dict that is alive.
            .unwrap_or_else(|| unsafe { compare_keys(left.key(), right.key()) })
    }

    /// The UTF-8 of an exact str, which keeps it as long as it lives.
    unsafe fn text_of(text: *mut ffi::PyObject) -> Result<(*const u8, usize), Unusual> {
        let mut length: ffi::Py_ssize_t = 0;
        unsafe {
            let bytes = ffi::PyUnicode_AsUTF8AndSize(text, &raw mut length);
            if bytes.is_null() {
                ffi::PyErr_Clear(); // a lone surrogate
                return Err(Unusual);
            }
            Ok((bytes.cast(), length.unsigned_abs()))
        }
    }

    unsafe fn integer_of(integer: *mut ffi::PyObject) -> Result<i64, Unusual> {
        let mut overflow: c_int = 0;
        let value = unsafe { ffi::PyLong_AsLongLongAndOverflow(integer, &raw mut overflow) };
        if overflow == 0 {
            Ok(value)
        } else {
            Err(Unusual)
        }
    }
}
