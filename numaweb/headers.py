"""What every page tells the browser about where it may load from and which devices it may use. For settings.py only."""

from csp.constants import NONE, SELF

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:", "blob:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "manifest-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}
PERMISSIONS_POLICY: dict[str, list[str]] = {
    name: []
    for name in (
        *("accelerometer", "autoplay", "camera", "display-capture", "encrypted-media", "geolocation"),
        *("gyroscope", "magnetometer", "microphone", "midi", "payment", "usb", "xr-spatial-tracking"),
    )
}
