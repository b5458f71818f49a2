"""The samples are there and small."""

from __future__ import annotations

from fairlane.samples import images, texts


def test_the_samples() -> None:
    assert len(texts()) == 115
    assert len(images()) == 4
    assert sum(map(len, images())) < 500_000
