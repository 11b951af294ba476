#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes a site out of README.md, docs/ and the pages beside them, with mkdocs, and checks its links.

    scripts/docs-site.py OUT          writes the site to the folder OUT; OUT/index.html opens without a server
    scripts/docs-site.py --check OUT  checks a site that is there: every link and anchor leads somewhere, and nothing
                                      is loaded from elsewhere

Exits with 77 if mkdocs or man is not installed.
"""
import html.parser
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
BESIDE = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
NAVIGATION = {
    "First steps": ("install", "tutorial", "apps"),
    "Interface": ("api", "cpp", "fortran", "python", "channels", "shmem", "device-calls", "plans", "pragmas", "settings", "abi"),
    "Running": ("launch", "slurm", "mpi", "remote", "security", "gpu", "dpu", "scaling", "simulation", "figures", "benchmarks"),
    "Inside": ("architecture", "glossary", "memory", "conduits", "transfers", "collectives", "devices", "offload", "llvm", "testing", "e4s"),
}
LINK = re.compile(r"(\]\()([^)\s]+)(\))")


def title(page):
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            return line[2:].strip()
    sys.exit(f"docs-site: {page.relative_to(ROOT)} has no title")


def copy_page(source, target, stage):
    """Copies one page; its links to pages and files of the repository lead to their copies."""

    def relink(match):
        link = match[2]
        path, hash_sign, anchor = link.partition("#")
        if not path or urlsplit(link).scheme:
            return match[0]
        there = (source.parent / path).resolve()
        if not there.is_file():
            sys.exit(f"docs-site: {source.relative_to(ROOT)} links to {path}, which is not a file")
        inside = there.relative_to(ROOT)
        if inside.parts[:2] == ("docs", "man"):
            inside = Path("man") / f"{inside.name}.txt"
        elif inside.parts[0] == "docs":
            inside = inside.relative_to("docs")
        elif inside.name == "README.md" and len(inside.parts) == 1:
            inside = Path("index.md")
        elif str(inside) not in BESIDE:
            # A browser shows it as an image or as text.
            inside = Path("files") / (inside if inside.suffix == ".png" else f"{inside}.txt")
            (stage / inside).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(there, stage / inside)
        up = "../" * (len(target.relative_to(stage).parts) - 1)
        return f"{match[1]}{up}{inside}{hash_sign}{anchor}{match[3]}"

    target.write_text(LINK.sub(relink, source.read_text(encoding="utf-8")), encoding="utf-8")


def stage_pages(stage):
    """Fills `stage` and returns the navigation."""
    docs = ROOT / "docs"
    pages = {p.stem for p in docs.glob("*.md")}
    chosen = [name for names in NAVIGATION.values() for name in names]
    if differing := pages ^ {*chosen, "status"}:
        sys.exit(f"docs-site: NAVIGATION and docs/ differ by {', '.join(sorted(differing))}")
    (stage / "man").mkdir()
    for manual in (docs / "man").iterdir():
        name = manual.name
        # A page of one line refers to the page that describes several commands.
        if reference := re.match(r"\.so man\d/(\S+)", manual.read_text(encoding="utf-8")):
            manual = manual.with_name(reference[1])
        text = subprocess.run(["man", "--local-file", str(manual)], env={**os.environ, "MANWIDTH": "100"},
                              stdout=subprocess.PIPE, check=True).stdout
        (stage / "man" / f"{name}.txt").write_bytes(text)
    for other in docs.iterdir():
        if other.is_dir() and other.name != "man":
            shutil.copytree(other, stage / other.name)
    for page in docs.glob("*.md"):
        copy_page(page, stage / page.name, stage)
    copy_page(ROOT / "README.md", stage / "index.md", stage)
    navigation = [{"DiOMP": "index.md"}, {title(docs / "status.md"): "status.md"}]
    for heading, names in NAVIGATION.items():
        navigation.append({heading: [{title(docs / f"{name}.md"): f"{name}.md"} for name in names]})
    project = []
    for name in BESIDE:
        if (ROOT / name).is_file():
            copy_page(ROOT / name, stage / name, stage)
            project.append({title(ROOT / name): name})
    navigation.append({"Project": project})
    return navigation


def build(out):
    for tool, package in (("mkdocs", "mkdocs"), ("man", "man-db")):
        if not shutil.which(tool):
            print(f"docs-site: {tool} is not installed (Debian's package {package})", file=sys.stderr)
            return 77
    with tempfile.TemporaryDirectory() as folder:
        stage = Path(folder) / "docs"
        stage.mkdir()
        config = {
            "site_name": "DiOMP",
            "docs_dir": str(stage),
            "site_dir": str(Path(out).resolve()),
            "use_directory_urls": False,
            "theme": {"name": "mkdocs", "highlightjs": False},
            "markdown_extensions": ["tables", "fenced_code", {"toc": {"permalink": True}}],
            "plugins": [],
            "nav": stage_pages(stage),
        }
        path = Path(folder) / "mkdocs.yml"
        path.write_text(json.dumps(config), encoding="utf-8")
        return subprocess.run(["mkdocs", "build", "--quiet", "--strict", "-f", str(path)], check=False).returncode


class Page(html.parser.HTMLParser):
    """The links and the anchors of one page, and what a browser loads for it."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors, self.loaded = [], set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if given.get("id"):
            self.anchors.add(given["id"])
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        address = given.get("src") or (given.get("href") if tag == "link" else None)
        if address:
            self.loaded.append(address)


def check(out):
    """Prints what is wrong; 0 if nothing is."""
    root = Path(out).resolve()
    pages = {path: Page(path) for path in root.rglob("*.html") if path.name not in ("404.html", "search.html")}
    if len(pages) < 20:
        print(f"docs-site: only {len(pages)} pages in {out}", file=sys.stderr)
        return 1
    wrong = []
    for path, page in pages.items():
        name = path.relative_to(root)
        for address in page.loaded:
            parts = urlsplit(address)
            if parts.netloc:
                wrong.append(f"{name}: loads {address} from elsewhere")
            elif not parts.scheme and not (path.parent / unquote(parts.path)).exists():
                wrong.append(f"{name}: loads {address}, which is missing")
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not there.is_file():
                wrong.append(f"{name}: {link} leads nowhere")
            elif parts.fragment and there in pages and unquote(parts.fragment) not in pages[there].anchors:
                wrong.append(f"{name}: {link} names an anchor that is missing")
    for line in sorted(set(wrong)):
        print(f"docs-site: {line}", file=sys.stderr)
    print(f"docs-site: {len(pages)} pages, {sum(len(p.links) for p in pages.values())} links, {len(set(wrong))} wrong")
    return 1 if wrong else 0


def main():
    arguments = sys.argv[1:]
    if len(arguments) == 2 and arguments[0] == "--check":
        return check(arguments[1])
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    return build(arguments[0]) or check(arguments[0])


if __name__ == "__main__":
    sys.exit(main())
