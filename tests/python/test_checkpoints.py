"""scalide.Checkpoints and files in the msgpack layout of Flax: golden files, the rules of flax.training.checkpoints, other writers, hostile files."""
import json
import multiprocessing
import os
import random
import shutil
import subprocess
from collections import namedtuple
from pathlib import Path

import flax.serialization
import flax.training.checkpoints
import ml_dtypes
import numpy as np
import pytest

import scalide
from scalide import Checkpoints, ScaledArray

SHARED = os.environ.get("SCALIDE_SHARED_DIR")
GOLDEN = Path(SHARED) / "golden" if SHARED and Path(SHARED, "golden/checkpoint.json").exists() else Path(__file__).parents[1] / "golden/data"
CASES = json.loads((GOLDEN / "checkpoint.json").read_text())["cases"]
Pair = namedtuple("Pair", "first second")
TREE = {"w": ScaledArray(np.array([1, 1.5, -2], ml_dtypes.float8_e4m3fn), 0.25), "opt": Pair([np.arange(6, dtype=np.int64).reshape(2, 3)], (None, np.float16([1, 2]))),
        "step": np.uint32(7)}  # fmt: skip


def at(tree, path):
    """The leaf at a path of the golden index, such as /layers/0/w."""
    for key in path.strip("/").split("/"):
        tree = tree[key]
    return tree


def dtype_of(name):
    return np.dtype(np.complex64) if name == "c64" else np.dtype(np.float64) if name == "f64" else scalide.arrays.numpy_dtype(name)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_golden_file_is_read_and_written_back(case, tmp_path):
    arrays, file = np.load(GOLDEN / "checkpoint.npz"), GOLDEN / case["file"]
    found = scalide.load(file)
    for leaf in case["outputs"]:
        got = found[leaf["path"]] if case["op"] == "safetensors" else at(found, leaf["path"])
        if "key" in leaf:
            want = arrays[leaf["key"]]
            assert got.dtype == dtype_of(leaf["dtype"]) and list(got.shape) == leaf["shape"], leaf
            assert got.tobytes() == want.tobytes() and isinstance(got, np.generic) == (leaf.get("kind") == "npscalar"), leaf
        else:
            want = {} if leaf["kind"] == "empty_map" else leaf["value"]
            assert got == want and type(got) is type(want), leaf
    again = tmp_path / file.name
    scalide.save(again, found)
    if case["op"] == "msgpack":
        assert again.read_bytes() == file.read_bytes()
    else:
        assert {name: array.tobytes() for name, array in scalide.load(again).items()} == {name: array.tobytes() for name, array in found.items()}


def test_msgpack_of_any_tree_has_the_bytes_of_flax(tmp_path):
    numbers = [1, -1, -33, 127, 128, 255, 256, 65535, 65536, 2**32, 2**63, -2**63, -129, -32769, -2**31 - 1, 2**64 - 1]
    trees = [{"numbers": numbers, "b": {"x": None, "y": True, "t": "\u00e9" * 40, "z": b"abc" * 100, "c": 1 + 2j}, "e": {}, "l": []},
             {"empty": np.zeros((3, 0), np.float32), "large": np.arange(70000, dtype=np.int32), "u64": np.arange(3, dtype=np.uint64)},
             {"c64": np.ones(2, np.complex64), "s": np.float32(1), "f64": np.float64(0.1), "k": {str(i): i for i in range(70000)}},
             {str(i): np.ones(i, dtype) for i, (dtype, _) in enumerate(scalide.arrays.DTYPES.values()) if dtype is not None},
             TREE, np.arange(3), 5, {"a": {"b": {"c": {"d": np.float32([[1]])}}}, "a.b": 1}]  # fmt: skip
    for i, tree in enumerate(trees):
        file = tmp_path / f"{i}.msgpack"
        scalide.save(file, tree)
        assert file.read_bytes() == flax.serialization.to_bytes(tree), i
        assert repr(scalide.load(file)) == repr(flax.serialization.msgpack_restore(file.read_bytes())), i


