"""Compares a trace from kvscope (float32) with the references in tests/data, run by run.

    compare_trace.py TRACE.h5 demo|short|rewrite

The trace must contain that prompt's text as one prompt without --question. Runs are matched by policy and budget. Prints
each comparison and its largest difference. The exit code is 1 if a kept set differs beyond near ties.
"""

import json
import sys

import h5py
import numpy as np

import vlq
from policies import parse
from reference_model import DATA, load_prompts


def load(name):
    path = DATA / name
    return json.loads(path.read_text()) if path.exists() else {}


def canonical(policy):
    name, parameters = parse(policy)
    return name, {k: v for k, v in parameters.items() if v is not None}


def same_policy(text, attrs):
    """Whether every parameter of the reference has the same value in the trace."""
    name, parameters = canonical(text)
    if attrs["policy"] != name:
        return False
    theirs = json.loads(attrs["parameters_json"])

    def equal(a, b):
        if isinstance(b, bool):
            b = "on" if b else "off"
        return abs(float(a) - float(b)) < 1e-9 if isinstance(a, (int, float)) and isinstance(b, (int, float)) else str(a) == str(b)

    recent_given = "recent" in text
    for key, value in theirs.items():
        if key == "recent" and name == "h2o" and not recent_given:
            if value not in (None, "", -1, 0, "auto", "half") and value != attrs["budget"] // 2:
                return False
        elif key in parameters and not equal(parameters[key], value):
            return False
    return True


def relative(ours, theirs):
    ours, theirs = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    return float(np.max(np.abs(ours - theirs) / np.maximum(np.abs(theirs), 1e-12)))


def compare_kept(prompt, name):
    reference = load(f"policies_reference/{name}.json")
    wrong_in_all = 0
    for case in reference.get("cases", []):
        runs = [r for r in prompt["runs"].values() if r.attrs["budget"] == case["budget"] and same_policy(case["policy"], r.attrs)]
        if not runs:
            continue
        offsets, indices = runs[0]["kept_offsets"][:], runs[0]["kept_indices"][:]
        rows = [vlq.decode(row) for layer in case["kept"] for row in layer.split(" ")]
        per_layer = len(rows) // reference["n_layers"]
        wrong = excused = 0
        for i, row in enumerate(rows):
            different = np.setxor1d(row, indices[int(offsets[i]) : int(offsets[i + 1])])
            near = vlq.decode(case["near"].get(f"{i // per_layer}.{i % per_layer}", ""))
            excused += len(np.intersect1d(different, near))
            wrong += len(np.setdiff1d(different, near))
        wrong_in_all += wrong
        print(f"kept {case['policy']} @ {case['budget']}: {wrong} differ, {excused} near ties, of {sum(map(len, rows))}")
        if "head_jsd" in case and "head_jsd" in runs[0]:
            matrix = runs[0]["head_jsd"][:]
            upper = np.triu_indices(matrix.shape[1], 1)
            print(f"  head_jsd: largest relative difference {relative(matrix[:, upper[0], upper[1]], case['head_jsd']):.1e}")
    return wrong_in_all


