#include "app/cli/inspect_model.h"

#include <fmt/format.h>

#include <fstream>

#include "analysis/tables/table_format.h"
#include "engine/checkpoint/chat_template.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/held_weights.h"
#include "engine/tokenizer/tokenizer.h"

namespace kvscope::cli {
bool is_model(const std::filesystem::path& path) {
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) return std::filesystem::exists(path / "config.json", error);
    const auto extension = path.extension();
    if (extension == ".gguf" || extension == ".safetensors") return true;
    if (!std::filesystem::is_regular_file(path, error)) return false;
    char magic[4] = {};
    std::ifstream(path, std::ios::binary).read(magic, sizeof magic);
    return std::string_view(magic, sizeof magic) == "GGUF";
}

namespace {

/// What the weights take in memory, and what the prefill needs beside them.
std::string memory_text(const checkpoint::Checkpoint& checkpoint) {
    std::string text = "weights in memory:";
    for (const auto dtype : {kernels::DType::bf16, kernels::DType::f32}) {
        const auto bytes = checkpoint::weight_bytes(checkpoint, dtype);
        text += fmt::format("{} {} in {}", dtype == kernels::DType::bf16 ? "" : ";",
                            analysis::format_bytes(static_cast<double>(bytes.held)), kernels::name_of(dtype));
        if (bytes.largest > 0)
            text += fmt::format(", and up to {} more while many tokens are read at once",
                                analysis::format_bytes(static_cast<double>(bytes.largest)));
        if (!bytes.written_out.empty())
            text +=
                fmt::format(" (as numbers: {}, which no kernel reads as it is)", fmt::join(bytes.written_out, ", "));
    }
    return text + "\n";
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
    const std::string without_embedding = checkpoint::tokens_without_embedding(*tokenizer, config);
    if (format.is_text()) {
        const bool has_other_name = !config.metadata_name.empty() && config.metadata_name != config.name;
        const std::string other_name =
            has_other_name ? fmt::format("name in the metadata: {}\n", one_line(config.metadata_name)) : "";
        print(fmt::format(
            "{}: {} ({}), {} parameters\n{}"
            "{} layers, {} heads, {} KV heads of {}, hidden {}, intermediate {}, vocabulary {}, context {}\n"
            "tokenizer: {}; end-of-text ids {}; chat template: {}\n{}{}fingerprint {}\n\n",
            one_line(path.string()), one_line(config.name), config.family, parameters, other_name, config.n_layers,
            config.n_heads, config.n_kv_heads, config.head_dim, config.hidden_size, config.intermediate_size,
            config.vocab_size, config.context_length, tokenizer->description(), fmt::join(config.eos_ids, " "),
            chat_template ? "yes" : "none", without_embedding.empty() ? "" : without_embedding + "\n",
            memory_text(*checkpoint), checkpoint->fingerprint()));
    } else if (!without_embedding.empty()) {
        complain(path.string() + ": " + without_embedding);
    }
    format.print(tensors);
    return 0;
}

}  // namespace kvscope::cli