def test_large_arrays_have_the_chunks_of_flax(tmp_path, monkeypatch):
    monkeypatch.setattr(flax.serialization, "MAX_CHUNK_SIZE", 100)
    tree = {"a": np.arange(60, dtype=np.float32).reshape(3, 4, 5), "b": np.arange(25, dtype=np.float32), "c": {"d": np.arange(101, dtype=np.uint8)}}
    file = tmp_path / "x.msgpack"
    scalide.msgpack_files.write(file, tree, chunk_bytes=100)
    assert file.read_bytes() == flax.serialization.msgpack_serialize(tree)
    found = scalide.load(file, like=tree)
    assert all(np.array_equal(a, b) for a, b in ((found["a"], tree["a"]), (found["b"], tree["b"]), (found["c"]["d"], tree["c"]["d"])))


def test_msgpack_in_the_structure_of_like(tmp_path):
    file = tmp_path / "x.msgpack"
    scalide.save(file, TREE)
    found = scalide.load(file, like=TREE)
    assert type(found["opt"]) is Pair and type(found["opt"].second) is tuple and found["opt"].second[0] is None
    assert found["w"].data.tobytes() == TREE["w"].data.tobytes() and found["w"].scale == 0.25
    with pytest.raises(ValueError, match=r"opt.first.0: must be int32\[2, 3\] as in 'like', got int64\[2, 3\]"):
        scalide.load(file, like={**TREE, "opt": Pair([np.zeros((2, 3), np.int32)], TREE["opt"].second)})
    with pytest.raises(ValueError, match="the tree: must have the keys w as in 'like', got w, opt, step"):
        scalide.load(file, like={"w": TREE["w"]})
    for wrong in ({1: 2}, {"": 1, "a": 2}, {"a": {2}}, {"a": np.array([None])}, {"a\x1fb": 1}, {"a": 2**64}):
        with pytest.raises((TypeError, ValueError)):
            scalide.save(file, wrong)
    assert scalide.load(file, like=TREE)["step"] == 7


def test_damaged_msgpack_is_refused_in_words(tmp_path):
    file, good = tmp_path / "x.msgpack", flax.serialization.to_bytes({"a": np.arange(6, dtype=np.int16), "b": {"c": 1.5, "d": "text"}})
    for size in range(len(good)):
        file.write_bytes(good[:size])
        with pytest.raises(OSError, match="x.msgpack: byte [0-9]+: expected .* is damaged or not in the msgpack layout of Flax."):
            scalide.load(file)
    choices = random.Random(1)
    for _ in range(2000):
        bytes_ = bytearray(good)
        for _ in range(choices.randint(1, 3)):
            bytes_[choices.randrange(len(good))] = choices.randrange(256)
        file.write_bytes(bytes_)
        try:
            scalide.load(file)
        except (OSError, ValueError) as error:
            assert str(error)
    for hostile in (b"\x81\xa1a" * 100 + b"\x01", b"\xdf\xff\xff\xff\xff", b"\xc9\xff\xff\xff\xff\x01", b"\x82\xa1a\x01\xa1a\x02", b"\x81\x01\x02", b"\xc1", good + b"\x00",
                    b"\x81\xa2\xff\xfe\x01", b"\x81\xa2\xa1\x00\x01", b"\xc7\x09\x01\x93\x91\xcf\xff\xff\xff\xff\xff"):  # fmt: skip
        file.write_bytes(hostile)
        with pytest.raises(OSError):
            scalide.load(file)


def same(a, b):
    """A file of safetensors sorts the keys of dicts, and makes arrays of NumPy scalars."""
    (content, structure), (other, others) = (scalide.saving.content_of(tree) for tree in (a, b))
    facts = [{name: (array.dtype, array.shape, array.tobytes()) for name, array in arrays.items()} for arrays in (content, other)]
    return facts[0] == facts[1] and structure == others


