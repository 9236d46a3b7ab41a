"""Tables of functions that damage good files: the object at a path, its bytes, a JSON value or a config's text. All are
deterministic, given their random generator."""
import copy
import json
import os
import random

HUGE = 4 << 20
SPARSE = 40 << 30  # bytes that a file claims, and no disk holds
ESCAPES = "\x1b[31mred\x1b]0;title\x07\r\n99:99:99 error forged\x9b2J\u202e\x00\x7f"
COUNTS = (1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, -1, -(1 << 63), 1e308, 0)


# Other objects at the path in place of a file.
def fifo(path):
    os.mkfifo(path)


def directory(path):
    os.mkdir(path)


def loop(path):
    os.symlink(os.path.basename(path), path)


def device(path):
    os.symlink("/dev/zero", path)


def sparse(path):
    with open(path, "wb") as file:
        file.truncate(SPARSE)


PLACES = {"a pipe": fifo, "a directory": directory, "a link to itself": loop, "an endless device": device, "40 GiB of nothing": sparse}


# Bytes, whatever their format.
def cut(random_, data):
    return data[:random_.randrange(max(1, len(data)))]


def flipped(random_, data):
    data = bytearray(data)
    for _ in range(random_.randint(1, 8)):
        data[random_.randrange(len(data))] ^= 1 << random_.randrange(8)
    return bytes(data)


def scrambled(random_, data):
    data = bytearray(data)
    for _ in range(random_.randint(1, 4)):
        at = random_.randrange(len(data))
        data[at:at + random_.randrange(64)] = random_.randbytes(random_.randrange(64))
    return bytes(data)


def escaped(random_, data):
    data = bytearray(data)
    for _ in range(4):
        at = random_.randrange(len(data))
        data[at:at] = ESCAPES.encode("utf-8", "surrogatepass")
    return bytes(data)


BYTES = {
    "empty": lambda r, d: b"",
    "cut": cut,
    "bits flipped": flipped,
    "scrambled": scrambled,
    "escapes in it": escaped,
    "noise": lambda r, d: r.randbytes(5000),
    "zeros": lambda r, d: bytes(100000),
    "0xFF": lambda r, d: b"\xff" * 100000,
    "more after its end": lambda r, d: d + r.randbytes(100),
    "twice": lambda r, d: d + d,
    "one line of 4 MiB": lambda r, d: b"A" * HUGE,
    "a UTF-16 mark": lambda r, d: b"\xff\xfe" + d,
}


