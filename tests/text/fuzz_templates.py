#!/usr/bin/env python3
"""Random templates from a grammar, rendered by jinja2 and by `test_jinja --batch`, and compared.

  fuzz_templates.py TEST_JINJA [--seed N] [--count N] [--show N]

A case differs when the texts differ, or when one of the two fails and the other does not.  What cairn limits on
purpose (steps, sizes) is not reached by these templates."""
import argparse
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import reference  # noqa: E402

warnings.simplefilter("ignore")
warnings.filterwarnings("ignore", category=SyntaxWarning)

CONTEXT = {
    "s": "hello World", "u": "Grüße, 世界 😀 ﬁß", "e": "", "w": "  a b\t c\n\nd  ", "q": "it's \"q\" <b>&amp; \\x",
    "i": 42, "n": -7, "z": 0, "big": 123456789012345678901234567890, "f": 2.5, "g": -0.125, "t": True, "no": False,
    "nil": None, "l": [3, 1, 2], "ls": ["b", "a", "C", "ab"], "mix": [1, "a", None, 2.5, [1], {"k": 1}],
    "ll": [[1, 2], [3, 4], ["x", "y"]], "d": {"b": 1, "a": [1, 2], "c": None}, "ds": {"x": "1", "Y": "b", "items": 3},
    "people": [{"name": "Ann", "age": 30, "tags": ["x"]}, {"name": "bob", "age": 25, "tags": []},
               {"name": "Cy", "age": 30}],
    "msgs": [{"role": "system", "content": "Be."}, {"role": "user", "content": "Hi\nthere"},
             {"role": "assistant", "content": [{"type": "text", "text": "Yo"}]}],
    "tree": [{"v": 1, "kids": [{"v": 2, "kids": []}, {"v": 3, "kids": [{"v": 4, "kids": []}]}]}],
}
STR = ["s", "u", "e", "w", "q", "ls[0]", "msgs[0].role", "people[1].name", "ds.x"]
INT = ["i", "n", "z", "l[0]", "people[0].age", "big"]
LIST = ["l", "ls", "mix", "ll", "people", "msgs", "d.a", "tree"]
DICT = ["d", "ds", "people[0]", "msgs[1]"]
ANY = ["nil", "t", "no", "missing", "f", "g", "d.zz", "missing.x"]
WORDS = ["a", "b", "ab", "", " ", "l", "o", "X", "é", "世", "😀", "\\n", "a b c", "1", "12", "-3.5", "0x1f", "x,y,,z", "<i>", "{}", "%s",
         "ß", "Ab Cd-ef", "\\t", "'", "\\\\", "name", "age", "role", "k", "\\u00a0", "İ", "ǆ", "1e5", "١٢", "²", "http://a.b/c", "a.b",
         "(see www.Ab.org/x?y=(1).)", "https://é.xn--ab/:80", "a.b@c-d.ef", "mailto:x@y.zz,", "http://1.2.3.4:80", "<http://[::1]:8/a>", "ftp://q.r",
         "goof-ball -- a-b well-known x--y e-", "(a(b.com)", "one two  three four five six seven eight nine ten eleven twelve thirteen fourteen"]

ATTR = ["name", "age", "role", "content", "k", "v", "kids", "tags", "a", "b", "zz", "0", "1", "tags.0", "x"]
# Pieces of long texts for the filters that lay text out or look for addresses in it.
PIECES = ["a", "well", "known", "x2", "é", "世界", "3", "_", "-", "--", "---", ".", ",", "!", "'", "(", ")", "<", ">", "&", "://", "http://", "https://", "HTTP://",
          "www.", "ftp:", "mailto:", "@", ".com", ".Org", ".museum", ".c", "xn--", "%", ":80", ":123456", "/p?q#r", "1.2.3.4", "[::1]", "[a:b:c]", "ı", "ſ", "K",
          "antidisestablishmentarianism", "\u00a0", "\u2028", "\t", "\x0b"]
