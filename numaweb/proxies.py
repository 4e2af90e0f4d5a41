"""What is believed of a proxy and of nobody else: the visitor's address, http or https, and the request's id."""

from typing import Any

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

REQUEST_ID = b"x-request-id"


class TrustedProxies(ProxyHeadersMiddleware):
    """uvicorn's, which knows the first two; an id that somebody else sends would be another's in our logs."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and not self._trusts(scope.get("client")):
            scope = {
                **scope,
                "headers": [pair for pair in scope["headers"] if pair[0].lower() != REQUEST_ID],
            }
        await super().__call__(scope, receive, send)

    def _trusts(self, client: tuple[str, int] | None) -> bool:
        return client is not None and client[0] in self.trusted_hosts
