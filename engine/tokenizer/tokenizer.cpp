#include "engine/tokenizer/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "common/utf8.h"
#include "engine/tokenizer/tokenizer_gguf.h"
#include "engine/tokenizer/tokenizer_json.h"

namespace kvscope::checkpoint {

size_t Encoding::first_token_from(size_t byte) const {
    return static_cast<size_t>(std::find_if(ends.begin(), ends.end(), [byte](uint32_t end) { return end > byte; }) -
                               ends.begin());
}

Encoding Tokenizer::encode_with_ends(std::string_view utf8, bool add_special, bool parse_special,
                                     const std::stop_token& stop) const {
    if (utf8.size() > std::numeric_limits<uint32_t>::max())
        throw std::invalid_argument(
            fmt::format("a text of {} bytes is too long to tokenize; at most 4 GiB", utf8.size()));
    Encoding encoding;
    encoding.ids = tokenize(utf8, add_special, parse_special, &encoding.ends, stop);
    return encoding;
}

void Tokenizer::require_id(int32_t id) const {
    if (id < 0 || id >= vocab_size())
        throw std::invalid_argument(fmt::format("token id {} is not in the vocabulary of {} tokens", id, vocab_size()));
}

std::vector<uint32_t> Tokenizer::ends_of_characters(std::string_view utf8) {
    std::vector<uint32_t> ends;
    ends.reserve(utf8.size());
    while (ends.size() < utf8.size()) {
        const size_t end = ends.size() + decode_utf8_character(utf8, ends.size()).bytes;
        ends.resize(end, static_cast<uint32_t>(end));
    }
    return ends;
}

std::string Tokenizer::shown(int32_t id, const std::stop_token& stop) const {
    const std::string bytes = piece(id, stop);
    std::string out;
    for (size_t at = 0; at < bytes.size();) {
        const Utf8Character step = decode_utf8_character(bytes, at);
        const char32_t c = step.code;
        const bool control = (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || (c >= 0x7F && c < 0xA0);
        if (step.is_valid && !control) {
            out.append(bytes, at, step.bytes);
        } else {
            for (size_t i = 0; i < step.bytes; ++i) out += fmt::format("⟨{:02X}⟩", static_cast<uint8_t>(bytes[at + i]));
        }
        at += step.bytes;
    }
    return out;
}

std::unique_ptr<Tokenizer> open_tokenizer(const std::filesystem::path& model, const std::stop_token& stop) {
    namespace fs = std::filesystem;
    std::error_code error;
    const fs::file_status status = fs::status(model, error);
    if (!fs::exists(status)) throw CheckpointError(model.string() + " does not exist");

    fs::path directory = model;
    if (!fs::is_directory(status)) {
        const bool in_directory = model.extension() == ".safetensors" || model.filename() == "tokenizer.json";
        if (!in_directory) return open_gguf_tokenizer(model);
        directory = model.parent_path();
    }
    if (fs::exists(directory / "tokenizer.json")) return open_json_tokenizer(directory, stop);
    if (fs::exists(directory / "tokenizer.model")) {
        throw CheckpointError(directory,
                              "has a SentencePiece tokenizer.model but no tokenizer.json; make one with transformers: "
                              "AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)");
    }
    throw CheckpointError(directory, "has no tokenizer.json");
}

}  // namespace kvscope::checkpoint
