"""scalide.Metrics: lines and event files as other readers find them, limits of the system, kills, forgotten files."""
import contextlib
import json
import math
import os
import resource
import signal
import struct
import subprocess
import sys
import textwrap
import warnings

import ml_dtypes
import numpy as np
import pytest

import scalide


def lines(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def fields(data):
    """(number, value) of each field of a protobuf message."""

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    at = 0
    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            size = {1: 8, 5: 4}.get(key & 7) or varint()
            yield key >> 3, data[at : at + size]
            at += size


def events(folder):
    """[(time, step, {tag: value})] of the event files, as tensorflow/core/util/event.proto describes them. The first record has the version."""
    for file in sorted(folder.glob("events.out.tfevents.*")):
        data, records = file.read_bytes(), []
        while data:
            (length,) = struct.unpack("<Q", data[:8])
            record = data[12 : 12 + length]
            assert struct.unpack("<I", data[8:12])[0] == crc32c(data[:8])
            assert struct.unpack("<I", data[12 + length : 16 + length])[0] == crc32c(record)
            records.append(dict(fields(record)))
            data = data[16 + length :]
        assert records[0][3] == b"brain.Event:2"
        for record in records[1:]:
            values = [dict(fields(value)) for _, value in fields(record[5])]
            yield struct.unpack("<d", record[1])[0], record[2], {value[1].decode(): struct.unpack("<f", value[2])[0] for value in values}


def test_lines_and_events(tmp_path):
    values = {"loss": 0.1, "accuracy": 1, "grad/norm": np.float32(0.3), "scale": np.float16(2.0**15), "b": ml_dtypes.bfloat16(1.5), "one": np.array([7.25])}
    with scalide.Metrics(tmp_path / "runs/first", tensorboard=True) as metrics:
        metrics.write(3, values)
        metrics.write(np.int32(4), {"loss": math.nan, "up": math.inf, "down": -math.inf})
        metrics.flush()
        assert len(lines(tmp_path / "runs/first")) == 2
    first, second = lines(tmp_path / "runs/first")
    assert list(first) == ["step", "time", *values] and {name: first[name] for name in values} == {name: float(np.squeeze(value)) for name, value in values.items()}
    assert isinstance(first["accuracy"], float)
    assert [second[name] for name in ("loss", "up", "down")] == ["nan", "inf", "-inf"]
    (time, step, scalars), (_, _, special) = events(tmp_path / "runs/first")
    assert time == first["time"] and step == 3 and scalars == {name: float(np.float32(np.squeeze(value))) for name, value in values.items()}
    assert math.isnan(special["loss"]) and special["up"] == math.inf and special["down"] == -math.inf


def test_values_of_jax(tmp_path):
    jnp = pytest.importorskip("jax.numpy")
    with scalide.Metrics(tmp_path) as metrics:
        metrics.write(0, {"loss": jnp.float32(0.5), "half": jnp.bfloat16(3)})
    assert lines(tmp_path)[0]["loss"] == 0.5 and lines(tmp_path)[0]["half"] == 3


def test_a_resumed_run_continues_the_file(tmp_path):
    for step in range(3):
        with scalide.Metrics(tmp_path, tensorboard=True) as metrics:
            metrics.write(step, {"loss": step})
        with open(tmp_path / "metrics.jsonl", "a") as file:
            file.write('{"step": 9, "ti')  # a killed process
    with scalide.Metrics(tmp_path):
        pass
    assert [line["step"] for line in lines(tmp_path)] == [0, 1, 2]
    assert sorted(step for _, step, _ in events(tmp_path)) == [0, 1, 2]


def test_wrong_values(tmp_path):
    with scalide.Metrics(tmp_path) as metrics:
        with pytest.raises(TypeError, match=r"loss: must be a number or an array with one element, got ndarray. Reduce it first"):
            metrics.write(0, {"loss": np.zeros(3)})
        with pytest.raises(TypeError, match="loss: must be a number or an array with one element, got str"):
            metrics.write(0, {"loss": "low"})
        with pytest.raises(TypeError, match="a name of a metric must be a text, got 3. Use for example 'loss'"):
            metrics.write(0, {3: 1})
        with pytest.raises(TypeError):
            metrics.write(0.5, {})
        for name in ("step", "time", ""):
            with pytest.raises(ValueError, match=f"metric '{name}'"):
                metrics.write(0, {name: 1})
        with pytest.raises(ValueError, match="a name must not contain a zero byte"):
            metrics.write(0, {"a\0b": 1})
    with pytest.raises(ValueError, match="these metrics are closed. Open them again"):
        metrics.write(0, {})
    assert "closed" in repr(metrics) and lines(tmp_path) == []
    with pytest.raises(ValueError, match="queue_bytes: must be at least 256, got 255. Leave it out for 1 MiB"):
        scalide.Metrics(tmp_path, queue_bytes=255)


def test_folders_without_rights_and_two_writers(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file/runs: cannot create this folder: Not a directory"):
        scalide.Metrics(tmp_path / "file/runs")
    with scalide.Metrics(tmp_path):
        with pytest.raises(OSError, match="other metrics are open in the folder"):
            scalide.Metrics(tmp_path)
    if os.getuid() != 0:
        tmp_path.chmod(0o500)
        with pytest.raises(OSError, match="Permission denied"):
            scalide.Metrics(tmp_path / "runs")


def test_a_full_disk(tmp_path):
    """A limit of the file size does to this process what a full disk does: the last write writes a part, and the next one fails."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    metrics = scalide.Metrics(tmp_path, tensorboard=True)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
        with pytest.raises(OSError, match="cannot write this file: File too large. Free space on the disk, or choose another folder"):
            for step in range(100):
                metrics.write(step, {"loss": step})
            metrics.flush()
        whole = lines(tmp_path)  # no line is torn
        assert 10 < len(whole) < 100 and len(list(events(tmp_path))) > 10
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    last = whole[-1]["step"]
    with contextlib.suppress(OSError):  # the thread has perhaps met the limit once more
        metrics.write(1000, {})
    metrics.close()
    steps = [line["step"] for line in lines(tmp_path)]
    assert steps[: last + 1] == list(range(last + 1)) and steps[-1] == 1000 and steps == sorted(set(steps))
    assert sorted(step for _, step, _ in events(tmp_path)) == steps


def run(code, *args):
    return subprocess.run([sys.executable, "-W", "default", "-c", textwrap.dedent(code), *map(str, args)], capture_output=True, text=True)


def test_a_process_that_ends_writes_all_lines(tmp_path):
    done = run("""
        import sys, scalide
        metrics = scalide.Metrics(sys.argv[1], tensorboard=True)
        for step in range(5000):
            metrics.write(step, {"loss": step})
        """, tmp_path)
    assert done.returncode == 0 and done.stderr == ""
    assert len(lines(tmp_path)) == len(list(events(tmp_path))) == 5000


def test_a_forgotten_error_is_a_warning(tmp_path):
    done = run("""
        import resource, signal, sys, scalide
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        metrics = scalide.Metrics(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        metrics.write(0, {"loss": 1})
        """, tmp_path)
    assert "ResourceWarning: the metrics in" in done.stderr and "1 line is lost" in done.stderr


def test_forgotten_metrics_close_their_files(tmp_path):
    metrics = scalide.Metrics(tmp_path)
    metrics.write(0, {})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del metrics
    with scalide.Metrics(tmp_path):
        assert len(lines(tmp_path)) == 1


def test_a_killed_process_leaves_whole_lines(tmp_path):
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", textwrap.dedent("""
            import itertools, sys, scalide
            metrics = scalide.Metrics(sys.argv[1])
            for step in itertools.count():
                metrics.write(step, {"loss": step})
                if step % 1000 == 0:
                    metrics.flush()
                if step == 3000:
                    print("ready", flush=True)
            """), str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "ready\n"
        process.kill()
        process.wait()
    scalide.Metrics(tmp_path).close()  # repairs the last line
    found = lines(tmp_path)
    assert len(found) > 9000 and all(line["loss"] == line["step"] for line in found)
