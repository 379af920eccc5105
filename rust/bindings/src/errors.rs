//! Where the errors of the Rust crates become Python exceptions, and the only place for it.
//!
//! [`Error`] lists what can go wrong at the edge to Python. `From<Error> for PyErr` picks the
//! class and renders the message, so errors cost nothing until they are raised. Every class
//! derives from `TurnwardenError` and from the built-in that fits.

use std::borrow::Cow;

use pyo3::exceptions::{PyException, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};
use turnwarden_extract::json;
use turnwarden_guard::SnapshotError;

/// What can go wrong between Python and the core.
#[derive(Debug)]
pub(crate) enum Error {
    /// An argument has a type that it cannot have.
    WrongType {
        /// What the argument is for, such as `a reply`.
        what: Cow<'static, str>,
        /// The types it may have, such as `str or bytes`.
        expected: &'static str,
        /// The type that was given.
        found: String,
    },
    /// An option of a parser has a value that it cannot have.
    Configuration(String),
    /// No format knows a model of this name.
    UnknownModel(String),
    /// A value holds something that JSON cannot carry.
    NotJson {
        /// Where in the value, such as `$.filter[2]`.
        path: String,
        /// What stands there, such as `a set`.
        found: String,
    },
    /// A value in arguments that JSON does not have; the message says where.
    NotSigned(String),
    /// Arguments without an end.
    Unsigned(String),
    /// JSON that could not be healed.
    Repair(json::Error),
    /// A text that should be JSON is none; a pickle that was changed by hand can bring that about.
    Malformed(usize),
    /// `feed` after `finish`.
    StreamFinished,
    /// Bytes that are no snapshot of a guard.
    Snapshot(SnapshotError),
    /// A stream was used while it was reading a delta.
    StreamBusy,
}

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        Python::attach(|py| match exceptions(py) {
            Ok(classes) => error.raise(py, classes),
            Err(failure) => failure,
        })
    }
}

impl Error {
    /// The error for an argument of a wrong type.
    #[cold]
    pub(crate) fn wrong_type(
        what: impl Into<Cow<'static, str>>,
        expected: &'static str,
        found: &Bound<'_, PyAny>,
    ) -> Self {
        Self::WrongType {
            what: what.into(),
            expected,
            found: type_name(found),
        }
    }

    fn raise(self, py: Python<'_>, classes: &Exceptions) -> PyErr {
        match self {
            Self::WrongType {
                what,
                expected,
                found,
            } => classes
                .wrong_type
                .error(py, format!("{what} must be {expected}, not {found}")),
            Self::Configuration(message) => classes.configuration.error(py, message),
            Self::UnknownModel(name) => {
                let alike = turnwarden_extract::similar_models(&name);
                let meant = if alike.is_empty() {
                    String::new()
                } else {
                    format!(" (known and similar: {})", alike.join(", "))
                };
                classes.unknown_model.error(
                    py,
                    format!(
                        "no format knows a model named {name:?}{meant}; pass formats=[...] with \
                         labels from turnwarden.formats(), or let ResponseParser() detect the format"
                    ),
                )
            }
            Self::NotJson { path, found } => classes
                .wrong_type
                .error(py, format!("JSON cannot carry {found} (at {path})")),
            Self::NotSigned(message) => classes.wrong_type.error(py, message),
            Self::Unsigned(message) => classes.signature.error(py, message),
            Self::Malformed(offset) => classes
                .configuration
                .error(py, format!("no valid JSON at byte {offset}")),
            Self::Repair(error) => classes.repair_error(py, &error),
            Self::StreamBusy => classes.stream_busy.error(
                py,
                "the stream is reading another delta; feed one delta at a time".to_owned(),
            ),
            Self::Snapshot(error) => classes.snapshot.error(py, error.to_string()),
            Self::StreamFinished => classes.stream_finished.error(
                py,
                "the stream is finished; start another one with parser.stream()".to_owned(),
            ),
        }
    }
}

/// The name of a value's type, with its module where it is no built-in.
pub(crate) fn type_name(value: &Bound<'_, PyAny>) -> String {
    value
        .get_type()
        .fully_qualified_name()
        .map_or_else(|_| "an unnamed type".to_owned(), |name| name.to_string())
}

