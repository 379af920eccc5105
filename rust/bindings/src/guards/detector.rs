//! `LoopDetector` and its records.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use turnwarden_guard::{
    self as core, DetectorSettings, GuardSettings, Snapshot, SnapshotKind, Tools,
};
use turnwarden_signature::Signature;

use super::call::{OwnedCalls, ReadCall, call_id_of, read_answer};
use super::clock::Clock;
use super::config::{
    LoopDetectorConfig, Settings, bytes_of, default_settings, repr, settings_of, texts_from,
};
use super::fields::Fields;
use super::policy::ToolSettings;
use super::result::LoopDetectionResult;
use super::workflow::PickledGuard;
use crate::errors::Error;

/// A recorded call, from `call_history`.
///
/// Attributes:
///     index: Its number, counted from 0 over the run (int).
///     tool_name: The tool; a name beyond 192 bytes is cut and ends with its hash.
///     args_hash: The signature that it is compared by, 32 hexadecimal digits.
///     timestamp: When it was recorded, in seconds of the guard's clock (float).
///     arguments: Its arguments as a value, under `keep_arguments=True`; else None.
///
/// Example:
///     >>> detector = turnwarden.LoopDetector()
///     >>> detector.record_call("search", {"q": "tea"})
///     >>> call = detector.call_history[0]
///     >>> call.tool_name, call.args_hash == turnwarden.call_signature("search", {"q": "tea"})
///     ('search', True)
#[pyclass(frozen, module = "turnwarden._core")]
pub(crate) struct CallRecord {
    index: u64,
    tool: Arc<core::Tool>,
    signature: Signature,
    timestamp: f64,
    arguments: Option<String>,
}

#[pymethods]
impl CallRecord {
    #[getter]
    fn index(&self) -> u64 {
        self.index
    }

    #[getter]
    fn tool_name(&self) -> &str {
        self.tool.name()
    }

    #[getter]
    fn args_hash(&self) -> String {
        self.signature.to_string()
    }

    #[getter]
    fn timestamp(&self) -> f64 {
        self.timestamp
    }

    #[getter]
    fn arguments<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(text) = &self.arguments else {
            return Ok(None);
        };
        let json = py.import("json")?;
        let value = json.call_method1("loads", (text,));
        Ok(Some(
            value.unwrap_or_else(|_| PyString::new(py, text).into_any()),
        ))
    }

    /// Return the fields as plain data.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        fields.set_item("tool_name", self.tool_name())?;
        fields.set_item("args_hash", self.args_hash())?;
        fields.set_item("timestamp", self.timestamp)?;
        if let Some(arguments) = self.arguments(py)? {
            fields.set_item("arguments", arguments)?;
        }
        Ok(fields)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        repr("CallRecord", &self.to_dict(py)?)
    }

    fn __copy__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __deepcopy__<'py>(slf: PyRef<'py, Self>, _memo: &Bound<'py, PyAny>) -> PyRef<'py, Self> {
        slf
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.index == other.index
            && self.tool.name() == other.tool.name()
            && self.signature == other.signature
            && self.timestamp.to_bits() == other.timestamp.to_bits()
    }
}

/// The calls that a detector still shows, oldest first.
pub(super) fn records(detector: &core::LoopDetector, start: f64) -> Vec<CallRecord> {
    let calls = detector.recent_calls();
    calls
        .map(|(index, call)| CallRecord {
            index,
            tool: Arc::clone(&call.tool),
            signature: call.signature,
            timestamp: start + f64::from(call.time) / 1000.0,
            arguments: detector.arguments_of(index).map(str::to_owned),
        })
        .collect()
}

/// Finds calls that go round in circles, and does nothing about them.
///
/// `WorkflowGuard` holds one and adds the ladder. A call costs a hash of its arguments and a look
/// at the last few turns, whatever the window; memory is bounded and holds hashes, not
/// arguments or results. Safe to share by threads.
///
/// Args:
///     config: A `LoopDetectorConfig` or a mapping; its fields can be given as keywords too.
///     clock: Replaces the clock; returns seconds.
///     policies: See `WorkflowGuardConfig`, as for all that follow.
///     tools: Tools of MCP servers.
///     verbs: Words in the names of tools.
///     programs: Programs of a shell.
///     shell_tools: Tools that run them.
///     volatile_keys: Keys whose values do not count in results.
///     locale: Language of the texts.
///     templates: Texts of your own.
///
/// Raises:
///     ConfigurationError: A value is out of its range; the message names it.
///
/// Example:
///     >>> detector = turnwarden.LoopDetector(repeat_threshold=2)
///     >>> for page in ["a", "b", "b"]:
///     ...     detector.record_call("read_page", {"page": page})
///     >>> detector.detect().loop_type
///     <LoopType.EXACT: 'exact'>
#[pyclass(frozen, module = "turnwarden._core")]
pub(crate) struct LoopDetector {
    detector: Mutex<core::LoopDetector>,
    settings: Arc<Settings>,
    clock: Clock,
    start: f64,
}

