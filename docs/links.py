#!/usr/bin/env python3
"""Finds links of the book that lead nowhere: `links.py FOLDER`, after `mdbook build`. Other hosts are not asked."""

import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    """What a page links to, and the names that others can link to."""

    def __init__(self, path):
        super().__init__()
        self.links, self.names = set(), set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.names.add(attributes.get("id"))
        link = attributes.get("href" if tag == "a" else "src")
        if link:
            self.links.add(link)


def missing(path, page, pages):
    """Yields the links of a page that lead nowhere."""
    for link in sorted(page.links):
        parts = urllib.parse.urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
        if not target.exists() or parts.fragment and target in pages and parts.fragment not in pages[target].names:
            yield link


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    # The page of all pages repeats their names, and 404.html links from the root of a server.
    paths = [path for path in sorted(folder.rglob("*.html")) if path.name not in ("print.html", "404.html", "toc.html")]
    pages = {path: Page(path) for path in paths}
    found = [f"{path.relative_to(folder)}: {link}" for path, page in pages.items() for link in missing(path, page, pages)]
    print("\n".join(found) or f"{len(pages)} pages, every link leads somewhere")
    sys.exit(bool(found) or not pages)


main()