METHODS_STR = [("upper", ""), ("lower", ""), ("title", ""), ("capitalize", ""), ("swapcase", ""), ("strip", "s?"), ("lstrip", "s?"),
               ("rstrip", "s?"), ("split", "s?i?"), ("rsplit", "s?i?"), ("splitlines", "b?"), ("startswith", "si?i?"), ("endswith", "si?"),
               ("replace", "ssi?"), ("find", "si?i?"), ("rfind", "si?"), ("index", "s"), ("rindex", "s"), ("count", "si?"), ("join", "l"),
               ("isdigit", ""), ("isalpha", ""), ("isalnum", ""), ("isspace", ""), ("isupper", ""), ("islower", ""), ("istitle", ""),
               ("isdecimal", ""), ("isnumeric", ""), ("isidentifier", ""), ("isprintable", ""), ("isascii", ""), ("partition", "s"),
               ("rpartition", "s"), ("removeprefix", "s"), ("removesuffix", "s"), ("ljust", "is?"), ("rjust", "is?"), ("center", "is?"),
               ("zfill", "i"), ("expandtabs", "i?"), ("casefold", ""), ("format", "a?a?")]
METHODS_DICT = [("get", "aa?"), ("keys", ""), ("values", ""), ("items", ""), ("pop", "s"), ("copy", ""), ("update", "d")]
METHODS_LIST = [("index", "a"), ("count", "a"), ("append", "a"), ("copy", "")]
FILTERS = [("abs", ""), ("attr", "s"), ("batch", "ia?"), ("capitalize", ""), ("center", "i?"), ("count", ""), ("d", "a?b?"),
           ("default", "a?b?"), ("dictsort", "b?"), ("filesizeformat", "b?"), ("first", ""), ("float", "a?"),
           ("format", "a?a?"), ("indent", "i?b?b?"), ("int", "a?i?"), ("items", ""), ("join", "s?"), ("last", ""),
           ("length", ""), ("list", ""), ("lower", ""), ("max", ""), ("min", ""), ("replace", "ssi?"), ("reverse", ""),
           ("round", "i?m?"), ("select", "T"), ("reject", "T"), ("slice", "ia?"), ("sort", "b?b?"), ("string", ""),
           ("striptags", ""), ("sum", "K?"), ("title", ""), ("tojson", "J"), ("trim", "s?"), ("truncate", "i?b?s?i?"), ("unique", "b?"),
           ("upper", ""), ("urlencode", ""), ("urlize", "I?b?"), ("urlize", "U"), ("wordwrap", "ib?s?b?"), ("wordwrap", "i?"), ("pprint", ""), ("pprint", ""), ("wordcount", ""), ("xmlattr", "b?"), ("map", "F"),
           ("selectattr", "A"), ("rejectattr", "A"), ("groupby", "k"), ("string", ""), ("list", ""), ("tojson", ""), ("join", "s?")]
MAPPABLE = ["'upper'", "'string'", "'length'", "'first'", "'tojson'", "'trim'", "'int'", "'list'", "'replace', 'a', 'b'", "'default', '-'"]
TESTS = [("boolean", ""), ("callable", ""), ("defined", ""), ("divisibleby", "i"), ("eq", "a"), ("equalto", "a"), ("escaped", ""), ("even", ""),
         ("false", ""), ("filter", ""), ("float", ""), ("ge", "a"), ("gt", "a"), ("greaterthan", "a"), ("in", "l"), ("integer", ""),
         ("iterable", ""), ("le", "a"), ("lower", ""), ("lt", "a"), ("lessthan", "a"), ("mapping", ""), ("ne", "a"), ("none", ""), ("number", ""),
         ("odd", ""), ("sameas", "a"), ("sequence", ""), ("string", ""), ("test", ""), ("true", ""), ("undefined", ""), ("upper", "")]
FORMATS = ["%s", "%d", "%5.2f|", "%-6s|", "%05d", "%x", "%r", "%c", "%+d", "%e", "%g", "%%", "%s %s", "%(a)s", "%.3s", "%i", "%o", "%X", "%#x", "%a", "% d"]
BRACES = ["{}", "{0}", "{:>6}", "{:<6}|", "{:^7}", "{:.2f}", "{:05d}", "{!r}", "{:,}", "{:x}", "{:e}", "{:%}", "{0[0]}", "{!a}", "{a}", "{{}}", "{:+}", "{:*^9}",
          "{:g}", "{:n}", "{:b}", "{:#x}", "{:s}", "{:d}", "{:_}", "{:.3}", "{:10.3f}|", "{0.real}"]


