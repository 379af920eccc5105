//! The configurations: frozen, made from keyword arguments, mappings or TOML.

use std::borrow::Cow;
use std::sync::Arc;

use pyo3::PyTraverseError;
use pyo3::exceptions::PyValueError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyType};
use turnwarden_guard::{
    self as core, DetectorSettings, GuardSettings, Locale, Snapshot, SnapshotError, Texts, Tools,
};

use super::fields::{Fields, config_error, wrong};
use super::policy::{ToolSettings, inside, tools_as_dict};
use crate::errors::Error;

/// `Name(field=value, ...)`
pub(super) fn repr(name: &str, fields: &Bound<'_, PyDict>) -> PyResult<String> {
    let mut shown = Vec::with_capacity(fields.len());
    for (key, value) in fields {
        shown.push(format!("{key}={}", value.repr()?));
    }
    Ok(format!("{name}({})", shown.join(", ")))
}

/// Limits of iterations.
///
/// Thresholds that are not given are the defaults, clamped to the next limit given. Frozen,
/// comparable, picklable.
///
/// Args:
///     config: Another configuration or a mapping; keyword arguments win over it.
///     warning_threshold: Iteration from which on the model is warned (default 10).
///     soft_limit: Iteration from which on it is told to finish (default 15).
///     hard_limit: Iteration that is refused: one less than this run (default 20).
///     max_iterations: Another name for `hard_limit`, which wins when both are given.
///
/// Raises:
///     ConfigurationError: A value is out of its range or out of order; the message names the
///         field, the value and what is allowed.
///
/// Example:
///     >>> turnwarden.RecursionGuardConfig(hard_limit=8).soft_limit
///     8
#[pyclass(frozen, eq, module = "turnwarden._core")]
#[derive(PartialEq)]
pub(crate) struct RecursionGuardConfig {
    pub(super) config: core::RecursionGuardConfig,
}

#[pymethods]
impl RecursionGuardConfig {
    #[new]
    #[pyo3(
        signature = (config=None, **fields),
        text_signature = "(config=None, *, warning_threshold=None, soft_limit=None, hard_limit=None, max_iterations=None)"
    )]
    fn new(
        config: Option<&Bound<'_, PyAny>>,
        fields: Option<&Bound<'_, PyDict>>,
        py: Python<'_>,
    ) -> PyResult<Self> {
        Self::from_value(config, fields, py)
    }

    #[getter]
    fn warning_threshold(&self) -> u32 {
        self.config.warning_threshold
    }

    #[getter]
    fn soft_limit(&self) -> u32 {
        self.config.soft_limit
    }

    #[getter]
    fn hard_limit(&self) -> u32 {
        self.config.hard_limit
    }

    #[getter]
    fn max_iterations(&self) -> u32 {
        self.config.hard_limit
    }

    /// Return the fields as plain data.
    pub(super) fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        recursion_fields(self.config, py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        repr("RecursionGuardConfig", &self.to_dict(py)?)
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((), Bound<'py, PyDict>)> {
        Ok(((), self.to_dict(py)?))
    }
}

impl RecursionGuardConfig {
    pub(super) fn from_value(
        config: Option<&Bound<'_, PyAny>>,
        keywords: Option<&Bound<'_, PyDict>>,
        py: Python<'_>,
    ) -> PyResult<Self> {
        let mut fields = Fields::new("RecursionGuardConfig", config, keywords, py)?;
        let named = |name| keywords.map_or(Ok(false), |keywords| keywords.contains(name));
        if named("max_iterations")? && !named("hard_limit")? {
            // The hard limit of the configuration that this one is made from.
            fields.take("hard_limit")?;
        }
        let most = fields.count("max_iterations")?;
        let hard = fields.count("hard_limit")?;
        let config = core::RecursionGuardConfig::from_given(
            fields.count("warning_threshold")?,
            fields.count("soft_limit")?,
            hard.or(most),
        );
        fields.finish()?;
        let config = config.map_err(|mut error| {
            if hard.is_none() && error.field == "hard_limit" {
                "max_iterations".clone_into(&mut error.field);
            }
            config_error(&error)
        })?;
        Ok(Self { config })
    }
}

