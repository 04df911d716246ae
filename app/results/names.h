#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "policies/api/budget.h"
#include "policies/registry/registry.h"

namespace kvscope::results {

/// Returns "f32", "bf16" or "f16" for a name in PyTorch, such as "torch.bfloat16"; "" for others.
[[nodiscard]] std::string short_dtype(std::string_view name);
/// Returns PyTorch's name of "f32", "bf16" or "f16"; "auto" for others.
[[nodiscard]] std::string name_of_dtype_in_pytorch(std::string_view dtype);

/// A run of kvscope in the files of other programs.
struct OwnRun {
    policies::PolicySpec policy;
    std::optional<policies::Budget> budget;  ///< nullopt for `full`
};

/// Returns a text such as "kvscope: snapkv:window=8 @ 64". @param budget empty for `full`
[[nodiscard]] std::string text_of_own_run(const std::string& setting, const std::string& budget);
/// Returns nullopt for texts that this version cannot read.
[[nodiscard]] std::optional<OwnRun> own_run_of_text(std::string_view text);

/// Returns a press's Python expression without its compression ratio, "SnapKVPress(window_size=64)".
[[nodiscard]] std::string without_compression_ratio(std::string_view press);

/// Returns lm-eval's name of a part of a task: "ruler_vt" for "ruler" and "vt".
[[nodiscard]] std::string lm_eval_task(const std::string& task, const std::string& subset);
/// Returns task and subset of lm-eval's tasks of RULER and LongBench; the name and "" for others.
[[nodiscard]] std::pair<std::string, std::string> task_and_subset(const std::string& lm_eval_task);

}  // namespace kvscope::results
