"""What every view of the API has: parameters that are checked, JSON answers with an ETag, problems with a remedy."""

from __future__ import annotations

import hashlib
from typing import Any, ClassVar

import msgspec
from django.core.exceptions import TooManyFieldsSent
from django.http import HttpResponse
from django.utils.http import parse_etags
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.exceptions import APIException, MethodNotAllowed, NotFound, ParseError, ValidationError
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.views import APIView

from monitoring import selectors
from monitoring.api import document
from monitoring.api.explicit import encode
from monitoring.models import Cluster

JSON = "application/json"
LONGEST_BODY = 64 * 1024


class JsonBody(BaseParser):
    """A JSON body of bounded size; deep nesting and rubbish are refused like any other."""

    media_type = JSON
    most = LONGEST_BODY

    def parse(self, stream: Any, media_type: object = None, parser_context: object = None) -> Any:  # noqa: ARG002
        data = stream.read(self.most + 1)
        if len(data) > self.most:
            raise ParseError(_("The body has more than %(most)d bytes.") % {"most": self.most})
        try:
            return msgspec.json.decode(data)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ParseError(_("The body is no JSON: %(cause)s") % {"cause": error}) from None


class ApiView(APIView):
    """A view whose answers, parameters and bodies are named, so that the OpenAPI document knows them."""

    answers: ClassVar[dict[str, type[msgspec.Struct] | None]] = {}
    """By method; None = nothing is answered."""
    accepts: ClassVar[dict[str, type[serializers.Serializer[Any]]]] = {}
    """Body by method."""
    parameters: ClassVar[tuple[OpenApiParameter, ...]] = ()
    """Of GET. Others are refused: a misspelt filter would show everything."""
    done: ClassVar[dict[str, int]] = {}
    """Status by method, where it is not the usual one."""
    conditional: ClassVar[bool] = False
    """Whether its POST wants If-Match, as PATCH and DELETE always do."""
    metadata_class = None
    parser_classes = [JsonBody]
    schema = document.ViewSchema()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        if any("\0" in str(value) for value in kwargs.values()):
            raise NotFound(_("No name has a NUL character."))
        if request.method not in self.allowed_methods:
            raise MethodNotAllowed(str(request.method))
        refuse_unknown(request, {each.name for each in self.parameters if request.method in ("GET", "HEAD")})
        super().initial(request, *args, **kwargs)

    def body(self, request: Request) -> dict[str, Any]:
        """What the caller sent, checked. A field that does not exist is refused: it may be a misspelt one."""
        form = self.accepts[request.method or ""](data=request.data)
        form.is_valid(raise_exception=True)
        if unknown := sorted(set(request.data) - set(form.fields)):
            text = _("There is no such field; there are: %(names)s.") % {
                "names": ", ".join(form.fields) or "-"
            }
            raise ValidationError({str(name)[:100]: [text] for name in unknown[:20]})
        return dict(form.validated_data)


def refuse_unknown(request: Request, known: set[str]) -> None:
    try:
        given = set(request.query_params)
    except TooManyFieldsSent:
        text = _("Far too many parameters. Ask in parts, or by a wider filter.")
        raise ValidationError({"query": [text]}) from None
    if unknown := sorted(given - known):
        names = ", ".join(sorted(known)) or _("none")
        text = _("There is no such parameter here; there are: %(names)s.") % {"names": names}
        raise ValidationError({name[:100].replace("\0", "\ufffd"): [text] for name in unknown[:20]})


def number(request: Request, name: str, default: int, low: int, high: int) -> int:
    """A whole number among the parameters. Raises ValidationError."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > 9 or not low <= int(text) <= high:
        raise ValidationError(
            {name: [_("This is a number from %(low)d to %(high)d.") % {"low": low, "high": high}]}
        )
    return int(text)


def cluster_of(slug: str) -> Cluster:
    try:
        return selectors.cluster(slug)
    except Cluster.DoesNotExist:
        text = _("There is no cluster “%(slug)s”; /clusters/ lists them.") % {"slug": slug}
        raise NotFound(text) from None


def respond(request: Request, value: Any, version: object = None) -> HttpResponse:
    """The value as JSON, or 304 where the caller has it.

    `version`: what the ETag is made of, where it is not the whole value (an age grows while nothing changes).
    """
    body = encode(value)
    return send(request, body, tag_of(body if version is None else encode(version)))


def send(request: Request, body: bytes, tag: str) -> HttpResponse:
    if has(request, tag):
        return unchanged(tag)
    return headed(HttpResponse(body, content_type=JSON), tag)


def unchanged(tag: str) -> HttpResponse:
    response = headed(HttpResponse(status=304), tag)
    del response["Content-Type"]
    return response


def headed(response: HttpResponse, tag: str) -> HttpResponse:
    response["ETag"] = tag
    response["Cache-Control"] = "private, no-cache"  # a copy may be kept and must be asked about
    return response


def tag_of(data: bytes) -> str:
    """A weak ETag: the same data, though not each byte (an age) of the answer."""
    return f'W/"{hashlib.blake2b(data, digest_size=12).hexdigest()}"'


def has(request: Request, tag: str) -> bool:
    given = parse_etags(request.headers.get("If-None-Match", ""))
    return "*" in given or tag in given


class Conflict(APIException):
    """Something else is in the way."""

    status_code = 409
    default_code = "conflict"


class Outdated(APIException):
    """It was changed by somebody else meanwhile (RFC 9110, 13.1.1)."""

    status_code = 412
    default_code = "precondition_failed"


class Unconditional(APIException):
    """A change without a word about what it changes (RFC 6585, 3)."""

    status_code = 428
    default_code = "precondition_required"


def check_version(request: Request, version: str) -> None:
    """Whether the caller has seen what it changes. Raises Outdated or Unconditional."""
    given = request.headers.get("If-Match", "")
    if not given:
        raise Unconditional(
            _(
                "Say what you have seen: If-Match with the ETag of a GET, or If-Match: * for whatever is there."
            )
        )
    tags = parse_etags(given)
    if "*" not in tags and f'"{version}"' not in tags:
        raise Outdated(_("It was changed meanwhile. Get it again, look, and repeat with the new ETag."))