@pytest.mark.parametrize("options", [{}, {"shard_bytes": 1}, {"format": "flax"}], ids=["safetensors", "shards", "flax"])
def test_checkpoint_comes_back_bit_for_bit(tmp_path, options):
    checkpoints = Checkpoints(tmp_path / "run", **options)
    assert checkpoints.latest() is None and checkpoints.steps() == []
    with pytest.raises(OSError, match=r"run: the folder has no checkpoint 'checkpoint_\*'. Check the path and the prefix."):
        checkpoints.restore()
    checkpoints.save(3, TREE, metadata={"schedule": "cosine"})
    assert checkpoints.latest() == 3 and same(checkpoints.restore(like=TREE), TREE) and same(checkpoints.restore(3, TREE), TREE)
    if "format" not in options:
        found = checkpoints.metadata()
        assert (found["schedule"], found["scalide.step"], found["scalide.version"]) == ("cosine", "3", "1")
        assert same(checkpoints.restore(), TREE) and type(checkpoints.restore()["opt"]) is Pair
    else:
        assert same(flax.training.checkpoints.restore_checkpoint(str(tmp_path / "run"), TREE), TREE)


def test_checkpoint_of_flax_is_read(tmp_path):
    tree = {"params": {"w": np.arange(6, dtype=np.float32)}, "step": 5}
    (tmp_path / "checkpoint_5").write_bytes(flax.serialization.to_bytes(tree))
    (tmp_path / "checkpoint_1e1").write_bytes(flax.serialization.to_bytes(tree))
    assert Checkpoints(tmp_path).steps() == [5, 10] and same(Checkpoints(tmp_path).restore(), tree)


def test_keeps_what_flax_keeps(tmp_path):
    flax.config.update("flax_use_orbax_checkpointing", False)
    for seed in range(60):
        choices = random.Random(seed)
        ours, theirs = tmp_path / f"ours{seed}", tmp_path / f"theirs{seed}"
        step, keep, every = 0, choices.randint(1, 4), choices.choice([None, None, 2, 3, 10])
        checkpoints = Checkpoints(ours, keep=keep, keep_every_n_steps=every)
        for _ in range(12):
            overwrite = choices.random() < 0.2
            step = max(1, step + choices.choice([1, 1, 2, 5, -1, -4, 0]))
            refused = 0
            try:
                checkpoints.save(step, {"a": np.float32([step])}, overwrite=overwrite)
            except ValueError:
                refused += 1
            try:
                flax.training.checkpoints.save_checkpoint(str(theirs), {"a": np.float32([step])}, step, keep=keep, overwrite=overwrite, keep_every_n_steps=every)
            except flax.errors.InvalidCheckpointError:
                refused += 2
            assert refused in (0, 3), (seed, step, refused)
            found = sorted(int(name.removeprefix("checkpoint_")) for name in os.listdir(theirs))
            assert checkpoints.steps() == found, (seed, step)
            step = found[-1]
        assert checkpoints.restore()["a"] == step


@pytest.mark.parametrize("shard_bytes", [10**9, 100])
def test_checkpoint_is_converted(tmp_path, shard_bytes):
    (tmp_path / "p.scl").write_text("program predict(x: f32[b, 8], w: f32[8, 4]) -> (y: f32[b, 4]) {\n  y = dot_general(x, w) {contract: [[1], [0]]}\n}\n")
    w = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
    Checkpoints(tmp_path / "run", shard_bytes=shard_bytes).save(5, {"w": w, "m": w, "n": np.arange(3)})
    file = tmp_path / ("run/checkpoint_5.safetensors" if shard_bytes > 100 else "run/checkpoint_5/model.safetensors.index.json")
    command = [os.environ["SCALIDE_TOOL"], "convert", file, "--for", tmp_path / "p.scl", "-n", "f8_weights", "-o", tmp_path / "out.safetensors"]
    assert "not used: m, n" in subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = scalide.load(tmp_path / "out.safetensors")["w"]
    assert np.allclose(found.data.astype(np.float32) * found.scale, w, rtol=0.07)