impl LoopDetector {
    fn lock(&self) -> MutexGuard<'_, core::LoopDetector> {
        self.detector.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settings_from(
        config: Option<&Bound<'_, PyAny>>,
        fields: Option<&Bound<'_, PyDict>>,
        py: Python<'_>,
    ) -> PyResult<Arc<Settings>> {
        if config.is_none() && fields.is_none() {
            return Ok(default_settings(py));
        }
        let mut fields = Fields::new("LoopDetector", config, fields, py)?;
        let config = LoopDetectorConfig::take_from(&mut fields)?.config;
        let tools = ToolSettings::take_from(&mut fields, py)?;
        let core = GuardSettings {
            detection: Arc::new(DetectorSettings {
                config,
                tools: Tools::new(tools.tables, tools.policies, tools.annotations),
                volatile_keys: tools.volatile_keys,
            }),
            texts: texts_from(&mut fields)?,
            ..GuardSettings::default()
        };
        fields.finish()?;
        Ok(Arc::new(Settings {
            core: Arc::new(core),
            functions: tools.functions,
            given: tools.given,
            ..Settings::default()
        }))
    }

    fn from_settings(
        snapshot: &Snapshot<'_>,
        settings: Arc<Settings>,
        clock: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let detection = Arc::clone(&settings.core.detection);
        let (detector, start) =
            core::LoopDetector::from_snapshot(snapshot, detection).map_err(Error::Snapshot)?;
        Ok(Self {
            detector: Mutex::new(detector),
            settings,
            clock: Clock::new(clock)?,
            start,
        })
    }

    fn time(&self, py: Python<'_>) -> PyResult<u32> {
        Ok(core::milliseconds(self.clock.now(py)? - self.start))
    }

    fn result(&self, finding: Option<core::Finding>) -> LoopDetectionResult {
        LoopDetectionResult {
            finding: finding.map(Arc::new),
            texts: Arc::clone(&self.settings),
        }
    }
}

