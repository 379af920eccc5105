//! The formats that are read, as Python sees them.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMapping, PyString, PyTuple, PyType};
use turnwarden_extract as extract;

use super::text::{Utf8, read_text};
use super::values::{Foreign, read_object, write_json};
use crate::errors::Error;

/// How one family of models writes its calls.
///
/// A format is a declaration, plain data: which markers stand around calls, and where in them name
/// and arguments are. All built-in formats are such declarations too: `to_dict` shows them, and
/// `docs/formats.md` says what each key means.
///
/// Args:
///     label: The name by which the format is pinned and reported.
///     syntaxes: The ways of writing calls, as mappings; the first that fits is taken. Each says
///         where calls stand (`open` and `close` markers, a `fence` with its languages, or
///         `whole`: they are the whole reply) and how they are written (`calls`: `json`, `named`,
///         `tagged`, `key_value`, `python`, `braced`, `channels`, `react`, `workflow` or `native`).
///     models: The models that use it.
///     example: A reply with one call or more.
///     reasoning: Pairs of markers around reasoning, besides those that are known anyway.
///     reasoning_open: Whether the chat template opens a block of reasoning, so that replies only
///         close it.
///     wrappers: Pairs of markers around the answer, which are no part of it.
///     end_of_turn: Tokens that end a turn.
///
/// Raises:
///     ConfigurationError: When a field cannot be used; the message names it.
///     WrongTypeError: When a value is nothing that JSON knows.
///
/// Attributes:
///     label (str): The name by which the format is pinned and reported.
///     models (tuple[str, ...]): The models that use it.
///     example (str): A reply with one call or more.
///
/// Example:
///     >>> acme = turnwarden.Format(
///     ...     "acme", [{"open": "<acme>", "close": "</acme>", "calls": {"json": {"name": "do"}}}]
///     ... )
///     >>> parser = turnwarden.ResponseParser(formats=["hermes", acme])
///     >>> parser.parse('<acme>{"do": "ping", "arguments": {}}</acme>').tool_calls[0].name
///     'ping'
#[pyclass(frozen, module = "turnwarden", name = "Format")]
pub(crate) struct PyFormat(extract::Format);

impl PyFormat {
    /// The declaration.
    pub(crate) fn declaration(&self) -> &extract::Format {
        &self.0
    }
}

fn configuration(error: &extract::ConfigError) -> Error {
    Error::Configuration(error.to_string())
}

