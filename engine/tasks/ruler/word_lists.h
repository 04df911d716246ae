#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope::engine::ruler {

inline constexpr std::string_view adjective_file = "wonderwords/adjectivelist.txt";
inline constexpr std::string_view noun_file = "wonderwords/nounlist.txt";
inline constexpr std::string_view verb_file = "wonderwords/verblist.txt";

using Files = std::map<std::string, std::string>;  ///< contents of files by name

/// The sorted distinct words "adjective-noun" of wonderwords. Stores few of the six million words.
class AdjectiveNouns {
 public:
    explicit AdjectiveNouns(const Files& files);

    [[nodiscard]] size_t size() const { return groups_.empty() ? 0 : groups_.back().end; }
    [[nodiscard]] std::string at(size_t place) const;

 private:
    /// The words of one adjective, or of several adjectives whose words mix in the order, such as "up" and "up-beat".
    struct Group {
        std::string beginning;             ///< "adjective-"
        std::vector<std::string> words{};  ///< empty: `beginning` and each noun
        size_t end = 0;                    ///< number of words up to this group's last word
    };
    std::vector<std::string> nouns_;
    std::vector<Group> groups_;
};

/// Returns the sorted distinct nouns, adjectives and verbs of wonderwords.
[[nodiscard]] std::vector<std::string> sorted_words(const Files& files);

}  // namespace kvscope::engine::ruler
