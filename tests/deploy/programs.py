"""helm, built once from its Go module as the control plane's programs are."""

from pathlib import Path

from tests import goprograms
from tests.goprograms import Program, Say

VERSION = "v4.3.2"
MODULE = Path(__file__).parent / "programs" / "helm"
_TOLD = f"-X helm.sh/helm/v4/internal/version.version={VERSION}"
HELM = Program("helm", MODULE, "helm", "helm.sh/helm/v4/cmd/helm", ("-ldflags", f"-s -w {_TOLD}"))


def helm(say: Say = goprograms.announce) -> Path:
    """The binary, built if it is not there yet (minutes); errors as in goprograms.built."""
    return goprograms.built(HELM, say)
