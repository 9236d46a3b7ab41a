"""The page of `tokamak serve` in a headless Chromium, with two checkpoints. The console has no complaint, the page asks
no other server, and fits the screen. Texts and probabilities are the server's. Screenshots go to $SCREENSHOTS. Without
Chromium exits 77, which ctest shows as skipped."""
import json
import os
import sys
import time

from browser import Browser, find_browser
from harness import generated, main
from server import Server

SCREENSHOTS = os.environ.get("SCREENSHOTS", "")
WIDTHS = {390: 844, 1280: 900}
PROMPT = "<img src=x onerror=alert(1)> "  # shown as text, wherever it appears
KEY = "0123456789abcdef"
PANES = """panes.map((pane) => ({model: pane.model, text: pane.text.textContent, stats: pane.stats.textContent,
  tokens: pane.tokens.map((token) => ({name: token.name, logprob: token.logprob, likely: token.likely})),
  parts: pane.tokens.findIndex((token) => token.span.classList.contains('parts')), given: pane.given}))"""


def checkpoints(place):
    if not os.path.exists(place.run("served")):
        place.train("served", 1, "training.max_steps=40", "checkpoint.interval=20", "model.max_position_embeddings=4096",
                    "model.initializer_range=0.1")
    return [place.checkpoint("served", step) for step in (20, 40)]


