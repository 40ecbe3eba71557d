import dpframe


def test_version_is_a_release_number():
    assert dpframe.__version__.count(".") == 2