/// One exception class.
struct Class(Py<PyType>);

impl Class {
    fn error(&self, py: Python<'_>, message: String) -> PyErr {
        PyErr::from_type(self.0.bind(py).clone(), (message,))
    }
}

/// The exception classes, made once in each process.
struct Exceptions {
    root: Class,
    signature: Class,
    wrong_type: Class,
    configuration: Class,
    unknown_model: Class,
    json_repair: Class,
    stream_finished: Class,
    stream_busy: Class,
    snapshot: Class,
}

static EXCEPTIONS: PyOnceLock<Exceptions> = PyOnceLock::new();

fn exceptions(py: Python<'_>) -> PyResult<&'static Exceptions> {
    EXCEPTIONS.get_or_try_init(py, || Exceptions::new(py))
}

impl Exceptions {
    fn new(py: Python<'_>) -> PyResult<Self> {
        let value_error = py.get_type::<PyValueError>();
        let root = class(
            py,
            "TurnwardenError",
            "The root of all exceptions of this package.",
            &[&py.get_type::<PyException>()],
        )?;
        let base = root.0.bind(py).clone();
        let configuration = class(
            py,
            "ConfigurationError",
            "An option has a value that it cannot have.",
            &[&base, &value_error],
        )?;
        Ok(Self {
            signature: class(
                py,
                "SignatureError",
                "The arguments of a call contain themselves, or are nested too deeply.",
                &[&base, &value_error],
            )?,
            wrong_type: class(
                py,
                "WrongTypeError",
                "An argument has a type that it cannot have; the message names both.",
                &[&base, &py.get_type::<PyTypeError>()],
            )?,
            unknown_model: class(
                py,
                "UnknownModelError",
                "No format knows a model of the given name.",
                &[configuration.0.bind(py)],
            )?,
            json_repair: class(
                py,
                "JSONRepairError",
                "A text could not be healed to JSON.\n\n\
                 Attributes:\n    \
                 kind: Why, a name in snake case such as `number_out_of_range`.\n    \
                 offset: Where, in bytes of the text as UTF-8.\n",
                &[&base, &value_error],
            )?,
            stream_busy: class(
                py,
                "StreamBusyError",
                "A stream was used by another thread, or from inside, while it read a delta.",
                &[&base, &py.get_type::<PyRuntimeError>()],
            )?,
            stream_finished: class(
                py,
                "StreamFinishedError",
                "A chunk was fed to a stream that is finished.",
                &[&base, &py.get_type::<PyRuntimeError>()],
            )?,
            snapshot: class(
                py,
                "SnapshotError",
                "Bytes are no snapshot of a guard that this release can read.",
                &[&base, &value_error],
            )?,
            configuration,
            root,
        })
    }

    fn repair_error(&self, py: Python<'_>, error: &json::Error) -> PyErr {
        let raised = self.json_repair.error(py, error.to_string());
        let value = raised.value(py);
        let set = value
            .setattr("kind", error.kind.as_str())
            .and_then(|()| value.setattr("offset", error.offset));
        set.err().unwrap_or(raised)
    }
}

/// Make an exception class of the package.
///
/// `type(...)` is called rather than `create_exception!`, which knows one base class only.
fn class(py: Python<'_>, name: &str, doc: &str, bases: &[&Bound<'_, PyType>]) -> PyResult<Class> {
    let namespace = PyDict::new(py);
    namespace.set_item("__module__", "turnwarden")?;
    namespace.set_item("__doc__", doc)?;
    let class = py
        .get_type::<PyType>()
        .call1((name, PyTuple::new(py, bases)?, namespace))?;
    Ok(Class(class.cast_into::<PyType>()?.unbind()))
}

/// Put the exception classes into the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let classes = exceptions(module.py())?;
    for class in [
        &classes.root,
        &classes.signature,
        &classes.wrong_type,
        &classes.configuration,
        &classes.unknown_model,
        &classes.json_repair,
        &classes.stream_finished,
        &classes.stream_busy,
        &classes.snapshot,
    ] {
        let class = class.0.bind(module.py());
        module.add(class.name()?, class)?;
    }
    Ok(())
}
