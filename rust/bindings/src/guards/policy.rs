//! `ToolPolicy` and what else a guard is told about tools.

use std::collections::{BTreeMap, HashMap};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyList, PyMapping, PyString};
use turnwarden_guard::{
    self as core, Annotations, DetectorSettings, KindTables, LoopKey, ToolKind, VolatileKeys,
};

use super::enums;
use super::fields::{Fields, config_error, has_fields, names, wrong};
use crate::errors::Error;

/// What is ordered about a tool. Frozen, comparable, picklable if its function is.
///
/// Args:
///     kind: What the tool does (`ToolKind` or its name); inferred when not given.
///     ignore_arguments: Top-level arguments that never count, such as a nonce.
///     repeat_threshold: Equal turns in a row that are a loop, for this tool.
///     loop_key: What two calls are compared by: a list of arguments, a function of the
///         arguments that returns any JSON value, or False for never equal.
///
/// Raises:
///     ConfigurationError: A value is out of its range; the message names it.
///
/// Example:
///     >>> policy = turnwarden.ToolPolicy("write", ignore_arguments=["nonce"])
///     >>> guard = turnwarden.WorkflowGuard(policies={"pay_*": policy})
#[pyclass(frozen, module = "turnwarden._core")]
pub(crate) struct ToolPolicy {
    pub(super) policy: core::ToolPolicy,
    pub(super) function: Option<Py<PyAny>>,
}

#[pymethods]
impl ToolPolicy {
    #[new]
    #[pyo3(
        signature = (kind=None, **fields),
        text_signature = "(kind=None, *, ignore_arguments=(), repeat_threshold=None, loop_key=None)"
    )]
    fn new(
        kind: Option<Bound<'_, PyAny>>,
        fields: Option<&Bound<'_, PyDict>>,
        py: Python<'_>,
    ) -> PyResult<Self> {
        let fields = fields.map_or_else(|| Ok(PyDict::new(py)), PyDictMethods::copy)?;
        if let Some(kind) = kind {
            fields.set_item("kind", kind)?;
        }
        Self::from_fields(Fields::new("ToolPolicy", None, Some(&fields), py)?)
    }

    #[getter]
    fn kind(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.policy
            .kind
            .map(|kind| enums::tool_kind(py, kind))
            .transpose()
    }

    #[getter]
    fn ignore_arguments(&self) -> Vec<&str> {
        self.policy
            .ignore_arguments
            .iter()
            .map(|name| &**name)
            .collect()
    }

    #[getter]
    fn repeat_threshold(&self) -> Option<u32> {
        self.policy.repeat_threshold
    }

    #[getter]
    fn loop_key<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match (&self.policy.loop_key, &self.function) {
            (LoopKey::Function(_), Some(function)) => function.bind(py).clone(),
            (LoopKey::Never, _) => PyBool::new(py, false).to_owned().into_any(),
            (LoopKey::Fields(fields), _) => {
                PyList::new(py, fields.iter().map(|field| &**field))?.into_any()
            }
            _ => py.None().into_bound(py),
        })
    }

    /// The fields that differ from the defaults.
    pub(super) fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        if let Some(kind) = self.policy.kind {
            fields.set_item("kind", kind.as_str())?;
        }
        if !self.policy.ignore_arguments.is_empty() {
            fields.set_item("ignore_arguments", self.ignore_arguments())?;
        }
        if let Some(threshold) = self.policy.repeat_threshold {
            fields.set_item("repeat_threshold", threshold)?;
        }
        if self.policy.loop_key != LoopKey::Arguments {
            fields.set_item("loop_key", self.loop_key(py)?)?;
        }
        Ok(fields)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        super::config::repr("ToolPolicy", &self.to_dict(py)?)
    }

    fn __eq__(&self, other: &Self, py: Python<'_>) -> PyResult<bool> {
        self.to_dict(py)?.eq(other.to_dict(py)?)
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((), Bound<'py, PyDict>)> {
        Ok(((), self.to_dict(py)?))
    }
}

