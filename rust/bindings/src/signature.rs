//! Signatures of calls, straight from Python objects: one walk writes the canon.
//!
//! The walk keeps its own stack, so depth costs memory and nothing else. Members of a dict are
//! collected before any of their values is looked at, with references of their own: whatever
//! `default=` or another thread does to the dict meanwhile, nothing here dangles.

use std::fmt::Write;

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use turnwarden_signature::{
    Canon, MAX_DEPTH, Signature, compare_keys, join_surrogates, with_scratch,
};
use turnwarden_similarity::Sketch;

use crate::borrowed_walk::write_value;
use crate::errors::Error;

/// How many ancestors each container is compared with, to find short cycles at once.
const NEAR_ANCESTORS: usize = 16;

/// Steps of a path that an error shows, and characters of each key.
const SHOWN_STEPS: usize = 16;
const SHOWN_KEY: usize = 64;

/// How often `default=` may be asked about one place.
const MAX_DEFAULTS: usize = 1000;

/// Return what a tool call is known by: equal exactly for equal calls.
///
/// The signature is a hash (128 bits of BLAKE3) of the tool's name and its arguments in canonical
/// form, the same in every process, on every machine and in every release:
///
/// - Keys count by themselves, not by their order (RFC 8785), at every depth; keys that are no
///   str are taken as `json.dumps` writes them.
/// - Integers are exact at any size. A float below 2**53 that has no fraction is that integer, so
///   `1.0` is `1` and `-0.0` is `0`; larger floats equal no integer. `True` is not `1`. NaN and the
///   infinities each equal only themselves.
/// - Strings are compared as they are, without Unicode normalisation.
/// - A tuple is a list. None, `{}` and an empty text are no arguments.
/// - Arguments given as str are parsed when they are JSON (what `json.loads` takes), else they are
///   that string.
///
/// Linear in the size of the arguments, but for the sorting of keys.
///
/// Args:
///     name: The tool's name.
///     arguments: A value of JSON types (subclasses count as their base), usually a dict; or JSON
///         text; or None.
///     default: Called with each value that has no JSON type, as in `json.dumps`; what it returns
///         is signed in its place.
///
/// Returns:
///     32 hexadecimal digits.
///
/// Raises:
///     WrongTypeError: A value or a key has no JSON type; the message says where it stands.
///     SignatureError: The arguments contain themselves, or are nested deeper than 16384.
///
/// Example:
///     >>> from turnwarden import call_signature
///     >>> call_signature("search", {"query": "tea", "page": 1})
///     '63202f58f4a75f6a5dfab1280e3ea6ee'
///     >>> call_signature("search", '{"page": 1.0, "query": "t\\u0065a"}')
///     '63202f58f4a75f6a5dfab1280e3ea6ee'
#[pyfunction]
#[pyo3(signature = (name, arguments, *, default=None))]
pub(crate) fn call_signature<'py>(
    name: &Bound<'py, PyAny>,
    arguments: &Bound<'py, PyAny>,
    default: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyString>> {
    let py = name.py();
    let name = name
        .cast::<PyString>()
        .map_err(|_| Error::wrong_type("the name of a tool", "a str", name))?;
    let signature = with_scratch(|call| {
        write_call(name, arguments, default, call)?;
        PyResult::Ok(Signature::of_written(call))
    })?;
    Ok(hex_string(py, signature))
}