#[pymethods]
impl PyFormat {
    #[new]
    #[pyo3(
        signature = (
            label, syntaxes, *, models=None, example=Utf8::from(""), reasoning=None,
            reasoning_open=false, wrappers=None, end_of_turn=None,
        ),
        text_signature = "(label, syntaxes, *, models=None, example='', reasoning=None, \
                          reasoning_open=False, wrappers=None, end_of_turn=None)"
    )]
    #[expect(clippy::too_many_arguments, reason = "the fields of a format")]
    fn new(
        label: Utf8,
        syntaxes: &Bound<'_, PyAny>,
        models: Option<&Bound<'_, PyAny>>,
        example: Utf8,
        reasoning: Option<&Bound<'_, PyAny>>,
        reasoning_open: bool,
        wrappers: Option<&Bound<'_, PyAny>>,
        end_of_turn: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (Utf8(label), Utf8(example)) = (label, example);
        let data = PyDict::new(syntaxes.py());
        data.set_item("label", label)?;
        data.set_item("syntaxes", syntaxes)?;
        data.set_item("example", example)?;
        data.set_item("reasoning_open", reasoning_open)?;
        for (name, value) in [
            ("models", models),
            ("reasoning", reasoning),
            ("wrappers", wrappers),
            ("end_of_turn", end_of_turn),
        ] {
            if let Some(value) = value {
                data.set_item(name, value)?;
            }
        }
        Self::read(&data)
    }

    /// Read a declaration that is a mapping, such as `to_dict` gives and JSON files carry.
    ///
    /// Args:
    ///     data: The keys of `Format`'s arguments; `label` and `syntaxes` must be there.
    ///
    /// Raises:
    ///     ConfigurationError: When a field is missing, unknown or cannot be used; the message
    ///         names it.
    ///     WrongTypeError: When `data` is no mapping, or a value is nothing that JSON knows.
    ///
    /// Example:
    ///     >>> hermes = turnwarden.formats()[3]
    ///     >>> turnwarden.Format.from_dict(hermes.to_dict()) == hermes
    ///     True
    #[classmethod]
    fn from_dict(_class: &Bound<'_, PyType>, data: &Bound<'_, PyAny>) -> PyResult<Self> {
        if !data.is_instance_of::<PyMapping>() {
            return Err(Error::wrong_type("data", "a mapping", data).into());
        }
        Self::read(data)
    }

    /// Read a response template, as tokenizer configs of Hugging Face carry it.
    ///
    /// The fields `thinking` or `reasoning_content` become reasoning, `content` text and
    /// `tool_calls` calls. What no declaration can say is refused, with the field and the key;
    /// nothing is read as something else. `docs/formats.md` says which patterns are understood.
    ///
    /// Args:
    ///     spec: The template, or a whole tokenizer config that holds one as `response_template`:
    ///         a mapping, or JSON as `str` or `bytes`.
    ///     label: The name of the format.
    ///     models: The models that use it.
    ///
    /// Raises:
    ///     ConfigurationError: When it is no response template, or says what cannot be read.
    ///     WrongTypeError: When `spec` is something else.
    ///
    /// Example:
    ///     >>> template = {
    ///     ...     "fields": {
    ///     ...         "thinking": {"open": "<muse>", "close": "</muse>"},
    ///     ...         "tool_calls": {"open": "<do>", "close": "</do>", "content": "json"},
    ///     ...     }
    ///     ... }
    ///     >>> format = turnwarden.Format.from_response_template(template, label="new-model")
    ///     >>> parser = turnwarden.ResponseParser([format])
    ///     >>> reply = parser.parse('<muse>hm</muse><do>{"name": "ping", "arguments": {}}</do>')
    ///     >>> reply.reasoning, reply.tool_calls[0].name
    ///     ('hm', 'ping')
    #[classmethod]
    #[pyo3(
        signature = (spec, *, label=Utf8::from("response_template"), models=None),
        text_signature = "(spec, *, label='response_template', models=None)"
    )]
    fn from_response_template(
        _class: &Bound<'_, PyType>,
        spec: &Bound<'_, PyAny>,
        label: Utf8,
        models: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        const EXPECTED: &str = "a mapping, or JSON as str or bytes";
        let Utf8(label) = label;
        let text = spec.is_instance_of::<PyString>() || spec.is_instance_of::<PyBytes>();
        let json = if text {
            read_text(spec, "spec")?.into_string()
        } else if spec.is_instance_of::<PyMapping>() {
            write_json(spec, Foreign::Refuse)?
        } else {
            return Err(Error::wrong_type("spec", EXPECTED, spec).into());
        };
        let mut format = extract::Format::from_response_template(&json, &label)
            .map_err(|error| configuration(&error))?;
        format.models = models.map(read_models).transpose()?.unwrap_or_default();
        Ok(Self(format))
    }

    #[getter]
    fn label(&self) -> &str {
        &self.0.label
    }

    #[getter]
    fn models<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.0.models)
    }

    #[getter]
    fn example(&self) -> &str {
        &self.0.example
    }

    /// Whether the chat template opens a block of reasoning, so that replies begin in it.
    #[getter]
    fn reasoning_open(&self) -> bool {
        self.0.reasoning_open
    }

    /// Pairs of markers around reasoning that only this format knows.
    #[getter]
    fn reasoning(&self) -> Vec<(String, String)> {
        self.0.reasoning.clone()
    }

    /// The ways of writing calls, as plain data.
    #[getter]
    fn syntaxes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.to_dict(py)?.as_any().get_item("syntaxes")
    }

    /// Give the declaration as plain data; `from_dict` makes an equal format of it.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        read_object(py, &self.0.to_json())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> Option<bool> {
        let other = other.cast::<Self>().ok()?;
        Some(self.0 == other.get().0)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.0.label.as_str().into_pyobject(py)?.hash()
    }

    fn __repr__(&self) -> String {
        format!("<Format {}>", self.0.label)
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyDict>,))> {
        let restore = py.get_type::<Self>().getattr(intern!(py, "from_dict"))?;
        Ok((restore, (self.to_dict(py)?,)))
    }
}

impl PyFormat {
    fn read(data: &Bound<'_, PyAny>) -> PyResult<Self> {
        let json = write_json(data, Foreign::Refuse)?;
        let format = extract::Format::from_json(&json).map_err(|error| configuration(&error))?;
        Ok(Self(format))
    }
}

/// The models of a format: one name, or several.
fn read_models(models: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    const EXPECTED: &str = "a str or an iterable of str";
    if models.is_instance_of::<PyString>() {
        return Ok(vec![models.extract::<Utf8>()?.0]);
    }
    let Ok(names) = models.try_iter() else {
        return Err(Error::wrong_type("models", EXPECTED, models).into());
    };
    names
        .map(|name| {
            let name = name?;
            name.extract::<Utf8>()
                .map(|name| name.0)
                .map_err(|_| Error::wrong_type("each of models", "str", &name).into())
        })
        .collect()
}

/// Give all formats that are read, in the order in which they are tried.
///
/// Example:
///     >>> "workflow_json" in [format.label for format in turnwarden.formats()]
///     True
#[pyfunction]
pub(crate) fn formats(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
    let shown = extract::formats()
        .iter()
        .map(|format| Bound::new(py, PyFormat(extract::Format::clone(format))))
        .collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(py, shown)
}
