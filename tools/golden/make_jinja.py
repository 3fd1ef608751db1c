#!/usr/bin/env python3
"""Makes tests/text/jinja_cases.json: small templates with what the reference renders.

Reference: jinja2 inside the environment that transformers builds for chat templates.  A result of
null means that the reference fails.  --case-table makes src/text/jinja_case_table.inc instead."""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")

CONTEXT = {
    "s": "hello world", "u": "Grüße, 世界 😀", "e": "", "i": 42, "n": -7, "f": 2.5, "t": True, "nil": None,
    "l": [3, 1, 2], "ls": ["b", "a", "C"], "d": {"b": 1, "a": [1, 2], "c": None},
    "people": [{"name": "Ann", "age": 30, "tags": ["x"]}, {"name": "bob", "age": 25, "tags": []},
               {"name": "Cy", "age": 30}],
    "msgs": [{"role": "system", "content": "Be."}, {"role": "user", "content": "Hi"},
             {"role": "assistant", "content": "Yo", "items": 5}],
    "tree": [{"v": 1, "kids": [{"v": 2, "kids": []}, {"v": 3, "kids": [{"v": 4, "kids": []}]}]}],
}

EXPRESSIONS = r"""
1 + 2 * 3
7 // 2, -7 // 2, 7 % 3, -7 % 3, 7 % -3, 7 / 2, 2 ** 10, 2 ** -1, -2 ** 2
7.5 // 2, -7.5 // 2, 7.5 % 2, -7.5 % 2, 7.0 / 2, 2 ** 0.5
1 / 0
1 // 0
1 % 0
1.0 / 0
1 + '1'
'a' + 'b'
'a' * 3, 3 * 'ab', 'a' * -1, [1] * 2, (1, 2) * 2
[1] + [2], (1,) + (2,)
[1] + (2,)
'x' ~ 1 ~ none ~ true ~ 1.5 ~ [1] ~ missing
-i, +f, -f, - - 3
not t, not e, not nil
1 < 2 < 3, 1 < 3 < 2, 3 > 2 > 1, 1 == 1.0, 1 != 2, 'a' < 'b', [1, 2] < [1, 3], (1,) < (1, 2)
1 < 'a'
none < 1
'a' in 'abc', 'z' not in 'abc', 1 in [1, 2], 'b' in d, 'zz' in d, 3 in range(5), 1.0 in [1]
1 in 'abc'
1 in 5
1 in none
'x' in missing
t and 'yes', e and 'yes', e or 'no', i or 'no', nil or missing or 0
'a' if t else 'b', 'a' if e else 'b', ('a' if e) is undefined
'a' if e
1 if 0 else 2 if 0 else 3
true, True, false, False, none, None
1, 1.0, 1.5, 1e3, 1e16, 1e15, 1.5e-5, 0.0001, 1e22, 123456789.123, 0.1 + 0.2, 1e300 * 1e10, -0.0
1_000, 0x1f, 0b101, 0o17, 1_0.5
[1, 'a', none, true, 1.5, [], {}, ()], (1,), {'a': 1, 2: [3]}
"it's", 'say "x"', ["it's"], ['say "x"'], ['a\nb\t\\'], ['é世😀'], ['both \' and "'], ['\x00\x7f\u200b\xa0']
'a' 'b' "c"
'\x41\u00e9\U0001F600\101\q\
z'
"tab\tnl\nquote\"bs\\"
(1, 2), (), (1), [1, 2,], {'a': 1,}
s[0], s[-1], s[1:3], s[:-3], s[::2], s[::-1], s[20:], s[-100:3], s[3:1], s[5:2:-1]
u[0], u[2], u[-1], u[7:9], u[::-1], u|length, u[::3]
l[0], l[-1], l[1:], l[::-1], l[5] is undefined, l['x'] is undefined, l[-5] is undefined
l[0:2:0]
l['a':]
d['b'], d.b, d['zz'] is undefined, d.zz is undefined, d[1] is undefined
none[0] is undefined, none.x is undefined, i.x is undefined
none[1:]
missing.x
missing['x']
missing[0]
d.zz.y
missing, [missing], missing|string, missing|length, missing|list
missing + 1
missing < 1
missing == 1, missing == other, missing != none
missing()
-missing
missing ~ 'x'
missing is defined, i is defined, missing is undefined, nil is defined, d.zz is defined
nil is none, i is none, t is boolean, i is boolean, s is string, i is number, t is number, f is number
i is integer, t is integer, f is integer, f is float, i is float, d is mapping, l is mapping
s is sequence, l is sequence, d is sequence, i is sequence, missing is sequence, range(3) is sequence
s is iterable, l is iterable, i is iterable, nil is iterable, missing is iterable, d.items() is iterable
range is callable, s is callable, s.upper is callable, missing is callable, d.items() is sequence
3 is odd, 4 is odd, 4 is even, 9 is divisibleby 3, 9 is divisibleby(2), -3 is odd
'a' is odd
1 is eq 1, 1 is equalto(2), 1 is ne 2, 1 is lt 2, 1 is le 1, 2 is gt 1, 2 is ge 3, 1 is == 1
1 is lessthan 2, 2 is greaterthan 1, 1 is in [1], 'a' is in 'abc', 3 is not in [1]
t is true, t is false, 1 is true, nil is sameas none, t is sameas true, 1 is sameas true
'abc' is lower, 'ABC' is upper, 'Abc' is lower, '1' is upper, '' is lower
s is not string, s is not none
'upper' is filter, 'nope' is filter, 'odd' is test, 'nope' is test
s is nope
s|nope
s|upper, u|upper, u|lower, 'ß'|upper, 'ǆ'|upper, 'ΑΣ'|lower, 'ΑΣΑ'|lower, 'ﬁ'|upper, 'İ'|lower|length
s|title, "it's a-b (c) [d] {e}"|title, 'HELLO'|capitalize, 'élan'|capitalize, 'ßx'|capitalize
'  a b '|trim, 'xxaxx'|trim('x'), '\u3000a\u00a0'|trim|length, 5|trim
s|length, l|length, d|length, s|count, range(7)|length
i|length
nil|length
l|first, s|first, d|first, []|first is undefined, l|last, s|last, d|last, []|last is undefined, range(3)|last
i|first
l|join, l|join(', '), ls|join('-'), s|join('.'), d|join(','), [1, none, true]|join('|'), []|join(',')
people|join(', ', attribute='name'), people|join(attribute='age')
i|join
s|replace('o', '0'), s|replace('o', '0', 1), s|replace('', '-'), 12321|replace(2, 'x'), s|replace('zz', 'a')
s|default('x'), missing|default('x'), missing|default, e|default('x'), e|default('x', true), nil|d('x', boolean=true), missing|d(1)
l|sort, l|sort(reverse=true), ls|sort, ls|sort(case_sensitive=true), people|sort(attribute='age')|map(attribute='name')|list
people|sort(attribute='age,name')|map(attribute='name')|list, d|sort, 'hello'|sort|join
[1, 'a']|sort
[none, 1]|sort
d|dictsort, d|dictsort(reverse=true), {'B': 1, 'a': 2}|dictsort, {'B': 1, 'a': 2}|dictsort(true), {'x': 2, 'y': 1}|dictsort(by='value')
{'x': 2, 'y': 'a'}|dictsort(by='value')
l|dictsort
d|items|list, missing|items|list, {}|items|list
l|items|list
people|map(attribute='name')|list, people|map(attribute='tags.0')|map('default', '-')|list, people|map(attribute='zz', default='q')|list
ls|map('upper')|list, ls|map('replace', 'a', 'z')|list, l|map('string')|join, [[1, 2], [3]]|map('first')|list, nil|map('upper')|list
ls|map('nope')|list
l|map|list
i|map('upper')|list
l|select('odd')|list, l|select('gt', 1)|list, [0, 1, '', 'a', none]|select|list, l|reject('odd')|list, [0, 1]|reject|list
people|selectattr('tags')|map(attribute='name')|list, people|selectattr('age', 'eq', 30)|list|length, people|rejectattr('age', 'eq', 30)|map(attribute='name')|list
people|selectattr('tags', 'undefined')|map(attribute='name')|list, people|selectattr('name', 'in', ['Ann'])|list|length, msgs|selectattr('role', 'equalto', 'user')|list
l|select('nope')|list
people|selectattr|list
(l|select('odd')) is iterable, (l|select('odd')) is sequence, (l|select('odd'))[0] is undefined
l|select('odd')|length
'yes' if []|select else 'no'
l|min, l|max, ls|min, ls|max, []|min is undefined, people|max(attribute='age'), people|min(attribute='age'), ls|min(case_sensitive=true)
[1, 'a']|max
l|sum, [0.5, 1]|sum, people|sum(attribute='age'), []|sum, [[1], [2]]|sum(start=[]), l|sum(start=10)
ls|sum
l|reverse|list, s|reverse, d|reverse|list, range(4)|reverse|list, (l|select('odd'))|reverse|list
i|reverse
[1, 2, 1, 'a', 'A']|unique|list, ['a', 'A']|unique(case_sensitive=true)|list, people|unique(attribute='age')|map(attribute='name')|list
[[1], [1]]|unique|list
range(7)|batch(3)|list, range(7)|batch(3, 'x')|list, range(7)|slice(3)|list, range(7)|slice(3, 'x')|list
people|groupby('age')|map('list')|list, people|groupby('age')|map(attribute='grouper')|list, people|groupby('name')|map(attribute='list')|map('length')|list
people|groupby('zz', default='none')|map('first')|list
s|list, d|list, range(3)|list, (1, 2)|list, missing|list
i|list
i|string, f|string, l|string, nil|string, t|string, d|string
'42'|int, '4.7'|int, 'x'|int, 'x'|int(7), '0x1f'|int(base=16), '101'|int(0, 2), 4.9|int, -4.9|int, none|int, ' 12 '|int, '1_000'|int, true|int, '-5'|int, []|int(3)
'4.5'|float, 'x'|float, 'x'|float(1.5), 3|float, '1e3'|float, 'inf'|float, none|float, ' 2 '|float
-3|abs, (-3)|abs, (-2.5)|abs, 5|abs
'a'|abs
2.5|round, 3.5|round, 2.675|round(2), 42|round, 1234|round(-2), 2.1|round(method='ceil'), 2.9|round(0, 'floor'), 42.55|round(1, 'floor'), 1250|round(-2), -2.5|round
2.5|round(method='x')
'a\nb\n\nc'|indent, 'a\nb\n\nc'|indent(2, true), 'a\n\nb'|indent(2, blank=true), 'a\nb'|indent('> '), ''|indent, 'a\n'|indent, 'a\n\n'|indent, '\n'|indent(2, true)
'<a href="x">\'&'|e, '<'|escape|escape, ('<'|safe) ~ '<', ('<'|safe) + '<', '<'|e|forceescape, '<b>'|safe|length
['<'|safe]
('<b>'|safe)[1:] + '<', ('<b>'|safe)[0] + '<', ('<b>'|safe)[:] + '<', ('<b>'|escape)[0:3] ~ '<', ('<b>'|safe)[::-1]|escape, ('<b>'|safe)[-1] ~ '<', [('<b>'|safe)[1:], ('<b>'|safe)[0]], ('<b>'|safe)[5:] is escaped, ('é<b'|safe)[1:]|escape, ('é<b'|safe)[1]|escape
('<b>'|safe)|first|escape, ('<b'|safe)|last|escape, ('b<'|safe)|last|escape, ('<b>'|safe)|list|join('&')|escape, ('<b>'|safe)|reverse|escape, ('<b>'|safe)|slice(2)|list, ('<b>'|safe)|batch(2)|list, ('<b>'|safe)|min|escape, ('<b>'|safe)|sort|join|escape, ('<<'|safe)|random|escape
'foo bar baz'|wordcount, 'a-b c_d é'|wordcount, 'foo bar baz qux'|truncate(9), 'foo bar baz qux'|truncate(9, true), 'foo bar'|truncate(5, leeway=0), 'foo'|center(9), 'a b'|urlencode, {'a b': 'c/d'}|urlencode, 'é/x'|urlencode
1000|filesizeformat, 1|filesizeformat, 1500000|filesizeformat, 1024|filesizeformat(true), 1048576|filesizeformat(binary=true), 10|filesizeformat
'%s-%d'|format('a', 3), '%(x)s'|format(x=1), '%s'|format
{'a': 1}|attr('items') is callable, {'a': 1}|attr('a') is undefined
l|tojson, d|tojson, u|tojson, u|tojson(ensure_ascii=true), 1.0|tojson, 1e20|tojson, 'a"\\\n\t\x01\x7f</'|tojson, none|tojson, true|tojson
d|tojson(indent=2), []|tojson(indent=2), {'a': {}}|tojson(indent=2), d|tojson(indent='\t'), d|tojson(sort_keys=true), d|tojson(separators=(',', ':')), l|tojson(indent=0)
{1: 2, none: 3, true: 4, 1.5: 5}|tojson, (1, 2)|tojson, 'x'|tojson|tojson
{(1, 2): 3}|tojson
missing|tojson
[missing]|tojson
l|select|tojson
range(3)|tojson
d.items()|tojson
s|tojson(foo=1)
s.upper(), s.title(), s.capitalize(), 'aB'.swapcase(), "it's 1st".title(), 'ß'.upper(), 'ǆ'.title()
' a '.strip(), ' a '.lstrip() ~ '|', ' a '.rstrip() ~ '|', 'xyaxy'.strip('xy'), 'xyaxy'.lstrip('yx'), 'xyaxy'.rstrip('y'), 'éaé'.strip('é'), 'a'.strip(none)
'a,b,,c'.split(','), 'a,b,c'.split(',', 1), ' a  b '.split(), 'a b c'.split(none, 1), ''.split(), ''.split(','), 'a b  c '.split(maxsplit=1), 'a--b'.split('--'), ' a b c '.split(' ')
'a,b,c'.rsplit(',', 1), ' a b  c '.rsplit(), 'a b c'.rsplit(none, 1), ' a b  c '.rsplit(none, 1), ' a b'.rsplit(none, 1), 'abc'.rsplit('x'), ''.rsplit(), 'a,,b'.rsplit(','), ' a b c'.rsplit(none, 5), ' a b c '.rsplit(none, 2)
'a'.split('')
'a\nb\r\nc\rd'.splitlines(), 'a\n'.splitlines(true), ''.splitlines(), 'a\u2028b'.splitlines()
s.startswith('he'), s.endswith('ld'), s.startswith(('x', 'he')), s.endswith(()), s.startswith('wor', 6), s.startswith('', 99), s.startswith('lo', 3, 5)
s.startswith(1)
s.startswith(['he'])
s.replace('o', '0'), s.replace('l', '', 2), s.replace('', '.'), 'aaa'.replace('aa', 'b'), u.replace('ü', 'ue'), 'ab'.replace('', '-', 2)
s.find('o'), s.rfind('o'), s.find('zz'), s.index('w'), u.find('世'), s.find('o', 5), s.find('', 3), s.find('', 99), s.count('l'), s.count(''), 'aaa'.count('aa'), s.find('o', -4)
s.index('zz')
'-'.join(ls), ''.join([]), '-'.join('abc'), '-'.join(d), ', '.join(ls|map('upper'))
'-'.join(l)
'123'.isdigit(), '12a'.isdigit(), ''.isdigit(), '²'.isdigit(), '²'.isdecimal(), '½'.isnumeric(), 'abc'.isalpha(), 'aé'.isalpha(), 'a1'.isalnum(), ' \t'.isspace(), 'AB'.isupper(), 'ab1'.islower(), 'a'.isascii(), 'é'.isascii()
'a-b-c'.partition('-'), 'abc'.partition('-'), 'a-b-c'.rpartition('-'), 'abc'.rpartition('-')
'prefix-x'.removeprefix('prefix-'), 'x.txt'.removesuffix('.txt'), 'x'.removesuffix('')
'a'.ljust(3) ~ '|', 'a'.rjust(3, '.'), 'a'.center(4, '*'), 'ab'.center(5, '*'), '42'.zfill(5), '-42'.zfill(5), 'abc'.zfill(2)
'{} {}'.format(1, 'a'), '{1}{0}'.format('a', 'b'), '{x}'.format(x=3), '{:>5}|{:<5}|{:^5}'.format('a', 'b', 'c'), '{:.2f}'.format(3.14159), '{:05d}'.format(42), '{:,}'.format(1234567), '{{}}'.format(), '{0[a]}'.format({'a': 1}), '{!r}'.format('x'), '{:x}'.format(255), '{:#b}'.format(5), '{:*^7}'.format('é'), '{:+}'.format(3), '{:.1%}'.format(0.256), '{:e}'.format(12345.678), '{:8.3f}'.format(2.5), '{:.3}'.format('abcdef'), '{:g}'.format(0.0001)
'{}'.format()
'{:d}'.format('x')
'{'.format(1)
'%s %s' % (1, 'a'), '%d%%' % 5, '%5.1f|' % 2.25, '%-5s|' % 'a', '%05d' % 42, '%x' % 255, '%(a)s' % {'a': 1}, '%r' % 'x', '%c' % 'x', '%+d' % 3, '%s' % none, '%s' % [1], '%.3s' % 'abcdef', '%5s' % 'é', '%e' % 1234.5, '%g' % 1e10, '%i' % 3.9, '%s' % d
'%s %s' % 1
'%d' % 'x'
'%s' % (1, 2)
d.get('b'), d.get('zz'), d.get('zz', 5), d.keys()|list, d.values()|list, d.items()|list, d.keys(), d.values(), d.items()
d.get()
d.items()[0] is undefined, d.keys()|first, d.items()|length, 'b' in d.keys(), 1 in d.values(), d.keys() == {'c': 1, 'a': 2, 'b': 3}.keys()
msgs[2].items, msgs[2]['items'], msgs[2]['get'] is callable, msgs[0].items() is iterable
msgs[2].items()|length
d.pop('b')
d.update({'x': 1})
d.setdefault('x', 1)
d.pop is defined, d.clear is undefined, l.append is defined
l.append(1)
l.pop()
l.sort()
l.index(1), l.count(1), (1, 2, 1).count(1), (5, 6).index(6)
l.index(99)
s.__class__ is undefined, s.__len__ is undefined, d.__class__ is undefined
s.__class__.__mro__
s.nope()
s()
i()
dict(a=1, b=2), dict({'a': 1}, b=2), dict([('a', 1)]), dict()
dict(1)
range(3)|list, range(1, 4)|list, range(5, 0, -2)|list, range(3), range(1, 9, 2)[1], range(9)[2:5]|list, range(3)[::-1]|list, range(0)|list, range(5)[-1], range(3) == range(0, 3)
range(100001)
range('a')
range(1, 2, 0)
namespace(a=1).a, namespace(a=1).b is undefined, namespace({'x': 2}).x, namespace(a=1), namespace()['x'] is undefined
namespace(_a=1)
{'a': 1} == {'a': 1.0}, [1, 2] == [1, 2], [1] == (1,), 'a' == 'a', none == false, 1 == true, {'a': 1, 'b': 2} == {'b': 2, 'a': 1}
{1: 'a', true: 'b', 1.0: 'c'}
{[1]: 2}
{'a': 1}[[1]] is undefined
{'a': 1, 'a': 2}
[1, 2, 3][1:][0], {'a': {'b': [1, {'c': 2}]}}.a.b[1].c, d.a.1, l.0
'abc'|upper|lower|title, ('a' ~ 'b')|upper, 'a' ~ 'b'|upper, -1|abs, 2 + 3|string|length
1 + 2 == 3 and not false or x, 1 if 2 > 1 and 'a' in s else 0
not 1 == 2, not 'a' in 'abc', not missing is defined, (not t) is false
1 is defined and 2 is defined, missing is defined or i is defined
l|map('pprint')|list|length > 0 and missing|urlize is defined if false else 'soft'
9223372036854775807, -9223372036854775807
foo(*[1])
'{} {}'.format(*[1, 2]), dict(**{'a': 1}), '{x}'.format(**{'x': 1})
'a'.format(1, 2, x=3)
cycler('a', 'b').next()
joiner(', ')()
loop
caller
(1, 2)[0], (1, 2)|first, (1, 2) == (1, 2), ((1, 2), 3)
l == [3, 1, 2], l != [3], [[1, 2], [3]] == [[1, 2], [3]]
'a' < 'B', 'é' > 'z', '😀' > '\uffff'
1 < 1.5, 2 >= 2.0, true < 2, true + true, true * 3
nil + 1
d + d
s * 1.5
s - 'a'
u.upper(), u.lower(), u.title(), u.capitalize()
5 is number and 5 is not string, '5' is not number
s|upper|replace('L', 'l')|list|unique|join
people|map(attribute='name')|map('lower')|sort|join(',')
msgs|map(attribute='content')|join('\n')
(msgs|first).role, (msgs|last)['content'], msgs[-1].content, msgs[:1]|map(attribute='role')|list
msgs[1:]|length, msgs[0]['role'] == 'system', 'system' in msgs|map(attribute='role')
strftime_now('%Y')|int > 2000, strftime_now('%%')
lipsum is defined, cycler is defined, raise_exception is callable
1.0|int, 10 ** 3, 10 ** 18, 5 // 1.5, 1e308 * 10, (0.1 + 0.7) * 10, 100 * 1.1, 1 / 3
3 | string ~ 'x', 3 ~ 4 | string
[x for x in l]
1 +
(1
1)
{'a' 1}
'abc
a.b.
a[
x y
1 2
not
x is
x |
"""

