#!/usr/bin/env python3
"""Writes docs/openapi.json from the files beside this one: each api_*.py has ROUTES, made by shapes.route, and
SCHEMAS, {name: schema}.  A new route is a line there, or a file of its own; tests/serve holds every answer of
every test to what it says.

usage: tools/openapi/make.py [--check]     --check: only says whether the file is as it would be written"""
import importlib
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OUT = ROOT / "docs/openapi.json"


def version():
    return re.search(r'return "([0-9.]+)";', (ROOT / "src/base/status.c").read_text()).group(1)


def document():
    sys.path.insert(0, str(HERE))
    paths, schemas = {}, {}
    for f in sorted(HERE.glob("api_*.py")):
        part = importlib.import_module(f.stem)
        for path, method, op in part.ROUTES:
            assert method not in paths.setdefault(path, {}), (path, method)
            paths[path][method] = op
        for name, schema in part.SCHEMAS.items():
            assert name not in schemas, name
            schemas[name] = schema
    return {
        "openapi": "3.1.0",
        "info": {"title": "cairn", "version": version(), "license": {"name": "MIT", "identifier": "MIT"},
                 "description": "The HTTP interface of `cairn serve`; docs/http.md and docs/api.md say what fields mean. "
                                "What has x-local-socket is answered on the Unix socket of --admin-socket alone."},
        "servers": [{"url": "http://127.0.0.1:8080"}],
        "security": [{"bearer": []}, {"header": []}, {}],
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": dict(sorted(schemas.items())), "securitySchemes": {
            "bearer": {"type": "http", "scheme": "bearer"}, "header": {"type": "apiKey", "in": "header", "name": "x-api-key"}}},
    }


def main():
    text = json.dumps(document(), indent=1, ensure_ascii=False) + "\n"
    if sys.argv[1:] == ["--check"]:
        if not OUT.exists() or OUT.read_text() != text:
            sys.exit("docs/openapi.json is not what tools/openapi/make.py writes")
        return
    OUT.write_text(text)
    print("%s: %d bytes" % (OUT.relative_to(ROOT), len(text)))


if __name__ == "__main__":
    main()