impl ToolPolicy {
    fn from_fields(mut fields: Fields<'_>) -> PyResult<Self> {
        let kind = fields
            .take("kind")?
            .map(|kind| kind_from("kind", &kind))
            .transpose()?;
        let ignored = fields.take("ignore_arguments")?;
        let (loop_key, function) = match fields.take("loop_key")? {
            Some(key) => loop_key_from(&key)?,
            None => (LoopKey::Arguments, None),
        };
        let policy = core::ToolPolicy {
            kind,
            ignore_arguments: match ignored {
                Some(ignored) => names("ignore_arguments", &ignored)?,
                None => Vec::new(),
            },
            repeat_threshold: fields.count("repeat_threshold")?,
            loop_key,
        };
        fields.finish()?;
        policy.validate().map_err(|error| config_error(&error))?;
        Ok(Self { policy, function })
    }

    /// A policy, its fields, or its kind alone.
    pub(super) fn from_value(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = value.py();
        if let Ok(policy) = value.cast::<Self>() {
            let policy = policy.get();
            return Ok(Self {
                policy: policy.policy.clone(),
                function: policy
                    .function
                    .as_ref()
                    .map(|function| function.clone_ref(py)),
            });
        }
        if value.is_instance_of::<PyString>() {
            let policy = core::ToolPolicy {
                kind: Some(kind_from("kind", value)?),
                ..core::ToolPolicy::default()
            };
            return Ok(Self {
                policy,
                function: None,
            });
        }
        Self::from_fields(Fields::new("ToolPolicy", Some(value), None, py)?)
    }
}

pub(super) fn kind_from(field: &str, value: &Bound<'_, PyAny>) -> PyResult<ToolKind> {
    let name: Option<String> = value.extract().ok();
    name.and_then(|name| name.parse().ok()).ok_or_else(|| {
        let names = ToolKind::ALL.map(ToolKind::as_str).join(", ");
        wrong(field, value, &format!("one of {names}"))
    })
}

fn loop_key_from(value: &Bound<'_, PyAny>) -> PyResult<(LoopKey, Option<Py<PyAny>>)> {
    let allowed = "a function of the arguments, a list of their names, or False";
    if let Ok(flag) = value.cast::<PyBool>() {
        return if flag.is_true() {
            Err(wrong("loop_key", value, allowed))
        } else {
            Ok((LoopKey::Never, None))
        };
    }
    if value.is_callable() {
        return Ok((LoopKey::Function(0), Some(value.clone().unbind())));
    }
    if value.extract::<&str>().is_ok_and(|text| text == FUNCTION) {
        return Err(Error::Configuration(
            "loop_key is a function, which no snapshot carries: give the configuration that the \
             guard was made with as config="
                .to_owned(),
        )
        .into());
    }
    let fields = names("loop_key", value).map_err(|_| wrong("loop_key", value, allowed))?;
    Ok((LoopKey::Fields(fields), None))
}

/// What a guard is told about tools.
#[derive(Default)]
pub(super) struct ToolSettings {
    pub(super) tables: KindTables,
    pub(super) policies: Vec<(Box<str>, core::ToolPolicy)>,
    pub(super) annotations: HashMap<Box<str>, Annotations>,
    pub(super) volatile_keys: VolatileKeys,
    /// What [`LoopKey::Function`] counts.
    pub(super) functions: Vec<Py<PyAny>>,
    /// The fields as they were given, for `to_dict`.
    pub(super) given: Option<Py<PyDict>>,
}