TEMPLATES = [
    "plain", "", "\n", "a\n", "a\n\n", "\n\na", "a\r\nb\rc\n",
    "{# c #}x", "a{# c #}\nb", "a\n  {# c #}\nb", "{#- c -#} x", "a {#- c #} b", "{# {{ x }} {% if %} #}y", "{# a", "{#+ c +#}\nx",
    "{% if true %}\nx\n{% endif %}\ny", "  {% if true %}  \n x {% endif %} \ny", "a  {%- if true -%}  b  {%- endif -%}  c",
    "  {%+ if true %}x{% endif %}", "{% if true +%}\nx{% endif %}", "a\n   {% if true %}b{% endif %}\n", "a {% if true %}\n b {% endif %}\n c",
    "{{ s }}\n{{ i }}\n", "  {{ s }}  \n", "a {{- s -}} b", "a\n\n{{- s -}}\n\nb", "{{ s -}}\n  {% if true %}x{% endif %}", "{{-1}}", "{{+1}}", "{{ -1 }}",
    "x{{ '\n' }}  {% if t %}y{% endif %}", "{% if t %}\n  {% if t %}\n  z\n  {% endif %}\n{% endif %}\n", "\t{% set a = 1 %}\t{{ a }}",
    "{% raw %}{{ x }}{% if %}{% endraw %}", "{% raw %}\n a {% endraw %}\nb", "{%- raw -%}  a  {%- endraw -%}  b", "a {% raw %}", "  {% raw %} x {% endraw %} \n",
    "{% if i == 42 %}a{% elif i == 1 %}b{% else %}c{% endif %}", "{% if i == 1 %}a{% elif i == 42 %}b{% else %}c{% endif %}", "{% if e %}a{% elif nil %}b{% else %}c{% endif %}", "{% if missing %}a{% endif %}x", "{% if t: %}a{% endif %}", "{% if 1, 2 %}x{% endif %}",
    "{% for x in l %}{{ x }},{% endfor %}", "{% for x in [] %}a{% else %}none{% endfor %}", "{% for x in l if x > 1 %}{{ x }}{{ loop.index }}{{ loop.last }} {% endfor %}", "{% for x in l if x > 9 %}a{% else %}none{% endfor %}", "{% for x in l if x != 2 %}{{ x }}{% if not loop.last %},{% endif %}{% endfor %}", "{% for x in l if x > 1 %}{{ x }}{{ loop.nextitem }}{{ loop.length }};{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k in d %}{{ k }}{% endfor %}", "{% for c in 'aé😀' %}[{{ c }}]{% endfor %}", "{% for a, b in [(1, 2), [3, 4]] %}{{ a }}{{ b }} {% endfor %}", "{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for a, b in [(1, 2, 3)] %}{% endfor %}", "{% for a, b in [(1,)] %}{% endfor %}", "{% for a, b in [1] %}{% endfor %}", "{% for x in i %}{% endfor %}", "{% for x in nil %}{% endfor %}", "{% for x in missing %}a{% else %}b{% endfor %}",
    "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }};{% endfor %}",
    "{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% endfor %}", "{% for x in l %}{{ loop.previtem is defined }}{{ loop.nextitem is undefined }} {% endfor %}", "{% for x in l %}{{ loop.cycle('a', 'b') }}{% endfor %}", "{% for x in [1, 1, 2, 2, 1] %}{{ loop.changed(x) }} {% endfor %}", "{% for x in [1,2] %}{{ loop.changed() }}{% endfor %}",
    "{% for x in l %}{{ loop.zz is defined }}{% endfor %}", "{% for x in l %}{{ loop.cycle() }}{% endfor %}", "{% for x in l %}{{ loop }}{% endfor %}", "{% for x in l|select('odd') %}{{ x }}/{{ loop.length }}{{ loop.last }} {% endfor %}",
    "{% for x in l|reverse %}{{ x }}{{ loop.revindex }}{{ loop.length }} {% endfor %}", "{% for x in l %}{{ loop.nextitem }}{{ loop.length }}{{ x }};{% endfor %}", "{% for x in l|map('string') %}{{ loop.nextitem }}{{ loop.length }}{{ x }};{% endfor %}",
    "{% for x in l %}{% for y in ls %}{{ loop.index }}{{ y }}{% endfor %}{{ loop.index }}{% endfor %}", "{% for x in l %}{% set o = loop %}{% for y in ls %}{{ o.index }}{{ loop.index }} {% endfor %}{% endfor %}",
    "{% for x in tree recursive %}{{ x.v }}@{{ loop.depth }}({{ loop(x.kids) }}){% endfor %}", "{% for x in tree recursive %}{{ x.v }}{% if x.kids %}[{{ loop(x.kids) }}]{% endif %}{% else %}none{% endfor %}", "{% for x in tree recursive %}{{ x.v }}{{ loop(x.kids) }}{% else %}-{% endfor %}", "{% for x in l %}{{ loop([1]) }}{% endfor %}",
    "{% for x in range(9) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %}", "{% for x in l %}{% break %}{% else %}e{% endfor %}y", "{% break %}", "{% continue %}", "{% for x in l %}{% for y in l %}{% if y == 1 %}{% break %}{% endif %}{{ y }}{% endfor %}{{ x }}{% endfor %}",
    "{% for x in l %}{% set a %}q{% break %}{% endset %}{% endfor %}z", "{% for x in l %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}", "{% for x in l %}{% filter upper %}a{% if loop.index == 2 %}{% break %}{% endif %}b{% endfilter %}{% endfor %}",
    "{% set x = 1 %}{{ x }}{% set x = x + 1 %}{{ x }}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a, b = [1] %}", "{% set x = 1 %}{% for i in l %}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}", "{% if t %}{% set y = 5 %}{% endif %}{{ y }}", "{% if e %}{% set i = 5 %}{% endif %}{{ i }}",
    "{% for a in l %}{% if loop.first %}{% set q = 'z' %}{% endif %}{{ q }}.{% endfor %}", "{% set s = s ~ '!' %}{{ s }}", "{% for x in l %}{{ q }}{% set q = x %}{{ q }}{% endfor %}", "{% set q = 0 %}{% for x in l %}{{ q }}{% set q = x %}{{ q }}{% endfor %}{{ q }}",
    "{% set ns = namespace(n=0) %}{% for x in l %}{% set ns.n = ns.n + x %}{% endfor %}{{ ns.n }}", "{% set ns = namespace() %}{% set ns.a = 1 %}{% set ns.b, c = 2, 3 %}{{ ns.a }}{{ ns.b }}{{ c }}{{ ns }}", "{% set d.x = 1 %}", "{% set missing.x = 1 %}", "{% set ns = namespace() %}{% set ns._x = 1 %}", "{% set ns = namespace(a=1) %}{% set ns.a %}blk{% endset %}{{ ns.a }}",
    "{% set x %}a{{ i }}b{% endset %}[{{ x }}]", "{% set x | upper %}abc{% endset %}{{ x }}", "{% set x | replace('a', 'b') | upper %}aac{% endset %}{{ x }}", "{% set x %}{% set y = 1 %}{{ y }}{% endset %}{{ x }}{{ y }}", "{{ i }}{% set i %}q{{ i }}{% endset %}{{ i }}", "{% set i %}q{{ i }}{% endset %}{{ i }}", "{% set x = 1 %}{% set x %}{{ x }}2{% endset %}{{ x }}",
    "{% set 1 = 2 %}", "{% set x.y.z = 1 %}", "{% set x[0] = 1 %}", "{% set loop = 1 %}{{ loop }}", "{% for x in l %}{% set loop = 1 %}{% endfor %}", "{% set true = 1 %}", "{% set x = 1, 2 %}{{ x }}", "{% set x = %}",
    "{% macro m(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(b=4, a=5) }} {{ m() }}", "{% macro m(a) %}{{ a is defined }}{% endmacro %}{{ m() }}{{ m(none) }}", "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{% endmacro %}{{ m(b=2) }}", "{% macro m(a) %}{% endmacro %}{{ m(1, a=2) }}",
    "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}", "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}", "{% macro m(a=b, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ m() }}", "{% macro m(a=1, b) %}{% endmacro %}",
    "{% macro f(n) %}{% if n > 1 %}{{ n * (f(n - 1)|int) }}{% else %}1{% endif %}{% endmacro %}{{ f(5) }}", "{{ m() }}{% macro m() %}x{% endmacro %}", "{% macro m() %}{{ y }}{% endmacro %}{% set y = 5 %}{{ m() }}", "{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% set i = 1 %}{{ m() }}", "{% set i = 1 %}{% macro m() %}{{ i }}{% set i = 2 %}{{ i }}{% endmacro %}{{ m() }}{{ i }}",
    "{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}body {{ i }}{% endcall %}", "{% macro m() %}{{ caller(1, 2) }}{% endmacro %}{% call(a, b=9) m() %}{{ a }}{{ b }}{% endcall %}", "{% macro m() %}{{ caller is defined }}{{ caller() if caller }}{% endmacro %}{{ m() }}", "{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}", "{% call 5 %}{% endcall %}", "{% call s.upper() %}x{% endcall %}", "{% call namespace() %}x{% endcall %}", "{% macro m(caller=none) %}{{ caller() }}{% endmacro %}{% call m() %}z{% endcall %}", "{% macro m(caller) %}{{ caller() }}{% endmacro %}",
    "{% macro m() %}a{% endmacro %}{{ m }}{{ m.name }}{{ m.arguments }}", "{% macro m(x) %}{{ x }}{% endmacro %}{{ ls|map('upper')|map('replace', 'A', m('q'))|list }}", "{% macro outer() %}{% macro inner() %}i{{ s }}{% endmacro %}{{ inner() }}{% endmacro %}{{ outer() }}", "{% if t %}{% macro m() %}x{% endmacro %}{% endif %}{{ m() }}", "{% for x in l %}{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% endfor %}",
    "{% macro m(x) %}{{ x|upper }}{% endmacro %}{{ m('a') ~ m('b') }}{{ m('c')|length }}", "{% macro m() %}\n  x\n{% endmacro %}[{{ m() }}]", "{% macro m() -%}\n  x\n{%- endmacro %}[{{ m() }}]",
    "{% filter upper %}abc {{ s }}{% endfilter %}", "{% filter replace('a', 'b')|upper %}aXa{% endfilter %}", "{% filter nope %}{% endfilter %}", "{% filter indent(2, true) %}a\nb{% endfilter %}",
    "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a }}", "{% with %}{% set z = 1 %}{{ z }}{% endwith %}{{ z }}", "{% with i = i + 1 %}{{ i }}{% endwith %}{{ i }}", "{% with a = 1, b = a %}{{ b }}{% endwith %}",
    "{% generation %}x {{ i }}{% set g = 1 %}{% endgeneration %}{{ g }}", "{% for m in msgs %}{% generation %}{{ m.content }}{{ loop.index }}{% endgeneration %}{% endfor %}", "{% for m in msgs %}{% generation %}{% break %}{% endgeneration %}{% endfor %}", "{%- generation -%} x {%- endgeneration -%} y",
    "{% print s %}", "{% print 1, 2 %}", "{% autoescape false %}{{ '<' }}{% endautoescape %}", "{% do 1 %}", "{% include 'x' %}", "{% import 'x' as y %}", "{% from 'x' import y %}", "{% extends 'x' %}", "{% endif %}", "{% if t %}", "{% for x in l %}", "{% if t %}{% endfor %}", "{% nope %}", "{% 1 %}", "{% %}", "{{ }}", "{{", "{%", "{{ 1", "{% if t", "}}", "%}", "{ {", "{{ '}}' }}", "{{ {'a': {'b': 1}} }}", "{{ {'a': 1}}}", "{% if '%}' %}x{% endif %}",
    "{{ raise_exception('bad ' ~ i) }}", "{% if e %}{{ raise_exception('no') }}{% endif %}ok", "{{ raise_exception() }}", "{% if e %}{{ 1|nope }}{% endif %}x", "{% if t %}{{ 1|nope }}{% endif %}x", "{{ (1|nope) if e else 2 }}", "{% if e %}{% for x in l %}{{ x|nope }}{% endfor %}{% endif %}x", "{% if e is nope %}{% endif %}x",
    "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.current }}", "{% set j = joiner('|') %}{% for x in l %}{{ j() }}{{ x }}{% endfor %}", "{% set g = l|map('string') %}{{ g|list }}{{ g|list }}", "{% set g = l|select('odd') %}{{ g|first }}{{ g|list }}",
    "{% set ns = namespace(found=false) %}{% for m in msgs %}{% if m.role == 'user' and not ns.found %}{% set ns.found = true %}{{ loop.index0 }}{% endif %}{% endfor %}{{ ns.found }}",
    "{% for m in msgs %}{{ '<|' + m['role'] + '|>\n' + m['content'] | trim + '<|end|>\n' }}{% endfor %}", "{%- for m in msgs -%}\n  {{- m.role -}}\n{%- endfor -%}", "{% for m in msgs if m.role != 'system' %}{{ m.role }}{% if not loop.last %},{% endif %}{% endfor %}", "{% for m in msgs[::-1] %}{{ m.content }}{% endfor %}", "{% if msgs[0].role == 'system' %}{% set rest = msgs[1:] %}{% else %}{% set rest = msgs %}{% endif %}{{ rest|length }}",
    "{% for x in l %}{{ x }}{% if not loop.last %}\n{% endif %}{% endfor %}", "{% for x in l -%}\n {{ x }}\n{%- endfor %}", "{% for i in range(3) %}{{ i }}{% endfor %}{{ i }}", "{% for s in ls %}{{ s }}{% endfor %}{{ s }}", "{% for x in x %}{{ x }}{% else %}u{% endfor %}",
    "{% set x = missing or 'dflt' %}{{ x }}", "{% set x = missing %}{{ x is undefined }}{{ x }}", "{% set x = d.zz %}{{ x }}{{ x.y }}", "{{ foo.bar.baz }}", "{{ d.a[0] }}{{ d['a'][1] }}{{ d.a|length }}", "{% set t2 = (1, 2) %}{{ t2[0] }}{{ t2 }}",
    "{{ 1 }}{% if false %}{{ 1/0 }}{% endif %}", "{{ '%s' % missing }}{{ [missing] }}", "a{% for x in [1] %} {% endfor %}b", "{% set x = 'a\n' %}{{ x }}{{ x }}", "{{ '\\n' }}|{{ '\\\\n' }}|{{ \"\\u00e9\" }}", "{{ 'é' }}{{ '\\é' }}", "{{ '\\x4' }}", "{{ '\\N{DASH}' }}",
    "line1\n{{ s }}\n\n{% if t %}\n\nx\n\n{% endif %}\n\nend\n\n", "{% if t %}a{% endif %}\n\n{% if t %}b{% endif %}\n", "{%- if t %} a {%- endif %} b", "{% set é = 1 %}{{ é }}", "{{ 世界 is defined }}", "{{ x.é is defined }}", "{{ \u00a0s }}", "{% if t %}{#- x -#}{% endif %}",
    "{% macro a() %}{% call b() %}{{ caller() }}{% endcall %}{% endmacro %}{% macro b() %}<{{ caller() }}>{% endmacro %}{% call a() %}hi{% endcall %}", "{% macro m(x) %}{{ x }}{% endmacro %}{% set f = m %}{{ f(3) }}", "{% set obj = {'f': dict} %}{{ obj.f(a=1) }}", "{{ (ls|map('upper')|list)[0] }}", "{{ ls|map(attribute='0')|list }}", "{{ [[3, 'x']]|map(attribute=1)|list }}",
    "{{ s.split(' ')[-1] }}{{ s.split(' ')|last }}", "{{ 'a</think>b'.split('</think>')[-1].lstrip('\\n') }}", "{{ ('a' ~ 'b').upper() }}{{ 'x'.join(['a', 'b']).upper() }}", "{{ s | length > 5 }}", "{{ 5 - 3 - 1 }}{{ 2 ** 3 ** 2 }}{{ 10 // 3 * 3 }}{{ - 2 ** 2 }}{{ 2 * -3 }}", "{{ 1 - -1 }}{{ not not t }}", "{{ 1 in [1] == true }}", "{{ 'a' ~ 1 + 2 }}", "{{ 1 + 2 ~ 3 }}", "{{ t is true and i is not none or false }}",
]


