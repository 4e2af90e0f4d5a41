"""Container images without an engine: layers are tar files, and an image is a tar archive in the OCI layout that `ctr images import` takes."""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_TYPE = "application/vnd.oci.image"


def write(
    file: Path, name: str, layers: Sequence[Path], config: Mapping[str, Any], *, known: int = 0
) -> None:
    """An image archive; `name` with its registry, as the node will look for it. `layers`: uncompressed, the lowest first. The first `known`
    are named and left out, since the node has them by another image."""
    blobs: dict[str, bytes] = {}

    def blob(content: bytes, kind: str, *, left_out: bool = False) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        if not left_out:
            blobs[digest] = content
        return {"mediaType": f"{_TYPE}.{kind}", "digest": f"sha256:{digest}", "size": len(content)}

    contents = [layer.read_bytes() for layer in layers]
    told = [f"sha256:{hashlib.sha256(content).hexdigest()}" for content in contents]
    settings = {
        "os": "linux",
        "architecture": "amd64",
        "rootfs": {"type": "layers", "diff_ids": told},
        "config": dict(config),
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_TYPE}.manifest.v1+json",
        "config": blob(json.dumps(settings).encode(), "config.v1+json"),
        "layers": [
            blob(_packed(content), "layer.v1.tar+gzip", left_out=place < known)
            for place, content in enumerate(contents)
        ],
    }
    listed = blob(json.dumps(manifest).encode(), "manifest.v1+json")
    index = {
        "schemaVersion": 2,
        "manifests": [{**listed, "annotations": {"io.containerd.image.name": name}}],
    }
    with tarfile.open(file, "w") as archive:
        _add(archive, "oci-layout", json.dumps({"imageLayoutVersion": "1.0.0"}).encode())
        _add(archive, "index.json", json.dumps(index).encode())
        for digest, content in blobs.items():
            _add(archive, f"blobs/sha256/{digest}", content)


def _packed(content: bytes) -> bytes:
    """The same bytes for the same content, whenever: a layer is known by them."""
    return gzip.compress(content, compresslevel=1, mtime=0)


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))