fn recursion_fields(
    config: core::RecursionGuardConfig,
    py: Python<'_>,
) -> PyResult<Bound<'_, PyDict>> {
    let fields = PyDict::new(py);
    fields.set_item("max_iterations", config.hard_limit)?;
    fields.set_item("warning_threshold", config.warning_threshold)?;
    fields.set_item("soft_limit", config.soft_limit)?;
    fields.set_item("hard_limit", config.hard_limit)?;
    Ok(fields)
}

/// The numbers of the loop rules. Frozen, comparable, picklable.
///
/// Args:
///     config: Another configuration or a mapping; keyword arguments win over it.
///     window_size: Turns that similarity looks at; twice as many calls are shown (default 10).
///     repeat_threshold: Equal turns, or similar calls, that are a loop; 2 or more (default 3).
///     similarity_threshold: From here on two calls are similar; 0 to 1 (default 0.9).
///     enable_pattern_detection: Whether oscillating and periodic loops are looked for.
///     enable_progress_detection: Whether no_progress is: errors, scatter, coverage, lookups.
///     max_period: The longest lap in turns that is looked for (default 8).
///     pattern_laps: Laps that are a loop; None for 2 without results and 3 with them.
///     poll_threshold: Equal answers of a poll, or equal transient errors (default 6).
///     error_streak: Equal errors of one tool (default 4).
///     unknown_tool_streak: Calls in a row of tools that do not exist (default 3).
///     scatter_threshold: Times that a call brings the same with others between (default 4).
///     coverage_threshold: Reads in a row that bring hardly a new line (default 4).
///     lookup_threshold: Lookups in a row that bring nothing, or all the same (default 5).
///     memory_turns: Turns that errors, scatter and lookups look back (default 16).
///     compare_results: Whether equal calls must bring equal results; None for from the first
///         recorded result on.
///     keep_arguments: Whether `call_history` shows arguments; they are then kept in memory.
///
/// Raises:
///     ConfigurationError: A value is out of its range; the message names it.
///
/// Example:
///     >>> turnwarden.LoopDetectorConfig(repeat_threshold=4).repeat_threshold
///     4
#[pyclass(frozen, eq, module = "turnwarden._core")]
#[derive(PartialEq)]
pub(crate) struct LoopDetectorConfig {
    pub(super) config: core::LoopDetectorConfig,
}