/// A signature as a str.
pub(crate) fn hex_string(py: Python<'_>, signature: Signature) -> Bound<'_, PyString> {
    let hex = signature.to_hex();
    PyString::new(py, std::str::from_utf8(&hex).unwrap_or_default())
}

/// Return how alike the arguments of two calls are, from 0 to 1.
///
/// The leaves of both argument trees (values that are no list or dict, and empty ones of these)
/// are aligned by their path. A leaf weighs `log2(2 + length)`: the length of a string in
/// characters, of any other value as JSON. The similarity is the mean of the leaves' similarities
/// by weight (the larger of the two), where a leaf that only one side has counts as unlike:
///
/// - Two strings of up to 127 bytes of UTF-8: `1 - Indel distance / (length a + length b)`.
/// - Longer strings: the same, estimated from a sample of 64 pairs of neighbouring words (fewer
///   when there are many strings), usually within 0.05.
/// - Other values: 1 if they are equal as in `call_signature`, else 0.
///
/// Of more than 32 leaves, those of the top level are compared before deeper ones, of which a
/// sample stands for all. Symmetric; 1 exactly for equal arguments, as far as they were compared.
/// Arguments are read as `call_signature` reads them: linear in their size, while the comparison
/// itself takes about a microsecond at any size.
///
/// Args:
///     a: Arguments of one call: JSON types, JSON text, or None.
///     b: Arguments of the other.
///
/// Returns:
///     0 for nothing in common, 1 for equal arguments.
///
/// Raises:
///     WrongTypeError: A value or a key has no JSON type; the message says where it stands.
///     SignatureError: Arguments contain themselves, or are nested deeper than 16384.
///
/// Example:
///     >>> from turnwarden import argument_similarity
///     >>> argument_similarity({"query": "tea in Oslo"}, {"query": "tea in Bergen"})
///     0.5833333333333333
///     >>> argument_similarity({"a": 1, "b": 2}, {"a": 1, "b": 3})
///     0.5
#[pyfunction]
pub(crate) fn argument_similarity(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<f64> {
    Ok(sketch(a)?.similarity(&sketch(b)?))
}

fn sketch(arguments: &Bound<'_, PyAny>) -> PyResult<Sketch> {
    with_scratch(|canon| {
        write_arguments(arguments, None, canon)?;
        Ok(Sketch::of(canon.value()))
    })
}

/// What `argument_similarity` compares, kept: the form in which a guard keeps arguments.
#[pyclass(frozen, module = "turnwarden._core")]
pub(crate) struct ArgumentSketch(Sketch);

#[pymethods]
impl ArgumentSketch {
    #[new]
    fn new(arguments: &Bound<'_, PyAny>) -> PyResult<Self> {
        sketch(arguments).map(Self)
    }

    /// Return what `argument_similarity` returns for the arguments of both.
    fn similarity(&self, other: &Self) -> f64 {
        self.0.similarity(&other.0)
    }

    fn __sizeof__(&self) -> usize {
        size_of::<Self>() + self.0.as_bytes().len()
    }
}

/// Writes a call ready for [`Signature::of_written`]; returns where its arguments begin.
pub(crate) fn write_call<'py>(
    name: &Bound<'py, PyString>,
    arguments: &Bound<'py, PyAny>,
    default: Option<&Bound<'py, PyAny>>,
    call: &mut Canon,
) -> PyResult<usize> {
    let start = match name.to_str() {
        Ok(name) => Signature::begin(call, name.as_bytes()),
        Err(_) => Signature::begin(call, &with_surrogates(name)?),
    };
    write_arguments(arguments, default, call)?;
    Ok(start)
}

/// Writes the canon of a call's arguments: None as `{}`, a str as the JSON text it is, or as a
/// string when it is none.
pub(crate) fn write_arguments<'py>(
    arguments: &Bound<'py, PyAny>,
    default: Option<&Bound<'py, PyAny>>,
    canon: &mut Canon,
) -> PyResult<()> {
    if arguments.is_none() {
        canon.begin_object();
        canon.end_object();
        return Ok(());
    }
    if let Ok(text) = arguments.cast::<PyString>() {
        match text.to_str() {
            Ok(text) => canon.arguments_text(text.as_bytes()),
            Err(_) => canon.arguments_text(&with_surrogates(text)?),
        }
        return Ok(());
    }
    let start = canon.len();
    if write_value(arguments, canon).is_ok() {
        return Ok(());
    }
    canon.truncate(start);
    Walk {
        canon,
        default: default.filter(|default| !default.is_none()),
        open: Vec::new(),
        members: Vec::new(),
        keys: Vec::new(),
        checked_depth: NEAR_ANCESTORS,
    }
    .run(arguments)
}

