//! Makes `PyO3`'s view of the interpreter (`Py_GIL_DISABLED`, ...) known to `cfg!`.

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
}
