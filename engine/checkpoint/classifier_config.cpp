#include "engine/checkpoint/classifier_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/files/json_fields.h"

namespace kvscope::checkpoint {
namespace {

// Longest window that LLMLingua-2 reads. Its encoders were trained with this length.
constexpr int64_t longest_window = 512;
// No real encoder is larger. The limit bounds the memory for damaged fields.
constexpr int64_t largest_extent = int64_t{1} << 24;

int64_t extent(const JsonFields& config, const char* name) {
    const int64_t value = config.required_integer(name);
    if (value < 1 || value > largest_extent)
        config.fail(fmt::format("{} is {}, expected a number from 1 to {}", name, value, largest_extent));
    return value;
}

int64_t n_labels(const JsonFields& config) {
    if (const auto labels = config.object("id2label")) {
        int64_t n = 0;
        while (labels->has(std::to_string(n).c_str())) ++n;
        return n;
    }
    return config.integer("num_labels").value_or(ClassifierConfig::n_labels);
}

void require_text(const JsonFields& config, const char* name, const char* expected) {
    const auto found = config.text(name).value_or(expected);
    if (found != expected)
        config.fail(fmt::format("{} is \"{}\", expected \"{}\"; {}", name, found, expected, supported_classifiers()));
}

}  // namespace

int64_t ClassifierConfig::context_length() const { return std::min(longest_window, n_positions - first_position); }

std::string supported_classifiers() {
    return "supported are BertForTokenClassification and XLMRobertaForTokenClassification with 2 labels, such as "
           "microsoft/llmlingua-2-bert-base-multilingual-cased-meetingbank and "
           "microsoft/llmlingua-2-xlm-roberta-large-meetingbank";
}

ClassifierConfig read_classifier_config(const std::filesystem::path& directory) {
    const auto file = directory / "config.json";
    if (!std::filesystem::is_directory(directory))
        throw CheckpointError(directory,
                              "is not a folder; expected a token classifier's Hugging Face directory with config.json, "
                              "model.safetensors and tokenizer.json");
    const auto json = JsonFields::parse_file(file);
    const JsonFields fields(json, file);
    const auto architectures = fields.texts("architectures");
    if (!architectures || architectures->empty()) fields.fail("has no architectures; " + supported_classifiers());
    ClassifierConfig config;
    config.architecture = architectures->front();
    const bool is_bert = config.architecture == "BertForTokenClassification";
    if (!is_bert && config.architecture != "XLMRobertaForTokenClassification")
        fields.fail("describes a " + config.architecture + "; " + supported_classifiers());
    config.prefix = is_bert ? "bert." : "roberta.";
    require_text(fields, "model_type", is_bert ? "bert" : "xlm-roberta");
    require_text(fields, "hidden_act", "gelu");
    require_text(fields, "position_embedding_type", "absolute");
    if (fields.has("quantization_config"))
        fields.fail("has quantized weights, expected F32, F16 or BF16; " + supported_classifiers());
    if (const int64_t n = n_labels(fields); n != ClassifierConfig::n_labels)
        fields.fail(fmt::format("has {} labels, expected 2 (drop, keep); {}", n, supported_classifiers()));
    config.n_layers = static_cast<int>(extent(fields, "num_hidden_layers"));
    config.n_heads = static_cast<int>(extent(fields, "num_attention_heads"));
    config.hidden_size = extent(fields, "hidden_size");
    config.intermediate_size = extent(fields, "intermediate_size");
    config.vocab_size = extent(fields, "vocab_size");
    config.n_positions = extent(fields, "max_position_embeddings");
    config.type_vocab_size = extent(fields, "type_vocab_size");
    config.layer_norm_eps = fields.number("layer_norm_eps").value_or(1e-12);
    if (!is_bert) config.first_position = fields.integer("pad_token_id").value_or(1) + 1;
    if (config.hidden_size % config.n_heads != 0)
        fields.fail(fmt::format("hidden_size {} is not a multiple of num_attention_heads {}", config.hidden_size,
                                config.n_heads));
    if (config.first_position < 0 || config.context_length() < 3)
        fields.fail(fmt::format("max_position_embeddings {} leaves no positions for text after pad_token_id {}",
                                config.n_positions, config.first_position - 1));
    return config;
}

}  // namespace kvscope::checkpoint
