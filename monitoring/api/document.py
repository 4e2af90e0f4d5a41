"""The OpenAPI 3.1 document: operations from the views' own words, schemas from the types that they answer with."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any, Protocol, cast

import django_filters as df
import msgspec
from django.utils.translation import get_language
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter

from monitoring import filters
from monitoring.api import shapes
from numacore.cpuset import CpuSet

REFERENCE = "#/components/schemas/{name}"
PROBLEM = "application/problem+json"
REFUSALS = {
    "GET": (400, 401, 403, 404, 406, 429),
    "POST": (400, 401, 403, 404, 406, 409, 415, 429),
    "PATCH": (400, 401, 403, 404, 406, 409, 412, 415, 428, 429),
    "DELETE": (400, 401, 403, 404, 406, 412, 428, 429),
}
UNSEEN = (412, 428)
"""Of a POST that wants to know what its caller has seen."""
DONE = {"GET": 200, "POST": 201, "PATCH": 200, "DELETE": 204}
AUTHENTICATION = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "A token from the administration. Its scope (read, operate, admin) bounds what it may do.",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "numaweb_session",
        "description": "Signed in at the pages. Changes then need the header X-CSRFToken, too.",
    },
}
TAGS = ("rollouts", "endpoints", "nodes", "containers", "clusters")
PARTIAL = {
    "ActRow",
    "AuditRow",
    "CleanupPodRow",
    "CleanupRow",
    "ContainerRow",
    "EndpointRow",
    "EventRow",
    "FailureRow",
    "NodeRow",
    "PodRow",
    "ChangedRow",
    "RolloutNodeRow",
    "RolloutRow",
    "ClusterEventRow",
}
"""Rows of which `fields` may choose some."""


_answered: dict[str, type[msgspec.Struct]] = {}
"""Types that some operation answers with, by name, as `reference` met them: higher rooms have their own."""


def reference(kind: type[msgspec.Struct]) -> dict[str, str]:
    assert _answered.setdefault(kind.__name__, kind) is kind, f"two types are called {kind.__name__}"
    return {"$ref": REFERENCE.format(name=kind.__name__)}


class Described(Protocol):
    """What an `ApiView` says of itself."""

    answers: dict[str, type[msgspec.Struct] | None]
    accepts: dict[str, Any]
    parameters: tuple[OpenApiParameter, ...]
    done: dict[str, int]
    conditional: bool


class ViewSchema(AutoSchema):
    """Reads `answers`, `accepts`, `parameters` and `conditional` of an `ApiView`."""

    @property
    def described(self) -> Described:
        return cast("Described", self.view)

    def get_override_parameters(self) -> Any:
        if self.method == "GET":
            return [*self.described.parameters, CONDITION]
        return [MATCH] if self.method in ("PATCH", "DELETE") or self.described.conditional else []

    def get_request_serializer(self) -> Any:
        return self.described.accepts.get(self.method)

    def get_response_serializers(self) -> Any:
        kind = self.described.answers.get(self.method)
        done: Any = None if kind is None else reference(kind)
        status = self.described.done.get(self.method, DONE[self.method])
        answers = {(status, "application/json"): done} if done else {status: None}
        refusals = {
            *REFUSALS[self.method],
            *(UNSEEN if self.described.conditional and self.method == "POST" else ()),
        }
        problems = {(code, PROBLEM): reference(shapes.ProblemDetails) for code in sorted(refusals)}
        return answers | problems | ({304: None} if self.method == "GET" else {})

    def get_operation_id(self) -> str:
        name: str = type(self.view).__name__
        return f"{self.method.lower()}{name}"

    def get_summary(self) -> str:
        return self.words.partition("\n")[0]

    def get_description(self) -> str:  # type: ignore[override]  # drf-spectacular's own form
        return inspect.cleandoc(self.words).partition("\n")[2].strip()

    @property
    def words(self) -> str:
        """A method's own, else the view's."""
        return getattr(self.view, self.method.lower()).__doc__ or type(self.view).__doc__ or ""

    def get_auth(self) -> list[dict[str, Any]]:
        return [{name: []} for name in AUTHENTICATION]

    def get_tags(self) -> list[str]:
        return [next((tag for tag in TAGS if f"/{tag}/" in self.path), "other")]


def header(name: str, description: str) -> OpenApiParameter:
    return OpenApiParameter(name, str, OpenApiParameter.HEADER, description=description)


CONDITION = header("If-None-Match", "ETag of an earlier answer; 304 where nothing changed.")
MATCH = header("If-Match", "ETag of what you have seen, or * for whatever is there; needed.")


def parameters_of(kind: type[df.FilterSet], *, without: tuple[str, ...] = ()) -> tuple[OpenApiParameter, ...]:
    """The parameters of a set of filters."""
    return tuple(described(name, each) for name, each in kind.base_filters.items() if name not in without)


def described(name: str, each: df.Filter) -> OpenApiParameter:
    shape: dict[str, Any] = {"type": "string", "maxLength": filters.LONGEST}
    several = isinstance(each, filters.Several | filters.Cross)
    if several:
        choices = each.extra.get("choices")
        item = {"type": "string", "enum": [value for value, _label in choices]} if choices else shape
        shape = {"type": "array", "items": item, "maxItems": filters.MOST_VALUES}
    elif isinstance(each, filters.Presence | filters.Flag):
        shape = {"type": "string", "enum": [value for value, _label in each.extra["choices"]]}
    elif isinstance(each, df.NumberFilter):
        shape = {"type": "number", "minimum": 0}
    elif isinstance(each, df.IsoDateTimeFilter):
        shape = {"type": "string", "format": "date-time"}
    return OpenApiParameter(name, shape, explode=True if several else None, description=str(each.label))


def choice(name: str, values: list[str], description: str) -> OpenApiParameter:
    return OpenApiParameter(name, {"type": "string", "enum": values}, description=description)


def number(name: str, low: int, high: int, description: str) -> OpenApiParameter:
    return OpenApiParameter(
        name, {"type": "integer", "minimum": low, "maximum": high}, description=description
    )


def moment(name: str, description: str) -> OpenApiParameter:
    return OpenApiParameter(name, OpenApiTypes.DATETIME, description=description)


def schemas() -> dict[str, Any]:
    """Every type that is answered with, all fields there (`explicit` leaves none out)."""
    _references, found = msgspec.json.schema_components(
        _answered.values(), schema_hook=schema_of, ref_template=REFERENCE
    )
    for name, each in found.items():
        each["required"] = [] if name in PARTIAL else list(each.get("properties", ()))
        if not each["required"]:
            del each["required"]
    found["ProblemDetails"]["required"] = ["type", "title", "status", "detail"]
    return found


def schema_of(kind: type) -> dict[str, Any]:
    if kind is CpuSet:
        return {"type": "string", "description": "list of ids such as 0-3,8"}
    raise NotImplementedError(kind)


def complete(result: dict[str, Any], **_rest: Any) -> dict[str, Any]:
    """Post-processing of drf-spectacular, named in the project's settings: adds the schemas and ways to sign in."""
    result["components"]["securitySchemes"] = AUTHENTICATION
    result["components"]["schemas"] = schemas() | result["components"].get("schemas", {})
    return result


class Generator(SchemaGenerator):
    """Makes the document once in each language; it is the same for everybody."""

    def get_schema(self, request: object = None, public: bool = False) -> Any:  # noqa: ARG002 - its caller's form
        return _made(get_language() or "")


@cache
def _made(_language: str) -> Any:
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]  # drf-spectacular leaves it untyped
    return generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]  # likewise
