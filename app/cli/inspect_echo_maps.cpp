#include "app/cli/inspect_echo_maps.h"

#include <fmt/format.h>

#include "policies/methods/echo_maps.h"

namespace kvscope::cli {

bool is_echo_maps_file(const std::filesystem::path& path) {
    return path.extension() == ".safetensors" && policies::holds_echo_maps(path.string());
}

int inspect_echo_maps(const std::filesystem::path& path, const OutputFormat& format) {
    const policies::EchoMaps maps = policies::read_echo_maps(path.string());
    const policies::EchoLayout& layout = maps.layout;
    if (format.is_text())
        print(
            fmt::format("{}: EchoKV maps for {} layers with {} KV heads of size {}, model fingerprint {}\ngroups of {} "
                        "layers; a group's first layer stores all numbers, the other layers {} of {}; the cache needs "
                        "{:.1f} % of the full cache's bytes, plus the bytes of tokens that stay exact\n\n",
                        one_line(path.string()), layout.n_layers, layout.n_kv_heads, layout.head_dim,
                        maps.model_fingerprint.substr(0, 16), layout.group, layout.local, layout.width(),
                        100.0 * layout.model_ratio()));
    analysis::Table facts{"maps", "Maps", {{"fact", "Fact", ""}, {"value", "Value", ""}}, {}};
    for (const auto& [name, value] : maps.facts) facts.rows.push_back({{name, one_line(value)}});
    format.print(facts);
    return 0;
}

}  // namespace kvscope::cli