#[pymethods]
impl LoopDetectorConfig {
    #[new]
    #[pyo3(
        signature = (config=None, **fields),
        text_signature = "(config=None, *, window_size=None, repeat_threshold=None, similarity_threshold=None, enable_pattern_detection=None, enable_progress_detection=None, max_period=None, pattern_laps=None, poll_threshold=None, error_streak=None, unknown_tool_streak=None, scatter_threshold=None, coverage_threshold=None, lookup_threshold=None, memory_turns=None, compare_results=None, keep_arguments=None)"
    )]
    fn new(
        config: Option<&Bound<'_, PyAny>>,
        fields: Option<&Bound<'_, PyDict>>,
        py: Python<'_>,
    ) -> PyResult<Self> {
        let mut fields = Fields::new("LoopDetectorConfig", config, fields, py)?;
        let config = Self::take_from(&mut fields)?;
        fields.finish()?;
        Ok(config)
    }

    #[getter]
    fn window_size(&self) -> u32 {
        self.config.window_size
    }

    #[getter]
    fn repeat_threshold(&self) -> u32 {
        self.config.repeat_threshold
    }

    #[getter]
    fn similarity_threshold(&self) -> f64 {
        self.config.similarity_threshold
    }

    #[getter]
    fn enable_pattern_detection(&self) -> bool {
        self.config.enable_pattern_detection
    }

    #[getter]
    fn enable_progress_detection(&self) -> bool {
        self.config.enable_progress_detection
    }

    #[getter]
    fn max_period(&self) -> u32 {
        self.config.max_period
    }

    #[getter]
    fn pattern_laps(&self) -> Option<u32> {
        self.config.pattern_laps
    }

    #[getter]
    fn poll_threshold(&self) -> u32 {
        self.config.poll_threshold
    }

    #[getter]
    fn error_streak(&self) -> u32 {
        self.config.error_streak
    }

    #[getter]
    fn unknown_tool_streak(&self) -> u32 {
        self.config.unknown_tool_streak
    }

    #[getter]
    fn scatter_threshold(&self) -> u32 {
        self.config.scatter_threshold
    }

    #[getter]
    fn coverage_threshold(&self) -> u32 {
        self.config.coverage_threshold
    }

    #[getter]
    fn lookup_threshold(&self) -> u32 {
        self.config.lookup_threshold
    }

    #[getter]
    fn memory_turns(&self) -> u32 {
        self.config.memory_turns
    }

    #[getter]
    fn compare_results(&self) -> Option<bool> {
        self.config.compare_results
    }

    #[getter]
    fn keep_arguments(&self) -> bool {
        self.config.keep_arguments
    }

    /// Return the fields as plain data.
    pub(super) fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let config = &self.config;
        let fields = PyDict::new(py);
        fields.set_item("window_size", config.window_size)?;
        fields.set_item("repeat_threshold", config.repeat_threshold)?;
        fields.set_item("similarity_threshold", config.similarity_threshold)?;
        fields.set_item("enable_pattern_detection", config.enable_pattern_detection)?;
        fields.set_item(
            "enable_progress_detection",
            config.enable_progress_detection,
        )?;
        fields.set_item("max_period", config.max_period)?;
        fields.set_item("pattern_laps", config.pattern_laps)?;
        fields.set_item("poll_threshold", config.poll_threshold)?;
        fields.set_item("error_streak", config.error_streak)?;
        fields.set_item("unknown_tool_streak", config.unknown_tool_streak)?;
        fields.set_item("scatter_threshold", config.scatter_threshold)?;
        fields.set_item("coverage_threshold", config.coverage_threshold)?;
        fields.set_item("lookup_threshold", config.lookup_threshold)?;
        fields.set_item("memory_turns", config.memory_turns)?;
        fields.set_item("compare_results", config.compare_results)?;
        fields.set_item("keep_arguments", config.keep_arguments)?;
        Ok(fields)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        repr("LoopDetectorConfig", &self.to_dict(py)?)
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((), Bound<'py, PyDict>)> {
        Ok(((), self.to_dict(py)?))
    }
}

impl LoopDetectorConfig {
    pub(super) fn take_from(fields: &mut Fields<'_>) -> PyResult<Self> {
        let default = core::LoopDetectorConfig::default();
        let config = core::LoopDetectorConfig {
            window_size: fields.count("window_size")?.unwrap_or(default.window_size),
            repeat_threshold: fields
                .count("repeat_threshold")?
                .unwrap_or(default.repeat_threshold),
            similarity_threshold: fields
                .number("similarity_threshold", "a number from 0 to 1")?
                .unwrap_or(default.similarity_threshold),
            enable_pattern_detection: fields
                .flag("enable_pattern_detection")?
                .unwrap_or(default.enable_pattern_detection),
            enable_progress_detection: fields
                .flag("enable_progress_detection")?
                .unwrap_or(default.enable_progress_detection),
            max_period: fields.count("max_period")?.unwrap_or(default.max_period),
            pattern_laps: fields.count("pattern_laps")?,
            poll_threshold: fields
                .count("poll_threshold")?
                .unwrap_or(default.poll_threshold),
            error_streak: fields
                .count("error_streak")?
                .unwrap_or(default.error_streak),
            unknown_tool_streak: fields
                .count("unknown_tool_streak")?
                .unwrap_or(default.unknown_tool_streak),
            scatter_threshold: fields
                .count("scatter_threshold")?
                .unwrap_or(default.scatter_threshold),
            coverage_threshold: fields
                .count("coverage_threshold")?
                .unwrap_or(default.coverage_threshold),
            lookup_threshold: fields
                .count("lookup_threshold")?
                .unwrap_or(default.lookup_threshold),
            memory_turns: fields
                .count("memory_turns")?
                .unwrap_or(default.memory_turns),
            compare_results: fields.flag("compare_results")?,
            keep_arguments: fields
                .flag("keep_arguments")?
                .unwrap_or(default.keep_arguments),
        };
        config.validate().map_err(|error| config_error(&error))?;
        Ok(Self { config })
    }
}

