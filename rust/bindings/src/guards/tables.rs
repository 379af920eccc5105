//! The tables that tell what a tool does, what a result means and what is said, for reading.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use turnwarden_guard::{
    BudgetCheck, IterationLevel, Locale, Message, PROGRAMS, Rule, SHELL_TOOLS, ToolKind, VERBS,
    VOLATILE_KEYS,
};

/// Return the tables behind the guards' defaults; `turnwarden.guards` shows them read-only.
///
/// Keys: `verbs` and `programs` (word to kind), `shell_tools`, `volatile_keys` and `reasons`
/// (tuples of str), `templates` (locale to key to text).
#[pyfunction]
pub(crate) fn guard_tables(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let tables = PyDict::new(py);
    tables.set_item("verbs", kinds(py, VERBS)?)?;
    tables.set_item("programs", kinds(py, PROGRAMS)?)?;
    tables.set_item("shell_tools", PyTuple::new(py, SHELL_TOOLS)?)?;
    tables.set_item("volatile_keys", PyTuple::new(py, VOLATILE_KEYS)?)?;
    tables.set_item("reasons", PyTuple::new(py, reasons())?)?;
    tables.set_item("templates", templates(py)?)?;
    Ok(tables)
}

fn kinds<'py>(py: Python<'py>, rows: &[(ToolKind, &[&str])]) -> PyResult<Bound<'py, PyDict>> {
    let table = PyDict::new(py);
    for (kind, words) in rows {
        for word in *words {
            table.set_item(word, kind.as_str())?;
        }
    }
    Ok(table)
}

fn reasons() -> Vec<&'static str> {
    let iterations = IterationLevel::ALL
        .into_iter()
        .filter_map(IterationLevel::code);
    let budgets = BudgetCheck::CODES.into_iter();
    let loops = Rule::ALL.into_iter().map(Rule::code);
    iterations.chain(budgets).chain(loops).collect()
}

fn templates(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let templates = PyDict::new(py);
    for locale in Locale::ALL {
        let texts = PyDict::new(py);
        for &message in Message::ALL {
            texts.set_item(message.as_str(), locale.template(message))?;
        }
        templates.set_item(locale.as_str(), texts)?;
    }
    Ok(templates)
}
