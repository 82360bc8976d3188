#!/usr/bin/env python3
"""Prints the least milliseconds of a loss of a recurrent network of torch and its gradient: the models lstm512 and gru512 of loops.py.

Usage: loops_torch.py LSTM|GRU [THREADS]
"""
import sys
import time

import torch

STEPS, BATCH, WIDTH, TOKENS = 256, 32, 512, 256


def main():
    torch.set_num_threads(int(sys.argv[2]) if len(sys.argv) > 2 else 2)
    embed, head = torch.nn.Embedding(TOKENS, WIDTH), torch.nn.Linear(WIDTH, TOKENS, bias=False)
    network = getattr(torch.nn, sys.argv[1])(WIDTH, WIDTH)
    tokens = torch.randint(0, TOKENS, (STEPS + 1, BATCH))
    least, end = float("inf"), time.perf_counter() + 5
    while time.perf_counter() < end:
        begin = time.perf_counter()
        for module in (embed, network, head):
            module.zero_grad()
        logits = head(network(embed(tokens[:-1]))[0])
        torch.nn.functional.cross_entropy(logits.reshape(-1, TOKENS), tokens[1:].reshape(-1)).backward()
        least = min(least, time.perf_counter() - begin)
    print(1e3 * least)


if __name__ == "__main__":
    main()
