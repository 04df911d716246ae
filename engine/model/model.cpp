#include "engine/model/model.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "engine/checkpoint/weight_memory.h"
#include "engine/common/engine_error.h"
#include "engine/common/memory.h"
#include "engine/model/device_selection.h"

namespace kvscope::engine {

namespace {

/// Reports tensors that are converted because no kernel reads their type. @throws RunError for too little memory
void require_memory(const checkpoint::Checkpoint& checkpoint, kernels::DType dtype, Progress& progress) {
    const checkpoint::WeightBytes bytes = checkpoint::count_weight_bytes(checkpoint, dtype);
    if (!bytes.written_out.empty())
        progress.message(fmt::format("{}: tensors of type {} are converted to {}, because no kernel reads that type",
                                     checkpoint.path().string(), fmt::join(bytes.written_out, ", "),
                                     kernels::name_of(dtype)));
    require_available_memory(static_cast<uint64_t>(bytes.held + bytes.largest),
                             fmt::format("{}: its weights need", checkpoint.path().string()),
                             "use a file with smaller weights (Q8_0, Q4_K_M)");
}

void put_on(const ComputeDevice& device, const std::filesystem::path& path, Transformer& transformer) {
    try {
        transformer = transformer.on(device);
    } catch (const c10::Error& error) {
        throw RunError(fmt::format("{} cannot be copied to {}: {}", path.string(), device.backend->name(),
                                   error.what_without_backtrace()));
    }
}

}  // namespace

Model Model::open(const std::filesystem::path& path, kernels::DType dtype, Progress& progress,
                  const ComputeDevice& device, const std::function<void(const Model&)>& before_weights) {
    Model model;
    model.dtype_ = dtype;
    model.device_ = device;
    model.checkpoint_ = checkpoint::open_checkpoint(path);
    model.tokenizer_ = checkpoint::open_tokenizer(path, progress.stop_token());
    model.chat_template_ = checkpoint::ChatTemplate::of_model(path, progress.stop_token());
    const auto& config = model.checkpoint_->config();
    if (const auto without = checkpoint::note_on_missing_embeddings(*model.tokenizer_, config); !without.empty())
        progress.message(path.string() + ": " + without);
    require_memory(*model.checkpoint_, dtype, progress);
    model.end_ids_ = config.eos_ids;
    for (const int32_t id : model.tokenizer_->end_of_generation()) model.end_ids_.push_back(id);
    std::sort(model.end_ids_.begin(), model.end_ids_.end());
    model.end_ids_.erase(std::unique(model.end_ids_.begin(), model.end_ids_.end()), model.end_ids_.end());
    progress.begin("fingerprint", 1, "models");  // the fingerprint reads all files
    if (before_weights) before_weights(model);
    model.fingerprint();
    progress.advance(1);
    model.transformer_ =
        std::make_unique<Transformer>(config, load_weights(*model.checkpoint_, dtype, progress), dtype);
    if (device.backend != model.transformer_->device().backend) put_on(device, path, *model.transformer_);
    return model;
}

const std::string& Model::fingerprint() const {
    if (fingerprint_.empty()) fingerprint_ = checkpoint_->fingerprint();
    return fingerprint_;
}

std::string Model::answer_text(std::span<const int32_t> ids, const std::stop_token& stop) const {
    std::vector<int32_t> shown;
    for (const int32_t id : ids) {
        const bool ends = std::binary_search(end_ids_.begin(), end_ids_.end(), id);
        // Larger ids only pad the model's vocabulary and have no text.
        if (!ends && id < tokenizer_->vocab_size()) shown.push_back(id);
    }
    return tokenizer_->decode(shown, false, stop);
}

trace::ModelAttributes model_attributes(const checkpoint::ModelConfig& config, const std::string& fingerprint) {
    trace::ModelAttributes attributes;
    attributes.name = config.name;
    attributes.family = config.family;
    attributes.fingerprint = fingerprint;
    attributes.n_layers = config.n_layers;
    attributes.n_heads = config.n_heads;
    attributes.n_kv_heads = config.n_kv_heads;
    attributes.head_dim = config.head_dim;
    attributes.hidden_size = config.hidden_size;
    attributes.vocab_size = config.vocab_size;
    attributes.rope_theta = config.rope_theta;
    attributes.config_json = config.config_json;
    return attributes;
}

trace::ModelAttributes Model::attributes() const {
    trace::ModelAttributes attributes = model_attributes(checkpoint_->config(), fingerprint());
    attributes.dtype = kernels::name_of(dtype_);
    return attributes;
}

}  // namespace kvscope::engine