/// What the n-th verdict of one loop episode does. Frozen, comparable, picklable.
///
/// Args:
///     config: Another ladder or a mapping; keyword arguments win over it.
///     warn: The verdict from which on the model is warned (default 1).
///     block: The one from which on the call is answered with the warning (default 2).
///     stop: The one that ends the run (default 3).
///
/// Raises:
///     ConfigurationError: A step is below 1 or before the one it follows.
///
/// Example:
///     >>> turnwarden.Escalation(block=3).stop
///     3
///     >>> turnwarden.Escalation.strict().stop
///     1
#[pyclass(frozen, eq, module = "turnwarden._core")]
#[derive(PartialEq)]
pub(crate) struct Escalation {
    pub(super) steps: core::Escalation,
}

#[pymethods]
impl Escalation {
    #[new]
    #[pyo3(
        signature = (config=None, **fields),
        text_signature = "(config=None, *, warn=None, block=None, stop=None)"
    )]
    fn new(
        config: Option<&Bound<'_, PyAny>>,
        fields: Option<&Bound<'_, PyDict>>,
        py: Python<'_>,
    ) -> PyResult<Self> {
        Self::from_value(config, fields, py)
    }

    /// Return the ladder that stops at the first verdict.
    #[staticmethod]
    fn strict() -> Self {
        Self {
            steps: core::Escalation::strict(),
        }
    }

    #[getter]
    fn warn(&self) -> u32 {
        self.steps.warn
    }

    #[getter]
    fn block(&self) -> u32 {
        self.steps.block
    }

    #[getter]
    fn stop(&self) -> u32 {
        self.steps.stop
    }

    /// Return the fields as plain data.
    pub(super) fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        fields.set_item("warn", self.steps.warn)?;
        fields.set_item("block", self.steps.block)?;
        fields.set_item("stop", self.steps.stop)?;
        Ok(fields)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        repr("Escalation", &self.to_dict(py)?)
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((), Bound<'py, PyDict>)> {
        Ok(((), self.to_dict(py)?))
    }
}

impl Escalation {
    fn from_value(
        config: Option<&Bound<'_, PyAny>>,
        keywords: Option<&Bound<'_, PyDict>>,
        py: Python<'_>,
    ) -> PyResult<Self> {
        let mut fields = Fields::new("Escalation", config, keywords, py)?;
        let default = core::Escalation::default();
        let warn = fields.count("warn")?.unwrap_or(default.warn);
        let block = fields.count("block")?.unwrap_or(default.block.max(warn));
        let stop = fields.count("stop")?.unwrap_or(default.stop.max(block));
        fields.finish()?;
        let steps = core::Escalation { warn, block, stop };
        steps.validate().map_err(|error| config_error(&error))?;
        Ok(Self { steps })
    }
}

/// What a run may use up. Frozen, comparable, picklable.
///
/// The guard warns at 80 per cent. Calls are counted as they are recorded, seconds from the
/// guard's start; tokens and cost are what `WorkflowGuard.spend` is told.
///
/// Args:
///     config: Another budget or a mapping; keyword arguments win over it.
///     max_calls: Calls of tools; the call beyond is refused.
///     max_tokens: Tokens.
///     max_seconds: Seconds.
///     max_cost: Cost, in any unit.
///
/// Raises:
///     ConfigurationError: A limit is not above 0.
///
/// Example:
///     >>> guard = turnwarden.WorkflowGuard(budget=turnwarden.Budget(max_tokens=1000))
///     >>> guard.spend(tokens=800).reasons
///     ('budget.tokens',)
#[pyclass(frozen, eq, module = "turnwarden._core")]
#[derive(PartialEq)]
pub(crate) struct Budget {
    pub(super) budget: core::Budget,
}