def test_differences_are_one_error(tmp_path):
    checkpoints = Checkpoints(tmp_path / "run")
    checkpoints.save(1, TREE)
    like = {"w": np.zeros(3, np.float32), "opt": TREE["opt"], "momentum": np.zeros(3, np.float32)}
    with pytest.raises(ValueError) as error:
        checkpoints.restore(like=like)
    assert str(error.value) == (
        f"{tmp_path}/run, step 1: the file must have the arrays of 'like'. Missing in the file: momentum. Unknown to the program: step. Different: "
        "w: must be float32[3] as in 'like', got scaled float8_e4m3fn[3]. Convert the file with 'scalide convert', or choose the checkpoint of another program.")


def test_versions(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    for version, loads in (("0", True), ("1", True), ("2", False), ("x", False), ("", False)):
        scalide.arrays.write_safetensors(tmp_path / "checkpoint_1.safetensors", {"a": np.float32([1])}, {"scalide.version": version})
        if loads:
            assert checkpoints.restore()["a"] == 1 and scalide.load(tmp_path / "checkpoint_1.safetensors")["a"] == 1
            continue
        with pytest.raises(OSError, match="must be at most 1, got .*. Read the file with a newer runtime."):
            checkpoints.restore()
        with pytest.raises(ValueError, match="must be at most 1, got"):
            scalide.load(tmp_path / "checkpoint_1.safetensors")


def test_damaged_checkpoint_is_refused(tmp_path):
    checkpoints = Checkpoints(tmp_path / "run", keep=2)
    checkpoints.save(1, {"a": np.float32([1])})
    checkpoints.save(2, {"a": np.float32([2])})
    file = tmp_path / "run/checkpoint_2.safetensors"
    good = file.read_bytes()
    for size in range(len(good)):
        file.write_bytes(good[:size])
        with pytest.raises(OSError, match="checkpoint_2.safetensors: "):
            checkpoints.restore()
    file.write_bytes(b"another format, which is long enough")
    with pytest.raises(OSError, match="checkpoint_2.safetensors: "):
        checkpoints.restore()
    assert checkpoints.restore(1)["a"] == 1


def save_often(folder, first, queue):
    problems = []
    newest = -1
    checkpoints = Checkpoints(folder, keep=100)
    for step in range(first, first + 200):
        try:
            checkpoints.save(step, {"a": np.full(1000, step)})
            newest = step
        except (OSError, ValueError) as error:
            if "another process or thread saves" not in str(error) and "must be greater than the latest" not in str(error):
                problems.append(str(error))
    queue.put((newest, problems))


def test_two_writers(tmp_path):
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    writers = [context.Process(target=save_often, args=(str(tmp_path / "run"), first, queue)) for first in (0, 50)]
    for writer in writers:
        writer.start()
    newest, problems = zip(*(queue.get() for _ in writers))
    for writer in writers:
        writer.join()
    assert problems == ([], [])
    # The last save of a writer may be refused while the other one saves, so 249 is not always there.
    checkpoints = Checkpoints(tmp_path / "run")
    assert checkpoints.latest() == max(newest)
    assert all((checkpoints.restore(step)["a"] == step).all() for step in checkpoints.steps())


def test_wrong_options_and_folders(tmp_path):
    for options in ({"keep": 0}, {"keep_every_n_steps": 0}, {"shard_bytes": 0}, {"format": "pickle"}):
        with pytest.raises(ValueError, match="Checkpoints: "):
            Checkpoints(tmp_path, **options)
    (tmp_path / "file").write_text("x")
    with pytest.raises(OSError, match="it is a file. Choose another path."):
        Checkpoints(tmp_path / "file").save(1, TREE)
    with pytest.raises(OSError, match="cannot make this folder: No such file or directory"):
        Checkpoints(tmp_path / "missing/run").save(1, TREE)
    with pytest.raises(ValueError, match="step must be from 0"):
        Checkpoints(tmp_path / "run").save(-1, TREE)
    with pytest.raises(ValueError, match="prefix must be a name"):
        Checkpoints(tmp_path / "run", prefix="a/b").save(1, TREE)
    assert not shutil.os.path.exists(tmp_path / "run")
