"""The real tensorboard and prometheus_client read a run that was resumed and rolled back: metrics_test.py [case]."""
import glob
import json
import os
import re
import shutil
import sys
import time
from types import SimpleNamespace

from other_python import enter_python
enter_python(["tensorboard", "tensorboard_data_server", "prometheus_client", "numpy", "yaml"])
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))

import numpy as np  # noqa: E402
import yaml  # noqa: E402
from harness import main  # noqa: E402
from prometheus_client.parser import text_string_to_metric_families  # noqa: E402
from tensorboard.backend.event_processing import (  # noqa: E402
    data_provider, event_accumulator, plugin_event_multiplexer)
from tensorboard.context import RequestContext  # noqa: E402
from tensorboard.data import server_ingester  # noqa: E402
from tensorboard.plugins.hparams import api_pb2, backend_context, list_session_groups  # noqa: E402
from tensorboard.util import grpc_util  # noqa: E402

NAME, STEPS = "watched", 16
CONTEXT = RequestContext()
MANY = 10000  # more than any reader leaves out something of


def start(place, *overrides, expect):
    return place.train(NAME, 1, f"training.max_steps={STEPS}", "training.validation_interval=3", "checkpoint.interval=4",
                       "checkpoint.keep_latest=9", "metrics.tensorboard=true",
                       "training.samples={prompts: [to, 'a ``` b'], interval: 3, tokens: 12}",
                       "metrics.tensor_statistics=3", "metrics.activation_statistics.interval=3",
                       f"metrics.prometheus={place.file('tokamak.prom')}", *overrides, expect=expect)


def make_run(place):
    """Ten steps, the last two of which a crash takes; from step 8 on to 12; taken back to step 4 and on to the end."""
    if os.path.exists(place.run(NAME)):
        return
    start(place, "--stop-at-step", "10", expect=75)
    shutil.rmtree(place.checkpoint(NAME, 10))
    with open(event_files(place)[-1], "rb+") as file:
        cut_short = file.read(30)  # of a record of 40 bytes
        file.seek(0, os.SEEK_END)
        file.write(cut_short)
    start(place, "--stop-at-step", "12", expect=75)
    start(place, f"checkpoint.load={place.checkpoint(NAME, 4)}", expect=0)


def event_files(place):
    return sorted(glob.glob(place.run(NAME) + "/tensorboard/events.out.tfevents.*"))


def tensors_of(record):
    """Takes the statistics of tensors out of a record: {tag: scalar}, {tag: [[left, right, count], ...]}."""
    scalars, histograms = {}, {}
    names, elements = record.pop("tensors"), record.pop("elements")
    columns = {kind: record.pop(kind) for kind in list(record) if isinstance(record[kind], dict)}
    assert list(columns) == ["weights", "gradients", "updates", "exp_avg", "exp_avg_sq", "activations"], list(columns)
    for i, name in enumerate(names):
        for kind, of in columns.items():
            if of["non_finite"][i] is None:  # not measured of this tensor
                continue
            scalars[f"{kind}/{name}/rms"] = of["rms"][i]
            first, counts = of["log2_first"][i], of["log2_counts"][i]
            assert sum(counts) + of["zeros"][i] + of["non_finite"][i] == elements[i], (kind, name)
            assert counts[0] > 0 and counts[-1] > 0, (kind, name, counts)
            histograms[f"{kind}/{name}/log2"] = [[first + b, first + b + 1, count] for b, count in enumerate(counts)]
        if columns["updates"]["rms"][i] is not None:
            scalars[f"updates/{name}/ratio"] = columns["updates"]["rms"][i] / columns["weights"]["rms"][i]
        if columns["activations"]["rms"][i] is not None:
            scalars[f"activations/{name}/greatest"] = max(abs(columns["activations"][of][i]) for of in ("min", "max"))
    return scalars, histograms


def of_course(path, names_of):
    """Reads a file of records. Returns ({event: [its records]}, and of the steps that count {name: {step: value}} for
    each of the dictionaries that names_of makes of a record of values)."""
    events, everything = {}, ({}, {})
    with open(path) as lines:
        for record in map(json.loads, lines):
            step = record.pop("step")
            if "event" in record:
                events.setdefault(record["event"], []).append(dict(record, step=step))
                if record["event"] == "ready":
                    everything = [{name: {s: v for s, v in of.items() if s <= step} for name, of in every.items()}
                                  for every in everything]
                continue
            del record["time"]
            for every, found in zip(everything, names_of(record)):
                for name, value in found.items():
                    every.setdefault(name, {})[step] = np.nan if value is None else value
    return events, *everything