def environment():
    from transformers.utils.chat_template_utils import _compile_jinja_template
    return _compile_jinja_template


def run(compile_template, text, context):
    try:
        return compile_template(text).render(**json.loads(json.dumps(context)))
    except RecursionError:
        raise
    except Exception:
        return None


def case_table():
    def escaped(s):
        return "".join("\\%03o" % b for b in s.encode())

    path = os.path.join(ROOT, "src/text/jinja_case_table.inc")
    with open(path, "w", encoding="utf-8") as f:
        f.write("/* Characters whose upper or title case is more than one character (Unicode's SpecialCasing), for\n"
                "   jinja_text.c.  Made by tools/golden/make_jinja.py --case-table. */\n")
        for cp in range(0x110000):
            if 0xD800 <= cp < 0xE000:
                continue
            c = chr(cp)
            if len(c.upper()) > 1 or len(c.title()) > 1:
                f.write('{0x%04x, "%s", "%s"},\n' % (cp, escaped(c.upper()), escaped(c.title())))


def split_expressions():
    """One case a line; a line that ends in a backslash goes on."""
    lines, held = [], ""
    for line in EXPRESSIONS.strip("\n").split("\n"):
        held += line
        if line.endswith("\\"):
            held += "\n"
            continue
        lines.append(held)
        held = ""
    return lines


