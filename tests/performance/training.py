#!/usr/bin/env python3
"""Training fidelity of examples/digits over seeds: mean test accuracy and final loss of each policy against f32 with the same seeds and
initial values; then the same with loss * 2^-16 and rate * 2^16, which must give every scaled policy the digits of its plain column.

Usage: training.py [--build BUILD] [--seeds N] [--epochs N] [--json FILE]      (after ./demo)
"""
import argparse
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def train(build, seed, epochs, factor):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        subprocess.run([build / "digits" / "digits_train", "--seed", str(seed), "--epochs", str(epochs), "--loss-factor", repr(factor), "--json", out],
                       check=True, stdout=subprocess.DEVNULL)
        return {row["policy"]: (row["test_accuracy"], row["final_loss"]) for row in json.loads(out.read_text())}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    plain = [train(arguments.build, seed, arguments.epochs, 1.0) for seed in range(arguments.seeds)]
    tiny = [train(arguments.build, seed, arguments.epochs, 2.0**-16) for seed in range(arguments.seeds)]
    rows = []
    print(f"{'policy':<10} {'accuracy':>9} {'- f32':>8} {'loss':>9} {'/ f32':>7} {'same with loss * 2^-16':>24}   {arguments.seeds} seeds, {arguments.epochs} epochs")
    for policy in plain[0]:
        accuracy, loss = (statistics.mean(run[policy][i] for run in plain) for i in (0, 1))
        base_accuracy, base_loss = (statistics.mean(run["f32"][i] for run in plain) for i in (0, 1))
        same = sum(a[policy] == b[policy] for a, b in zip(plain, tiny))
        rows.append({"policy": policy, "accuracy": accuracy, "loss": loss, "accuracy_minus_f32": accuracy - base_accuracy,
                     "loss_over_f32": loss / base_loss, "same_digits_when_tiny": same, "seeds": arguments.seeds})
        print(f"{policy:<10} {accuracy:>9.4f} {accuracy - base_accuracy:>+8.4f} {loss:>9.5f} {loss / base_loss:>7.4f} {same:>18} of {arguments.seeds}")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
