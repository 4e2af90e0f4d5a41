"""The documents of `docs/`, shown by the product itself, and which place in them tells of a page.

They need no network: links to other documents stay here, every other link is shown as its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth.mixins import LoginRequiredMixin
from django.http import Http404
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.generic import RedirectView
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from monitoring.views.base import Crumb, Page

FOLDER: Path = settings.BASE_DIR / "docs"
LANGUAGES = {"en": "English", "zh": "中文"}
ORDER = (
    *("concepts", "installation", "helm", "kubernetes", "exporter", "prometheus"),
    *("pages", "planner", "failures", "policies", "rollouts", "applier", "kubelet-settings"),
    *("settings", "administration", "security", "api", "troubleshooting"),
)
"""As one reads them: what it is about, installing, using, running it."""
HELP: dict[str, tuple[str, str]] = {
    "home": ("pages", "Overview"),
    "clusters": ("pages", "Overview"),
    "overview": ("pages", "Overview"),
    "monitoring": ("pages", "Cluster NUMA monitoring"),
    "node": ("pages", "Node"),
    "containers": ("pages", "Containers"),
    "search": ("pages", "Search"),
    "audit": ("pages", "Audit"),
    "planner": ("planner", "Asking"),
    "failures": ("failures", "Reading a line"),
    "starting": ("failures", "Reading a line"),
    "cleanups": ("failures", "Cleaning up"),
    "cleanup": ("failures", "Cleaning up"),
    "pods": ("kubernetes", "Where you see it"),
    "connection": ("kubernetes", "What happens when something fails"),
    "policies": ("policies", "Where the nodes stand"),
    "policy": ("policies", "The four switches and the distance"),
    "policy_cluster": ("policies", "The four switches and the distance"),
    "policy_pool": ("policies", "For whom"),
    "policy_pool_new": ("policies", "For whom"),
    "preview": ("policies", "The preview"),
    "preview_cluster": ("policies", "The preview"),
    "by_hand": ("policies", "The preview"),
    "by_hand_cluster": ("policies", "The preview"),
    "restore": ("rollouts", "Before you remove numaweb"),
    "rollouts": ("rollouts", ""),
    "rollout": ("rollouts", "Watching it"),
    "password_change": ("security", "Signing in"),
}
"""By the name of a page's address: the document, and the English heading of the place; "" = from its beginning."""
_LINK = re.compile(r"(?:\.\./(?:en/|zh/)?)?([a-z-]+)\.md(#.*)?")


class Heading(NamedTuple):
    level: int
    text: str
    anchor: str


def address(page: str) -> str:
    """Where the help of a page is, in the language of whoever looks; "" = there is none."""
    document, heading = HELP.get(page, ("", ""))
    return place(_language(), document, heading) if document else ""


def _language() -> str:
    """Of the documents, for whoever looks."""
    return "zh" if (get_language() or "").startswith("zh") else "en"


@cache
def place(language: str, document: str, heading: str) -> str:
    """The same heading in any language: the documents have the same ones in the same order. "" = there is no such document."""
    told, mine = headings("en", document), headings(language, document)
    if not mine:
        return ""
    numbers = [number for number, each in enumerate(told) if each.text == heading and number < len(mine)]
    anchor = f"#{mine[numbers[0]].anchor}" if numbers else ""
    return reverse("guide", kwargs={"language": language, "document": document}) + anchor


@cache
def headings(language: str, document: str) -> tuple[Heading, ...]:
    """In their order; none where there is no such document."""
    tokens = _parser().parse(read(language, document))
    opened = [number for number, token in enumerate(tokens) if token.type == "heading_open"]
    found = [(int(tokens[at].tag[1:]), tokens[at + 1].content) for at in opened]
    return tuple(Heading(level, said, anchor(said)) for level, said in found)


