#!/usr/bin/env python3
"""Damaged, incomplete and unsupported models: `run` and `inspect` refuse each with exit code 1 and a message that names the
file and the problem."""

import json
import math
import random
import shutil
import struct
import unittest

from program import GGUF_MODEL, HAS_ENGINE, HF_MODEL, MODELS, ProgramTest

SUPPORTED = ["Llama 2 and 3.x", "Mistral", "Qwen2 and 2.5", "Qwen3", "SmolLM2"]
SINGLE = MODELS / "smollm2-tied"  # one safetensors file


def read_safetensors(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8:8 + size]), data[8 + size:]


def write_safetensors(path, header, body):
    packed = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(packed)) + packed + body)


class BadModels(ProgramTest):
    def copy(self, source, name):
        folder = self.path(name)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder)
        return folder

    def config(self, name, **changes):
        """Returns a copy of a good model with changed fields in config.json; None removes a field."""
        folder = self.copy(SINGLE, name)
        config = json.loads((folder / "config.json").read_text())
        for key, value in changes.items():
            config[key] = value
            if value is None:
                del config[key]
        (folder / "config.json").write_text(json.dumps(config))
        return folder

    def bad(self, model, *messages):
        """Checks that both commands refuse the model and leave no trace."""
        for command in (["inspect", model], ["run", "-m", model, "-p", "Hello.", "-n", 2, "-t", 1, "-o", "t.h5"]):
            if command[0] == "run" and not HAS_ENGINE:
                continue
            with self.subTest(command[0]):
                self.refuses(1, messages, *command)
        self.assertEqual(list(self.folder.glob("t.h5*")), [])

    def test_the_good_ones_are_good(self):
        for model in (SINGLE, HF_MODEL, GGUF_MODEL):
            self.made("inspect", model)

    # ---- GGUF

    def test_a_truncated_gguf(self):
        data = GGUF_MODEL.read_bytes()
        path = self.path("truncated.gguf")
        for size in (0, 3, 24, 2000, len(data) // 2, len(data) - 1):
            with self.subTest(size=size):
                path.write_bytes(data[:size])
                self.refuses(1, ["truncated.gguf"], "inspect", path)
        self.bad(path, "truncated.gguf")

    def test_a_random_gguf(self):
        for seed in range(3):
            noise = random.Random(seed).randbytes(5000)
            self.path("noise.gguf").write_bytes(noise)
            self.refuses(1, ["noise.gguf"], "inspect", "noise.gguf")
            self.path("noise.gguf").write_bytes(b"GGUF" + struct.pack("<I", 3) + noise)
            self.refuses(1, ["noise.gguf"], "inspect", "noise.gguf")
        self.bad(self.path("noise.gguf"), "noise.gguf")

    def test_a_gguf_of_a_later_version(self):
        data = GGUF_MODEL.read_bytes()
        self.path("later.gguf").write_bytes(data[:4] + struct.pack("<I", 99) + data[8:])
        self.bad(self.path("later.gguf"), "later.gguf", "99")

    def test_a_gguf_of_another_architecture(self):
        data = GGUF_MODEL.read_bytes()
        self.assertIn(b"llama", data)
        self.path("other.gguf").write_bytes(data.replace(b"llama", b"mamba"))
        self.bad(self.path("other.gguf"), "other.gguf", "mamba", *SUPPORTED)

    # ---- safetensors

    def test_truncated_safetensors(self):
        folder = self.copy(SINGLE, "short")
        path = folder / "model.safetensors"
        data = path.read_bytes()
        for size in (0, 7, 1000, len(data) - 1):
            with self.subTest(size=size):
                path.write_bytes(data[:size])
                self.refuses(1, ["model.safetensors"], "inspect", folder)
        self.bad(folder, "model.safetensors")

    def test_random_safetensors(self):
        folder = self.copy(SINGLE, "noise")
        for seed in range(3):
            (folder / "model.safetensors").write_bytes(random.Random(seed).randbytes(5000))
            self.refuses(1, ["model.safetensors"], "inspect", folder)

    @unittest.skipUnless(HAS_ENGINE, "this build has no engine")
    def test_weights_that_no_memory_has_room_for(self):
        """A sparse file of a terabyte is refused, with its size, before it is read."""
        width, n_layers = 1 << 22, 256
        folder = self.config("huge", intermediate_size=width, num_hidden_layers=n_layers)
        file = folder / "model.safetensors"
        small, _ = read_safetensors(file)
        header, end = {}, 0
        for name, tensor in small.items():
            layer = ".layers.0." in name
            if name == "__metadata__" or (".layers." in name and not layer):
                continue
            shape = [width if "mlp" in name and n == max(tensor["shape"]) else n for n in tensor["shape"]]
            n_bytes = {"BF16": 2, "F16": 2, "F32": 4}[tensor["dtype"]] * math.prod(shape)
            for number in range(n_layers if layer else 1):
                header[name.replace(".layers.0.", f".layers.{number}.")] = {
                    "dtype": tensor["dtype"], "shape": shape, "data_offsets": [end, end + n_bytes]}
                end += n_bytes
        write_safetensors(file, header, b"")
        try:
            with file.open("r+b") as opened:
                opened.truncate(file.stat().st_size + end)
        except OSError as error:
            self.skipTest(f"no file of that size can be made here: {error}")
        arguments = ["run", "-m", folder, "-p", "Hello.", "-n", 2, "-t", 1, "-o", "t.h5"]
        said = self.refuses(1, ["huge: its weights need ", "GiB of memory, but ", "smaller weights"], *arguments)
        self.assertNotIn("weights:", said)  # name of the loading phase
        file.unlink()

    def test_a_missing_shard(self):
        folder = self.copy(HF_MODEL, "shards")
        (folder / "model-00002-of-00003.safetensors").unlink()
        self.bad(folder, "model-00002-of-00003.safetensors")

    def test_a_shard_without_its_tensors(self):
        folder = self.copy(HF_MODEL, "swapped")
        shutil.copy(folder / "model-00001-of-00003.safetensors", folder / "model-00002-of-00003.safetensors")
        self.bad(folder, "model-00002-of-00003.safetensors")

    def test_a_tensor_of_the_wrong_shape(self):
        folder = self.copy(SINGLE, "shape")
        header, body = read_safetensors(folder / "model.safetensors")
        name = "model.layers.1.self_attn.k_proj.weight"
        rows, columns = header[name]["shape"]
        header[name]["shape"] = [rows // 2, columns * 2]
        write_safetensors(folder / "model.safetensors", header, body)
        self.bad(folder, name, rows, columns, rows // 2, columns * 2)

    def test_a_missing_tensor(self):
        folder = self.copy(SINGLE, "missing")
        header, body = read_safetensors(folder / "model.safetensors")
        name = "model.layers.2.mlp.up_proj.weight"
        header["elsewhere"] = header.pop(name)
        write_safetensors(folder / "model.safetensors", header, body)
        self.bad(folder, name)

    # ---- config.json

    def test_a_broken_config(self):
        for name, text in {"truncated": '{"architectures": ["LlamaFor', "a list": "[]", "empty": "", "noise": "\x01\x02{"}.items():
            with self.subTest(name):
                folder = self.copy(SINGLE, "config")
                (folder / "config.json").write_text(text)
                self.refuses(1, ["config.json"], "inspect", folder)

    def test_a_missing_config(self):
        folder = self.copy(SINGLE, "without")
        (folder / "config.json").unlink()
        self.refuses(1, ["config.json"], *self.run_on(folder))

    def run_on(self, model):
        return (["run", "-m", model, "-p", "Hello.", "-o", "t.h5"] if HAS_ENGINE else ["inspect", model])

    def test_fields_that_contradict(self):
        for name, changes in {"num_hidden_layers": {"num_hidden_layers": -1}, "hidden_size": {"hidden_size": "wide"},
                              "num_key_value_heads": {"num_key_value_heads": 2}}.items():
            with self.subTest(name):
                self.refuses(1, ["config.json"], "inspect", self.config("fields", **changes))

    def test_an_unsupported_architecture(self):
        folder = self.config("moe", architectures=["MixtralForCausalLM"], model_type="mixtral")
        self.bad(folder, "config.json", "mixtral", *SUPPORTED)

    def test_an_unsupported_activation(self):
        self.bad(self.config("gelu", hidden_act="gelu"), "gelu", "silu")

    # ---- tokenizer.json

    def test_a_broken_tokenizer(self):
        folder = self.copy(SINGLE, "tokens")
        text = (folder / "tokenizer.json").read_text()
        for name, damaged in {"truncated": text[:len(text) // 2], "empty": "", "a list": "[]",
                              "no model": json.dumps({"version": "1.0"})}.items():
            with self.subTest(name):
                (folder / "tokenizer.json").write_text(damaged)
                self.refuses(1, ["tokenizer.json"], "inspect", folder)
        self.bad(folder, "tokenizer.json")

    def test_a_tokenizer_of_another_kind(self):
        folder = self.copy(SINGLE, "unigram")
        (folder / "tokenizer.json").write_text(json.dumps({"version": "1.0", "model": {"type": "Unigram", "vocab": []}}))
        self.bad(folder, "tokenizer.json", "Unigram")

    def test_a_missing_tokenizer(self):
        folder = self.copy(SINGLE, "mute")
        (folder / "tokenizer.json").unlink()
        self.bad(folder, "tokenizer.json")

    # ---- not a model at all

    def test_a_model_that_is_not_there(self):
        self.bad(self.path("nowhere.gguf"), "nowhere.gguf")

    def test_a_text_for_a_model(self):
        self.path("text.txt").write_text("Dear diary")
        self.refuses(1, ["text.txt"], *self.run_on(self.path("text.txt")))

    def test_what_stands_in_a_models_place(self):
        """hf_directory_test.cpp checks the messages in full."""
        lora = self.copy(SINGLE, "lora")
        for name in ("config.json", "model.safetensors"):
            (lora / name).unlink()
        (lora / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "org/base"}))
        self.bad(lora, "LoRA adapter", "org/base", "merge_and_unload")

        shards = self.copy(HF_MODEL, "no-index")
        (shards / "model.safetensors.index.json").unlink()
        self.bad(shards, "model-00001-of-00003.safetensors", "3 of the shards", "no model.safetensors.index.json")

        variant = self.copy(SINGLE, "variant")
        (variant / "model.safetensors").rename(variant / "model.fp16.safetensors")
        self.bad(variant, "the variant model.fp16.safetensors", "give that file's path")
        self.made("inspect", variant / "model.fp16.safetensors")

        link = self.copy(SINGLE, "link")
        (link / "config.json").unlink()
        (link / "config.json").symlink_to("../blobs/gone")
        self.bad(link, "config.json: is a link to ../blobs/gone, which does not exist")
        self.path("dangling.gguf").symlink_to("gone.gguf")
        self.bad(self.path("dangling.gguf"), "is a link to gone.gguf, which does not exist")

        page = self.copy(SINGLE, "page")
        (page / "model.safetensors").write_text("<!DOCTYPE html><html>Not found</html>")
        self.bad(page, "model.safetensors: is a web page (HTML)", "expected a safetensors file")

    def test_fields_of_the_configuration_that_are_not_computed(self):
        self.bad(self.config("softcap", final_logit_softcapping=30.0), "config.json", "final_logit_softcapping is 30.0")
        folder = self.config("unknown", field_of_tomorrow=1)
        self.assertIn("unknown fields in config.json: field_of_tomorrow\n", self.made("inspect", folder).stdout)
        done = self.run_program("inspect", folder, "--format", "csv")
        self.assertEqual(done.returncode, 0)
        self.assertIn("unknown fields in config.json: field_of_tomorrow", done.stderr)

    def test_pickled_weights(self):
        folder = self.copy(SINGLE, "pickle")
        (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
        self.bad(folder, "pickle", "model.safetensors", "Convert")


if __name__ == "__main__":
    unittest.main()