def compare_full(prompt, name):
    reference = load("engine/full_measures.json")["prompts"].get(name)
    if reference is None or "full" not in prompt:
        return
    full = prompt["full"]
    attention = full["window_attention"][:].astype(np.float64)
    places = np.arange(attention.shape[2])
    print("full/window_attention: squares", f"{relative((attention**2).sum(2), reference['window_attention_square_sum']):.1e}",
          "centre", f"{relative((attention * places).sum(2), reference['window_attention_centre']):.1e}",
          "samples", f"{max(abs(attention[l, h, j] - v) / max(v, 1e-12) for l, h, j, v in reference['window_attention_samples']):.1e}")
    similarity = full["query_similarity"][:].astype(np.float64)
    w = similarity.shape[2]
    diagonal = np.trace(similarity, axis1=2, axis2=3)
    print("full/query_similarity: mean", f"{relative((similarity.sum((2, 3)) - diagonal) / (w * (w - 1)), reference['query_similarity_mean']):.1e}")
    jsd = full["head_jsd"][:]
    upper = np.triu_indices(jsd.shape[1], 1)
    print("full/head_jsd:", f"{relative(jsd[:, upper[0], upper[1]], reference['head_jsd']):.1e}")
    for which in "qkv":
        print(f"full/adjacent_similarity/{which}:",
              f"{relative(full['adjacent_similarity'][which][:], reference['adjacent_similarity'][which]):.1e}")
    if "mode_contribution" not in full:
        return
    for which in "qkv":
        modes = full["mode_contribution"][which][:].astype(np.float64)
        samples = reference["mode_contribution"][which]
        print(f"full/mode_contribution/{which}: squares",
              f"{relative((modes**2).sum(2), reference['mode_contribution_square_sum'][which]):.1e}",
              "samples, absolute", f"{max(np.abs(modes[l, h] - v).max() for l, h, v in samples):.1e}")
    for kind in ("layer_similarity", "head_similarity"):
        for which in "kv":
            matrices = full[kind][which][:]
            upper = np.triu_indices(matrices.shape[-1], 1)
            print(f"full/{kind}/{which}: absolute",
                  f"{np.abs(matrices[..., upper[0], upper[1]] - np.array(reference[kind][which])).max():.1e}")
    for which, expected in reference.get("gradient_alignment", {}).items():
        if "gradient_alignment" in full:
            print(f"full/gradient_alignment/{which}: absolute",
                  f"{np.abs(full['gradient_alignment'][which][:] - np.array(expected)).max():.1e}")


def compare_runs(prompt, name):
    reference = load("engine/runs.json")["prompts"].get(name)
    if reference is None:
        return
    full = next(r for r in prompt["runs"].values() if r.attrs["policy"] == "full")
    print("full run's tokens equal:", full["output_ids"][:].tolist() == reference["full"]["output_ids"])
    for case in reference["cases"]:
        for run in prompt["runs"].values():
            if run.attrs["budget"] != case["budget"] or not same_policy(case["policy"], run.attrs):
                continue
            print(f"run {case['policy']} @ {case['budget']}: tokens equal", run["output_ids"][:].tolist() == case["output_ids"])
            if "step_kl" in run:
                kl = np.asarray(case["step_kl"])
                if len(run["step_kl"]) == len(kl):
                    print("  step_kl: largest difference", f"{np.max(np.abs(run['step_kl'][:] - kl)):.1e}",
                          "agreement equal", run["step_agreement"][:].tolist() == case["step_agreement"])
                else:
                    print("  step_kl: length", len(run["step_kl"]), "instead of", len(kl))
            for key in ("attention_kept", "output_error"):
                if key in run and key in case:
                    print(f"  {key}: largest relative difference {relative(run[key][:], case[key]):.1e}")


def compare_model(file):
    reference = load("engine/full_measures.json")["model"]
    for which in "qkv":
        if f"model/spectrum/{which}" in file:
            values = file[f"model/spectrum/{which}"][:]
            print(f"model/spectrum/{which}: {relative(values[:, :8], reference['spectrum'][which]):.1e}",
                  f"trace {relative(values.sum(1), reference['spectrum_trace'][which]):.1e}")


def main():
    path, name = sys.argv[1:]
    with h5py.File(path, "r") as file:
        prompt = file["prompts/0"]
        if prompt["token_ids"][:].tolist() != load_prompts()[name]["ids"]:
            raise SystemExit(f"{path}: the prompt's token ids differ from those of {name}")
        print("token ids equal:", len(prompt["token_ids"]))
        default = load("engine/default_model.json")["prompts"][name]
        if "full/last_logits" in prompt:
            logits = prompt["full/last_logits"][:]
            exact = np.array(default["last_logits_exact"])
            best = [i for i, _ in default["last_logits_top"]]
            print(f"full/last_logits: largest difference to float64 {np.max(np.abs(logits[best] - exact)):.1e}")
        compare_full(prompt, name)
        compare_runs(prompt, name)
        compare_model(file)
        wrong = compare_kept(prompt, name)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
