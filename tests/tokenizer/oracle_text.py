"""Lines to compare tokenizers on: generated ones, and lines of files that every machine has."""
import random
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORDS = """the The THE don't DON'T we'll I'm he'd we've YOU'RE 'tis 's can'ts x1 iPhone15 camelCaseHTTPServer ǅungla naïve façade Straße ʼn ſt 'ſt
привет Мир Ђорђе ένα Ωμέγα שלום مرحبا ٣٤٥٦ हिन्दी ไทยภาษา 中文，测试 日本語です。 カタカナ ー・ 한국어 ㅎㅎ Việt ①②③ ⅧⅨ ½ x² 12345678 1,234.5
0x1F == != <= -> :: // /* */ {} [] () <html> </html> https://example.org/a?b=c&d=e#f user@mail.com C:\\dir\\file.txt $x @y #z %d
e\u0301 a\u0301\u0316 a\u0316\u0301 \u1100\u1161\u11a8 \u0958 \u212b ﬁ ａｂｃ \u200b \ufeff x\u00ad ª º \u07fd \u0d3b
👨‍👩‍👧 😀 🇩🇪 👍🏽 ❤️ \ue000 \U0001e6db \U00011de0 \U00016ff4 \u1ae1 _a_ __init__ a_b --word "quoted" «x» …""".split()
SPACES = [" ", " ", " ", " ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", " \n ", "\t\t", "    ", "\u00a0", "\u3000", "\u2028", "\x85", "\x1c", ""]
# Two or more of each class that a pattern may tell apart.
SINGLES = list("aAzZ's'tlL1230²½Ⅷ٣ \n\r\t-_./!?,;:#$%&()*+<=>@[]^`{|}~\"\\") + [
    "\u00e9", "\u00c9", "\u0301", "\u0316", "\u064b", "\u0e31", "\u0903", "\u20e3", "\u01c5", "\u02b0", "\u05d0", "\u4e2d", "\u3042",
    "\u30fb", "\u309b", "\u30fc", "\uac00", "\u00a0", "\u2003", "\u200d", "\u2019", "\u00ab", "\u2026", "\u20ac", "\u00a9", "\u0378",
    "\ue000", "\u00ad", "\x00", "\x1f", "\x7f", "\U0001d400", "\U00020000", "\U0001f600", "\U0001f3fd", "\U000e0001", "\U0010ffff"]


def character(rng):
    """Any, uniform by the length of its UTF-8."""
    first, last = rng.choice([(0, 0x7F), (0x80, 0x7FF), (0x800, 0xFFFF), (0x10000, 0x10FFFF)])
    code = rng.randint(first, last)
    return "x" if 0xD800 <= code < 0xE000 else chr(code)


def generated(rng, tokens):
    """One text; `tokens` are the contents of added tokens."""
    kind = rng.randrange(10)
    if kind < 5:
        pieces = [rng.choice(WORDS) + rng.choice(SPACES) for _ in range(rng.randint(0, 12))]
    elif kind < 8:
        pieces = [rng.choice(SINGLES) for _ in range(rng.randint(0, 40))]
    elif kind < 9:
        pieces = [character(rng) for _ in range(rng.randint(1, 20))]
    else:
        pieces = [rng.choice(SINGLES) * rng.choice([2, 3, 5, 14, 16, 17, 31, 33, 64, 65]) for _ in range(rng.randint(1, 3))]
    for _ in range(rng.choice([0, 0, 1, 3]) if tokens else 0):
        token = rng.choice(tokens)
        if rng.randrange(4) == 0:
            token = token[: rng.randint(1, len(token))]
        pieces.insert(rng.randint(0, len(pieces)), rng.choice(["", "", " ", "  ", "\n", "x"]) + token + rng.choice(["", "", " ", "  ", "\t", "x"]))
    return "".join(pieces)


def real_lines(count, seed):
    """Lines of this project and of the system's texts, some with their line ends, some several at once."""
    rng = random.Random(seed)
    paths = sorted(p for folder in ("docs", "tokenizer", "data", "scripts", "tests/tokenizer") for p in (ROOT / folder).rglob("*")
                   if p.suffix in (".md", ".cc", ".h", ".py", ".sh") and p.stat().st_size < 200_000)
    paths += sorted(Path("/usr/share/common-licenses").glob("*")) + sorted(Path("/usr/share/i18n/locales").glob("*_*"))[:60]
    lines = []
    for path in rng.sample(paths, len(paths)):
        if len(lines) >= count or not path.is_file():
            break
        found = path.read_bytes().decode("utf-8", "replace").splitlines(keepends=True)
        while found:
            some = rng.choice([1, 1, 1, 2, 5])
            lines.append("".join(found[:some])[: rng.choice([60, 200, 2000])])
            del found[:some]
    return lines[:count]


def texts(count, seed, tokens=()):
    """A quarter of them real, as far as there are so many."""
    rng = random.Random(seed)
    tokens = list(tokens)
    real = real_lines(count // 4, seed)
    return real + [generated(rng, tokens) for _ in range(count - len(real))]
