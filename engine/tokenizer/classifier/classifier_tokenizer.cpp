#include "engine/tokenizer/classifier/classifier_tokenizer.h"

#include <fmt/format.h>

#include <limits>
#include <stdexcept>

#include "common/utf8.h"
#include "engine/files/json_text.h"

namespace kvscope::checkpoint {

ClassifierTokenizer::ClassifierTokenizer(const std::filesystem::path& directory) : file_(directory / "tokenizer.json") {
    if (!std::filesystem::exists(file_))
        throw CheckpointError(directory,
                              "has no tokenizer.json; make one with transformers: "
                              "AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)");
    const nlohmann::json json = read_json_object(file_);
    with_file_in_errors(file_, [&] { read(JsonNode(json, "")); });
}

void ClassifierTokenizer::read(const JsonNode& root) {
    const JsonNode model = root.at("model");
    const std::string& type = model.at("type").text();
    if (type == "WordPiece") {
        model_ = make_word_piece(model);
    } else if (type == "Unigram") {
        model_ = make_unigram(model);
    } else {
        model.fail(fmt::format(
            "the tokenizer \"{}\" is not supported for a token classifier; supported are WordPiece and Unigram", type));
    }
    if (const auto node = root.find("normalizer")) normalizer_ = make_aligned_normalizer(*node);
    if (const auto node = root.find("pre_tokenizer")) pre_tokenizer_ = make_aligned_pre_tokenizer(*node);
    const JsonNode post_processor = root.at("post_processor");
    read_post_processor(post_processor, surrounding_);
    for (const auto* ids : {&surrounding_.before, &surrounding_.after}) {
        for (const int32_t id : *ids) {
            if (id >= vocab_size())
                post_processor.fail(fmt::format("token id {} is not in the vocabulary of {} tokens", id, vocab_size()));
        }
    }
    const auto added = root.find("added_tokens");
    for (size_t i = 0; added && i < added->size(); ++i) {
        const JsonNode token = (*added)[i];
        if (!token.boolean_or("special", false))
            token.fail("an added token that is not special is not supported for a token classifier");
    }
}

std::vector<TextToken> ClassifierTokenizer::encode(std::string_view utf8, const std::stop_token& stop) const {
    require_utf8(utf8);
    if (utf8.size() > std::numeric_limits<uint32_t>::max())
        throw std::invalid_argument(fmt::format("a text of {} bytes is too long for a token classifier", utf8.size()));
    TokenizerLimits limits(file_, utf8.size(), stop);
    AlignedText text = make_aligned_text(utf8);
    if (normalizer_) text = normalizer_(text, limits);
    std::vector<AlignedText> words;
    if (pre_tokenizer_) {
        pre_tokenizer_(text, words, limits);
    } else if (!text.empty()) {
        words.push_back(std::move(text));
    }
    std::vector<TextToken> tokens;
    for (const AlignedText& word : words) model_->encode(word, tokens, limits);
    return tokens;
}

}  // namespace kvscope::checkpoint