#[pymethods]
impl Budget {
    #[new]
    #[pyo3(
        signature = (config=None, **fields),
        text_signature = "(config=None, *, max_calls=None, max_tokens=None, max_seconds=None, max_cost=None)"
    )]
    fn new(
        config: Option<&Bound<'_, PyAny>>,
        fields: Option<&Bound<'_, PyDict>>,
        py: Python<'_>,
    ) -> PyResult<Self> {
        Self::from_value(config, fields, py)
    }

    #[getter]
    fn max_calls(&self) -> Option<u64> {
        self.budget.max_calls
    }

    #[getter]
    fn max_tokens(&self) -> Option<u64> {
        self.budget.max_tokens
    }

    #[getter]
    fn max_seconds(&self) -> Option<f64> {
        self.budget.max_seconds
    }

    #[getter]
    fn max_cost(&self) -> Option<f64> {
        self.budget.max_cost
    }

    /// Return the fields as plain data.
    pub(super) fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        fields.set_item("max_calls", self.budget.max_calls)?;
        fields.set_item("max_tokens", self.budget.max_tokens)?;
        fields.set_item("max_seconds", self.budget.max_seconds)?;
        fields.set_item("max_cost", self.budget.max_cost)?;
        Ok(fields)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        repr("Budget", &self.to_dict(py)?)
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((), Bound<'py, PyDict>)> {
        Ok(((), self.to_dict(py)?))
    }
}

impl Budget {
    fn from_value(
        config: Option<&Bound<'_, PyAny>>,
        keywords: Option<&Bound<'_, PyDict>>,
        py: Python<'_>,
    ) -> PyResult<Self> {
        let mut fields = Fields::new("Budget", config, keywords, py)?;
        let budget = core::Budget {
            max_calls: fields.big_count("max_calls")?,
            max_tokens: fields.big_count("max_tokens")?,
            max_seconds: fields.number("max_seconds", "a finite number above 0")?,
            max_cost: fields.number("max_cost", "a finite number above 0")?,
        };
        fields.finish()?;
        budget.validate().map_err(|error| config_error(&error))?;
        Ok(Self { budget })
    }
}

/// Settings of a guard and what of them only Python knows.
#[derive(Default)]
pub(super) struct Settings {
    pub(super) core: Arc<GuardSettings>,
    pub(super) verbose: bool,
    /// What `loop_key` functions of policies count.
    pub(super) functions: Vec<Py<PyAny>>,
    /// What was told about tools, as it was given.
    pub(super) given: Option<Py<PyDict>>,
    /// The configuration as JSON, for snapshots.
    pub(super) bytes: PyOnceLock<Vec<u8>>,
}

impl Settings {
    /// The configuration as JSON; empty for the default one.
    pub(super) fn to_bytes(&self, py: Python<'_>) -> PyResult<&[u8]> {
        let bytes = self.bytes.get_or_try_init(py, || {
            if std::ptr::eq(self, &raw const *default_settings(py)) {
                return Ok(Vec::new());
            }
            let json = py.import("json")?;
            let text = json.call_method1("dumps", (self.to_plain_dict(py)?,))?;
            PyResult::Ok(text.extract::<String>()?.into_bytes())
        })?;
        Ok(bytes)
    }

    /// The configuration as pickle needs it beside a snapshot: only where functions are in it.
    pub(super) fn picklable<'py>(
        self: &Arc<Self>,
        py: Python<'py>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.functions.is_empty() {
            return Ok(None);
        }
        let config = WorkflowGuardConfig {
            settings: Arc::clone(self),
        };
        Ok(Some(Bound::new(py, config)?.into_any()))
    }

    /// The fields as values that JSON can carry.
    fn to_plain_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        let core = &self.core;
        fields.set_item("recursion", recursion_fields(core.recursion, py)?)?;
        let detection = LoopDetectorConfig {
            config: core.detection.config.clone(),
        };
        fields.set_item("loop_detection", detection.to_dict(py)?)?;
        let escalation = Escalation {
            steps: core.escalation,
        };
        fields.set_item("escalation", escalation.to_dict(py)?)?;
        let budget = Budget {
            budget: core.budget,
        };
        fields.set_item("budget", budget.to_dict(py)?)?;
        fields.update(tools_as_dict(&core.detection, py)?.as_mapping())?;
        fields.set_item("observe", core.observe)?;
        fields.set_item("locale", core.texts.locale.as_str())?;
        let templates = PyDict::new(py);
        for (key, template) in core.texts.own_templates() {
            templates.set_item(key, template)?;
        }
        fields.set_item("templates", templates)?;
        fields.set_item("verbose", self.verbose)?;
        Ok(fields)
    }
}

/// The bytes of a snapshot.
pub(super) fn bytes_of<'a>(data: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    data.extract()
        .map_err(|_| Error::wrong_type("a snapshot", "bytes", data).into())
}

