#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The figures and tables of papers, as they are described in assets/papers/, one file per paper.
namespace kvscope::papers {

/// Long options of a command, without dashes, with their values in the order of the file. A flag has the value "true".
using OptionTexts = std::vector<std::pair<std::string, std::vector<std::string>>>;

/// A command whose output other commands of the paper read, such as the trained maps of EchoKV.
struct Preparation {
    std::string name;  ///< "{name}" in options of traces stands for the path of the output
    std::string command;
    OptionTexts options;
    OptionTexts fast;  ///< replace `options` of the same names with --fast
};

struct PaperTrace {
    std::string name;
    std::string command;  ///< run, eval or analyze
    int n_texts = 0;      ///< passages of the user's text that are the prompts; 0: the options name the prompts
    std::string data;     ///< data that the user provides with --data, "{data}" in options; empty: none
    OptionTexts options;
    int n_fast_texts = 0;
    OptionTexts fast;  ///< replace `options` of the same names with --fast
};

/// A statement of the paper that a number of two runs confirms or not.
struct Finding {
    std::string says;
    std::string paper;                 ///< the paper's numbers
    std::string number;                ///< name of an analysis::Scalar
    std::string of, than;              ///< names of the runs (analysis::RunName)
    bool is_more = true;               ///< whether the paper reports more for `of` than for `than`
    std::vector<std::string> budgets;  ///< one comparison each; empty: `of` and `than` suffice
    std::vector<std::pair<std::string, std::string>> where;  ///< settings of the compared rows, with their values
    std::string trace;
    std::string cannot;  ///< why no number can confirm the statement; empty: `number` can
};

/// A figure or table of a paper.
struct PaperItem {
    std::string paper;   ///< name of the paper
    std::string source;  ///< name of the paper, or its file outside assets/papers/
    std::string id;      ///< "F4", "T10", "F3a"
    std::string shows;
    std::string trace;    ///< empty if `command` draws the item without a trace, or if the item cannot be made
    std::string figure;   ///< name of a figure or ranking
    std::string command;  ///< command that draws the item itself
    OptionTexts options;  ///< of `kvscope export`, or of `command`
    std::vector<std::string> renames;  ///< "LABEL=NEW LABEL"
    std::string lacks;                 ///< how the drawing differs from the paper's; empty if only model and data do
    std::string cannot;                ///< why the item cannot be made; empty if it can
    std::vector<Finding> findings;

    /// Returns "K-VEC:F4".
    [[nodiscard]] std::string full_id() const { return paper + ":" + id; }
    /// Returns the name for `export --figure`: "K-VEC:F4", or "my-paper.yaml:F4".
    [[nodiscard]] std::string reference() const { return source + ":" + id; }
    /// Returns "yes", "partly" or "no".
    [[nodiscard]] std::string_view state() const;
};

struct Paper {
    std::string name;
    std::string title;
    std::vector<Preparation> preparations;
    std::vector<PaperTrace> traces;
    std::vector<PaperItem> items;

    /// Returns "K-VEC: Coverage-Driven …"; only the title if it begins with the name.
    [[nodiscard]] std::string heading() const;
    /// @throws std::invalid_argument with the known names
    [[nodiscard]] const PaperTrace& trace(std::string_view name) const;
};

/// Reads a file as in assets/papers/. @throws std::runtime_error for an unreadable file; std::invalid_argument with
/// file and line for wrong contents
[[nodiscard]] Paper read_paper(const std::filesystem::path& path);

/// Returns the papers of assets/papers/, by name. @throws as read_paper()
[[nodiscard]] const std::vector<Paper>& all_papers();

/// Finds a paper by name, where case does not matter, or reads a file that ends in ".yaml".
/// @throws std::invalid_argument with the known names; as read_paper()
[[nodiscard]] const Paper& paper_named(std::string_view name);

/// Whether a name is written as an item of a paper, as in "K-VEC:F4".
[[nodiscard]] bool is_item_name(std::string_view name);

/// Finds an item by PaperItem::reference(); case does not matter. @throws std::invalid_argument with the known papers
/// or items
[[nodiscard]] const PaperItem& item_named(std::string_view reference);

/// Returns the item with the names that runs have with --same-window: "snapkv:window=16" for "snapkv".
[[nodiscard]] PaperItem with_same_window(PaperItem item, int window);

/// Returns `options` with the values of `fast` in place of those of the same names.
[[nodiscard]] OptionTexts with_replaced(OptionTexts options, const OptionTexts& fast);

/// Returns the output of a preparation in the folder of a reproduction.
[[nodiscard]] std::filesystem::path prepared_file(const Preparation& preparation, const std::filesystem::path& folder);

/// Returns the text with the paths of prepared files in place of "{name}".
[[nodiscard]] std::string with_prepared_files(std::string text, const Paper& paper,
                                              const std::filesystem::path& folder);

/// Returns the item with prepared files in its options, its renames and the runs of its findings.
[[nodiscard]] PaperItem with_prepared_files(PaperItem item, const Paper& paper, const std::filesystem::path& folder);

}  // namespace kvscope::papers
