"""A small OpenID Connect provider for tests: it checks what it is asked, and tells what a test wants it to tell."""

import base64
import hashlib
import json
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt

CLIENT, SECRET = "numaweb", "of-the-client"


class Provider(ThreadingHTTPServer):
    """`claims` are the next visitor's; `token` overrides claims of the ID token; `broken` makes /token fail."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.reset()

    def reset(self) -> None:
        self.claims: dict[str, Any] = {"sub": "1", "preferred_username": "olga", "groups": ["numa-ops"]}
        self.token: dict[str, Any] = {}
        self.broken = False
        self.codes: dict[str, dict[str, str]] = {}
        self.asked: dict[str, str] = {}

    def start(self) -> None:
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "userinfo_endpoint": f"{self.url}/userinfo",
            "jwks_uri": f"{self.url}/jwks",
        }

    def id_token(self) -> str:
        now = int(time.time())
        basic = {"iss": self.url, "aud": CLIENT, "iat": now, "exp": now + 60, **self.claims, **self.token}
        return jwt.encode(basic, "0123456789abcdef0123456789abcdef", algorithm="HS256")


class Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/authorize":
            self.authorize({name: values[0] for name, values in parse_qs(parts.query).items()})
        elif parts.path == "/userinfo":
            self.answer(200, self.server.claims)
        else:
            self.answer(200, self.server.discovery())

    def authorize(self, asked: dict[str, str]) -> None:
        self.server.asked = asked
        code = secrets.token_urlsafe(8)
        self.server.codes[code] = asked
        self.send_response(302)
        self.send_header(
            "Location", f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"
        )
        self.end_headers()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        form = {name: values[0] for name, values in parse_qs(body).items()}
        asked = self.server.codes.pop(form.get("code", ""), None)
        if asked is None or self.server.broken or not self.proven(asked, form) or not self.authenticated():
            self.answer(400, {"error": "invalid_grant"})
        else:
            token = {"access_token": "x", "token_type": "Bearer", "id_token": self.server.id_token()}
            self.answer(200, token)

    def proven(self, asked: dict[str, str], form: dict[str, str]) -> bool:
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        expected = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        return asked.get("code_challenge_method") == "S256" and asked.get("code_challenge") == expected

    def authenticated(self) -> bool:
        expected = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        return self.headers.get("Authorization") == f"Basic {expected}"

    def answer(self, status: int, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: pytest's output is for failures."""
