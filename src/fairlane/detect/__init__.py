"""Sensitive content in texts and images: the two task handlers that are shipped.

The rule: importing this package costs nothing. `text` loads the rules, `ocr` loads its model in
the process that runs the task, at the first one. Results show values masked.
"""

from __future__ import annotations

from fairlane.detect.finding import Finding, FindingType, mask
from fairlane.detect.setup import configure

__all__ = ["Finding", "FindingType", "configure", "mask"]