/// The settings that a guard goes on with: those given, else those that it was made with.
pub(super) fn settings_of(
    snapshot: &Snapshot<'_>,
    config: Option<&Bound<'_, PyAny>>,
) -> PyResult<Arc<Settings>> {
    Python::attach(|py| {
        if config.is_some_and(|config| !config.is_none()) {
            return Ok(WorkflowGuardConfig::from_value(config, None, py)?.settings);
        }
        if snapshot.configuration.is_empty() {
            return Ok(default_settings(py));
        }
        let json = py.import("json")?;
        // A sum that fits does not mean that a guard wrote it.
        let fields = json.call_method1("loads", (snapshot.configuration,));
        let fields = fields.ok().filter(PyAnyMethods::is_instance_of::<PyDict>);
        let fields = fields.ok_or(Error::Snapshot(SnapshotError::Configuration))?;
        Ok(WorkflowGuardConfig::from_value(Some(&fields), None, py)?.settings)
    })
}

/// All of a workflow guard's configuration. Frozen, comparable, picklable.
///
/// Nested fields take their own configuration or a mapping, merged with the defaults; None
/// means the default everywhere. Make one and share it between guards: it is then checked and
/// held once.
///
/// Args:
///     config: Another configuration or a mapping; keyword arguments win over it.
///     recursion: Limits of iterations (`RecursionGuardConfig`).
///     loop_detection: Numbers of the loop rules (`LoopDetectorConfig`).
///     escalation: What the n-th verdict does (`Escalation`).
///     policies: What is ordered about tools: name or pattern (`*`, `?`) to `ToolPolicy`, its
///         fields, or its kind. Exact names come first, then the first pattern that fits.
///     tools: Tools of MCP servers, whose `annotations` tell what they do.
///     verbs: Changes to `guards.DEFAULT_VERBS`: word to kind, "unknown" takes one out.
///     programs: Changes to `guards.DEFAULT_PROGRAMS`, in the same way.
///     shell_tools: Names of tools whose `command` decides, besides
///         `guards.DEFAULT_SHELL_TOOLS`.
///     volatile_keys: Changes to `guards.DEFAULT_VOLATILE_KEYS`: key to whether its values are
///         left out when results are compared.
///     budget: What the run may use up (`Budget`).
///     observe: Whether the guard only reports: it never blocks or stops.
///     locale: Language of the texts, "en" or "zh".
///     templates: Texts of your own; see `guards.DEFAULT_TEMPLATES` for keys and fields.
///     verbose: Carried for the caller; the guard itself prints nothing.
///
/// Raises:
///     ConfigurationError: A value is out of its range or a field unknown; the message names
///         it with its path and what is allowed.
///
/// Example:
///     >>> config = turnwarden.WorkflowGuardConfig(recursion={"hard_limit": 30})
///     >>> config.recursion.hard_limit, config.loop_detection.window_size
///     (30, 10)
#[pyclass(frozen, module = "turnwarden._core")]
pub(crate) struct WorkflowGuardConfig {
    pub(super) settings: Arc<Settings>,
}

