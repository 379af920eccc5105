//! Members of the string enums that `turnwarden.guards` defines.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use turnwarden_guard::{GuardAction, LoopType, ToolKind};

type Members = PyOnceLock<Vec<Py<PyAny>>>;

fn member(
    py: Python<'_>,
    members: &'static Members,
    class: &str,
    names: &[&str],
    index: usize,
) -> PyResult<Py<PyAny>> {
    let members = members.get_or_try_init(py, || {
        let class = py.import("turnwarden.guards")?.getattr(class)?;
        let members = names.iter().map(|name| Ok(class.call1((*name,))?.unbind()));
        members.collect::<PyResult<_>>()
    })?;
    Ok(members
        .get(index)
        .map_or_else(|| py.None(), |member| member.clone_ref(py)))
}

pub(super) fn action(py: Python<'_>, action: GuardAction) -> PyResult<Py<PyAny>> {
    static MEMBERS: Members = PyOnceLock::new();
    let names = GuardAction::ALL.map(GuardAction::as_str);
    let index = GuardAction::ALL.iter().position(|&known| known == action);
    member(py, &MEMBERS, "GuardAction", &names, index.unwrap_or(0))
}

pub(super) fn loop_type(py: Python<'_>, loop_type: LoopType) -> PyResult<Py<PyAny>> {
    static MEMBERS: Members = PyOnceLock::new();
    let names = LoopType::ALL.map(LoopType::as_str);
    let index = LoopType::ALL.iter().position(|&known| known == loop_type);
    member(py, &MEMBERS, "LoopType", &names, index.unwrap_or(0))
}

pub(super) fn tool_kind(py: Python<'_>, kind: ToolKind) -> PyResult<Py<PyAny>> {
    static MEMBERS: Members = PyOnceLock::new();
    let names = ToolKind::ALL.map(ToolKind::as_str);
    let index = ToolKind::ALL.iter().position(|&known| known == kind);
    member(py, &MEMBERS, "ToolKind", &names, index.unwrap_or(0))
}