class Gen:
    def __init__(self, rng):
        self.r = rng
        self.vars = []

    def pick(self, *xs):
        return self.r.choice(xs)()

    def lit(self, s):
        q = self.r.choice("'\"")
        return q + s.replace(q, "") + q if s != "\\\\" else q + s + q

    def args(self, spec, depth):
        out, i = [], 0
        while i < len(spec):
            optional = spec[i + 1:i + 2] == "?"
            if optional and self.r.random() < 0.5:
                break
            out.append(self.arg(spec[i], depth))
            i += 2 if optional else 1
        return ", ".join(out)

    def arg(self, kind, depth):
        r = self.r
        if r.random() < 0.05:
            return self.expr(depth)
        if kind == "s":
            return self.lit(r.choice(WORDS)) if r.random() < 0.7 else self.string(depth)
        if kind == "i":
            return str(r.choice([0, 1, 2, 3, 5, 10, -1, -2, 16, 20])) if r.random() < 0.85 else self.integer(depth)
        if kind == "b":
            return r.choice(["true", "false", "1", "0"])
        if kind == "l":
            return self.seq(depth)
        if kind == "d":
            return self.dict(depth)
        if kind == "m":
            return r.choice(["'common'", "'ceil'", "'floor'", "'x'"])
        if kind == "k":
            return self.lit(r.choice(ATTR))
        if kind == "K":
            return r.choice(["attribute='age'", "start=1", "start=[]", "attribute='v'"])
        if kind == "J":
            return r.choice(["", "indent=2", "indent=none", "ensure_ascii=true", "sort_keys=true", "separators=(',', ':')", "indent='\\t'", "indent=0", "indent=-1"])
        if kind == "I":
            return r.choice(["none", "3", "10", "-2", "0"])
        if kind == "U":
            return r.choice(["nofollow=true", "rel='z a'", "rel='a a', nofollow=1", "target='_blank'", "target='<'", "extra_schemes=['ftp:', 'q://']",
                             "extra_schemes=['x']", "trim_url_limit=6, target=''"])
        if kind == "F":
            return r.choice([r.choice(MAPPABLE), "attribute=" + self.lit(r.choice(ATTR)), "attribute=%s, default='-'" % self.lit(r.choice(ATTR))])
        if kind in "TA":
            head = [self.lit(r.choice(ATTR))] if kind == "A" else []
            if r.random() < 0.8:
                name, spec = r.choice(TESTS)
                head.append(self.lit(name))
                if spec:
                    head.append(self.arg(spec[0], depth))
            return ", ".join(head)
        return self.expr(depth)

    def string(self, depth):
        r = self.r
        if depth <= 0 or r.random() < 0.35:
            return r.choice(STR) if r.random() < 0.6 else self.lit(r.choice(WORDS))
        return self.pick(
            lambda: "%s ~ %s" % (self.paren(depth - 1), self.paren(depth - 1)),
            lambda: "%s + %s" % (self.string(depth - 1), self.string(depth - 1)),
            lambda: "%s * %s" % (self.atom_s(depth - 1), self.r.choice(["0", "2", "3", "-1", "true"])),
            lambda: "%s[%s]" % (self.atom_s(depth - 1), self.index(depth - 1)),
            lambda: self.method(self.atom_s(depth - 1), METHODS_STR, depth - 1),
            lambda: self.method(self.atom_s(depth - 1), METHODS_STR, depth - 1),
            lambda: "%s %% %s" % (self.lit(r.choice(FORMATS)), self.paren(depth - 1)),
            lambda: "%s %% (%s, %s)" % (self.lit(r.choice(FORMATS) + r.choice(FORMATS)), self.expr(depth - 1), self.expr(depth - 1)),
            lambda: "%s.format(%s, a=%s)" % (self.lit(r.choice(BRACES) + r.choice(["", "", r.choice(BRACES)])), self.expr(depth - 1), self.expr(depth - 1)),
            lambda: self.filtered(self.atom_s(depth - 1), depth - 1))

    def atom_s(self, depth):
        s = self.string(depth)
        return s if s.replace("_", "a").isalnum() or (s[0] in "'\"" and s.count(s[0]) == 2 and s[-1] == s[0]) else "(%s)" % s

    def method(self, on, table, depth):
        name, spec = self.r.choice(table)
        return "%s.%s(%s)" % (on, name, self.args(spec, depth))

    def filtered(self, on, depth):
        name, spec = self.r.choice(FILTERS)
        if not spec:
            return "%s|%s" % (on, name)
        return "%s|%s(%s)" % (on, name, self.args(spec, depth))

    def index(self, depth):
        r = self.r
        small = lambda: r.choice(["", "0", "1", "2", "-1", "-2", "5", "none", "-9", "99"])  # noqa: E731
        x = r.random()
        if x < 0.3:
            return r.choice(["0", "1", "-1", "-2", "7"])
        if x < 0.6:
            return "%s:%s" % (small(), small())
        if x < 0.75:
            return "%s:%s:%s" % (small(), small(), r.choice(["", "1", "2", "-1", "-2", "0"]))
        if x < 0.9:
            return self.lit(r.choice(ATTR))
        return self.expr(depth)

    def integer(self, depth):
        r = self.r
        if depth <= 0 or r.random() < 0.4:
            return r.choice(INT) if r.random() < 0.4 else str(r.choice([0, 1, 2, 3, 7, 10, 255, 1000, 2 ** 31, 2 ** 63 - 1, 2 ** 63, 10 ** 25]))
        return self.pick(
            lambda: "%s %s %s" % (self.paren(depth - 1, self.integer), r.choice(["+", "-", "*", "//", "%", "/"]), self.paren(depth - 1, self.integer)),
            lambda: "%s ** %s" % (self.paren(depth - 1, self.integer), r.choice(["0", "1", "2", "3", "-1", "9", "0.5"])),
            lambda: "-%s" % self.paren(depth - 1, self.integer),
            lambda: "%s|length" % self.paren(depth - 1, self.seq),
            lambda: "%s|int" % self.paren(depth - 1),
            lambda: "%s|abs" % self.paren(depth - 1, self.number),
            lambda: "%s|round(%s)" % (self.paren(depth - 1, self.number), self.args("i?m?", depth - 1)),
            lambda: "%s|sum" % self.paren(depth - 1, self.seq))

    def number(self, depth):
        r = self.r
        if r.random() < 0.5:
            return self.integer(depth)
        if depth <= 0 or r.random() < 0.5:
            return r.choice(["f", "g", "1.5", "0.1", "2.0", "1e20", "1e-7", "3.14159", "100.0", "1e308", "-0.0", "2.675", "1e16", "123456.789"])
        return "%s %s %s" % (self.paren(depth - 1, self.number), r.choice(["+", "-", "*", "/", "//", "%"]), self.paren(depth - 1, self.number))

    def seq(self, depth):
        r = self.r
        if depth <= 0 or r.random() < 0.4:
            return r.choice(LIST + ["s", "d"]) if r.random() < 0.9 else r.choice(["[]", "()", "{}", "range(4)"])
        return self.pick(
            lambda: "[%s]" % ", ".join(self.expr(depth - 1) for _ in range(r.randrange(4))),
            lambda: "(%s, %s)" % (self.expr(depth - 1), self.expr(depth - 1)),
            lambda: "(%s,)" % self.expr(depth - 1),
            lambda: "%s + %s" % (self.seq(depth - 1), self.seq(depth - 1)),
            lambda: "%s[%s]" % (self.paren(depth - 1, self.seq), self.index(depth - 1)),
            lambda: "range(%s)" % ", ".join(str(r.choice([0, 1, 3, 5, -2, 8])) for _ in range(r.randint(1, 3))),
            lambda: self.filtered(self.paren(depth - 1, self.seq), depth - 1),
            lambda: self.filtered(self.paren(depth - 1, self.seq), depth - 1) + "|list",
            lambda: "%s.%s()" % (self.paren(depth - 1, self.dict), r.choice(["keys", "values", "items"])),
            lambda: self.method(self.paren(depth - 1, self.seq), METHODS_LIST, depth - 1),
            lambda: "%s.split(%s)" % (self.atom_s(depth - 1), self.args("s?i?", depth - 1)))

    def dict(self, depth):
        r = self.r
        if depth <= 0 or r.random() < 0.5:
            return r.choice(DICT)
        return self.pick(
            lambda: "{%s}" % ", ".join("%s: %s" % (self.pick(lambda: self.lit(r.choice(WORDS)), lambda: self.expr(0)), self.expr(depth - 1))
                                       for _ in range(r.randrange(3))),
            lambda: "dict(a=%s, b=%s)" % (self.expr(depth - 1), self.expr(depth - 1)),
            lambda: "dict(%s, c=%s)" % (self.expr(depth - 1), self.expr(depth - 1)),
            lambda: r.choice(DICT))

    def boolean(self, depth):
        r = self.r
        if depth <= 0:
            return r.choice(["t", "no", "true", "false"])
        name, spec = r.choice(TESTS)
        return self.pick(
            lambda: "%s %s %s" % (self.paren(depth - 1), r.choice(["==", "!=", "<", ">", "<=", ">=", "in", "not in"]), self.paren(depth - 1)),
            lambda: "%s %s %s" % (self.paren(depth - 1, self.number), r.choice(["==", "<", ">", "<=", ">="]), self.paren(depth - 1, self.number)),
            lambda: "%s %s %s" % (self.paren(depth - 1, self.string), r.choice(["==", "<", "in", "not in"]), self.paren(depth - 1, self.string)),
            lambda: "%s < %s <= %s" % (self.paren(depth - 1, self.number), self.paren(depth - 1, self.number), self.paren(depth - 1, self.number)),
            lambda: "not %s" % self.paren(depth - 1),
            lambda: "%s %s %s" % (self.paren(depth - 1), r.choice(["and", "or"]), self.paren(depth - 1)),
            lambda: "%s is %s%s%s" % (self.paren(depth - 1), r.choice(["", "", "not "]), name, "(%s)" % self.args(spec, depth - 1) if spec else ""))

    def expr(self, depth):
        r = self.r
        if depth <= 0:
            return r.choice([r.choice(STR), r.choice(INT), r.choice(LIST), r.choice(DICT), r.choice(ANY), self.lit(r.choice(WORDS)),
                             str(r.randrange(20)), *self.vars[-2:]])
        if r.random() < 0.02:  # what they give is Markup: to be printed, not to be looked into
            return "(%s|%s|string)" % (self.paren(depth - 1), r.choice(["e", "escape", "safe", "forceescape"]))
        return self.pick(
            lambda: self.string(depth), lambda: self.string(depth), lambda: self.number(depth), lambda: self.seq(depth),
            lambda: self.seq(depth), lambda: self.dict(depth), lambda: self.boolean(depth), lambda: r.choice(ANY),
            lambda: "%s if %s else %s" % (self.paren(depth - 1), self.paren(depth - 1, self.boolean), self.paren(depth - 1)),
            lambda: "%s if %s" % (self.paren(depth - 1), self.paren(depth - 1, self.boolean)),
            lambda: self.filtered(self.paren(depth - 1), depth - 1),
            lambda: self.filtered(self.paren(depth - 1), depth - 1),
            lambda: "%s.%s" % (self.paren(depth - 1), r.choice(["name", "role", "x", "items", "upper", "a", "b", "real", "kids", "0"])),
            lambda: "%s[%s]" % (self.paren(depth - 1), self.index(depth - 1)))

    # layout
    def long_text(self):
        r = self.r
        gaps = ["", "", "", " ", " ", "  ", "\\n", "-"] if r.random() < 0.5 else ["", " ", " "]
        text = "".join(r.choice(PIECES) + r.choice(gaps) for _ in range(r.choice([2, 5, 12, 40])))
        return '"%s"' % text

    def long_value(self, depth):
        r = self.r
        if depth <= 0 or r.random() < 0.3:
            return r.choice([self.long_text, lambda: self.expr(0), lambda: self.lit(r.choice(WORDS))])()
        items = [self.long_value(depth - 1) for _ in range(r.choice([0, 1, 2, 5]))]
        if r.random() < 0.4:
            keys = ["'b'", "'a'", "1", "-2.5", "none", "'key of words'", "(1, 'x')", "true", self.long_text(), self.expr(0)]
            return "{%s}" % ", ".join("%s: %s" % (r.choice(keys), x) for x in items)
        return r.choice(["[%s]" % ", ".join(items), "(%s)" % "".join(x + ", " for x in items)])

    def layout(self):
        r = self.r
        if r.random() < 0.3:
            return "%s|pprint" % self.long_value(3)
        if r.random() < 0.5:
            return "%s|wordwrap(%s)" % (self.long_text(), ", ".join([r.choice(["1", "3", "7", "12", "20", "79", "0.5", "6.0"]), r.choice(["true", "false"]),
                                                                     r.choice(["none", "'|'"]), r.choice(["true", "false", "1"])][:r.randint(0, 4)]))
        return "%s|urlize(%s)" % (self.long_text(), self.arg(r.choice("IU"), 1))

    def paren(self, depth, make=None):
        e = (make or self.expr)(depth)
        plain = e.replace("_", "a").replace(".", "a")
        return e if plain.isalnum() and plain.isascii() and not e[0].isdigit() else "(%s)" % e

    # statements
    def text(self):
        return self.r.choice(["", "", "a", " ", "\n", "x\n", "  ", "\n\n", " b ", "é", "\t", "  \n  ", "{", "%}", "\r\n", "#"])

    def tag(self, inner):
        r = self.r
        return "{%" + r.choice(["", "", "", "-", "+"]) + " " + inner + " " + r.choice(["", "", "", "-", "+"]) + "%}"

    def name(self):
        return self.r.choice(["v1", "v2", "i", "s", "x", "ns"])

    def body(self, depth, in_loop):
        out = ""
        for _ in range(self.r.randint(1, 3)):
            out += self.text() + self.stmt(depth, in_loop) + self.text()
        return out

    def stmt(self, depth, in_loop):
        r = self.r
        kind = r.random()
        if depth <= 0 or kind < 0.35:
            return "{{" + r.choice(["", "-"]) + " " + self.expr(r.randint(0, 2)) + " " + r.choice(["", "-"]) + "}}"
        keep = list(self.vars)
        try:
            return self.block(depth, in_loop)
        finally:
            if r.random() < 0.7:
                self.vars = keep

    def block(self, depth, in_loop):
        r, t = self.r, self.tag
        k = r.randrange(17)
        b = lambda loop=in_loop: self.body(depth - 1, loop)  # noqa: E731
        if k <= 1:
            v = self.name()
            out = t("for %s in %s%s%s" % (v, self.seq(1), r.choice(["", "", " if " + self.paren(1, self.boolean)]), ""))
            self.vars.append(v)
            return out + b(True) + r.choice(["", "", t("else") + b(True)]) + t("endfor")
        if k == 2:
            self.vars += ["v1", "v2"]
            return t("for v1, v2 in %s" % r.choice(["d.items()", "ll", "ds|items", "people|groupby('age')", "d|dictsort", "[(1, 2), (3, 4)]", self.seq(1)])) + \
                b(True) + t("endfor")
        if k == 3:
            return t("for x in tree recursive") + "{{ x.v }}" + b(True) + r.choice(["{{ loop(x.kids) }}", "{{ loop(x.kids)|upper }}", ""]) + t("endfor")
        if k in (4, 5):
            return t("if " + self.expr(2)) + b() + r.choice(["", t("else") + b(), t("elif " + self.expr(1)) + b()]) + t("endif")
        if k in (6, 7):
            v = self.name()
            out = t("set %s = %s" % (v, self.expr(2)))
            self.vars.append(v)
            return out
        if k == 8:
            v = self.name()
            out = t("set %s%s" % (v, r.choice(["", " | upper", " | trim | length", " | replace('a', 'b')"]))) + b(False) + t("endset")
            self.vars.append(v)
            return out
        if k == 9:
            return t("set ns = namespace(a=%s)" % self.expr(1)) + b() + t("set ns.a = %s" % self.expr(1)) + "{{ ns.a }}" + r.choice(["{{ ns.b }}", "{{ ns }}", ""])
        if k == 10:
            return t("macro m(p, q=%s)" % self.expr(1)) + "{{ p }}" + b(False) + r.choice(["{{ q }}", "{{ varargs }}", "{{ kwargs }}", "{{ caller() }}"]) + t("endmacro") + \
                r.choice(["{{ m(%s) }}" % self.expr(1), "{{ m(%s, q=%s) }}" % (self.expr(1), self.expr(1)), "{{ m() }}", "{{ m(1, 2, 3) }}", "{{ m(1, z=2) }}",
                          t("call m(1)") + "c{{ %s }}" % self.expr(1) + t("endcall")])
        if k == 11:
            return t("macro cm()") + "<{{ caller(%s) }}>" % self.expr(1) + t("endmacro") + t("call(a) cm()") + "{{ a }}" + b(False) + t("endcall")
        if k == 12:
            return t("filter " + r.choice(["upper", "replace('a', 'e')", "trim", "indent", "length", "title|lower", "tojson"])) + b(False) + t("endfilter")
        if k == 13:
            return t("with v1 = %s, v2 = %s" % (self.expr(1), self.expr(1))) + "{{ v1 }}" + b() + t("endwith")
        if k == 14 and in_loop:
            return r.choice([t("if loop.index > 1") + t("break") + t("endif"), t("if loop.first") + t("continue") + t("endif"),
                             "{{ loop.%s }}" % r.choice(["index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "previtem", "nextitem",
                                                         "cycle('a', 'b')", "changed(loop.index // 2)", "zz"]), "{{ loop }}"])
        if k == 15:
            return t("generation") + b(False) + t("endgeneration")
        return r.choice(["{# c #}", "{#- c -#}", t("raw") + "{{ x }}" + t("endraw"), "{{ cycler('a', 'b').next() }}", t("print " + self.expr(1)),
                         "{{ joiner('|')() }}", t("set c = cycler(1, 2, 3)") + "{{ c.next() }}{{ c.next() }}{{ c.current }}"])