#[pymethods]
impl LoopDetector {
    #[new]
    #[pyo3(
        signature = (config=None, *, clock=None, **fields),
        text_signature = "(config=None, *, clock=None, policies=None, tools=None, verbs=None, programs=None, shell_tools=None, volatile_keys=None, locale=None, templates=None, **fields)"
    )]
    fn new(
        config: Option<&Bound<'_, PyAny>>,
        clock: Option<&Bound<'_, PyAny>>,
        fields: Option<&Bound<'_, PyDict>>,
        py: Python<'_>,
    ) -> PyResult<Self> {
        let settings = Self::settings_from(config, fields, py)?;
        let clock = Clock::new(clock)?;
        let detector = core::LoopDetector::new(Arc::clone(&settings.core.detection));
        Ok(Self {
            detector: Mutex::new(detector),
            start: clock.now(py)?,
            settings,
            clock,
        })
    }

    /// Record one call as a turn of its own, before it runs.
    ///
    /// Args:
    ///     tool: The tool's name (str), or the whole call: a `ToolCall`, a native call of a
    ///         provider, or a (name, arguments) pair.
    ///     arguments: Its arguments: a mapping, JSON text, or None.
    ///     call_id: The model's id of the call, to find its result by.
    ///
    /// Raises:
    ///     WrongTypeError: The arguments hold what JSON does not have; the message names the path.
    ///     SignatureError: They contain themselves, or are nested deeper than 16384.
    #[pyo3(signature = (tool, arguments=None, call_id=None))]
    fn record_call(
        &self,
        tool: &Bound<'_, PyAny>,
        arguments: Option<Bound<'_, PyAny>>,
        call_id: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let time = self.time(tool.py())?;
        let call = one_call(tool, arguments, call_id_of(call_id)?)?;
        call.with(&self.settings, |_, call| {
            let mut detector = self.lock();
            detector.begin_turn();
            detector.record(call, time);
        })
    }

    /// Record the calls of one turn together, before they run.
    fn record_turn(&self, calls: &Bound<'_, PyAny>) -> PyResult<()> {
        let time = self.time(calls.py())?;
        let calls = OwnedCalls::read(calls, &self.settings)?;
        let mut detector = self.lock();
        detector.begin_turn();
        for call in calls.iter() {
            detector.record(call, time);
        }
        Ok(())
    }

    /// Record what a call brought.
    ///
    /// Args:
    ///     result: Any value. What is no JSON is known by its `str`.
    ///     call_id: The id of its call; None for the first of the last turn that has no result.
    ///     error: An exception, a text, or True when the result is the error.
    #[pyo3(signature = (result=None, call_id=None, error=None))]
    fn record_result(
        &self,
        result: Option<&Bound<'_, PyAny>>,
        call_id: Option<&Bound<'_, PyAny>>,
        error: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let answer = read_answer(result, error, &self.settings);
        let id = call_id_of(call_id)?;
        let id = id.as_ref().map(|id| id.to_string_lossy());
        self.lock().record_result(answer, id.as_deref());
        Ok(())
    }

    /// Return whether the calls so far go round in circles.
    fn detect(&self) -> LoopDetectionResult {
        let finding = self.lock().detect();
        self.result(finding)
    }

    /// Forget everything.
    fn reset(&self) {
        self.lock().reset();
    }

    #[getter]
    fn call_history<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let records = records(&self.lock(), self.start);
        PyList::new(py, records)
    }

    #[getter]
    fn total_calls(&self) -> u64 {
        self.lock().total_calls()
    }

    #[getter]
    fn config(&self) -> LoopDetectorConfig {
        LoopDetectorConfig {
            config: self.settings.core.detection.config.clone(),
        }
    }

    /// Return the last calls, one a line: number, tool and hash.
    fn generate_history_summary(&self) -> String {
        let detector = self.lock();
        core::history_summary(
            detector
                .recent_calls()
                .map(|(_, call)| (&*call.tool, call.signature)),
        )
    }

    /// Return a detector with the same state, independent from now on.
    fn copy(&self, py: Python<'_>) -> Self {
        Self {
            detector: Mutex::new(self.lock().clone()),
            settings: Arc::clone(&self.settings),
            clock: self.clock.clone_ref(py),
            start: self.start,
        }
    }

    fn __copy__(&self, py: Python<'_>) -> Self {
        self.copy(py)
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>, py: Python<'_>) -> Self {
        self.copy(py)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, PickledGuard<'py>)> {
        let restore = py.get_type::<Self>().getattr(intern!(py, "_restore"))?;
        let config = self.settings.picklable(py)?;
        let clock = self.clock.function().map(|clock| clock.clone_ref(py));
        Ok((restore, (self.to_bytes(py)?, config, clock)))
    }

    /// Make a pickled detector again.
    #[staticmethod]
    fn _restore(
        data: &Bound<'_, PyAny>,
        config: Option<&Bound<'_, PyAny>>,
        clock: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let data = bytes_of(data)?;
        let snapshot =
            Snapshot::open(SnapshotKind::LoopDetector, &data).map_err(Error::Snapshot)?;
        Self::from_settings(&snapshot, settings_of(&snapshot, config)?, clock)
    }

    /// Return the detector's state, with its configuration, as bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let configuration = self.settings.to_bytes(py)?;
        let bytes = self.lock().to_bytes(configuration, self.start);
        Ok(PyBytes::new(py, &bytes))
    }

    /// Return the detector that `to_bytes` was called on, as it was then.
    ///
    /// Args:
    ///     data: What `to_bytes` returned (bytes or bytearray).
    ///     config: Goes on with this configuration instead of the one in the snapshot.
    ///     clock: Replaces the clock; returns seconds.
    ///
    /// Raises:
    ///     SnapshotError: The bytes are no snapshot, damaged, or of a later version.
    #[staticmethod]
    #[pyo3(signature = (data, config=None, *, clock=None, **fields))]
    fn from_bytes(
        data: &Bound<'_, PyAny>,
        config: Option<&Bound<'_, PyAny>>,
        clock: Option<&Bound<'_, PyAny>>,
        fields: Option<&Bound<'_, PyDict>>,
        py: Python<'_>,
    ) -> PyResult<Self> {
        let data = bytes_of(data)?;
        let snapshot =
            Snapshot::open(SnapshotKind::LoopDetector, &data).map_err(Error::Snapshot)?;
        let settings = if config.is_none() && fields.is_none() {
            settings_of(&snapshot, None)?
        } else {
            Self::settings_from(config, fields, py)?
        };
        Self::from_settings(&snapshot, settings, clock)
    }

    fn __repr__(&self) -> String {
        let detector = self.lock();
        format!("<LoopDetector after {} calls>", detector.total_calls())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(self.clock.function())
    }
}

/// A call given as one object, or as name and arguments.
pub(super) fn one_call<'py>(
    tool: &Bound<'py, PyAny>,
    arguments: Option<Bound<'py, PyAny>>,
    call_id: Option<Bound<'py, PyString>>,
) -> PyResult<ReadCall<'py>> {
    match tool.cast::<PyString>() {
        Ok(name) => Ok(ReadCall::new(name.clone(), arguments, call_id)),
        Err(_) if arguments.is_some() => {
            Err(Error::wrong_type("the name of a tool", "a str", tool).into())
        }
        Err(_) => ReadCall::from_object(tool),
    }
}