#[pymethods]
impl WorkflowGuardConfig {
    #[new]
    #[pyo3(
        signature = (config=None, **fields),
        text_signature = "(config=None, *, recursion=None, loop_detection=None, escalation=None, policies=None, tools=None, verbs=None, programs=None, shell_tools=None, volatile_keys=None, budget=None, observe=None, locale=None, templates=None, verbose=None)"
    )]
    fn new(
        config: Option<&Bound<'_, PyAny>>,
        fields: Option<&Bound<'_, PyDict>>,
        py: Python<'_>,
    ) -> PyResult<Self> {
        Self::from_value(config, fields, py)
    }

    /// Return the configuration that a TOML text or file holds.
    ///
    /// Args:
    ///     source: The text itself (str), or the path of a file (`pathlib.Path`).
    ///
    /// Raises:
    ///     ConfigurationError: The text is no TOML, a field is unknown, or its value out of range.
    ///     OSError: The file cannot be read.
    ///
    /// Example:
    ///     >>> config = turnwarden.WorkflowGuardConfig.from_toml("[recursion]\nhard_limit = 30")
    ///     >>> config.recursion.hard_limit
    ///     30
    #[classmethod]
    fn from_toml(_class: &Bound<'_, PyType>, source: &Bound<'_, PyAny>) -> PyResult<Self> {
        let fields = toml_fields(source)?;
        Self::from_value(Some(&fields), None, source.py())
    }

    #[getter]
    fn recursion(&self) -> RecursionGuardConfig {
        RecursionGuardConfig {
            config: self.settings.core.recursion,
        }
    }

    #[getter]
    fn loop_detection(&self) -> LoopDetectorConfig {
        LoopDetectorConfig {
            config: self.settings.core.detection.config.clone(),
        }
    }

    #[getter]
    fn escalation(&self) -> Escalation {
        Escalation {
            steps: self.settings.core.escalation,
        }
    }

    #[getter]
    fn budget(&self) -> Budget {
        Budget {
            budget: self.settings.core.budget,
        }
    }

    #[getter]
    fn policies<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let given = self.settings.given.as_ref();
        let policies = given.map(|given| given.bind(py).get_item("policies"));
        let copy = PyDict::new(py);
        if let Some(Some(policies)) = policies.transpose()? {
            copy.update(policies.cast()?)?;
        }
        Ok(copy)
    }

    #[getter]
    fn observe(&self) -> bool {
        self.settings.core.observe
    }

    #[getter]
    fn verbose(&self) -> bool {
        self.settings.verbose
    }

    #[getter]
    fn locale(&self) -> &'static str {
        self.settings.core.texts.locale.as_str()
    }

    #[getter]
    fn templates<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let templates = PyDict::new(py);
        for (key, template) in self.settings.core.texts.own_templates() {
            templates.set_item(key, template)?;
        }
        Ok(templates)
    }

    /// Return the fields as plain data (policies as they were given).
    pub(super) fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        fields.set_item("recursion", self.recursion().to_dict(py)?)?;
        fields.set_item("loop_detection", self.loop_detection().to_dict(py)?)?;
        fields.set_item("escalation", self.escalation().to_dict(py)?)?;
        fields.set_item("budget", self.budget().to_dict(py)?)?;
        if let Some(given) = &self.settings.given {
            fields.update(given.bind(py).as_mapping())?;
        }
        fields.set_item("observe", self.observe())?;
        fields.set_item("locale", self.locale())?;
        fields.set_item("templates", self.templates(py)?)?;
        fields.set_item("verbose", self.verbose())?;
        Ok(fields)
    }

    fn __eq__(&self, other: &Self, py: Python<'_>) -> PyResult<bool> {
        self.to_dict(py)?.eq(other.to_dict(py)?)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        repr("WorkflowGuardConfig", &self.to_dict(py)?)
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((), Bound<'py, PyDict>)> {
        Ok(((), self.to_dict(py)?))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        for function in &self.settings.functions {
            visit.call(function)?;
        }
        visit.call(&self.settings.given)
    }
}

impl WorkflowGuardConfig {
    /// The configuration that a guard is given: an object, a mapping, keyword arguments.
    pub(super) fn from_value(
        config: Option<&Bound<'_, PyAny>>,
        keywords: Option<&Bound<'_, PyDict>>,
        py: Python<'_>,
    ) -> PyResult<Self> {
        let keywords = keywords.filter(|keywords| !keywords.is_empty());
        let config = config.filter(|config| !config.is_none());
        match (config, keywords) {
            (None, None) => Ok(Self {
                settings: default_settings(py),
            }),
            (Some(config), None) if config.is_instance_of::<Self>() => Ok(Self {
                settings: Arc::clone(&config.cast::<Self>()?.get().settings),
            }),
            _ => Self::from_fields(
                Fields::new("WorkflowGuardConfig", config, keywords, py)?,
                py,
            ),
        }
    }

