"""The package as a whole: what it is built from."""

import turnwarden


def test_build_info_names_a_release_build() -> None:
    info = turnwarden.build_info()
    assert info["profile"] == "release"
    assert info["version"].count(".") == 2