/// One walk over arguments.
struct Walk<'a, 'py> {
    canon: &'a mut Canon,
    default: Option<&'a Bound<'py, PyAny>>,
    open: Vec<Open<'py>>,
    /// Members of the dicts that are open: a stack.
    members: Vec<Member<'py>>,
    /// The texts of their keys.
    keys: Vec<u8>,
    /// The depth at which all ancestors were last compared.
    checked_depth: usize,
}

/// A container that is not closed yet.
enum Open<'py> {
    Dict {
        dict: Bound<'py, PyAny>,
        first: usize,
        next: usize,
        end: usize,
        first_key: usize,
    },
    List {
        list: Bound<'py, PyList>,
        next: usize,
    },
    Tuple {
        tuple: Bound<'py, PyTuple>,
        next: usize,
    },
}

/// A member of a dict that is not written yet.
struct Member<'py> {
    /// The first bytes of the key: decides most comparisons.
    prefix: u64,
    key_start: usize,
    key_end: usize,
    value: Bound<'py, PyAny>,
}

impl<'py> Walk<'_, 'py> {
    fn run(mut self, arguments: &Bound<'py, PyAny>) -> PyResult<()> {
        self.value(arguments)?;
        while let Some(value) = self.next_value() {
            self.value(&value)?;
        }
        Ok(())
    }

    /// The next value to write, after its key; closes containers that have none left.
    fn next_value(&mut self) -> Option<Bound<'py, PyAny>> {
        loop {
            match self.open.last_mut()? {
                Open::Dict { next, end, .. } => {
                    let index = *next;
                    if index < *end
                        && let Some(member) = self.members.get(index)
                    {
                        *next += 1;
                        let key = self.keys.get(member.key_start..member.key_end);
                        self.canon.string(key.unwrap_or_default());
                        return Some(member.value.clone());
                    }
                    self.end_dict();
                }
                Open::List { list, next } => {
                    if *next < list.len()
                        && let Ok(item) = list.get_item(*next)
                    {
                        *next += 1;
                        return Some(item);
                    }
                    self.canon.end_array();
                    self.open.pop();
                }
                Open::Tuple { tuple, next } => {
                    if *next < tuple.len()
                        && let Ok(item) = tuple.get_item(*next)
                    {
                        *next += 1;
                        return Some(item);
                    }
                    self.canon.end_array();
                    self.open.pop();
                }
            }
        }
    }

    /// Writes a scalar, or opens a container.
    fn value(&mut self, value: &Bound<'py, PyAny>) -> PyResult<()> {
        if let Ok(text) = value.cast_exact::<PyString>() {
            return self.string(text);
        }
        if let Ok(integer) = value.cast_exact::<PyInt>() {
            return self.integer(integer);
        }
        if let Ok(dict) = value.cast_exact::<PyDict>() {
            return self.begin_dict(dict);
        }
        if let Ok(list) = value.cast_exact::<PyList>() {
            return self.begin_list(list);
        }
        if value.is_none() {
            self.canon.null();
            return Ok(());
        }
        if let Ok(boolean) = value.cast_exact::<PyBool>() {
            self.canon.boolean(boolean.is_true());
            return Ok(());
        }
        if let Ok(float) = value.cast_exact::<PyFloat>() {
            self.canon.float(float.value());
            return Ok(());
        }
        self.subclass_or_foreign(value.clone())
    }

    fn subclass_or_foreign(&mut self, value: Bound<'py, PyAny>) -> PyResult<()> {
        let mut value = value;
        for _ in 0..MAX_DEFAULTS {
            if let Ok(tuple) = value.cast::<PyTuple>() {
                return self.begin_tuple(tuple);
            }
            if let Ok(text) = value.cast::<PyString>() {
                return self.string(text);
            }
            if let Ok(boolean) = value.cast::<PyBool>() {
                self.canon.boolean(boolean.is_true());
                return Ok(());
            }
            if let Ok(integer) = value.cast::<PyInt>() {
                return self.integer(integer);
            }
            if let Ok(float) = value.cast::<PyFloat>() {
                self.canon.float(float.value());
                return Ok(());
            }
            if let Ok(dict) = value.cast::<PyDict>() {
                return self.begin_dict(dict);
            }
            if let Ok(list) = value.cast::<PyList>() {
                return self.begin_list(list);
            }
            if value.is_none() {
                self.canon.null();
                return Ok(());
            }
            let Some(default) = self.default else {
                return Err(self.not_json(&value));
            };
            value = default.call1((value,))?;
        }
        Err(Error::Unsigned(format!(
            "cannot sign {}: default= returned {MAX_DEFAULTS} values in a row that are no JSON",
            self.path()
        ))
        .into())
    }

    fn string(&mut self, text: &Bound<'py, PyString>) -> PyResult<()> {
        match text.to_str() {
            Ok(text) => self.canon.string(text.as_bytes()),
            Err(_) => self.canon.string(&with_surrogates(text)?),
        }
        Ok(())
    }

    fn integer(&mut self, integer: &Bound<'py, PyInt>) -> PyResult<()> {
        if let Ok(integer) = integer.extract::<i64>() {
            self.canon.integer(integer);
            return Ok(());
        }
        let (negative, magnitude) = magnitude_of(integer)?;
        self.canon.big_integer(negative, &magnitude);
        Ok(())
    }

    fn begin_list(&mut self, list: &Bound<'py, PyList>) -> PyResult<()> {
        self.canon.begin_array();
        self.push_open(Open::List {
            list: list.clone(),
            next: 0,
        })
    }

    fn begin_tuple(&mut self, tuple: &Bound<'py, PyTuple>) -> PyResult<()> {
        self.canon.begin_array();
        self.push_open(Open::Tuple {
            tuple: tuple.clone(),
            next: 0,
        })
    }

    fn begin_dict(&mut self, dict: &Bound<'py, PyDict>) -> PyResult<()> {
        self.canon.begin_object();
        let first = self.members.len();
        self.push_open(Open::Dict {
            dict: dict.clone().into_any(),
            first,
            next: first,
            end: first,
            first_key: self.keys.len(),
        })?;
        self.collect_members(dict)?;
        let count = sort_members(
            self.members.get_mut(first..).unwrap_or_default(),
            &self.keys,
        );
        self.members.truncate(first + count);
        if let Some(Open::Dict { end, .. }) = self.open.last_mut() {
            *end = first + count;
        }
        Ok(())
    }

    fn end_dict(&mut self) {
        self.canon.end_object();
        if let Some(Open::Dict {
            first, first_key, ..
        }) = self.open.pop()
        {
            self.members.truncate(first);
            self.keys.truncate(first_key);
        }
    }

    fn collect_members(&mut self, dict: &Bound<'py, PyDict>) -> PyResult<()> {
        with_critical_section(dict, || {
            let mut position: ffi::Py_ssize_t = 0;
            while let Some((key, value)) = next_item(dict, &mut position) {
                let key_start = self.keys.len();
                self.push_key(&key)?;
                let text = self.keys.get(key_start..).unwrap_or_default();
                self.members.push(Member {
                    prefix: prefix_of(text),
                    key_start,
                    key_end: self.keys.len(),
                    value,
                });
            }
            Ok(())
        })
    }

    /// Appends the text of a key, which for other scalars than str is that of `json.dumps`.
    fn push_key(&mut self, key: &Bound<'py, PyAny>) -> PyResult<()> {
        if let Ok(text) = key.cast::<PyString>() {
            match text.to_str() {
                Ok(text) => self.keys.extend_from_slice(text.as_bytes()),
                Err(_) => self.keys.extend_from_slice(&with_surrogates(text)?),
            }
            return Ok(());
        }
        let py = key.py();
        if key.is_none() {
            self.keys.extend_from_slice(b"null");
        } else if let Ok(boolean) = key.cast::<PyBool>() {
            let text: &[u8] = if boolean.is_true() { b"true" } else { b"false" };
            self.keys.extend_from_slice(text);
        } else if key.is_instance_of::<PyInt>() {
            let text = py
                .get_type::<PyInt>()
                .call_method1(intern!(py, "__repr__"), (key,))?;
            self.keys
                .extend_from_slice(text.cast::<PyString>()?.to_str()?.as_bytes());
        } else if let Ok(float) = key.cast::<PyFloat>() {
            let text = float_key(float)?;
            self.keys.extend_from_slice(text.as_bytes());
        } else {
            return Err(Error::NotSigned(format!(
                "cannot sign {}: its keys must be str, int, float, bool or None, not {}",
                self.path(),
                key.get_type().name()?
            ))
            .into());
        }
        Ok(())
    }

    fn push_open(&mut self, open: Open<'py>) -> PyResult<()> {
        let address = open.address();
        let is_near = |other: &Open<'py>| other.address() == address;
        let is_circular = self.open.iter().rev().take(NEAR_ANCESTORS).any(is_near);
        self.open.push(open);
        if is_circular || self.is_circular_so_far() {
            return Err(Error::Unsigned(format!(
                "cannot sign {}: it contains itself",
                self.path()
            ))
            .into());
        }
        if self.open.len() > MAX_DEPTH {
            return Err(Error::Unsigned(format!(
                "cannot sign arguments nested deeper than {MAX_DEPTH}"
            ))
            .into());
        }
        Ok(())
    }

    /// Compares all ancestors whenever the depth has doubled, which finds any cycle sooner or
    /// later at a cost of log n a level.
    fn is_circular_so_far(&mut self) -> bool {
        if self.open.len() < 2 * self.checked_depth {
            return false;
        }
        self.checked_depth = self.open.len();
        let mut addresses: Vec<usize> = self.open.iter().map(Open::address).collect();
        addresses.sort_unstable();
        addresses.windows(2).any(|pair| pair.first() == pair.last())
    }

    fn not_json(&self, value: &Bound<'py, PyAny>) -> PyErr {
        let kind = value.get_type().name();
        let kind = kind.map_or_else(|_| "object".to_owned(), |name| name.to_string());
        Error::NotSigned(format!(
            "cannot sign {}: {kind} is not a JSON value; convert it, or pass default= as for json.dumps",
            self.path()
        ))
        .into()
    }

    /// Where the walk is: `arguments["filters"][0]`; of a long way the last steps.
    fn path(&self) -> String {
        let left_out = self.open.len().saturating_sub(SHOWN_STEPS);
        let mut path = "arguments".to_owned();
        if left_out > 0 {
            let _ = write!(path, "[… {left_out} more …]");
        }
        for open in self.open.iter().skip(left_out) {
            match open {
                Open::Dict { first, next, .. } if next > first => {
                    let member = self.members.get(next - 1);
                    let key =
                        member.and_then(|member| self.keys.get(member.key_start..member.key_end));
                    let key = String::from_utf8_lossy(key.unwrap_or_default());
                    let shown: String = key.chars().take(SHOWN_KEY).collect();
                    let cut = if shown.len() < key.len() { "…" } else { "" };
                    let _ = write!(path, "[{shown:?}{cut}]");
                }
                Open::List { next, .. } | Open::Tuple { next, .. } if *next > 0 => {
                    let _ = write!(path, "[{}]", next - 1);
                }
                _ => {}
            }
        }
        path
    }
}

