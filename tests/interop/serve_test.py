"""`tokamak serve` under the real lm-evaluation-harness and the real openai package: serve_test.py [case]"""
import os

os.environ["TQDM_DISABLE"] = "1"

from reference import export  # first of these: enters the right Python
import openai
from eval_test import TASKS, expect_equal, ours, theirs, train, with_greedy_words, with_longer_context, write_records, write_tasks, file_of
from harness import generated, main
from server import Server

ITEMS = 30
HARNESS_TASKS = ["arc/easy", "piqa", "hellaswag", "lambada"]


def harness(place):
    """the harness's local-completions through the server has the scores of `tokamak eval --no-bos`, item by item"""
    checkpoints = train(place)
    records = {task: items[:200 if task == "lambada" else ITEMS] for task, items in write_tasks(place).items()}
    records["lambada"] = with_greedy_words(place, checkpoints, records["lambada"])
    for task, items in records.items():
        write_records(file_of(place, task), items)
    model = with_longer_context(export(place, "served", "--dtype", "f32", source=checkpoints), 400)
    with Server("--model", model, "--sequences", "8") as server:
        arguments = {"model": "served-hf", "base_url": server.url + "v1/completions", "tokenizer": model,
                     "tokenizer_backend": "huggingface", "num_concurrent": 4, "max_length": 399, "max_retries": 1}
        expected = theirs(None, [TASKS[task][0] for task in HARNESS_TASKS], records, through=arguments)
        generates(server, model)
    results, samples = ours(place, 0, "--model", model, "--no-bos", tasks=HARNESS_TASKS)
    for task in HARNESS_TASKS:
        expect_equal(task, results[task], samples[task], expected)
        print(f"  {task}: {len(samples[task])} items, acc {results[task]['acc']:.3f}")
    assert 0 < results["lambada"]["acc"] < 1, "no word, or each, is the likeliest"


def generates(server, model):
    """The harness's generation: an answer is what `tokamak generate` makes, up to the stop string."""
    from lm_eval.models.openai_completions import LocalCompletionsAPI
    from lm_eval.api.instance import Instance
    api = LocalCompletionsAPI(model="served-hf", base_url=server.url + "v1/completions", tokenizer=model,
                              tokenizer_backend="huggingface", max_length=399, max_retries=1)
    prompts = ["abdeg", "one two"]
    requests = [Instance("generate_until", {}, (prompt, {"until": ["zzz"], "max_gen_toks": 12, "temperature": 0}), i)
                for i, prompt in enumerate(prompts)]
    greedy = generated("--model", model, "--no-bos", "--max-tokens", "12", "--temperature", "0",
                       *(word for prompt in prompts for word in ("--prompt", prompt)))
    assert api.generate_until(requests) == [one["text"] for one in greedy]


def openai_package(place):
    """openai-python: models, texts with all fields, streams, log probabilities, and errors as its exceptions"""
    checkpoints = train(place)
    fields = {"model": "judged", "prompt": "abdeg", "max_tokens": 12, "seed": 5, "temperature": 0.8, "extra_body": {"top_k": 40}}
    alone = [one["text"] for one in generated("--checkpoint", checkpoints, "--prompt", "abdeg", "--prompt", "abdeg", "--max-tokens", "12",
                                              "--seed", "5", "--temperature", "0.8", "--top-k", "40", "--top-p", "1")]
    with open(place.file("keys"), "w") as file:
        file.write("# keys\nmine: 0123456789abcdef\n")
    with Server("--checkpoint", checkpoints, "--api-key-file", place.file("keys")) as server:
        client = openai.OpenAI(base_url=server.url + "v1", api_key="0123456789abcdef", max_retries=0)
        assert [model.id for model in client.models.list()] == ["judged"] and client.models.retrieve("judged").id == "judged"
        whole = client.completions.create(n=2, logprobs=3, **fields)
        assert [choice.text for choice in whole.choices] == alone, (whole.choices, alone)
        assert whole.usage.prompt_tokens > 0 and whole.usage.completion_tokens == sum(len(c.logprobs.tokens) for c in whole.choices)
        for choice in whole.choices:
            logprobs = choice.logprobs
            for token, value, top, offset in zip(logprobs.tokens, logprobs.token_logprobs, logprobs.top_logprobs, logprobs.text_offset):
                assert top[token] == value <= 0 and 3 <= len(top) <= 4 and 0 <= offset <= len(choice.text)
        chunks = list(client.completions.create(stream=True, stream_options={"include_usage": True}, **fields))
        assert "".join(choice.text for chunk in chunks for choice in chunk.choices) == alone[0]
        assert [c.finish_reason for chunk in chunks for c in chunk.choices][-1] in ("length", "stop")
        assert chunks[-1].usage.total_tokens == chunks[-1].usage.prompt_tokens + chunks[-1].usage.completion_tokens
        for error, change in ((openai.NotFoundError, {"model": "other"}), (openai.BadRequestError, {"max_tokens": 10**6}),
                              (openai.BadRequestError, {"logprobs": 21})):
            try:
                client.completions.create(**{**fields, **change})
                raise AssertionError(f"{change} was accepted")
            except error as caught:
                assert caught.body["message"] and "param" in caught.body, caught.body
        for key in ("0123456789abcdeg", "0123456789abcde"):
            try:
                client.with_options(api_key=key).models.list()
                raise AssertionError("a wrong key was accepted")
            except openai.AuthenticationError:
                pass
        server.stop()
        assert server.code == 0


if __name__ == "__main__":
    main([harness, openai_package])
