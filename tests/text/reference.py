"""The reference for templates: jinja2 in the environment that transformers builds for chat templates.

Where transformers is installed its own environment is taken; elsewhere (the tests' environment has jinja2 alone)
the same settings are made here, and test_templates.py compares the two where it can."""
import contextlib
import json
from datetime import datetime

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Generation(jinja2.ext.Extension):
    tags = {"generation"}
    tracker = None

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    @jinja2.pass_eval_context
    def _body(self, context, caller):
        text = caller()
        if Generation.tracker is not None:
            blocks, spans = Generation.tracker
            start = len("".join(blocks))
            spans.append((start, start + len(text)))
        return text


def _raise(message):
    raise jinja2.exceptions.TemplateError(message)


def _tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


class _Dict:
    def __call__(self, *args, **kwargs):
        return dict(*args, **kwargs)

    def fromkeys(self, *args, **kwargs):
        return dict.fromkeys(*args, **kwargs)


class _Namespace(jinja2.utils.Namespace):
    def __init__(*args, **kwargs):
        self, args = args[0], args[1:]
        attrs = dict(*args, **kwargs)
        for name in attrs:
            _Namespace._check(name)
        jinja2.utils.Namespace.__init__(self, attrs)

    def __setitem__(self, name, value):
        _Namespace._check(name)
        jinja2.utils.Namespace.__setitem__(self, name, value)

    @staticmethod
    def _check(name):
        if isinstance(name, str) and name.startswith("_"):
            raise jinja2.exceptions.SecurityError("underscore")


def plain_environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                        extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = _tojson
    env.globals.update(raise_exception=_raise, strftime_now=lambda f: datetime.now().strftime(f), dict=_Dict(),
                       namespace=_Namespace)
    return env


_cache = {}


def compile_template(text):
    if text not in _cache:
        if len(_cache) > 500:
            _cache.clear()
        _cache[text] = plain_environment().from_string(text)
    return _cache[text]


def transformers_compile():
    """transformers' own function, or None."""
    with contextlib.suppress(ImportError):
        from transformers.utils.chat_template_utils import _compile_jinja_template
        return _compile_jinja_template
    return None


def render(text, context):
    """(text, None) or (None, the exception).  Too deep for Python is an answer too."""
    try:
        return compile_template(text).render(**context), None
    except Exception as e:  # noqa: BLE001: whatever a template can raise
        return None, e


def spans(text, context):
    """The rendered text and the generation blocks' spans in characters, as transformers tracks them."""
    blocks, found = [], []
    Generation.tracker = (blocks, found)
    try:
        for block in compile_template(text).generate(**context):
            blocks.append(block)
    finally:
        Generation.tracker = None
    return "".join(blocks), found
