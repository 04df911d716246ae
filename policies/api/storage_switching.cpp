#include "policies/api/storage_switching.h"

#include <algorithm>
#include <charconv>

#include "policies/api/policy_errors.h"

namespace kvscope::policies {

bool StorageSwitching::is_full_at(int64_t step) const {
    const auto before = std::upper_bound(steps.begin(), steps.end(), step) - steps.begin();
    return begins_full == (before % 2 == 0);
}

void StorageSwitching::change_at(int64_t step) {
    steps.erase(std::lower_bound(steps.begin(), steps.end(), step), steps.end());
    steps.push_back(step);
}

StorageSwitching StorageSwitching::until(int64_t n_steps) const {
    return {begins_full, {steps.begin(), std::lower_bound(steps.begin(), steps.end(), n_steps)}};
}

std::vector<Parameter> storage_switching_parameters() {
    Parameter switches = text_parameter(
        "switches", "",
        "Decode steps after which the cache changes between compressed and full, counted from 0 and separated by /, "
        "such as 16/40. A full cache has whole keys and values, which are rebuilt from the compressed cache.");
    switches.check_text = [](const std::string& text) { parse_storage_switching("compressed", text); };
    return {choice_parameter("form", {"compressed", "full"}, "compressed",
                             "Form of the cache at the end of the prompt. `switches` changes it during decoding."),
            switches};
}

StorageSwitching parse_storage_switching(std::string_view form, const std::string& text) {
    StorageSwitching switching{.begins_full = form == "full"};
    for (const char* next = text.data(); next < text.data() + text.size();) {
        int64_t step = -1;
        const auto [end, error] = std::from_chars(next, text.data() + text.size(), step);
        const bool ends = end == text.data() + text.size();
        const bool rises = switching.steps.empty() || step > switching.steps.back();
        if (error != std::errc() || step < 0 || !rises || (!ends && *end != '/') ||
            (!ends && end + 1 == text.data() + text.size()))
            throw ParameterError("switches=" + text + ": expected ascending steps separated by /, such as 16/40");
        switching.steps.push_back(step);
        next = ends ? end : end + 1;
    }
    return switching;
}

}  // namespace kvscope::policies