def cases(seed, count):
    rng = random.Random(seed)
    for k in range(count):
        g = Gen(rng)
        if k % 8 == 7:
            yield "{{ %s }}" % g.layout()
            continue
        yield "{{ %s }}" % g.expr(rng.randint(1, 4)) if k % 3 else g.body(rng.randint(1, 3), False)


def too_slow(*_):
    raise TimeoutError


# A generator's text has its address and its Python name in it: whatever is made of that text differs.
GENERATOR_TEXT = re.compile(r"\|(items|map|select|reject|selectattr|rejectattr|unique|batch|slice|reverse)(\((?:[^()]|\([^()]*\))*\))?\)*"
                            r"\|(string|forceescape|e|escape|safe|wordcount|center|striptags|urlencode|capitalize|replace|trim|upper|lower|title"
                            r"|truncate|indent|format)\b")


def want_of(text, context):
    """The reference's answer, or None where it has none worth comparing: addresses, or too long."""
    if GENERATOR_TEXT.search(text):
        return None
    signal.setitimer(signal.ITIMER_REAL, 2)
    try:
        out, why = reference.render(text, json.loads(context))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if isinstance(why, (TimeoutError, MemoryError)):
        return None
    if out is not None and (re.search("0[xX]7[eEfF]", out) or len(out) > 1 << 20):
        return None
    if (out and "<bound method" in out) or "not subscriptable" in str(why):
        return None  # the latter: see compare
    if isinstance(why, NameError):  # jinja2 writes a folded infinity into its own code as a name
        return None
    return out, why