impl ToolSettings {
    pub(super) fn take_from(fields: &mut Fields<'_>, py: Python<'_>) -> PyResult<Self> {
        let mut settings = Self::default();
        let given = PyDict::new(py);
        if let Some(policies) = fields.take("policies")? {
            for (pattern, value) in items("policies", &policies)? {
                let name: String = pattern.extract().map_err(|_| {
                    wrong("a key of policies", &pattern, "names of tools, or patterns")
                })?;
                let field = format!("policies.{name}");
                if !value.is_none() && !value.is_instance_of::<PyString>() && !is_policy(&value) {
                    let allowed = "a ToolPolicy, a mapping of its fields, or a kind";
                    return Err(wrong(&field, &value, allowed));
                }
                let policy =
                    ToolPolicy::from_value(&value).map_err(|error| inside(py, &field, error))?;
                settings.add_policy(name, policy, py);
            }
            given.set_item("policies", policies)?;
        }
        if let Some(tools) = fields.take("tools")? {
            let tools = listed_tools(&tools)?;
            for tool in &tools {
                if let Some((name, hints)) = annotations_of(tool)? {
                    settings.annotations.insert(name, hints);
                }
            }
            given.set_item("tools", tools)?;
        }
        for field in ["verbs", "programs"] {
            let Some(words) = fields.take(field)? else {
                continue;
            };
            for (word, kind) in items(field, &words)? {
                let name: String = word
                    .extract()
                    .map_err(|_| wrong(&format!("a key of {field}"), &word, "words"))?;
                let kind = kind_from(&format!("{field}.{name}"), &kind)?;
                if field == "verbs" {
                    settings.tables.set_verb(&name.to_lowercase(), kind);
                } else {
                    settings.tables.set_program(&name, kind);
                }
            }
            given.set_item(field, words)?;
        }
        if let Some(shells) = fields.take("shell_tools")? {
            for name in names("shell_tools", &shells)? {
                settings.tables.add_shell_tool(&name);
            }
            given.set_item("shell_tools", shells)?;
        }
        if let Some(keys) = fields.take("volatile_keys")? {
            settings.change_volatile_keys(&keys)?;
            given.set_item("volatile_keys", keys)?;
        }
        settings.given = (!given.is_empty()).then(|| given.unbind());
        Ok(settings)
    }

    fn change_volatile_keys(&mut self, keys: &Bound<'_, PyAny>) -> PyResult<()> {
        for (key, volatile) in items("volatile_keys", keys)? {
            let name: String = key
                .extract()
                .map_err(|_| wrong("a key of volatile_keys", &key, "names of keys"))?;
            let field = format!("volatile_keys.{name}");
            let volatile = volatile
                .extract()
                .map_err(|_| wrong(&field, &volatile, "True or False"))?;
            let changed = self.volatile_keys.set(&name, volatile);
            changed.map_err(|error| config_error(&error))?;
        }
        Ok(())
    }

    fn add_policy(&mut self, name: String, policy: ToolPolicy, py: Python<'_>) {
        let mut kept = policy.policy;
        if let (LoopKey::Function(number), Some(function)) = (&mut kept.loop_key, policy.function) {
            *number = u32::try_from(self.functions.len()).unwrap_or(u32::MAX);
            self.functions.push(function.clone_ref(py));
        }
        self.policies.push((name.into(), kept));
    }
}

/// What a guard was told about tools, as values that JSON can carry.
pub(super) fn tools_as_dict<'py>(
    settings: &DetectorSettings,
    py: Python<'py>,
) -> PyResult<Bound<'py, PyDict>> {
    let tools = &settings.tools;
    let fields = PyDict::new(py);
    let policies = PyDict::new(py);
    for (pattern, policy) in &tools.policies {
        let policy = ToolPolicy {
            policy: policy.clone(),
            function: None,
        };
        let plain = policy.to_dict(py)?;
        if let LoopKey::Function(_) = policy.policy.loop_key {
            plain.set_item("loop_key", FUNCTION)?;
        }
        policies.set_item(&**pattern, plain)?;
    }
    fields.set_item("policies", policies)?;
    let annotated = PyList::empty(py);
    for (name, hints) in &tools.annotations {
        let annotations = PyDict::new(py);
        annotations.set_item("readOnlyHint", hints.read_only)?;
        annotations.set_item("destructiveHint", hints.destructive)?;
        annotations.set_item("idempotentHint", hints.idempotent)?;
        let tool = PyDict::new(py);
        tool.set_item("name", &**name)?;
        tool.set_item("annotations", annotations)?;
        annotated.append(tool)?;
    }
    fields.set_item("tools", annotated)?;
    let default = KindTables::default();
    fields.set_item("verbs", changes(tools.tables.verbs(), default.verbs(), py)?)?;
    fields.set_item(
        "programs",
        changes(tools.tables.programs(), default.programs(), py)?,
    )?;
    let shells: Vec<&str> = tools.tables.shell_tools().collect();
    fields.set_item("shell_tools", shells)?;
    let keys: BTreeMap<&str, bool> = settings.volatile_keys.changes().collect();
    fields.set_item("volatile_keys", keys)?;
    Ok(fields)
}

