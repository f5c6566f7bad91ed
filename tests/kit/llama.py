"""A real llama.cpp server with a model of our own: random weights, written in a moment, the size of a photograph.

``main`` is that server, in a process of its own. It prints its address and ends when its
standard input is closed, so it cannot outlive whoever started it, however that one ends.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kit.patience import HANG
from kit.process import start_module

CONTEXT = 32_768
"""Tokens, shared by the slots; the vocabulary has no words, so a prompt has a token for every character."""
SLOTS = 2

_WIDTH, _LAYERS, _HEADS, _KEY_HEADS, _INNER = 64, 2, 4, 2, 128
_TEMPLATE = (
    "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}</{{ m['role'] }}>\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def write_model(path: Path, *, seed: int = 0) -> Path:
    """Write a llama-architecture GGUF file with random weights and a vocabulary of bytes and printable characters."""
    import gguf

    writer = gguf.GGUFWriter(str(path), "llama")
    words = _add_vocabulary(writer)
    writer.add_name("random")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(_LAYERS)
    writer.add_feed_forward_length(_INNER)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_KEY_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(_WIDTH // _HEADS)
    writer.add_rope_freq_base(10_000.0)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_chat_template(_TEMPLATE)
    for name, tensor in _draw_weights(words, seed):
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_vocabulary(writer: Any) -> int:
    from gguf import TokenType

    special = [("<unk>", 0.0, TokenType.UNKNOWN), ("<s>", 0.0, TokenType.CONTROL), ("</s>", 0.0, TokenType.CONTROL)]
    single = [(f"<0x{byte:02X}>", 0.0, TokenType.BYTE) for byte in range(256)]
    written = [("\u2581", -1.0, TokenType.NORMAL), *((chr(code), -2.0, TokenType.NORMAL) for code in range(33, 127))]
    words = [*special, *single, *written]
    writer.add_vocab_size(len(words))
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([text.encode() for text, _, _ in words])
    writer.add_token_scores([score for _, score, _ in words])
    writer.add_token_types([int(kind) for _, _, kind in words])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)
    writer.add_add_space_prefix(False)
    return len(words)


def _draw_weights(words: int, seed: int) -> Iterator[tuple[str, Any]]:
    import numpy as np

    source = np.random.default_rng(seed)

    def draw(rows: int, columns: int, scale: float) -> Any:
        return (source.standard_normal((rows, columns)) * scale / np.sqrt(columns)).astype(np.float32)

    ones = np.ones(_WIDTH, np.float32)
    keys = _WIDTH // _HEADS * _KEY_HEADS
    yield "token_embd.weight", draw(words, _WIDTH, np.sqrt(_WIDTH))
    for layer in range(_LAYERS):
        block = f"blk.{layer}"
        yield f"{block}.attn_norm.weight", ones
        yield f"{block}.attn_q.weight", draw(_WIDTH, _WIDTH, 2.0)
        yield f"{block}.attn_k.weight", draw(keys, _WIDTH, 2.0)
        yield f"{block}.attn_v.weight", draw(keys, _WIDTH, 2.0)
        yield f"{block}.attn_output.weight", draw(_WIDTH, _WIDTH, 2.0)
        yield f"{block}.ffn_norm.weight", ones
        yield f"{block}.ffn_gate.weight", draw(_INNER, _WIDTH, 2.0)
        yield f"{block}.ffn_up.weight", draw(_INNER, _WIDTH, 2.0)
        yield f"{block}.ffn_down.weight", draw(_WIDTH, _INNER, 2.0)
    yield "output_norm.weight", ones
    yield "output.weight", draw(words, _WIDTH, 1.0)


@contextlib.contextmanager
def run_server(model: Path, *, seconds: float = HANG) -> Iterator[str]:
    """The address of a server with this model, ready to answer; it has ended when the block is left."""
    log = model.with_suffix(".log")
    with (
        log.open("wb") as errors,
        start_module("llama", str(model), stdin=subprocess.PIPE, stderr=errors) as process,
    ):
        ender = threading.Timer(seconds, process.kill)
        ender.start()
        try:
            address = _read_address(process, log)
            _wait_until_healthy(address, seconds)
            ender.cancel()
            yield address
        finally:
            ender.cancel()
            process.kill()


def ask_for(url: str, *, seconds: float = HANG) -> bytes:
    """GET an address of the server, past any proxy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=seconds) as answer:
        return answer.read()


def _read_address(process: subprocess.Popen[str], log: Path) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("http://"):
            return line.strip()
    raise RuntimeError(f"the llama.cpp server ended before it listened:\n{log.read_text(errors='replace')[-2000:]}")


def _wait_until_healthy(address: str, seconds: float) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            ask_for(f"{address}/health")
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)
        else:
            return


def main() -> None:
    """Serve the model that the command line names."""
    import xllamacpp

    options = xllamacpp.CommonParams()
    options.model.path = sys.argv[1]
    options.hostnames = ["127.0.0.1"]
    options.port = 0  # any free one; the address says which
    options.n_ctx = CONTEXT
    options.n_parallel = SLOTS
    options.n_gpu_layers = 0
    # More threads than cores wait for each other, and a matrix of 64 rows is no work for two.
    options.cpuparams.n_threads = 1
    options.cpuparams_batch.n_threads = 1
    options.use_jinja = True
    options.warmup = False
    options.endpoint_slots = True
    server = xllamacpp.Server(options)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(0)