def batch(driver, items):
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as f:
        json.dump(items, f, ensure_ascii=False)
        f.flush()
        p = subprocess.run([driver, "--batch", f.name], stdout=subprocess.PIPE, check=True)
    return [json.loads(x) for x in p.stdout.decode().split("\n") if x]


def compare(driver, seed, count, show=0):
    """(compared, different, failing in both); prints the first `show` differences."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, too_slow)
    context = json.dumps(CONTEXT)
    texts, want = [], []
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, before[1]))  # 'x'.center(2 ** 31) is refused at once
    try:
        for text in cases(seed, count):
            w = want_of(text, context)
            if w is not None:
                texts.append(text)
                want.append(w)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)  # sanitizers map terabytes
    got = batch(driver, {"context": CONTEXT, "templates": texts})
    assert len(got) == len(texts), (len(got), len(texts))
    bad = failed = 0
    for text, (out, why), g in zip(texts, want, got):
        failed += out is None
        if (out is None) == ("error" in g) and (out is None or g["result"] == out):
            continue
        if re.search("cannot be sliced|is complex", g.get("error", "")):
            failed += 1  # jinja2 folds constants: then a slice of a number is undefined; docs/chat.md has both
            continue
        bad += 1
        if bad <= show:
            print("%s\n   want %r %s\n   got  %r\n" % (text, out, "" if why is None else type(why).__name__ + ": " + str(why)[:150],
                                                     g.get("result", g.get("error"))))
    return len(texts), bad, failed


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("driver")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--count", type=int, default=3000)
    ap.add_argument("--show", type=int, default=20)
    o = ap.parse_args()
    total = bad = failed = 0
    for k in range(0, o.count, 3000):
        n, b, f = compare(o.driver, o.seed + k, min(3000, o.count - k), o.show - bad)
        total, bad, failed = total + n, bad + b, failed + f
    print("%d templates compared (%d that fail in both), %d different" % (total, failed, bad))
    return 1 if bad or not total else 0


if __name__ == "__main__":
    sys.exit(main())