def top_level_parts(line):
    """The parts of a line at its outer commas, so that each is a case of its own too."""
    parts, depth, quote, start, i = [], 0, "", 0, 0
    while i < len(line):
        c = line[i]
        if quote:
            if c == "\\":
                i += 1
            elif c == quote:
                quote = ""
        elif c in "'\"":
            quote = c
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(line[start:i].strip())
            start = i + 1
        i += 1
    parts.append(line[start:].strip())
    return [p for p in parts if p]


def main():
    if "--case-table" in sys.argv:
        case_table()
        return
    compile_template = environment()
    cases, seen = [], set()
    texts = ["{{ %s }}" % p
             for line in split_expressions() for p in top_level_parts(line)] + TEMPLATES
    for text in texts:
        if text in seen:
            continue
        seen.add(text)
        result = run(compile_template, text, CONTEXT)
        if result is not None and " object at 0x" in result:
            continue  # an address: nothing to compare with
        cases.append({"template": text, "result": result})
    path = os.path.join(ROOT, "tests/text/jinja_cases.json")
    with open(path, "w", encoding="utf-8") as f:
        f.write("{\"context\": %s,\n\"cases\": [\n" % json.dumps(CONTEXT, ensure_ascii=False))
        f.write(",\n".join(json.dumps(c, ensure_ascii=False) for c in cases))
        f.write("\n]}\n")
    print(len(cases), "cases,", sum(c["result"] is None for c in cases), "of them failures")


if __name__ == "__main__":
    main()