def read_records(place):
    """Reads metrics.jsonl: {event: [its records]}, and {name: {step: value}} of the steps that count. Also the latter
    of tensors.jsonl, for scalars and for histograms."""
    events, scalars, _ = of_course(place.run(NAME) + "/metrics.jsonl",
                                   lambda record: ({name: record[name] for name in record if name != "samples"}, {}))
    _, of_tensors, histograms = of_course(place.run(NAME) + "/tensors.jsonl", tensors_of)
    return events, scalars, of_tensors, histograms


def samples_of_course(place):
    """Reads [{step: (prompt, text)} of each prompt] of the steps that count from metrics.jsonl."""
    samples = {}
    with open(place.run(NAME) + "/metrics.jsonl") as lines:
        for record in map(json.loads, lines):
            if record.get("event") == "ready":
                samples = {step: one for step, one in samples.items() if step <= record["step"]}
            if "samples" in record:
                samples[record["step"]] = [(one["prompt"], one["text"]) for one in record["samples"]]
    return [{step: one[i] for step, one in samples.items()} for i in range(2)]


def unfenced(markdown):
    """The prompt and the text of a sample as TensorBoard has it: what is between the fences of each."""
    found = re.fullmatch(r"prompt\n\n(`{3,})\n(.*)\n\1\n\ntext\n\n(`{3,})\n(.*)\n\3\n", markdown, re.S)
    assert found, markdown
    return found[2], found[4]


def expect_equal(found, scalars, reader):
    """`found`: {name: [(step, value)]}. TensorBoard keeps 32 bits of a value."""
    assert set(found) == set(scalars), (reader, set(found) ^ set(scalars))
    for name, of in scalars.items():
        steps = [step for step, _ in found[name]]
        assert steps == sorted(of), (reader, name, steps, sorted(of))
        values = np.array([value for _, value in found[name]], np.float32)
        np.testing.assert_array_equal(values, np.array([of[step] for step in steps], np.float32), f"{reader}: {name}")


def python_provider(place):
    everything = plugin_event_multiplexer.EventMultiplexer(tensor_size_guidance={"scalars": 0, "text": 0, "histograms": 0})
    everything.AddRunsFromDirectory(place.run(NAME))
    everything.Reload()
    return data_provider.MultiplexerDataProvider(everything, "run")


def server_provider(place):
    server = server_ingester.SubprocessServerDataIngester(
        server_ingester.get_server_binary(), place.run(NAME), reload_interval=0,
        channel_creds_type=grpc_util.ChannelCredsType.LOCAL, samples_per_plugin={"scalars": 0, "text": 0, "histograms": 0})
    server.start()
    deadline = time.monotonic() + 100
    while not server.data_provider.list_scalars(CONTEXT, experiment_id="", plugin_name="scalars"):
        assert time.monotonic() < deadline, "the data server has loaded nothing"
        time.sleep(0.1)
    return server


def leaves(value, key):
    """The keys of scalars and of lists of scalars, as the program writes them: data.sources[0].path."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from leaves(member, f"{key}.{name}" if key else name)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for i, item in enumerate(value):
            yield from leaves(item, f"{key}[{i}]")
    else:
        yield key


def expect_session(provider, place, reader):
    """The table HPARAMS of a sweep: a row a run, with the config's keys and the last value of each scalar."""
    context = backend_context.Context(SimpleNamespace(data_provider=provider))
    request = api_pb2.ListSessionGroupsRequest(slice_size=10, allowed_statuses=[api_pb2.STATUS_UNKNOWN])
    (row,) = list_session_groups.Handler(CONTEXT, context, "", request).run().session_groups
    keys = {"model.hidden_size": 48.0, "training.max_steps": float(STEPS), "metrics.tensorboard": True,
            "lr_scheduler.decay_type": "cosine", "training.samples.prompts": "[to, a ``` b]"}
    found = {key: getattr(row.hparams[key], row.hparams[key].WhichOneof("kind")) for key in keys}
    assert found == keys, (reader, found)
    with open(place.run(NAME) + "/config.yaml") as config:
        of_config = set(leaves(yaml.safe_load(config), ""))
    assert set(row.hparams) == of_config, (reader, set(row.hparams) ^ of_config)
    last = {one.name.tag: (one.training_step, one.value) for one in row.metric_values}
    assert last["loss/avg"][0] == STEPS and 0 < last["loss/avg"][1] < 20, (reader, last["loss/avg"])