    fn from_fields(mut fields: Fields<'_>, py: Python<'_>) -> PyResult<Self> {
        let within = |outer: &str, error| inside(py, outer, error);
        let recursion = fields.nested("recursion", "RecursionGuardConfig")?;
        let recursion = RecursionGuardConfig::from_value(recursion.as_ref(), None, py)
            .map_err(|error| within("recursion", error))?;
        let detection = fields.nested("loop_detection", "LoopDetectorConfig")?;
        let detection = LoopDetectorConfig::new(detection.as_ref(), None, py)
            .map_err(|error| within("loop_detection", error))?;
        let escalation = fields.nested("escalation", "Escalation")?;
        let escalation = Escalation::from_value(escalation.as_ref(), None, py)
            .map_err(|error| within("escalation", error))?;
        let budget = fields.nested("budget", "Budget")?;
        let budget = Budget::from_value(budget.as_ref(), None, py)
            .map_err(|error| within("budget", error))?;
        let tools = ToolSettings::take_from(&mut fields, py)?;
        let core = GuardSettings {
            recursion: recursion.config,
            detection: Arc::new(DetectorSettings {
                config: detection.config,
                tools: Tools::new(tools.tables, tools.policies, tools.annotations),
                volatile_keys: tools.volatile_keys,
            }),
            escalation: escalation.steps,
            budget: budget.budget,
            observe: fields.flag("observe")?.unwrap_or(false),
            texts: texts_from(&mut fields)?,
        };
        let verbose = fields.flag("verbose")?.unwrap_or(false);
        fields.finish()?;
        let settings = Settings {
            core: Arc::new(core),
            verbose,
            functions: tools.functions,
            given: tools.given,
            ..Settings::default()
        };
        Ok(Self {
            settings: Arc::new(settings),
        })
    }
}

/// The tables of a TOML text (str) or file (path).
fn toml_fields<'py>(source: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = source.py();
    let (text, of) = if source.is_instance_of::<PyString>() {
        (source.clone(), None)
    } else if source.hasattr("__fspath__")? {
        let path = py.import("pathlib")?.call_method1("Path", (source,))?;
        let text = path.call_method1("read_text", ("utf-8-sig",));
        (
            text.map_err(|error| no_toml(&error, Some(source)))?,
            Some(source),
        )
    } else {
        return Err(Error::wrong_type("TOML", "a text (str) or a path", source).into());
    };
    let toml = py.import("tomllib")?;
    toml.call_method1("loads", (&text,)).map_err(|error| {
        let one_line = of.is_none()
            && text
                .str()
                .is_ok_and(|text| is_path(&text.to_string_lossy()));
        if one_line {
            let message = "a str is TOML text, and this one is none: give the path of a file as \
                           pathlib.Path";
            return Error::Configuration(message.to_owned()).into();
        }
        no_toml(&error, of)
    })
}

/// Whether a text that is no TOML looks like the path of a file.
fn is_path(text: &str) -> bool {
    !text.contains(['\n', '=', '[']) && !text.trim().is_empty()
}

/// An error of the file or of its text, told apart.
fn no_toml(error: &PyErr, of: Option<&Bound<'_, PyAny>>) -> PyErr {
    Python::attach(|py| {
        if !error.is_instance_of::<PyValueError>(py) {
            return error.clone_ref(py); // such as a missing file
        }
        let of = of.map_or_else(String::new, |path| format!("{path}: "));
        let message = format!("{of}no valid TOML: {}", error.value(py));
        Error::Configuration(message).into()
    })
}

/// One for all guards that are made without a configuration.
pub(super) fn default_settings(py: Python<'_>) -> Arc<Settings> {
    static DEFAULT: PyOnceLock<Arc<Settings>> = PyOnceLock::new();
    Arc::clone(DEFAULT.get_or_init(py, Arc::default))
}

pub(super) fn texts_from(fields: &mut Fields<'_>) -> PyResult<Texts> {
    let locale = match fields.take("locale")? {
        None => Locale::default(),
        Some(value) => {
            let name: Option<String> = value.extract().ok();
            let known = Locale::ALL
                .into_iter()
                .find(|locale| Some(locale.as_str()) == name.as_deref());
            known.ok_or_else(|| wrong("locale", &value, "one of en, zh"))?
        }
    };
    let Some(templates) = fields.take("templates")? else {
        return Texts::new(locale, []).map_err(|error| config_error(&error));
    };
    let given: Vec<(String, String)> = templates
        .call_method0("items")
        .and_then(|items| items.try_iter()?.map(|item| item?.extract()).collect())
        .map_err(|_| wrong("templates", &templates, "a mapping of keys to texts"))?;
    let pairs = given.iter().map(|(key, text)| (&**key, &**text));
    Texts::new(locale, pairs).map_err(|error| config_error(&error))
}
