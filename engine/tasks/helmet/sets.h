#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kvscope::engine::helmet {

enum class Kind {
    documents,  ///< questions about documents, with demonstrations
    ranking,    ///< documents to rank, with demonstrations
    json,       ///< a key of a JSON object, with demonstrations in the record
    ruler,      ///< RULER's prompts, as records of their parts
};

/// One of HELMET's sets whose scores need no judge. The prompt consists of the three formats; fields have the names of
/// data.py.
struct Set {
    std::string_view name;  ///< as in HELMET's configurations
    std::string_view mark;  ///< name of the file's folder, or beginning of the file's name
    Kind kind;
    int64_t n_new;                  ///< largest number of answer tokens
    std::string_view instruction;   ///< before the field {context}
    std::string_view question;      ///< after the field {context}
    std::string_view answer_begin;  ///< end of the prompt; also counts as part of the prediction

    [[nodiscard]] bool needs_demonstrations() const { return kind == Kind::documents || kind == Kind::ranking; }
    /// Whether answers are compared as texts, by any of text_metrics().
    [[nodiscard]] bool has_text_metric() const;
    [[nodiscard]] bool has_popularity() const { return name == "kilt_popqa_3"; }
};

[[nodiscard]] std::span<const Set> sets();

/// @throws UsageError for an unknown set
[[nodiscard]] const Set& set_named(std::string_view name);

/// Returns the set whose mark the path has. @throws UsageError if there is none
[[nodiscard]] const Set& set_of_file(const std::string& path);

}  // namespace kvscope::engine::helmet