def expect_equal_provider(provider, place, reader):
    events, scalars, of_tensors, histograms = read_records(place)
    scalars |= of_tensors
    read = {"experiment_id": "", "downsample": MANY}
    (found,) = provider.read_scalars(CONTEXT, plugin_name="scalars", **read).values()
    expect_equal({name: [(one.step, one.value) for one in of] for name, of in found.items()}, scalars, reader)
    (found,) = provider.read_tensors(CONTEXT, plugin_name="histograms", **read).values()
    assert set(found) == set(histograms) and len(found) == 5 * 30 + 15, (reader, set(found) ^ set(histograms))
    for name, of in histograms.items():
        assert [one.step for one in found[name]] == sorted(of) == [3, 6, 9, 12, 15, 16][-len(of):], (reader, name, sorted(of))
        for one in found[name]:
            np.testing.assert_array_equal(one.numpy, np.array(of[one.step], np.float32), f"{reader}: {name}")
    (texts,) = provider.read_tensors(CONTEXT, plugin_name="text", **read).values()
    texts = {name: [(one.step, one.numpy.item().decode()) for one in of] for name, of in texts.items()}
    steps = [one["step"] for one in events["ready"] if one["step"] <= 4]  # of the starts that were not taken back
    assert [step for step, _ in texts["config"]] == steps, (reader, texts["config"])
    assert all("hidden_size: 48" in text and text.startswith("```yaml\n") for _, text in texts["config"])
    assert [step for step, _ in texts["events/resume"]] == [4], (reader, texts["events/resume"])
    (end,) = [text for step, text in texts["events/end"] if step == STEPS]
    assert end.startswith("done") and "| exit_code | 0 |" in end, (reader, end)
    expect_session(provider, place, reader)
    samples = samples_of_course(place)
    for i, expected in enumerate(samples):
        assert sorted(expected) == [3, 6, 9, 12, 15, 16], expected
        assert {step: unfenced(text) for step, text in texts[f"samples/{i + 1}"]} == expected, (reader, texts, expected)
    print(f"  {reader}: {sum(map(len, scalars.values()))} scalars of {len(scalars)} tags, "
          f"{sum(map(len, histograms.values()))} histograms of {len(histograms)} tags, texts {sorted(texts)}")


def tensorboard_python(place):
    """tensorboard's loader in Python, and the older event_accumulator, read metrics.jsonl's values"""
    make_run(place)
    assert len(event_files(place)) == 3
    expect_equal_provider(python_provider(place), place, "plugin_event_accumulator")
    older = event_accumulator.EventAccumulator(place.run(NAME) + "/tensorboard", {event_accumulator.SCALARS: 0})
    older.Reload()
    found = {tag: [(one.step, one.value) for one in older.Scalars(tag)] for tag in older.Tags()["scalars"]}
    _, scalars, of_tensors, _ = read_records(place)
    expect_equal(found, scalars | of_tensors, "event_accumulator")


def tensorboard_server(place):
    """tensorboard's data server reads the same"""
    make_run(place)
    server = server_provider(place)
    expect_equal_provider(server.data_provider, place, "data server")


def prometheus(place):
    """prometheus_client reads the newest values, that the run is over, and the events of its newest start"""
    make_run(place)
    with open(place.file("tokamak.prom")) as file:
        families = list(text_string_to_metric_families(file.read()))
    samples = {}
    for family in families:
        assert family.documentation and family.type == ("counter" if family.name == "tokamak_events" else "gauge"), family
        for one in family.samples:
            labels = dict(one.labels)
            assert labels.pop("run") == "small" and labels.pop("host"), one
            samples[one.name, labels.get("event")] = one.value
    events, scalars, _, _ = read_records(place)
    assert not [name for name, _ in samples if "rms" in name or "proj" in name]  # a thousand series a run
    for name, of in scalars.items():
        key = "tokamak_" + "".join(c if c.isalnum() else "_" for c in name)
        assert samples[key, None] == of[max(of)], (name, samples[key, None])
    assert samples["tokamak_running", None] == 0 and samples["tokamak_end_exit_code", None] == 0
    assert samples["tokamak_step", None] == samples["tokamak_total_steps", None] == STEPS
    saves = [one for one in events["checkpoint"] if one["time"] >= events["start"][-1]["time"]]
    assert samples["tokamak_events_total", "checkpoint"] == len(saves) > 0
    print(f"  {len(samples)} samples of {len(families)} metrics")


main([tensorboard_python, tensorboard_server, prometheus])
