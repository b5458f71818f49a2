"""The way in to the command line: `fairlane`, and `python -m fairlane`.

The rule: a part that is not installed is one line that says how to install it.
"""

from __future__ import annotations

import sys
from typing import Final

_EXTRAS: Final = {
    "rich_click": "cli",
    "rich": "cli",
    "click": "cli",
    "textual": "cli",
    "celery": "celery",
    "kombu": "celery",
    "psutil": "celery",
    "ahocorasick_rs": "detect",
    "phonenumbers": "detect",
    "stdnum": "detect",
    "rapidocr": "detect",
    "onnxruntime": "detect",
    "fastapi": "http",
    "pydantic": "http",
    "starlette": "http",
    "uvicorn": "http",
    "prometheus_client": "http",
    "jwt": "http",
    "PIL": "http",
    "obstore": "s3",
    "opentelemetry": "otel",
    "structlog": "cli",
    "cryptography": "http",
}


def main() -> None:
    """Run the command line."""
    try:
        from fairlane.cli import main as run

        run()
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _EXTRAS:
            raise
        sys.exit(
            f"fairlane: this needs {missing}, which is not installed; "
            f"pip install 'fairlane[{_EXTRAS[missing]}]'"
        )


if __name__ == "__main__":
    main()