impl Open<'_> {
    fn address(&self) -> usize {
        let pointer = match self {
            Self::Dict { dict, .. } => dict.as_ptr(),
            Self::List { list, .. } => list.as_ptr(),
            Self::Tuple { tuple, .. } => tuple.as_ptr(),
        };
        pointer.addr()
    }
}

/// The next key and value of a dict, which must be locked where there is no GIL.
fn next_item<'py>(
    dict: &Bound<'py, PyDict>,
    position: &mut ffi::Py_ssize_t,
) -> Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let mut key = std::ptr::null_mut();
    let mut value = std::ptr::null_mut();
    // SAFETY: `dict` is a dict; on success both pointers are borrowed from it and not null, and
    // no Python code runs before they are made references of our own.
    unsafe {
        if ffi::PyDict_Next(dict.as_ptr(), position, &raw mut key, &raw mut value) == 0 {
            return None;
        }
        Some((
            Bound::from_borrowed_ptr(dict.py(), key),
            Bound::from_borrowed_ptr(dict.py(), value),
        ))
    }
}

/// Sorts members by key, keeps the last of equal ones, and returns how many are left.
fn sort_members(members: &mut [Member<'_>], keys: &[u8]) -> usize {
    let key = |member: &Member<'_>| {
        keys.get(member.key_start..member.key_end)
            .unwrap_or_default()
    };
    members.sort_unstable_by(|left, right| {
        compare_keys(key(left), key(right)).then(left.key_start.cmp(&right.key_start))
    });
    let mut kept = 0;
    for index in 0..members.len() {
        let is_last = match (members.get(index), members.get(index + 1)) {
            (Some(this), Some(next)) => this.prefix != next.prefix || key(this) != key(next),
            _ => true,
        };
        if is_last {
            members.swap(kept, index);
            kept += 1;
        }
    }
    kept
}