# JSON: functions that return the text of a damaged value. `paths` has the path of every value in it.
def paths_of(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        yield from paths_of(child, path + (key,))


def get(value, path):
    for key in path:
        value = value[key]
    return value


def replaced(value, path, new):
    if not path:
        return new
    value = copy.deepcopy(value)
    get(value, path[:-1])[path[-1]] = new
    return value


def some(random_, value, kind=object):
    """The path of a value of this type, or of any, below the root where there is one."""
    paths = [p for p in paths_of(value) if p and isinstance(get(value, p), kind) and not isinstance(get(value, p), bool)]
    return random_.choice(paths or [p for p in paths_of(value) if p] or [()])


def text_of(value):
    return json.dumps(value, separators=(",", ":"))


def put_text(random_, value, text, kind=object):
    """`text`, which json.dumps would not write, for some value."""
    return text_of(replaced(value, some(random_, value, kind), "@@@")).replace('"@@@"', text, 1)


def renamed(random_, value, name):
    paths = [p for p in paths_of(value) if p and isinstance(p[-1], str)]
    value, path = copy.deepcopy(value), random_.choice(paths)
    parent = get(value, path[:-1])
    parent[name] = parent.pop(path[-1])
    return text_of(value)


def removed(random_, value):
    value, path = copy.deepcopy(value), some(random_, value)
    if path:
        del get(value, path[:-1])[path[-1]]
    return text_of(value)


def other_type(random_, value):
    path = some(random_, value)
    return text_of(replaced(value, path, random_.choice([None, True, 7, 1.5, "7", [], {}, [1], {"a": 1}, [[]]])))


def duplicated(random_, value):
    text = text_of(value)
    first = next(iter(value)) if isinstance(value, dict) and value else "a"
    return "{" + text_of(first) + ":1," + text.lstrip()[1:]


def all_counts(random_, value):
    count = random_.choice(COUNTS)
    for path in [p for p in paths_of(value) if p and type(get(value, p)) in (int, float)]:
        value = replaced(value, path, count)
    return text_of(value)


JSON = {
    "400,000 lists in it": lambda r, v: put_text(r, v, "[" * 400000 + "]" * 400000),
    "100,000 objects in it": lambda r, v: put_text(r, v, '{"a":' * 100000 + "1" + "}" * 100000),
    "400,000 lists after a new key": lambda r, v: text_of(v)[:-1] + ',"zz":' + "[" * 400000 + "]" * 400000 + ',"zzz":1}',
    "400,000 open lists": lambda r, v: put_text(r, v, "[" * 400000),
    "another type": other_type,
    "a key fewer": removed,
    "a key twice": duplicated,
    "a count that overflows": lambda r, v: text_of(replaced(v, some(r, v, int), r.choice(COUNTS))),
    "all counts overflow": all_counts,
    "a number of 5,000 digits": lambda r, v: put_text(r, v, "9" * 5000, (int, float)),
    "a number beyond all": lambda r, v: put_text(r, v, "1e99999", (int, float)),
    "NaN": lambda r, v: put_text(r, v, "NaN", (int, float)),
    "a name of 4 MiB": lambda r, v: renamed(r, v, "n" * HUGE),
    "a text of 4 MiB": lambda r, v: text_of(replaced(v, some(r, v, str), "t" * HUGE)),
    "escapes as a text": lambda r, v: text_of(replaced(v, some(r, v, str), ESCAPES)),
    "escapes as a name": lambda r, v: renamed(r, v, ESCAPES),
    "a path as a text": lambda r, v: text_of(replaced(v, some(r, v, str), r.choice(["../../victim", "/etc/passwd", ".", "..", ""]))),
    "200,000 members": lambda r, v: text_of(v)[:-1] + "".join(f',"k{i}":{i}' for i in range(200000)) + "}",
    "a list for all": lambda r, v: "[" + text_of(v) + "]",
    "half a surrogate": lambda r, v: put_text(r, v, '"\\ud800"', str),
}


# A config: `text` is YAML in block style, sections at the margin.
def yaml_leaf(random_, text, value):
    lines = text.splitlines()
    leaves = [i for i, line in enumerate(lines) if ": " in line and not line.lstrip().startswith("#")]
    at = random_.choice(leaves)
    lines[at] = lines[at].split(": ", 1)[0] + ": " + value
    return "\n".join(lines) + "\n"


def bomb(text):
    lines = ["zz:", "  a0: lol"] + [f'  a{i}: "${{zz.a{i - 1}}}${{zz.a{i - 1}}}"' for i in range(1, 40)]
    return text + "\n".join(lines) + "\n"


def known_bomb(_):
    """Uses existing keys: each list of data.validation refers twice to the one before."""
    items = ["{path: x}"] + [f'["${{data.validation[{i - 1}]}}", "${{data.validation[{i - 1}]}}"]' for i in range(1, 40)]
    return "model: {hidden_size: 64}\ntraining: {max_steps: 1}\ndata: {validation: [" + ", ".join(items) + "]}\n"


YAML = {
    "a bomb of unknown keys": lambda r, t: bomb(t),
    "a bomb of known keys": lambda r, t: known_bomb(t),
    "references in a circle": lambda r, t: yaml_leaf(r, t, "${run.name}") + "zz: ${zz}\n",
    "a chain of 3,000 references": lambda r, t: "data: {validation: [" + ", ".join(
        f'"${{data.validation[{i + 1}]}}"' for i in range(3000)) + ", {path: x}]}\n",
    "60,000 keys": lambda r, t: t + "zz:\n" + "".join(f"  k{i}: {i}\n" for i in range(60000)),
    "200,000 items": lambda r, t: yaml_leaf(r, t, "[" + ",".join("1" * 200000) + "]"),
    "400,000 lists in it": lambda r, t: yaml_leaf(r, t, "[" * 400000),
    "5,000 sections in one another": lambda r, t: t + "".join(" " * i + "a:\n" for i in range(5000)),
    "an alias bomb": lambda r, t: t + "zz: [&a [1,1], &b [*a,*a,*a], &c [*b,*b,*b], *c]\n",
    "another value": lambda r, t: yaml_leaf(r, t, r.choice(["[]", "{a: 1}", "~", "-1", "1e999", ".nan", "'x'", "!!binary x", "9" * 400])),
    "a count that overflows": lambda r, t: yaml_leaf(r, t, str(r.choice(COUNTS))),
    "escapes as a value": lambda r, t: yaml_leaf(r, t, json.dumps(ESCAPES)),
    "escapes as a key": lambda r, t: t + json.dumps(ESCAPES) + ": 1\n",
    "a key of 1 MiB": lambda r, t: t + "k" * (1 << 20) + ": 1\n",
    "a value of 4 MiB": lambda r, t: yaml_leaf(r, t, "v" * HUGE),
    "two documents": lambda r, t: t + "---\n" * 1000 + t,
    "tabs": lambda r, t: t.replace("  ", "\t"),
    "complex keys": lambda r, t: t + "? " * 400 + "a\n",
    "a section twice": lambda r, t: t + t,
}


def seeded(*words):
    return random.Random(" ".join(map(str, words)))