/// Stands for a function of the user's, which no snapshot can carry.
const FUNCTION: &str = "<function>";

/// The entries of a table that are not those of the default one.
fn changes<'a, 'py>(
    table: impl Iterator<Item = (&'a str, ToolKind)>,
    default: impl Iterator<Item = (&'a str, ToolKind)>,
    py: Python<'py>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut entries: BTreeMap<&str, ToolKind> = table.collect();
    let changed = PyDict::new(py);
    for (word, kind) in default {
        match entries.remove(word) {
            None => changed.set_item(word, ToolKind::Unknown.as_str())?,
            Some(now) if now != kind => changed.set_item(word, now.as_str())?,
            Some(_) => {}
        }
    }
    for (word, kind) in entries {
        changed.set_item(word, kind.as_str())?;
    }
    Ok(changed)
}

fn items<'py>(
    field: &str,
    mapping: &Bound<'py, PyAny>,
) -> PyResult<Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
    let pairs = mapping
        .call_method0("items")
        .map_err(|_| wrong(field, mapping, "a mapping"))?;
    pairs.try_iter()?.map(|pair| pair?.extract()).collect()
}

fn is_policy(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<ToolPolicy>() || has_fields(value)
}

/// Tools of MCP servers: dicts, or objects that have a name.
fn listed_tools<'py>(tools: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let allowed = "a list of tools as MCP servers describe them";
    let no_list = tools.is_instance_of::<PyString>()
        || tools.is_instance_of::<PyBytes>()
        || tools.cast::<PyMapping>().is_ok();
    let items = tools.try_iter().ok().filter(|_| !no_list);
    let items = items.ok_or_else(|| wrong("tools", tools, allowed))?;
    let mut listed = Vec::new();
    for (number, tool) in items.enumerate() {
        let tool = tool?;
        if tool.cast::<PyMapping>().is_err() && member(&tool, "name")?.is_none() {
            let field = format!("tools[{number}]");
            return Err(wrong(
                &field,
                &tool,
                "a tool: a mapping, or an object with a name",
            ));
        }
        listed.push(tool);
    }
    Ok(listed)
}

/// The name and hints of an MCP tool, given as a dict or as an object of an SDK.
fn annotations_of(tool: &Bound<'_, PyAny>) -> PyResult<Option<(Box<str>, Annotations)>> {
    let (Some(name), Some(hints)) = (member(tool, "name")?, member(tool, "annotations")?) else {
        return Ok(None);
    };
    let name: String = name
        .extract()
        .map_err(|_| wrong("tools.name", &name, "a str"))?;
    let hint = |key| -> PyResult<Option<bool>> {
        Ok(member(&hints, key)?.and_then(|hint| hint.extract().ok()))
    };
    let annotations = Annotations {
        read_only: hint("readOnlyHint")?,
        destructive: hint("destructiveHint")?,
        idempotent: hint("idempotentHint")?,
    };
    Ok(Some((name.into(), annotations)))
}

/// A key of a mapping or an attribute of anything else; None is as good as none.
pub(super) fn member<'py>(
    of: &Bound<'py, PyAny>,
    name: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let value = match of.cast::<PyDict>() {
        Ok(dict) => dict.get_item(name)?,
        Err(_) => of.getattr_opt(name)?,
    };
    Ok(value.filter(|value| !value.is_none()))
}

/// The same error as seen from the configuration that holds the wrong field.
pub(super) fn inside(py: Python<'_>, outer: &str, error: PyErr) -> PyErr {
    let is_ours = error.is_instance_of::<pyo3::exceptions::PyValueError>(py);
    if !is_ours && !error.is_instance_of::<PyTypeError>(py) {
        return error;
    }
    if !is_ours {
        return error;
    }
    let message = error.value(py).to_string();
    let message = match message.split_once(" has no field ") {
        Some((class, rest)) if !class.contains(' ') => format!("{outer} has no field {rest}"),
        _ => format!("{outer}.{message}"),
    };
    Error::Configuration(message).into()
}