/// The first eight bytes of a key as a number that sorts like them.
fn prefix_of(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk::<8>() {
        return u64::from_be_bytes(*first);
    }
    let mut bytes = [0; 8];
    for (to, from) in bytes.iter_mut().zip(key) {
        *to = *from;
    }
    u64::from_be_bytes(bytes)
}

/// A float as `json.dumps` writes it as a key.
fn float_key(float: &Bound<'_, PyFloat>) -> PyResult<String> {
    let value = float.value();
    if value.is_nan() {
        return Ok("NaN".to_owned());
    }
    if value.is_infinite() {
        let text = if value > 0.0 { "Infinity" } else { "-Infinity" };
        return Ok(text.to_owned());
    }
    PyFloat::new(float.py(), value).repr()?.extract()
}

/// The text of a str that holds surrogates.
fn with_surrogates(text: &Bound<'_, PyString>) -> PyResult<Vec<u8>> {
    let py = text.py();
    let encoded = py.get_type::<PyString>().call_method1(
        intern!(py, "encode"),
        (text, intern!(py, "utf-8"), intern!(py, "surrogatepass")),
    )?;
    let mut encoded = encoded.cast::<PyBytes>()?.as_bytes().to_vec();
    join_surrogates(&mut encoded);
    Ok(encoded)
}

/// The sign and the magnitude, lowest byte first, of an int of any size.
fn magnitude_of(integer: &Bound<'_, PyInt>) -> PyResult<(bool, Vec<u8>)> {
    let py = integer.py();
    let int = py.get_type::<PyInt>();
    let bits: usize = int
        .call_method1(intern!(py, "bit_length"), (integer,))?
        .extract()?;
    let options = PyDict::new(py);
    options.set_item(intern!(py, "signed"), true)?;
    let bytes = int.call_method(
        intern!(py, "to_bytes"),
        (integer, bits / 8 + 1, intern!(py, "little")),
        Some(&options),
    )?;
    let mut magnitude = bytes.cast::<PyBytes>()?.as_bytes().to_vec();
    let negative = magnitude.last().is_some_and(|&highest| highest >= 0x80);
    if negative {
        negate(&mut magnitude);
    }
    Ok((negative, magnitude))
}

/// Two's complement, lowest byte first.
fn negate(bytes: &mut [u8]) {
    let mut carry = true;
    for byte in bytes {
        (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
    }
}
