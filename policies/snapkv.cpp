#include "policies/interface/snapkv_family.h"

namespace kvscope::policies {

Definition snapkv_definition() {
    return {
        .name = "snapkv",
        .title = "SnapKV",
        .paper =
            "Li et al., SnapKV: LLM Knows What You are Looking for Before Generation, NeurIPS 2024, "
            "arXiv:2404.14469",
        .summary =
            "Keeps the window's entries and, for each head, the prefix entries to which the window's queries attend "
            "most. Scores are pooled along the prompt.",
        .parameters = snapkv_family_parameters(),
        .create = [](const ParameterValues& values) -> std::unique_ptr<Policy> {
            return std::make_unique<SnapKvFamily>(values);
        },
    };
}

}  // namespace kvscope::policies