def anchor(heading: str) -> str:
    """As links in the documents write it: small letters, hyphens for spaces, nothing but letters and digits."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def documents(language: str) -> list[str]:
    """Names of all documents of a language, as one reads them."""
    return [each for each in ORDER if file(language, each).is_file()]


def file(language: str, document: str) -> Path:
    settings_in_english = (language, document) == ("en", "settings")
    return FOLDER / "settings.md" if settings_in_english else FOLDER / language / f"{document}.md"


def read(language: str, document: str) -> str:
    """ "" = there is no such document."""
    found = file(language, document)
    return found.read_text("utf-8") if found.is_file() else ""


# ---------------------------------------------------------------- shown


def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable("table")


@cache
def rendered(language: str, document: str) -> SafeString:
    """The document below its title as HTML: no markup of its own passes, no style, no address outside."""
    parser = _parser()
    parser.add_render_rule("table_open", _wide)
    parser.add_render_rule("table_close", _wide_end)
    parser.add_render_rule("fence", _code)
    parser.add_render_rule("code_block", _code)
    tokens = parser.parse(read(language, document))
    names = iter(headings(language, document))
    for token in tokens:
        if token.type == "heading_open":
            token.attrSet("id", next(names).anchor)
        if "text-align" in str(token.attrs.pop("style", "")):
            token.attrSet("class", "text-end")
        token.children = list(_local(token.children or (), language))
    if tokens and tokens[0].tag == "h1":
        del tokens[:3]
    html: str = parser.renderer.render(tokens, parser.options, {})
    return mark_safe(html)  # noqa: S308 - made here of files that come with the product, with HTML switched off


def _local(tokens: Iterable[Token], language: str) -> Iterable[Token]:
    """Links that lead to other documents; of others the text."""
    open_links: list[bool] = []
    for token in tokens:
        if token.type == "image":
            yield Token("text", "", 0, content=token.content)
        elif token.type == "link_open":
            href = _address(str(token.attrs.get("href", "")), language)
            open_links.append(bool(href))
            if href:
                token.attrSet("href", href)
                yield token
        elif token.type != "link_close" or open_links.pop():
            yield token


def _address(href: str, language: str) -> str:
    if href.startswith("#"):
        return href
    found = _LINK.fullmatch(href)
    if not found or not read(language, found[1]):
        return ""
    return reverse("guide", kwargs={"language": language, "document": found[1]}) + (found[2] or "")


def _wide(_self: RendererHTML, _tokens: Sequence[Token], _at: int, _options: Any, _env: Any) -> str:
    return '<div class="table-responsive" tabindex="0"><table class="table">\n'


def _wide_end(_self: RendererHTML, _tokens: Sequence[Token], _at: int, _options: Any, _env: Any) -> str:
    return "</table></div>\n"


def _code(_self: RendererHTML, tokens: Sequence[Token], at: int, _options: Any, _env: Any) -> str:
    escaped = tokens[at].content.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f'<pre tabindex="0"><code>{escaped}</code></pre>\n'


class Guide(Page):
    """One document, with the way to the others."""

    template_name = "guide.html"
    http_method_names = ["get", "head"]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        language, document = self.kwargs["language"], self.kwargs["document"]
        found = headings(language, document) if language in LANGUAGES else ()
        if not found:
            raise Http404(_("There is no such document."))
        self.title = found[0].text
        return super().get_context_data(
            body=rendered(language, document),
            written="zh-Hans" if language == "zh" else "en",
            others=titles(language, document),
            languages=[
                (name, place(each, document, "")) for each, name in LANGUAGES.items() if each != language
            ],
            **{name: value for name, value in kwargs.items() if name not in ("language", "document")},
        )

    def crumbs(self) -> list[Crumb]:
        return [Crumb(_("Documents"), reverse("guides")), Crumb(self.title)]


class Guides(LoginRequiredMixin, RedirectView):
    """To the first document, in the language of the address or of whoever looks."""

    def get_redirect_url(self, *_args: Any, **kwargs: Any) -> str:
        language = kwargs.get("language") or _language()
        if language not in LANGUAGES:
            raise Http404(_("There is no such document."))
        return place(language, ORDER[0], "")


def titles(language: str, shown: str) -> Mapping[str, tuple[str, bool]]:
    """Every document of a language: its address, with its title and whether it is the one that is shown."""
    return {
        place(language, each, ""): (headings(language, each)[0].text, each == shown)
        for each in documents(language)
    }
