#include "engine/classifier/encoder.h"

#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/common/engine_error.h"
#include "engine/device/tensor_functions.h"
#include "engine/files/safetensors.h"
#include "engine/model/product.h"

namespace kvscope::engine {
namespace {

using checkpoint::CheckpointError;

std::string text_of(std::span<const int64_t> shape) {
    std::string text = "(";
    for (const int64_t extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
    return text + ")";
}

std::filesystem::path weights_file(const std::filesystem::path& directory) {
    auto file = directory / "model.safetensors";
    if (std::filesystem::exists(file)) return file;
    if (std::filesystem::exists(directory / "pytorch_model.bin"))
        throw CheckpointError(
            directory,
            "has no model.safetensors, only PyTorch's pickled weights, which can run code when they are read. Convert "
            "them: python -c \"from transformers import AutoModelForTokenClassification as M; M.from_pretrained('" +
                directory.string() + "').save_pretrained('NEW-FOLDER')\", and copy the tokenizer's files");
    throw CheckpointError(directory,
                          "has no model.safetensors; download it together with config.json and tokenizer.json");
}

}  // namespace

class Encoder::Loader {
 public:
    explicit Loader(const std::filesystem::path& directory) : file_(weights_file(directory)) {}

    at::Tensor tensor(const std::string& name, std::initializer_list<int64_t> shape) const {
        const auto found = file_.entries().find(name);
        if (found == file_.entries().end())
            throw CheckpointError(file_.path(), "has no tensor " + name + " " + text_of(shape) +
                                                    ", which config.json requires; download the file again");
        const auto& entry = found->second;
        if (!std::equal(entry.shape.begin(), entry.shape.end(), shape.begin(), shape.end()))
            throw CheckpointError(file_.path(), "tensor " + name + " has the shape " + text_of(entry.shape) +
                                                    ", but config.json requires " + text_of(shape) +
                                                    "; the two files do not belong together");
        at::Tensor values = at::empty(shape, at::kFloat);
        file_.read_f32(entry, std::span<float>(values.data_ptr<float>(), static_cast<size_t>(values.numel())));
        return values;
    }

    Linear linear(const std::string& name, int64_t out, int64_t in) const {
        return {tensor(name + ".weight", {out, in}), tensor(name + ".bias", {out})};
    }

    Norm norm(const std::string& name, int64_t size) const {
        return {tensor(name + ".weight", {size}), tensor(name + ".bias", {size})};
    }

 private:
    checkpoint::SafetensorsFile file_;
};

Encoder::Encoder(const std::filesystem::path& directory, checkpoint::ClassifierConfig config, Progress& progress)
    : config_(std::move(config)) {
    const Loader loader(directory);
    const int64_t hidden = config_.hidden_size, inner = config_.intermediate_size;
    const std::string embeddings = config_.prefix + "embeddings.";
    progress.begin("load classifier", config_.n_layers + 1, "parts");
    words_ = loader.tensor(embeddings + "word_embeddings.weight", {config_.vocab_size, hidden});
    positions_ = loader.tensor(embeddings + "position_embeddings.weight", {config_.n_positions, hidden});
    types_ = loader.tensor(embeddings + "token_type_embeddings.weight", {config_.type_vocab_size, hidden});
    norm_ = loader.norm(embeddings + "LayerNorm", hidden);
    classifier_ = loader.linear("classifier", checkpoint::ClassifierConfig::n_labels, hidden);
    for (int i = 0; i < config_.n_layers; ++i) {
        progress.advance(i + 1);
        progress.throw_if_stopped();
        const std::string layer = config_.prefix + "encoder.layer." + std::to_string(i) + ".";
        const std::string attention = layer + "attention.";
        layers_.push_back({.query = loader.linear(attention + "self.query", hidden, hidden),
                           .key = loader.linear(attention + "self.key", hidden, hidden),
                           .value = loader.linear(attention + "self.value", hidden, hidden),
                           .output = loader.linear(attention + "output.dense", hidden, hidden),
                           .attention_norm = loader.norm(attention + "output.LayerNorm", hidden),
                           .up = loader.linear(layer + "intermediate.dense", inner, hidden),
                           .down = loader.linear(layer + "output.dense", hidden, inner),
                           .norm = loader.norm(layer + "output.LayerNorm", hidden)});
    }
    progress.advance(config_.n_layers + 1);
}

at::Tensor Encoder::normalised(const at::Tensor& x, const Norm& norm) const {
    return at::layer_norm(x, {config_.hidden_size}, norm.weight, norm.bias, config_.layer_norm_eps);
}

at::Tensor Encoder::attend(const Layer& layer, const at::Tensor& x) const {
    const int64_t n = x.size(0), d = config_.hidden_size / config_.n_heads;
    const at::Tensor queries = product(x, layer.query.weight, layer.query.bias);
    const at::Tensor keys = product(x, layer.key.weight, layer.key.bias);
    const at::Tensor values = product(x, layer.value.weight, layer.value.bias);
    at::Tensor mixed = at::empty({n, config_.hidden_size}, at::kFloat);
    for (int64_t head = 0; head < config_.n_heads; ++head) {
        const auto of_head = [&](const at::Tensor& all) { return all.narrow(1, head * d, d); };
        const at::Tensor scores = product(of_head(queries).contiguous(), of_head(keys).contiguous());
        const at::Tensor weights = at::softmax(scores / std::sqrt(static_cast<double>(d)), -1);
        of_head(mixed).copy_(product(weights, of_head(values).t().contiguous()));
    }
    return product(mixed, layer.output.weight, layer.output.bias);
}

at::Tensor Encoder::logits(std::span<const int32_t> ids) const {
    const auto n = static_cast<int64_t>(ids.size());
    if (n > config_.context_length())
        throw std::logic_error("a token classifier reads at most " + std::to_string(config_.context_length()) +
                               " tokens per pass, found " + std::to_string(n));
    at::Tensor index = at::empty({n}, at::kLong);
    std::copy(ids.begin(), ids.end(), index.data_ptr<int64_t>());
    at::Tensor x = words_.index_select(0, index) + positions_.narrow(0, config_.first_position, n) + types_[0];
    x = normalised(x, norm_);
    for (const Layer& layer : layers_) {
        x = normalised(x + attend(layer, x), layer.attention_norm);
        const at::Tensor inner = at::gelu(product(x, layer.up.weight, layer.up.bias));
        x = normalised(x + product(inner, layer.down.weight, layer.down.bias), layer.norm);
    }
    return product(x, classifier_.weight, classifier_.bias);
}

}  // namespace kvscope::engine