def wait_for(browser, condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not browser.value(condition):
        assert time.monotonic() < deadline, (condition, browser.value("document.body.innerText"))
        time.sleep(0.05)


def type_into(browser, field, text):
    browser.value(f"""(() => {{ const one = document.getElementById('{field}'); one.value = {json.dumps(text)};
      one.dispatchEvent(new Event('change')); }})()""")


def press(browser, button):
    browser.value(f"document.getElementById('{button}').click()")


def run(browser, prompt, **settings):
    """Types, presses Continue and waits for the end; returns what the panes show."""
    type_into(browser, "prompt", prompt)
    for field, value in settings.items():
        type_into(browser, field, str(value))
    press(browser, "go")
    wait_for(browser, "byId('stop').disabled")
    return browser.value(PANES)


def fits(browser, width):
    scroll, client = browser.value("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert scroll <= client == width, (width, scroll, client)


def continuations(place):
    """two checkpoints side by side on a phone and a laptop, light and dark, have the texts of tokamak generate"""
    prompt = PROMPT + next(iter(place.documents()))[:30]
    settings = {"max_tokens": 30, "temperature": 0.8, "top_p": 0.95, "seed": 3}
    early, late = checkpoints(place)
    options = [f"--{key.replace('_', '-')}={value}" for key, value in settings.items()]
    expected = [generated("--checkpoint", one, *options, "--prompt", prompt)[0]["text"] for one in (early, late)]
    assert expected[0] != expected[1]
    with Server("--checkpoint", early, "--compare", late) as server, Browser(find_browser()) as browser:
        for width, height in WIDTHS.items():
            for dark in (False, True):
                browser.set_window(width, height, dark)
                browser.open(server.url)
                wait_for(browser, "panes.length === 2")
                shown = run(browser, prompt, **settings)
                assert [pane["text"] for pane in shown] == [prompt + text for text in expected], (shown, expected)
                for pane in shown:
                    assert len(pane["tokens"]) > 30 and all(token["logprob"] <= 0 for token in pane["tokens"][1:])
                    assert "30 tokens" in pane["stats"], pane["stats"]
                    assert pane["parts"] > 0 and pane["text"][:pane["given"]] == prompt
                browser.value("panes[0].tokens.at(-1).span.dispatchEvent(new MouseEvent('mouseover', {bubbles: true}))")
                fits(browser, width)
                assert browser.value("document.querySelectorAll('img').length") == 0
                assert browser.complaints(server.url) == [], browser.complaints(server.url)
                if SCREENSHOTS:
                    os.makedirs(SCREENSHOTS, exist_ok=True)
                    browser.screenshot(os.path.join(SCREENSHOTS, f"serve-{width}-{'dark' if dark else 'light'}.png"))


def alternatives(place):
    """a token shows what else was likely, a click continues from there, Undo goes back; arrow keys move"""
    with Server("--checkpoint", checkpoints(place)[1]) as server, Browser(find_browser()) as browser:
        browser.set_window(1280, 900)
        browser.open(server.url)
        wait_for(browser, "panes.length === 1")
        prompt = next(iter(place.documents()))[:30]
        (pane,) = run(browser, prompt, max_tokens=12, temperature=0, seed=1)
        chosen = len(pane["tokens"]) - 5
        browser.value(f"panes[0].tokens[{chosen}].span.focus()")
        token = pane["tokens"][chosen]
        assert token["likely"][0][0] == token["name"], ("greedy takes the likeliest token", token)
        shown = browser.value("[...document.querySelectorAll('.likely li code')].map((one) => one.textContent)")
        assert shown == [name.replace(" ", "\u00b7").replace("\n", "\u21b5") for name, _ in token["likely"]], shown
        assert len(shown) == 10 and sum(2.718281828 ** logprob for _, logprob in token["likely"]) <= 1 + 1e-6
        browser.value(f"panes[0].tokens[{chosen}].span.dispatchEvent(new KeyboardEvent('keydown', {{key: 'ArrowRight', bubbles: true}}))")
        assert browser.value("document.activeElement.token") == chosen + 1
        browser.value(f"panes[0].tokens[{chosen}].span.focus()")
        browser.value("document.querySelectorAll('.likely button')[1].click()")
        wait_for(browser, "byId('stop').disabled")
        branch = browser.value("byId('prompt').value")
        assert branch.endswith(token["likely"][1][0]) and branch != pane["text"] and branch.startswith(prompt)
        assert browser.value(PANES)[0]["text"].startswith(branch)
        press(browser, "undo")
        wait_for(browser, "byId('stop').disabled")
        assert browser.value("byId('prompt').value") == prompt and browser.value(PANES)[0]["text"] == pane["text"]
        # A single token that is markup, which this small vocabulary has not.
        browser.value("""(() => { const pane = panes[0], at = pane.characters.length;
          pane.add({text: '<b>x</b>', logprobs: {tokens: ['<b>x</b>'], token_logprobs: [-1], text_offset: [at],
                    top_logprobs: [{'<b>x</b>': -1, '<i>y</i>': -2}]}});
          pane.tokens.at(-1).span.focus(); })()""")
        assert browser.value(PANES)[0]["text"].endswith("<b>x</b>")
        assert browser.value("byId('panes').innerText").count("<i>y</i>") == 1
        assert browser.value("document.querySelectorAll('b, i').length") == 0
        type_into(browser, "max_tokens", "100000")
        press(browser, "go")
        wait_for(browser, "byId('problem').textContent")
        assert "max_tokens" in browser.value("byId('problem').textContent")
        type_into(browser, "max_tokens", "4000")
        press(browser, "go")
        wait_for(browser, "panes[0].tokens.length > 20")
        press(browser, "stop")
        stopped = browser.value("panes[0].tokens.length")
        time.sleep(0.3)
        assert browser.value("panes[0].tokens.length") == stopped < 4000


def keys(place):
    """a server with keys asks for one, on the page"""
    with open(place.file("keys"), "w") as out:
        out.write(KEY + "\n")
    with Server("--checkpoint", checkpoints(place)[1], "--api-key-file", place.file("keys")) as server, \
            Browser(find_browser()) as browser:
        browser.set_window(390, 844)
        browser.open(server.url)
        wait_for(browser, "!!byId('key')")
        assert "key" in browser.value("byId('problem').textContent")
        type_into(browser, "key", KEY)
        wait_for(browser, "panes.length === 1")
        assert run(browser, "to", max_tokens=3)[0]["text"].startswith("to") and KEY not in browser.value("location.href")
        fits(browser, 390)


if __name__ == "__main__":
    if not find_browser():
        print("skipped: Chromium is not installed (scripts/install_deps.sh test)")
        sys.exit(77)
    main([continuations, alternatives, keys])
