#include "app/cli/inspect_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "analysis/tables/table_format.h"
#include "engine/checkpoint/chat_template.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/known_fields.h"
#include "engine/checkpoint/weight_memory.h"
#include "engine/tokenizer/tokenizer.h"

namespace kvscope::cli {
namespace {

bool has_extension_of_model(const std::filesystem::path& file) {
    constexpr std::string_view known[] = {".gguf", ".safetensors", ".bin", ".pt", ".pth"};
    return std::find(std::begin(known), std::end(known), file.extension().string()) != std::end(known);
}

std::string begin_of(const std::filesystem::path& path) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) return {};
    char magic[4] = {};
    std::ifstream(path, std::ios::binary).read(magic, sizeof magic);
    return {magic, sizeof magic};
}

}  // namespace

bool is_model(const std::filesystem::path& path) {
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) return std::filesystem::exists(path / "config.json", error);
    const auto extension = path.extension();
    return extension == ".gguf" || extension == ".safetensors" || begin_of(path) == "GGUF";
}

bool can_inspect_as_model(const std::filesystem::path& path) {
    // A trace may have any extension, so its first bytes decide.
    if (is_model(path) || (has_extension_of_model(path) && begin_of(path) != "\x89HDF")) return true;
    std::error_code error;
    const std::filesystem::directory_iterator files(path, error);
    return std::any_of(begin(files), end(files), [&](const auto& entry) {
        const auto name = entry.path().filename();
        return name == "config.json" || name == "adapter_config.json" || has_extension_of_model(name);
    });
}

namespace {

std::string memory_text(const checkpoint::Checkpoint& checkpoint) {
    std::string text = "weights in memory:";
    for (const auto dtype : {kernels::DType::bf16, kernels::DType::f32}) {
        const auto bytes = checkpoint::count_weight_bytes(checkpoint, dtype);
        text += fmt::format("{} {} in {}", dtype == kernels::DType::bf16 ? "" : ";",
                            analysis::format_bytes(static_cast<double>(bytes.held)), kernels::name_of(dtype));
        if (bytes.largest > 0)
            text += fmt::format(", and up to {} more during a prefill",
                                analysis::format_bytes(static_cast<double>(bytes.largest)));
        if (!bytes.written_out.empty())
            text += fmt::format(" (unpacked: {}, which no kernel reads directly)", fmt::join(bytes.written_out, ", "));
    }
    return text + "\n";
}

/// Returns "sliding window: 4096 in 18 of 36 layers", or an empty text if no layer has a sliding window.
std::string window_text(const checkpoint::ModelConfig& config) {
    const auto& windows = config.sliding_window;
    const auto n = windows.size() - static_cast<size_t>(std::ranges::count(windows, 0));
    if (n == 0) return {};
    return fmt::format("sliding window: {} in {} of {} layers\n", *std::ranges::max_element(windows), n,
                       windows.size());
}

std::string unknown_text(const std::filesystem::path& path) {
    std::string text;
    for (const auto& unknown : checkpoint::unknown_fields(path))
        text += fmt::format("unknown fields in {}: {}\n", one_line(unknown.file.filename().string()),
                            one_line(fmt::format("{}", fmt::join(unknown.names, ", "))));
    return text;
}

}  // namespace

int inspect_model(const std::filesystem::path& path, const OutputFormat& format) {
    const auto checkpoint = checkpoint::open_checkpoint(path);
    const auto tokenizer = checkpoint::open_tokenizer(path);
    const auto chat_template = checkpoint::ChatTemplate::of_model(path);
    const auto& config = checkpoint->config();
    analysis::Table tensors{"tensors",
                            "Tensors",
                            {{"name", "Tensor", ""},
                             {"shape", "Shape", ""},
                             {"type", "Stored as", ""},
                             {"elements", "Elements", "", analysis::ColumnType::integer}},
                            {}};
    int64_t parameters = 0;
    for (const auto& tensor : checkpoint->tensors()) {
        int64_t elements = 1;
        for (const int64_t size : tensor.shape) elements *= size;
        parameters += elements;
        tensors.rows.push_back(
            {{tensor.name, fmt::format("{}", fmt::join(tensor.shape, " × ")), tensor.stored_type, elements}});
    }
    const std::string without_embedding = checkpoint::note_on_missing_embeddings(*tokenizer, config);
    const std::string unknown = unknown_text(path);
    if (format.is_text()) {
        const bool has_other_name = !config.metadata_name.empty() && config.metadata_name != config.name;
        const std::string other_name =
            has_other_name ? fmt::format("name in the metadata: {}\n", one_line(config.metadata_name)) : "";
        print(fmt::format(
            "{}: {} ({}), {} parameters\n{}"
            "{} layers, {} heads, {} KV heads of {}, hidden {}, intermediate {}, vocabulary {}, context {}\n"
            "{}tokenizer: {}; end-of-text ids {}; chat template: {}\n{}{}{}fingerprint {}\n\n",
            one_line(path.string()), one_line(config.name), config.family, parameters, other_name, config.n_layers,
            config.n_heads, config.n_kv_heads, config.head_dim, config.hidden_size, config.intermediate_size,
            config.vocab_size, config.context_length, window_text(config), tokenizer->description(),
            fmt::join(config.eos_ids, " "),
            !chat_template                     ? "none"
            : chat_template->problem().empty() ? "yes"
                                               : chat_template->problem(),
            without_embedding.empty() ? "" : without_embedding + "\n", unknown, memory_text(*checkpoint),
            checkpoint->fingerprint()));
    } else {
        if (!without_embedding.empty()) print_to_stderr(path.string() + ": " + without_embedding);
        if (!unknown.empty()) print_to_stderr(path.string() + ": " + unknown.substr(0, unknown.size() - 1));
    }
    format.print(tensors);
    return 0;
}

}  // namespace kvscope::cli
