"""Pictures as they come in: recognised by their first bytes, measured before they are decoded.

The rule: an image is hostile until proven small. Only the listed formats are opened, and no pixel
is decoded before the size in the header has been checked.
"""

from __future__ import annotations

import struct
import warnings
import zlib
from io import BytesIO
from threading import Lock
from typing import IO, TYPE_CHECKING, Final

from fairlane.errors import InvalidInput

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFile import ImageFile

FORMATS: Final = ("PNG", "JPEG", "WEBP", "TIFF", "BMP")
MAX_PIXELS: Final = 40_000_000
MAX_SIDE: Final = 30_000

# The longest side may be this many times the shorter; beyond, white is added on the right or below,
# since the model shrinks a picture to 2,000 pixels and a line of text would vanish.
_MAX_RATIO: Final = 30


_opening: Final = Lock()
# Pillow's decoders raise these for damaged data (PNG chunks: SyntaxError).
_DAMAGE: Final = (
    *(OSError, ValueError, SyntaxError, EOFError, IndexError, KeyError, TypeError),
    *(OverflowError, struct.error, zlib.error, MemoryError),
)


class BadImage(InvalidInput):
    """The bytes are no image that can be read; the message says why."""


class ImageTooLarge(BadImage):
    """The image has more pixels than are taken."""


def is_image(content: bytes) -> bool:
    """Tell by the first bytes whether this claims to be an image of a supported format."""
    return (
        content.startswith((b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"II*\x00", b"MM\x00*"))
        or (content[:4] == b"RIFF" and content[8:12] == b"WEBP")
        # Text may begin with BM, but has no zeros in the reserved field.
        or (content[:2] == b"BM" and content[6:10] == bytes(4))
    )


def decode(content: bytes) -> Image:
    """Return the first frame as it is meant to be seen (EXIF), in mode RGB, or RGBA if see-through.

    Raises BadImage for another format, a size over MAX_PIXELS or MAX_SIDE, and damaged data.
    """
    from PIL import Image, ImageOps

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            image = _opened(BytesIO(content))
            image.load()
        upright = ImageOps.exif_transpose(image)
        return _padded(_in_8_bits(upright))
    except BadImage:
        raise
    except _DAMAGE as error:
        raise BadImage(f"damaged image: {error}") from error


def measure(file: IO[bytes]) -> tuple[str, int, int]:
    """Return an image's format, width and height, by its header; no pixel is decoded.

    Raises ImageTooLarge for a size over MAX_PIXELS or MAX_SIDE, BadImage for another format or a
    header that is damaged.
    """
    image = _opened(file)
    return str(image.format), *image.size


def _opened(file: IO[bytes]) -> ImageFile:
    from PIL import Image, UnidentifiedImageError

    try:
        # What Python does with warnings is one setting for all threads.
        with _opening, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image = Image.open(file, formats=FORMATS)
    except UnidentifiedImageError:
        raise BadImage(f"no image; send one of {', '.join(FORMATS)}") from None
    except Image.DecompressionBombError as error:
        raise ImageTooLarge(f"too many pixels: {error}") from error
    except _DAMAGE as error:
        raise BadImage(f"damaged image: {error}") from error
    width, height = image.size
    if width * height > MAX_PIXELS or max(width, height) > MAX_SIDE:
        raise ImageTooLarge(
            f"{width} x {height} pixels; at most {MAX_PIXELS:,} in all and {MAX_SIDE:,} on a side"
        )
    return image


def _in_8_bits(image: Image) -> Image:
    if image.mode.startswith(("I", "F")):
        import numpy as np
        from PIL.Image import fromarray

        levels = np.nan_to_num(np.asarray(image, np.float32))
        low, high = float(levels.min()), float(levels.max())
        levels = (levels - low) * (255 / max(high - low, 1e-6))
        return fromarray(levels.astype(np.uint8)).convert("RGB")
    return image.convert("RGBA" if image.has_transparency_data else "RGB")


def _padded(image: Image) -> Image:
    from PIL import Image

    width, height = image.size
    least = max(width, height) // _MAX_RATIO
    if min(width, height) >= least:
        return image
    canvas = Image.new(image.mode, (max(width, least), max(height, least)), "white")
    canvas.paste(image, (0, 0))
    return canvas
